//! Command queues and event queues.

use cxi_ioctl::Errno;
use cxi_ioctl::abi::memory::Mminfo;

use super::objects::Objects;
use crate::Totals;

/// Number of the first target queue.
pub(crate) const FIRST_TGQ: u32 = 1024;

/// A command queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cq {
    pub(crate) eq: u32,
    pub(crate) cmds: Mminfo,
    pub(crate) wp_addr: Mminfo,
}

/// All command queues. The number shows whether a queue is a transmit or a target queue.
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
        if transmit { &mut self.txqs } else { &mut self.tgqs }
    }

    /// The kind of queues that a number belongs to.
    pub(crate) fn of_number(&mut self, id: u32) -> &mut Objects<Cq> {
        self.of_kind(id < FIRST_TGQ)
    }

    /// EINVAL if the file has no such queue.
    pub(crate) fn check(&self, file: u32, id: u32) -> Result<(), Errno> {
        let transmit = id < FIRST_TGQ;
        let queues = if transmit { &self.txqs } else { &self.tgqs };
        queues.of(file, id).map(drop)
    }

    pub(crate) fn of_file(&self, file: u32) -> Vec<u32> {
        [self.txqs.of_file(file), self.tgqs.of_file(file)].concat()
    }

    /// Returns the numbers of transmit and target queues that are taken.
    pub(crate) fn used(&self) -> (u32, u32) {
        (self.txqs.used(), self.tgqs.used())
    }
}

/// An event queue; command queues and portal table entries are its users.
#[derive(Clone, Debug)]
pub(crate) struct Eq {
    pub(crate) buffer: Buffer,
    pub(crate) waits: [u32; 2],
    /// Callbacks of the driver for events and for status, which it keeps when the number is used
    /// again.
    pub(crate) callbacks: [bool; 2],
    pub(crate) csr: Mminfo,
    pub(crate) slots: u64,
    pub(crate) reserved: u64,
    /// Buffer and slots of a resize that is not complete.
    pub(crate) resize: Option<(Buffer, u64)>,
    /// Memory descriptors that a resize named although it did not need one: the driver releases
    /// them with the queue.
    pub(crate) held_mds: Vec<u32>,
}

/// Destination of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Buffer {
    /// A memory descriptor.
    Md(u32),
    /// An address that is not translated; `queue_md` is ignored.
    Passthrough,
}

/// All event queues.
#[derive(Debug)]
pub(crate) struct Eqs {
    pub(crate) queues: Objects<Eq>,
    /// The retry handler's queue. A device has at most one.
    pub(crate) pct: Option<u32>,
}

impl Eqs {
    /// So many queues, of which a retry handler that runs has the first. It counts for no service.
    pub(crate) fn new(total: u16, retry_handler: bool) -> Self {
        let mut queues = Objects::new(1, u32::from(total) + 1);
        let pct = if retry_handler { queues.number().ok() } else { None };
        Self { queues, pct }
    }
}
