//! Event queues.

use std::sync::Arc;

use cxi_ioctl::abi::memory::Mminfo;
use cxi_ioctl::abi::queue::{
    EQ_PASSTHROUGH, EQ_REGISTER_PCT, EqAdjustReservedFcCmd, EqAdjustReservedFcCmdV1,
    EqAdjustReservedFcResp, EqAllocCmd, EqAllocResp, EqAttr, EqFreeCmd, EqResizeCmd,
    EqResizeCompleteCmd,
};
use cxi_ioctl::{Errno, Opcode};
use zerocopy::FromZeros;

use super::answer::Answer;
use super::dispatch::Call;
use super::ids::Ids;
use super::lni::Lni;
use super::table::Table;
use super::window::PAGE;
use super::{Caller, Device, Slot};
use crate::data_path::NewEvents;
use crate::{Backing, HazardKind};

/// Bytes of the smallest slot of an event buffer.
const SLOT_BYTES: u64 = 64;
const MAX_BUFFER_BYTES: u64 = 1 << 32;
/// Most slots that can be reserved, however long the queue.
const MAX_RESERVED: u64 = 16383;
const MAX_THRESHOLDS: u32 = 4;
const PERCENT: u32 = 100;

/// An event queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Eq {
    file: u32,
    lni: u32,
    buffer: Buffer,
    waits: [u32; 2],
    /// Whether the driver has a callback for events and for status, which it keeps when the
    /// number is used again.
    callbacks: [bool; 2],
    csr: Mminfo,
    slots: u64,
    reserved: u64,
    /// Buffer and slots of a resize that is not complete.
    resize: Option<(Buffer, u64)>,
    /// Command queues and portal table entries that use it.
    users: u32,
}

/// Where events go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Buffer {
    /// A memory descriptor.
    Md(u32),
    /// An address that is not translated; `queue_md` is not looked at.
    Passthrough,
}

