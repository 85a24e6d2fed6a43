//! Command queues: freed ones hold number and unit until they are finalized.

use cxi_ioctl::Errno;
use cxi_ioctl::abi::queue::CqAllocCmd;

use super::accounting::{TGQ, TXQ};
use super::file::owned;
use super::{Model, Values};
use crate::sequence::operation::Caller;

pub const TRANSMIT: u32 = 2;
pub const ETHERNET: u32 = 4;
pub const WITH_TRIGGER: u32 = 8;
const LARGEST: u32 = 65_536;
const SMALLEST: u32 = 64;
const LAST_POLICY: u32 = 3;
const LAST_THRESHOLD: u32 = 3;
const FIRST_TARGET: u32 = 1024;

#[derive(Clone, Copy, Debug)]
pub struct Queue {
    pub file: usize,
    pub lni: u32,
    /// 0: none.
    pub eq: u32,
}

impl Model {
    pub(super) fn cq_alloc(&mut self, file: usize, caller: Caller, asked: &CqAllocCmd) -> Values {
        let opts = &asked.opts;
        let lni = self.lni(file, asked.lni)?;
        let (svc_id, rgid) = (lni.svc_id, lni.rgid);
        self.own_eq(file, asked.eq)?;
        let transmit = opts.flags & TRANSMIT != 0;
        if opts.policy > LAST_POLICY || !transmit && opts.lpe_cdt_thresh_id > LAST_THRESHOLD {
            return Err(Errno::EINVAL);
        }
        if opts.count > LARGEST {
            return Err(Errno::E2BIG);
        }
        if transmit {
            let triggered = opts.flags & WITH_TRIGGER != 0;
            let has_lcid = self.lcids.contains_key(&(rgid, opts.lcid));
            if triggered && opts.lcid != 0 || !has_lcid {
                return Err(Errno::EINVAL);
            }
        }
        if opts.flags & ETHERNET != 0 && !caller.admin {
            return Err(Errno::EPERM);
        }
        let kind = if transmit { TXQ } else { TGQ };
        self.charge(svc_id, kind).or_else(|_| {
            self.finalize_queues(asked.lni);
            self.charge(svc_id, kind)
        })?;
        let number = self.numbers.take(kind).or_else(|| {
            self.clean_up();
            self.leaves_trace = true;
            self.numbers.take(kind)
        });
        let Some(number) = number else {
            self.return_unit(svc_id, kind);
            return Err(Errno::ENOSPC);
        };
        let queue = Queue { file, lni: asked.lni, eq: asked.eq };
        self.queues.insert(number, queue);
        let count = opts.count.max(SMALLEST).next_power_of_two();
        Ok(vec![number, count])
    }

    /// An event queue of the file, or no event queue.
    pub(super) fn own_eq(&self, file: usize, eq: u32) -> Result<(), Errno> {
        if eq == 0 {
            return Ok(());
        }
        owned(&self.eqs, file, eq).map(drop)
    }

    pub(super) fn cq_free(&mut self, file: usize, queue: u32) -> Values {
        owned(&self.queues, file, queue)?;
        self.drop_queue(queue);
        Ok(vec![])
    }

    pub(super) fn drop_queue(&mut self, number: u32) {
        let queue = self.queues.remove(&number).unwrap();
        self.lni_mut(queue.lni).freed_queues.push(number);
    }

    /// Frees the numbers and units of freed queues that have become idle.
    pub(super) fn finalize_queues(&mut self, lni: u32) {
        let found = self.lnis.get_mut(&lni).unwrap();
        let svc_id = found.svc_id;
        let freed = std::mem::take(&mut found.freed_queues);
        let (busy, quiet): (Vec<u32>, Vec<u32>) =
            freed.into_iter().partition(|queue| self.in_flight.contains(queue));
        found.freed_queues = busy;
        self.leaves_trace |= !quiet.is_empty();
        for queue in quiet {
            let kind = if queue < FIRST_TARGET { TXQ } else { TGQ };
            self.return_numbered(svc_id, kind, queue);
        }
    }
}
