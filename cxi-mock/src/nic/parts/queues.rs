//! Command queues and event queues.

use cxi_ioctl::Errno;

use super::kinds::{Cq, Eq};
use super::objects::Objects;
use crate::Totals;

/// Number of the first target queue.
pub(crate) const FIRST_TGQ: u32 = 1024;

/// All command queues; a number says whether it is a transmit or a target queue.
#[derive(Debug)]
pub(crate) struct Cqs {
    txqs: Objects<Cq>,
    tgqs: Objects<Cq>,
}

impl Cqs {
    pub(crate) fn new(totals: &Totals) -> Self {
        Self {
            txqs: Objects::new(0, totals.txqs.into()),
            tgqs: Objects::new(FIRST_TGQ, FIRST_TGQ + u32::from(totals.tgqs)),
        }
    }

    pub(crate) fn of_kind(&mut self, transmit: bool) -> &mut Objects<Cq> {
        if transmit {
            &mut self.txqs
        } else {
            &mut self.tgqs
        }
    }

    /// The queues among which a number is.
    pub(crate) fn of_number(&mut self, id: u32) -> &mut Objects<Cq> {
        self.of_kind(id < FIRST_TGQ)
    }

    /// EINVAL if the file has no such queue.
    pub(crate) fn check(&self, file: u32, id: u32) -> Result<(), Errno> {
        let queues = if id < FIRST_TGQ {
            &self.txqs
        } else {
            &self.tgqs
        };
        queues.of(file, id).map(drop)
    }

    pub(crate) fn of_file(&self, file: u32) -> Vec<u32> {
        [self.txqs.of_file(file), self.tgqs.of_file(file)].concat()
    }

    /// Transmit and target queues whose numbers are taken.
    pub(crate) fn used(&self) -> (u32, u32) {
        (self.txqs.used(), self.tgqs.used())
    }
}

/// All event queues.
#[derive(Debug)]
pub(crate) struct Eqs {
    pub(crate) queues: Objects<Eq>,
    /// The retry handler's queue, of which a device has one at most.
    pub(crate) pct: Option<u32>,
}

impl Eqs {
    pub(crate) fn new(total: u16) -> Self {
        Self {
            queues: Objects::new(1, u32::from(total) + 1),
            pct: None,
        }
    }
}
