//! Event queues.

use cxi_ioctl::Errno;
use cxi_ioctl::abi::memory::Mminfo;
use cxi_ioctl::abi::queue::{EQ_PASSTHROUGH, EQ_REGISTER_PCT, EqAttr};

use super::ids::Ids;
use super::lni::Lni;
use super::table::Table;
use super::window::PAGE;
use super::{Caller, Device, Slot};

/// Bytes of the smallest slot of an event buffer.
const SLOT_BYTES: u64 = 64;
const MAX_THRESHOLDS: u32 = 4;
const PERCENT: u32 = 100;

/// An event queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Eq {
    file: u32,
    lni: u32,
    md: u32,
    waits: [u32; 2],
    csr: Mminfo,
    slots: u64,
    reserved: u64,
    /// Memory descriptor and slots of a resize that is not complete.
    resize: Option<(u32, u64)>,
    /// Command queues and portal table entries that use it.
    users: u32,
}

/// All event queues.
#[derive(Debug)]
pub(crate) struct Eqs {
    ids: Ids,
    table: Table<Eq>,
    /// The retry handler's queue.
    pct: Option<u32>,
}

impl Eqs {
    pub(crate) fn new(total: u16) -> Self {
        Self {
            ids: Ids::new(1, u32::from(total) + 1),
            table: Table::default(),
            pct: None,
        }
    }

    /// Queues whose numbers are in use.
    pub(crate) fn used(&self) -> u32 {
        self.ids.used()
    }
}

/// Arguments of EQ_ALLOC.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewEq {
    pub(super) lni: u32,
    pub(super) md: u32,
    pub(super) waits: [u32; 2],
    pub(super) attr: EqAttr,
}

impl Device {
    /// The queue of the retry handler, 0 when there is none.
    pub(super) fn pct_eq(&self) -> u32 {
        self.eqs.pct.unwrap_or(0)
    }

    /// EQ_ALLOC: the number and the window of registers.
    pub(super) fn eq_alloc(
        &mut self,
        caller: &Caller<'_>,
        new: &NewEq,
    ) -> Result<(u32, Mminfo), Errno> {
        let file = caller.file;
        let svc = self.lni_of(file, new.lni)?.svc;
        let attr = &new.attr;
        for wait in new.waits {
            self.check_wait(file, wait)?;
        }
        self.check_buffer(file, new.md, attr.queue, attr.queue_len, attr.flags)?;
        check_thresholds(attr)?;
        let pct = attr.flags & EQ_REGISTER_PCT != 0;
        if pct && !caller.credentials.sys_admin {
            return Err(Errno::EPERM);
        }
        let slots = attr.queue_len / SLOT_BYTES;
        if u64::from(attr.reserved_slots) > slots.saturating_sub(1) {
            return Err(Errno::EINVAL);
        }
        let id = self.take_eq(new.lni, svc)?;
        let csr = if pct && self.eqs.pct.is_some() {
            Err(Errno::EEXIST)
        } else {
            self.file_mut(file)
                .and_then(|file| file.windows.alloc(PAGE))
        };
        let csr = match csr {
            Ok(csr) => csr,
            Err(errno) => {
                self.eqs.ids.free(id);
                self.refund(svc, Slot::Eq);
                return Err(errno);
            }
        };
        if pct {
            self.eqs.pct = Some(id);
        }
        let eq = Eq {
            file,
            lni: new.lni,
            md: new.md,
            waits: new.waits,
            csr,
            slots,
            reserved: attr.reserved_slots.into(),
            resize: None,
            users: 0,
        };
        self.eqs.table.put(id, eq);
        self.hold_md(new.md);
        for wait in new.waits {
            self.hold_wait(file, wait);
        }
        self.hold_lni(new.lni);
        self.file_mut(file)?.eqs.insert(id);
        Ok((id, csr))
    }

    /// A number: the oldest that the LNI holds, or a new one with a credit.
    fn take_eq(&mut self, lni: u32, svc: u32) -> Result<u32, Errno> {
        if let Some(lni) = self.lnis.get_mut(lni)
            && let Some(id) = lni.free_eqs.pop_front()
        {
            return Ok(id);
        }
        self.charge(svc, Slot::Eq)?;
        self.eqs.ids.alloc().ok_or_else(|| {
            self.refund(svc, Slot::Eq);
            Errno::ENOSPC
        })
    }