/// An event queue number that an LNI holds for its next queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FreeEq {
    id: u32,
    callbacks: [bool; 2],
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
    /// The commands for event queues.
    pub(super) fn event_queue_command(
        &mut self,
        opcode: Opcode,
        call: &mut Call<'_>,
    ) -> Result<(), Errno> {
        let file = call.caller.file;
        match opcode {
            Opcode::EQ_ALLOC => {
                let command: EqAllocCmd = call.command()?;
                let new = NewEq {
                    lni: command.lni,
                    md: command.queue_md,
                    waits: [command.event_wait, command.status_wait],
                    attr: command.attr,
                };
                let (eq, csr) = self.eq_alloc(&call.caller, &new, call.memory)?;
                let mut response = EqAllocResp::new_zeroed();
                response.eq = eq;
                response.csr = csr;
                call.made(eq, &response)
            }
            Opcode::EQ_FREE => {
                let command: EqFreeCmd = call.command()?;
                self.eq_free(file, command.eq)
            }
            Opcode::EQ_RESIZE => {
                let EqResizeCmd {
                    eq_hndl,
                    queue,
                    queue_len,
                    queue_md,
                    ..
                } = call.command()?;
                self.eq_resize(&call.caller, eq_hndl, queue_md, queue, queue_len)
            }
            Opcode::EQ_RESIZE_COMPLETE => {
                let command: EqResizeCompleteCmd = call.command()?;
                self.eq_resize_complete(file, command.eq_hndl)
            }
            Opcode::EQ_ADJUST_RESERVED_FC => {
                let (eq, change) = if self.rules.eq_adjust_behind {
                    let command: EqAdjustReservedFcCmd = call.command()?;
                    (command.eq_hndl, command.value)
                } else {
                    let command: EqAdjustReservedFcCmdV1 = call.command()?;
                    (command.eq_hndl, command.value)
                };
                let reserved_fc = self.eq_adjust_reserved(file, eq, change)?;
                call.respond(&EqAdjustReservedFcResp { reserved_fc })
            }
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    /// The queue of the retry handler, 0 when there is none.
    pub(super) fn pct_eq(&self) -> u32 {
        self.eqs.pct.unwrap_or(0)
    }

    /// EQ_ALLOC: the number and the window of registers. `memory` is looked at for a buffer
    /// without address translation.
    pub(super) fn eq_alloc(
        &mut self,
        caller: &Caller<'_>,
        new: &NewEq,
        memory: &Answer,
    ) -> Result<(u32, Mminfo), Errno> {
        let file = caller.file;
        let svc = self.lni_of(file, new.lni)?.svc;
        let attr = &new.attr;
        for wait in new.waits {
            self.check_wait(file, wait)?;
        }
        let buffer = if attr.flags & EQ_PASSTHROUGH == 0 {
            Buffer::Md(new.md)
        } else {
            Buffer::Passthrough
        };
        self.check_buffer(file, buffer, attr.queue, attr.queue_len)?;
        check_thresholds(attr)?;
        let pct = attr.flags & EQ_REGISTER_PCT != 0;
        if pct && !caller.credentials.sys_admin {
            return Err(Errno::EPERM);
        }
        if buffer == Buffer::Passthrough {
            check_pages(memory)?;
        }
        let slots = attr.queue_len / SLOT_BYTES;
        if u64::from(attr.reserved_slots) > MAX_RESERVED.min(slots - 1) {
            return Err(Errno::EINVAL);
        }
        let (FreeEq { id, callbacks }, held) = self.take_eq(new.lni, svc)?;
        let csr = if pct && self.eqs.pct.is_some() {
            Err(Errno::EEXIST)
        } else {
            self.file_mut(file)
                .and_then(|file| file.windows.alloc(PAGE))
        };
        let csr = match csr {
            Ok(csr) => csr,
            Err(errno) => {
                self.untake_eq(new.lni, svc, FreeEq { id, callbacks }, held);
                return Err(errno);
            }
        };
        if pct {
            self.eqs.pct = Some(id);
        }
        let waiting = new.waits.map(|wait| wait != 0);
        if (callbacks[0] && !waiting[0]) || (callbacks[1] && !waiting[1]) {
            self.hazard(HazardKind::StaleCallback { eq: id });
        }
        let eq = Eq {
            file,
            lni: new.lni,
            buffer,
            waits: new.waits,
            callbacks: [callbacks[0] || waiting[0], callbacks[1] || waiting[1]],
            csr,
            slots,
            reserved: attr.reserved_slots.into(),
            resize: None,
            users: 0,
        };
        self.eqs.table.put(id, eq);
        self.hold_buffer(buffer);
        for wait in new.waits {
            self.hold_wait(file, wait);
        }
        self.hold_lni(new.lni);
        self.file_mut(file)?.eqs.insert(id);
        if let Err(errno) = self.wire_events(caller, new, (id, csr)) {
            self.eq_free(file, id)?;
            return Err(errno);
        }
        Ok((id, csr))
    }

    /// Tells the data path of a new queue.
    fn wire_events(
        &mut self,
        caller: &Caller<'_>,
        new: &NewEq,
        (id, csr): (u32, Mminfo),
    ) -> Result<(), Errno> {
        let rgid = self.lni_of(caller.file, new.lni)?.rgid;
        let page = self.file_mut(caller.file)?.windows.map_for_nic(csr, None)?;
        let wait = |wait: u32| u64::from(caller.file) << 32 | u64::from(wait);
        self.data_path.add_event_queue(NewEvents {
            id,
            rgid,
            attr: &new.attr,
            waits: new.waits.map(|id| (id != 0).then(|| wait(id))),
            memory: Arc::clone(caller.memory),
            page,
        });
        Ok(())
    }

    /// A number: the oldest that the LNI holds, or a new one with a credit. Says whether the
    /// LNI held it.
    fn take_eq(&mut self, lni: u32, svc: u32) -> Result<(FreeEq, bool), Errno> {
        if let Some(lni) = self.lnis.get_mut(lni)
            && let Some(free) = lni.free_eqs.pop_front()
        {
            return Ok((free, true));
        }
        self.charge(svc, Slot::Eq)?;
        let Some(id) = self.eqs.ids.alloc() else {
            self.refund(svc, Slot::Eq);
            return Err(Errno::ENOSPC);
        };
        let callbacks = [false; 2];
        Ok((FreeEq { id, callbacks }, false))
    }

    /// Gives a number back that no queue was made of: to the LNI if it held it before.
    fn untake_eq(&mut self, lni: u32, svc: u32, free: FreeEq, held: bool) {
        if held && let Some(lni) = self.lnis.get_mut(lni) {
            lni.free_eqs.push_back(free);
        } else {
            self.eqs.ids.free(free.id);
            self.refund(svc, Slot::Eq);
        }
    }

    /// EINVAL for an invalid event buffer.
    fn check_buffer(&self, file: u32, buffer: Buffer, queue: u64, len: u64) -> Result<(), Errno> {
        let pages = |value: u64| value != 0 && value.is_multiple_of(PAGE);
        if !pages(queue) || !pages(len) || len > MAX_BUFFER_BYTES {
            return Err(Errno::EINVAL);
        }
        match buffer {
            Buffer::Md(md) => self.check_in_md(file, md, queue, len),
            Buffer::Passthrough => Ok(()),
        }
    }

    fn hold_buffer(&mut self, buffer: Buffer) {
        if let Buffer::Md(md) = buffer {
            self.hold_md(md);
        }
    }

    fn unhold_buffer(&mut self, buffer: Buffer) {
        if let Buffer::Md(md) = buffer {
            self.unhold_md(md);
        }
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
        self.data_path.remove_event_queue(id);
        self.file_mut(file)?.windows.free(eq.csr);
        if self.eqs.pct == Some(id) {
            self.eqs.pct = None;
        }
        self.unhold_buffer(eq.buffer);
        if let Some((buffer, _)) = eq.resize {
            self.unhold_buffer(buffer);
        }
        for wait in eq.waits {
            self.unhold_wait(file, wait);
        }
        self.unhold_lni(eq.lni);
        self.file_mut(file)?.eqs.remove(&id);
        if let Some(lni) = self.lnis.get_mut(eq.lni) {
            let callbacks = eq.callbacks;
            lni.free_eqs.push_back(FreeEq { id, callbacks });
        }
        Ok(())
    }

    /// EQ_RESIZE: the new buffer is there, the old one stays until it is complete. The
    /// reservation is not looked at.
    pub(super) fn eq_resize(
        &mut self,
        caller: &Caller<'_>,
        id: u32,
        md: u32,
        queue: u64,
        len: u64,
    ) -> Result<(), Errno> {
        let file = caller.file;
        let eq = self.eq_of(file, id)?;
        if eq.resize.is_some() {
            return Err(Errno::EINVAL);
        }
        let buffer = match eq.buffer {
            Buffer::Md(old) if self.same_context(old, md) => Buffer::Md(md),
            Buffer::Md(_) => return Err(Errno::EINVAL),
            Buffer::Passthrough => Buffer::Passthrough,
        };
        self.check_buffer(file, buffer, queue, len)?;
        self.hold_buffer(buffer);
        if let Some(eq) = self.eqs.table.get_mut(id) {
            eq.resize = Some((buffer, len / SLOT_BYTES));
        }
        self.data_path
            .resize_event_queue(id, caller.memory, queue, len);
        Ok(())
    }

    /// EQ_RESIZE_COMPLETE: the old buffer is free.
    pub(super) fn eq_resize_complete(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        let eq = *self.eq_of(file, id)?;
        let (buffer, slots) = eq.resize.ok_or(Errno::EINVAL)?;
        self.unhold_buffer(eq.buffer);
        if let Some(eq) = self.eqs.table.get_mut(id) {
            eq.buffer = buffer;
            eq.slots = slots;
            eq.resize = None;
        }
        Ok(())
    }

    /// EQ_ADJUST_RESERVED_FC: slots reserved after the change. EINVAL for what no queue could
    /// reserve, ENOSPC for what this one cannot.
    pub(super) fn eq_adjust_reserved(
        &mut self,
        file: u32,
        id: u32,
        change: i32,
    ) -> Result<i32, Errno> {
        let eq = self.eq_of(file, id)?;
        let reserved = eq.reserved.checked_add_signed(change.into());
        let reserved = reserved
            .filter(|reserved| *reserved <= MAX_RESERVED)
            .ok_or(Errno::EINVAL)?;
        if reserved >= eq.slots {
            return Err(Errno::ENOSPC);
        }
        if let Some(eq) = self.eqs.table.get_mut(id) {
            eq.reserved = reserved;
        }
        self.data_path.set_reserved_slots(id, reserved);
        i32::try_from(reserved).map_err(|_| Errno::EINVAL)
    }

    /// Gives back what an LNI holds of event queues.
    pub(super) fn end_eqs(&mut self, lni: &Lni) {
        for free in &lni.free_eqs {
            self.eqs.ids.free(free.id);
            self.refund(lni.svc, Slot::Eq);
        }
    }
}

/// EFAULT for a buffer that cannot be pinned, EINVAL for pages that do not follow each other.
fn check_pages(memory: &Answer) -> Result<(), Errno> {
    if memory.backing() == Backing::Missing {
        return Err(Errno::EFAULT);
    }
    memory.is_contiguous().then_some(()).ok_or(Errno::EINVAL)
}

/// EINVAL for fill levels that do not fit into a queue: they go down from the base.
fn check_thresholds(attr: &EqAttr) -> Result<(), Errno> {
    let (base, delta) = (attr.status_thresh_base, attr.status_thresh_delta);
    let count = attr.status_thresh_count;
    let fit = count == 0
        || (count <= MAX_THRESHOLDS
            && base <= PERCENT
            && delta <= PERCENT
            && (count - 1) * delta <= base);
    fit.then_some(()).ok_or(Errno::EINVAL)
}
