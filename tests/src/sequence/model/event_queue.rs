//! Event queues: a freed one stays with its LNI, for the next.

use cxi_ioctl::Errno;

use super::accounting::EQ;
use super::{Model, Values};
use crate::sequence::operation::{Caller, EventQueueRequest};

pub const PCT: u64 = 128;
const PAGE: u64 = 4096;
/// An event's place in a queue.
const SLOT: u64 = 64;

#[derive(Clone, Copy, Debug)]
pub struct EventQueue {
    pub file: usize,
    pub lni: u32,
    pub md: u32,
    /// Wait objects; 0: none.
    pub waits: [u32; 2],
    pub pct: bool,
}

impl Model {
    pub(super) fn eq_alloc(
        &mut self,
        file: usize,
        caller: Caller,
        asked: &EventQueueRequest,
    ) -> Values {
        let svc_id = self.lni(file, asked.lni)?.svc_id;
        let md = self.mds.get(&asked.md).filter(|md| md.file == file);
        let md = md.ok_or(Errno::EINVAL)?;
        let waits = [asked.event_wait, asked.status_wait];
        let known = |wait: &u32| *wait == 0 || self.waits.contains_key(&(file, *wait));
        if !waits.iter().all(known) {
            return Err(Errno::EINVAL);
        }
        let (queue, len) = (asked.queue, asked.len);
        let aligned = queue.is_multiple_of(PAGE) && len.is_multiple_of(PAGE);
        let end = queue.checked_add(len);
        let inside = queue >= md.va && end.is_some_and(|end| end <= md.va + md.len);
        if queue == 0 || len == 0 || !aligned || !inside {
            return Err(Errno::EINVAL);
        }
        let pct = asked.flags & PCT != 0;
        if pct && !caller.admin {
            return Err(Errno::EPERM);
        }
        if u64::from(asked.reserved_slots) > len / SLOT - 1 {
            return Err(Errno::EINVAL);
        }
        let number = match self.lni(file, asked.lni)?.spare_eqs.pop_front() {
            Some(spare) => spare,
            None => self.take_numbered(svc_id, EQ)?,
        };
        if pct && self.has_pct() {
            self.return_numbered(svc_id, EQ, number);
            return Err(Errno::EEXIST);
        }
        let eq = EventQueue {
            file,
            lni: asked.lni,
            md: asked.md,
            waits,
            pct,
        };
        self.eqs.insert(number, eq);
        Ok(vec![number])
    }

    /// The device's one queue for the events of its connections is there.
    pub fn has_pct(&self) -> bool {
        self.eqs.values().any(|eq| eq.pct)
    }

    pub(super) fn eq_free(&mut self, file: usize, eq: u32) -> Values {
        let found = self.eqs.get(&eq);
        if found.is_none_or(|found| found.file != file) {
            return Err(Errno::EINVAL);
        }
        let in_use = self.queues.values().any(|queue| queue.eq == eq)
            || self.ptes.values().any(|pte| pte.eq == eq);
        if in_use {
            return Err(Errno::EBUSY);
        }
        self.drop_eq(eq);
        Ok(vec![])
    }

    pub(super) fn drop_eq(&mut self, number: u32) {
        let Some(eq) = self.eqs.remove(&number) else {
            return;
        };
        if let Some(lni) = self.lnis.get_mut(&eq.lni) {
            lni.spare_eqs.push_back(number);
        }
    }
}