    /// EINVAL for an event buffer that is none.
    fn check_buffer(
        &self,
        file: u32,
        md: u32,
        queue: u64,
        len: u64,
        flags: u64,
    ) -> Result<(), Errno> {
        let pages = |value: u64| value != 0 && value.is_multiple_of(PAGE);
        if !pages(queue) || !pages(len) {
            return Err(Errno::EINVAL);
        }
        if flags & EQ_PASSTHROUGH != 0 && md == 0 {
            return Ok(());
        }
        self.check_in_md(file, md, queue, len)
    }

    /// The event queue of a handle, if it belongs to the file.
    pub(super) fn eq_of(&self, file: u32, id: u32) -> Result<&Eq, Errno> {
        let eq = self.eqs.table.get(id).filter(|eq| eq.file == file);
        eq.ok_or(Errno::EINVAL)
    }

    pub(super) fn hold_eq(&mut self, id: u32) {
        if let Some(eq) = self.eqs.table.get_mut(id) {
            eq.users += 1;
        }
    }

    pub(super) fn unhold_eq(&mut self, id: u32) {
        if let Some(eq) = self.eqs.table.get_mut(id) {
            eq.users = eq.users.saturating_sub(1);
        }
    }

    /// EQ_FREE: the LNI keeps number and credit for its next one.
    pub(super) fn eq_free(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        let eq = *self.eq_of(file, id)?;
        if eq.users > 0 {
            return Err(Errno::EBUSY);
        }
        self.eqs.table.remove(id);
        self.file_mut(file)?.windows.free(eq.csr);
        if self.eqs.pct == Some(id) {
            self.eqs.pct = None;
        }
        self.unhold_md(eq.md);
        if let Some((md, _)) = eq.resize {
            self.unhold_md(md);
        }
        for wait in eq.waits {
            self.unhold_wait(file, wait);
        }
        self.unhold_lni(eq.lni);
        self.file_mut(file)?.eqs.remove(&id);
        if let Some(lni) = self.lnis.get_mut(eq.lni) {
            lni.free_eqs.push_back(id);
        }
        Ok(())
    }

    /// EQ_RESIZE: the new buffer is there, the old one stays until it is complete.
    pub(super) fn eq_resize(
        &mut self,
        file: u32,
        id: u32,
        md: u32,
        queue: u64,
        len: u64,
    ) -> Result<(), Errno> {
        let eq = *self.eq_of(file, id)?;
        self.check_buffer(file, md, queue, len, 0)?;
        let slots = len / SLOT_BYTES;
        if eq.reserved > slots.saturating_sub(1) {
            return Err(Errno::EINVAL);
        }
        if eq.resize.is_some() {
            return Err(Errno::EBUSY);
        }
        self.hold_md(md);
        if let Some(eq) = self.eqs.table.get_mut(id) {
            eq.resize = Some((md, slots));
        }
        Ok(())
    }

    /// EQ_RESIZE_COMPLETE: the old buffer is free.
    pub(super) fn eq_resize_complete(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        let eq = *self.eq_of(file, id)?;
        let (md, slots) = eq.resize.ok_or(Errno::EINVAL)?;
        self.unhold_md(eq.md);
        if let Some(eq) = self.eqs.table.get_mut(id) {
            eq.md = md;
            eq.slots = slots;
            eq.resize = None;
        }
        Ok(())
    }

    /// EQ_ADJUST_RESERVED_FC: slots reserved after the change.
    pub(super) fn eq_adjust_reserved(
        &mut self,
        file: u32,
        id: u32,
        change: i32,
    ) -> Result<i32, Errno> {
        let eq = self.eq_of(file, id)?;
        let reserved = eq.reserved.checked_add_signed(change.into());
        let reserved = reserved
            .filter(|reserved| *reserved < eq.slots)
            .ok_or(Errno::EINVAL)?;
        if let Some(eq) = self.eqs.table.get_mut(id) {
            eq.reserved = reserved;
        }
        i32::try_from(reserved).map_err(|_| Errno::EINVAL)
    }

    /// Gives back what an LNI holds of event queues.
    pub(super) fn end_eqs(&mut self, lni: &Lni) {
        for id in &lni.free_eqs {
            self.eqs.ids.free(*id);
            self.refund(lni.svc, Slot::Eq);
        }
    }
}

/// EINVAL for fill levels that do not fit into a queue.
fn check_thresholds(attr: &EqAttr) -> Result<(), Errno> {
    let (base, delta) = (attr.status_thresh_base, attr.status_thresh_delta);
    let count = attr.status_thresh_count;
    if count > MAX_THRESHOLDS || base > PERCENT || delta > PERCENT {
        return Err(Errno::EINVAL);
    }
    if base + delta * count.saturating_sub(1) > PERCENT {
        return Err(Errno::EINVAL);
    }
    Ok(())
}
