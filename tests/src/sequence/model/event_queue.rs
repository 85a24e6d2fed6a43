//! Event queues: a freed one stays with its LNI, for the next.

use cxi_ioctl::Errno;
use cxi_ioctl::abi::queue::{EqAllocCmd, EqResizeCmd};

use super::accounting::EQ;
use super::file::owned;
use super::{Model, Values};
use crate::sequence::operation::Caller;

pub const PCT: u64 = 128;
pub const PASSTHROUGH: u64 = 2;
const PAGE: u64 = 4096;
/// An event's place in a queue.
const SLOT: u64 = 64;
const LONGEST: u64 = 1 << 32;
const MOST_RESERVED: u64 = 16_383;

#[derive(Clone, Copy, Debug)]
pub struct EventQueue {
    pub file: usize,
    pub lni: u32,
    /// 0: addresses are not translated.
    pub md: u32,
    /// Memory and slots of a resize that is under way.
    pub next: Option<(u32, u64)>,
    pub slots: u64,
    pub reserved: u64,
    /// Wait objects; 0: none.
    pub waits: [u32; 2],
    pub pct: bool,
    /// Wait objects of it, or of the one that had its number before.
    pub callbacks: [bool; 2],
}

/// The number of a freed one.
#[derive(Clone, Copy, Debug)]
pub struct SpareEq {
    pub number: u32,
    pub callbacks: [bool; 2],
}

impl Model {
    pub(super) fn eq_alloc(&mut self, file: usize, caller: Caller, asked: &EqAllocCmd) -> Values {
        let svc_id = self.lni(file, asked.lni)?.svc_id;
        let attr = &asked.attr;
        let passthrough = attr.flags & PASSTHROUGH != 0;
        let md = if passthrough { 0 } else { asked.queue_md };
        let waits = [asked.event_wait, asked.status_wait];
        let known = |wait: &u32| *wait == 0 || self.waits.contains_key(&(file, *wait));
        if !waits.iter().all(known) {
            return Err(Errno::EINVAL);
        }
        self.check_buffer(file, passthrough, md, (attr.queue, attr.queue_len))?;
        let (base, delta) = (attr.status_thresh_base, attr.status_thresh_delta);
        let count = attr.status_thresh_count;
        let levels = (1..count).map(|level| level * delta);
        let impossible = count > 4 || base > 100 || delta > 100;
        if count > 0 && (impossible || levels.max().is_some_and(|below| below > base)) {
            return Err(Errno::EINVAL);
        }
        let pct = attr.flags & PCT != 0;
        if pct && !caller.admin {
            return Err(Errno::EPERM);
        }
        let slots = attr.queue_len / SLOT;
        let reserved = u64::from(attr.reserved_slots);
        if reserved >= slots || reserved > MOST_RESERVED {
            return Err(Errno::EINVAL);
        }
        let held = self.lni(file, asked.lni)?.spare_eqs.pop_front();
        let number = match held {
            Some(spare) => spare.number,
            None => self.take_numbered(svc_id, EQ)?,
        };
        if pct && self.has_pct() {
            match held {
                Some(spare) => self.lni(file, asked.lni)?.spare_eqs.push_back(spare),
                None => self.return_numbered(svc_id, EQ, number),
            }
            return Err(Errno::EEXIST);
        }
        let before = held.map_or([false; 2], |spare| spare.callbacks);
        let eq = EventQueue {
            file,
            lni: asked.lni,
            md,
            next: None,
            slots,
            reserved,
            waits,
            pct,
            callbacks: [0, 1].map(|wait| before[wait] || waits[wait] != 0),
        };
        self.eqs.insert(number, eq);
        Ok(vec![number])
    }

    fn check_buffer(
        &self,
        file: usize,
        passthrough: bool,
        md: u32,
        (queue, len): (u64, u64),
    ) -> Result<(), Errno> {
        let aligned = queue.is_multiple_of(PAGE) && len.is_multiple_of(PAGE);
        let end = queue.checked_add(len);
        let inside = owned(&self.mds, file, md)
            .is_ok_and(|md| queue >= md.va && end.is_some_and(|end| end <= md.va + md.len));
        if queue == 0 || len == 0 || len > LONGEST || !aligned || !(inside || passthrough) {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }

    fn own_eq_mut(&mut self, file: usize, eq: u32) -> Result<&mut EventQueue, Errno> {
        let found = self.eqs.get_mut(&eq);
        found.filter(|found| found.file == file).ok_or(Errno::EINVAL)
    }

    pub(super) fn eq_resize(&mut self, file: usize, asked: &EqResizeCmd) -> Values {
        let (number, md) = (asked.eq_hndl, asked.queue_md);
        let place = (asked.queue, asked.queue_len);
        let eq = owned(&self.eqs, file, number)?;
        let passthrough = eq.md == 0;
        let named = self.mds.get(&md).is_some_and(|md| md.file == file);
        let held = (passthrough && named).then_some(md);
        let md = if passthrough { 0 } else { md };
        self.check_buffer(file, passthrough, md, place)?;
        let lac = |md| self.mds.get(&md).map(|md: &super::Md| md.lac);
        if eq.next.is_some() || lac(md) != lac(eq.md) {
            return Err(Errno::EINVAL);
        }
        self.own_eq_mut(file, number)?.next = Some((md, place.1 / SLOT));
        self.held_mds.extend(held.map(|md| (number, md)));
        Ok(vec![])
    }

    pub(super) fn eq_resize_complete(&mut self, file: usize, number: u32) -> Values {
        let eq = self.own_eq_mut(file, number)?;
        (eq.md, eq.slots) = eq.next.take().ok_or(Errno::EINVAL)?;
        Ok(vec![])
    }

    pub(super) fn eq_adjust(&mut self, file: usize, number: u32, change: i32) -> Values {
        let eq = self.own_eq_mut(file, number)?;
        let reserved = eq.reserved.checked_add_signed(change.into());
        let reserved = reserved.filter(|reserved| *reserved <= MOST_RESERVED);
        let reserved = reserved.ok_or(Errno::EINVAL)?;
        if reserved >= eq.slots {
            return Err(Errno::ENOSPC);
        }
        eq.reserved = reserved;
        Ok(vec![u32::try_from(reserved).unwrap()])
    }

    /// The device's one queue for the events of its connections is there.
    pub fn has_pct(&self) -> bool {
        self.eqs.values().any(|eq| eq.pct)
    }

    pub(super) fn eq_free(&mut self, file: usize, eq: u32) -> Values {
        owned(&self.eqs, file, eq)?;
        let in_use = self.queues.values().any(|queue| queue.eq == eq)
            || self.ptes.values().any(|pte| pte.eq == eq);
        if in_use {
            return Err(Errno::EBUSY);
        }
        self.drop_eq(eq);
        Ok(vec![])
    }

    pub(super) fn drop_eq(&mut self, number: u32) {
        self.held_mds.retain(|(eq, _)| *eq != number);
        let EventQueue { lni, callbacks, .. } = self.eqs.remove(&number).unwrap();
        let spare = SpareEq { number, callbacks };
        self.lni_mut(lni).spare_eqs.push_back(spare);
    }
}
