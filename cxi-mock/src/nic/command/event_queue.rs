//! The commands for event queues, and for wait objects.

use std::sync::Arc;

use cxi_engine::{EventBuffer, EventFlags, EventQueue, Thresholds};
use cxi_ioctl::Errno;
use cxi_ioctl::abi::memory::Mminfo;
use cxi_ioctl::abi::queue::{
    EQ_PASSTHROUGH, EQ_REGISTER_PCT, EqAdjustReservedFcCmd, EqAdjustReservedFcCmdV1,
    EqAdjustReservedFcResp, EqAllocCmd, EqAllocResp, EqAttr, EqResizeCmd, EqResizeCompleteCmd,
};
use cxi_ioctl::abi::wait::{WaitAllocCmd, WaitAllocResp};
use zerocopy::FromZeros;

use super::answer::Answer;
use super::{Call, Caller};
use crate::data_path::{EventPage, Purpose, page_bytes, small};
use crate::nic::device::Device;
use crate::nic::parts::accounting::Slot;
use crate::nic::parts::lnis::FreeEq;
use crate::nic::parts::queues::{Buffer, Eq};
use crate::{Backing, HazardKind};

/// Bytes of the smallest slot of an event buffer.
const SLOT_BYTES: u64 = 64;
const MAX_BUFFER_BYTES: u64 = 1 << 32;
/// The most slots that can be reserved, however long the queue: the register has 14 bits.
const MAX_RESERVED: u64 = 16383;
const MAX_THRESHOLDS: u32 = 4;
const PERCENT: u32 = 100;

pub(super) fn eq_alloc(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let (eq, csr) = device.eq_alloc(&call.caller, &call.command()?, call.memory)?;
    let mut response = EqAllocResp::new_zeroed();
    (response.eq, response.csr) = (eq, csr);
    call.made(eq, &response)
}

pub(super) fn eq_resize(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    device.eq_resize(&call.caller, call.command()?)
}

pub(super) fn eq_resize_complete(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let file = call.caller.file;
    device.eq_resize_complete(file, call.command::<EqResizeCompleteCmd>()?.eq_hndl)
}

pub(super) fn eq_adjust_reserved_fc(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let file = call.caller.file;
    let (eq, change) = if device.rules.eq_adjust_behind {
        let command: EqAdjustReservedFcCmd = call.command()?;
        (command.eq_hndl, command.value)
    } else {
        let command: EqAdjustReservedFcCmdV1 = call.command()?;
        (command.eq_hndl, command.value)
    };
    let reserved_fc = device.eq_adjust_reserved(file, eq, change)?;
    call.respond(&EqAdjustReservedFcResp { reserved_fc })
}

pub(super) fn wait_alloc(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let file = call.caller.file;
    let WaitAllocCmd { lni, .. } = call.command()?;
    device.lni_of(file, lni)?;
    let owner = device.files.get_mut(file)?;
    let wait = owner.waits.add((file, lni), ())?;
    let client_id = owner.number;
    device.lnis.live.hold(lni);
    call.made(wait, &WaitAllocResp { client_id, wait })
}

impl Device {
    pub(super) fn wait_free(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        let wait = self.files.get_mut(file)?.waits.remove(file, id)?;
        self.lnis.live.release(wait.lni);
        Ok(())
    }

    /// Returns the number and the window of registers. `memory` describes a buffer without address
    /// translation.
    fn eq_alloc(
        &mut self,
        caller: &Caller<'_>,
        new: &EqAllocCmd,
        memory: &Answer,
    ) -> Result<(u32, Mminfo), Errno> {
        let file = caller.file;
        let svc = self.lni_of(file, new.lni)?.svc;
        let attr = &new.attr;
        let waits = &self.files.get(file)?.waits;
        let waits_of_eq = [new.event_wait, new.status_wait];
        for wait in waits_of_eq.into_iter().filter(|wait| *wait != 0) {
            waits.of(file, wait)?;
        }
        let buffer = if attr.flags & EQ_PASSTHROUGH == 0 {
            Buffer::Md(new.queue_md)
        } else {
            Buffer::Passthrough
        };
        let empty = buffer == Buffer::Passthrough && attr.queue_len == 0;
        if empty && self.files.is_virtual(file) {
            self.hazard(HazardKind::EmptyEventQueue);
        }
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
        let held = self.lnis.live.get(new.lni).and_then(|lni| lni.free_eqs.front()).is_some();
        if !held {
            self.services.may_charge(svc, Slot::Eq)?;
            if !self.eqs.queues.has_number() {
                return Err(Errno::ENOSPC);
            }
        }
        // There is one retry handler. The driver notices a second one after it has taken a number,
        // which then becomes the LNI's last one to reuse.
        if pct && self.eqs.pct.is_some() {
            if let Some(lni) = self.lnis.live.get_mut(new.lni)
                && held
            {
                lni.free_eqs.rotate_left(1);
            }
            return Err(Errno::EEXIST);
        }
        let csr = self.files.get_mut(file)?.windows.alloc(page_bytes())?;
        let FreeEq { id, callbacks } = self.take_eq(new.lni, svc)?;
        if pct {
            self.eqs.pct = Some(id);
        }
        self.check_wrap_hazard(buffer, attr.queue, attr.queue_len);
        let waiting = waits_of_eq.map(|wait| wait != 0);
        // A reused number without its own callback has that of its predecessor, which is gone.
        if (callbacks[0] && !waiting[0]) || (callbacks[1] && !waiting[1]) {
            self.hazard(HazardKind::StaleCallback { eq: id });
        }
        let eq = Eq {
            buffer,
            waits: waits_of_eq,
            callbacks: [callbacks[0] || waiting[0], callbacks[1] || waiting[1]],
            csr,
            slots,
            reserved: attr.reserved_slots.into(),
            resize: None,
            held_mds: Vec::new(),
        };
        self.eqs.queues.put(id, (file, new.lni), eq);
        self.hold_buffer(buffer);
        let waits = &mut self.files.get_mut(file)?.waits;
        for wait in waits_of_eq {
            waits.hold(wait);
        }
        self.lnis.live.hold(new.lni);
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
        new: &EqAllocCmd,
        (id, csr): (u32, Mminfo),
    ) -> Result<(), Errno> {
        let rgid = self.lni_of(caller.file, new.lni)?.rgid;
        let page = self.files.get_mut(caller.file)?.windows.map_for_nic(csr, Purpose::Plain)?;
        let wait = |wait: u32| u64::from(caller.file) << 32 | u64::from(wait);
        let attr = &new.attr;
        let queue = EventQueue {
            rgid: small(rgid),
            buffer: EventBuffer {
                memory: Arc::clone(caller.memory),
                va: attr.queue,
                len: attr.queue_len,
            },
            flags: EventFlags::from_bits_truncate(attr.flags),
            thresholds: Thresholds {
                base: attr.status_thresh_base,
                delta: attr.status_thresh_delta,
                count: attr.status_thresh_count,
            },
            reserved: attr.reserved_slots,
            event_wait: (new.event_wait != 0).then(|| wait(new.event_wait)),
            status_wait: (new.status_wait != 0).then(|| wait(new.status_wait)),
            page: Box::new(EventPage(page)),
        };
        let engine = &mut self.data_path.state().engine;
        engine.add_event_queue(small(id), queue);
        Ok(())
    }

    /// Takes a number: the oldest that the LNI holds, or a new one, which takes a credit.
    fn take_eq(&mut self, lni: u32, svc: u32) -> Result<FreeEq, Errno> {
        if let Some(lni) = self.lnis.live.get_mut(lni)
            && let Some(free) = lni.free_eqs.pop_front()
        {
            return Ok(free);
        }
        self.services.charge(svc, Slot::Eq)?;
        Ok(FreeEq { id: self.eqs.queues.number()?, callbacks: [false; 2] })
    }

    /// EINVAL for an invalid event buffer.
    fn check_buffer(&self, file: u32, buffer: Buffer, queue: u64, len: u64) -> Result<(), Errno> {
        let pages = |value: u64| value != 0 && value.is_multiple_of(page_bytes());
        if !pages(queue) || !pages(len) || len > MAX_BUFFER_BYTES {
            return Err(Errno::EINVAL);
        }
        match buffer {
            // The driver does not notice that a buffer wraps around the address space.
            Buffer::Md(md) => self.check_in_md(file, md, queue, queue.wrapping_add(len)),
            Buffer::Passthrough => Ok(()),
        }
    }

    /// Records that a buffer with translation wraps around.
    fn check_wrap_hazard(&mut self, buffer: Buffer, queue: u64, len: u64) {
        if buffer != Buffer::Passthrough && queue.checked_add(len).is_none() {
            self.hazard(HazardKind::EventBufferWraps { queue });
        }
    }

    fn hold_buffer(&mut self, buffer: Buffer) {
        if let Buffer::Md(md) = buffer {
            self.mds.hold(md);
        }
    }

    fn release_buffer(&mut self, buffer: Buffer) {
        if let Buffer::Md(md) = buffer {
            self.mds.release(md);
        }
    }

    /// Frees a queue. The LNI keeps number and credit for its next queue.
    pub(super) fn eq_free(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        let eq = self.eqs.queues.take(file, id)?;
        self.eqs.pct.take_if(|pct| *pct == id);
        self.data_path.state().engine.remove_event_queue(small(id));
        let owner = self.files.get_mut(file)?;
        owner.windows.free(eq.csr);
        eq.waits.into_iter().for_each(|wait| owner.waits.release(wait));
        self.release_buffer(eq.buffer);
        if let Some((buffer, _)) = eq.resize {
            self.release_buffer(buffer);
        }
        for md in &eq.held_mds {
            self.mds.release(*md);
        }
        self.lnis.live.release(eq.lni);
        if let Some(lni) = self.lnis.live.get_mut(eq.lni) {
            let callbacks = eq.callbacks;
            lni.free_eqs.push_back(FreeEq { id, callbacks });
        }
        Ok(())
    }

    /// Switches to a new buffer; the old one stays until the resize is complete. The driver does
    /// not check the reservation.
    fn eq_resize(&mut self, caller: &Caller<'_>, command: EqResizeCmd) -> Result<(), Errno> {
        let (file, id, md) = (caller.file, command.eq_hndl, command.queue_md);
        let (queue, len) = (command.queue, command.queue_len);
        let eq = self.eqs.queues.of(file, id)?;
        if eq.resize.is_some() {
            return Err(Errno::EINVAL);
        }
        let buffer = match eq.buffer {
            Buffer::Md(old) if self.same_lac(old, md) => Buffer::Md(md),
            Buffer::Md(_) => return Err(Errno::EINVAL),
            Buffer::Passthrough => Buffer::Passthrough,
        };
        self.check_buffer(file, buffer, queue, len)?;
        self.check_wrap_hazard(buffer, queue, len);
        self.hold_buffer(buffer);
        // Without translation, the descriptor is not used but is held nevertheless.
        let held = self.mds.of(file, md).is_ok() && buffer == Buffer::Passthrough;
        if held {
            self.mds.hold(md);
        }
        let eq = self.eqs.queues.of_mut(file, id)?;
        eq.resize = Some((buffer, len / SLOT_BYTES));
        eq.held_mds.extend(held.then_some(md));
        // Events of what was rung before go to the old buffer.
        let buffer = EventBuffer { memory: Arc::clone(caller.memory), va: queue, len };
        let engine = &mut self.data_path.state().engine;
        engine.resize_event_queue(small(id), buffer);
        Ok(())
    }

    /// Frees the old buffer.
    fn eq_resize_complete(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        let eq = self.eqs.queues.of_mut(file, id)?;
        let (buffer, slots) = eq.resize.take().ok_or(Errno::EINVAL)?;
        let old = std::mem::replace(&mut eq.buffer, buffer);
        eq.slots = slots;
        self.release_buffer(old);
        Ok(())
    }

    /// Returns the slots reserved after the change. EINVAL for a number that no queue could
    /// reserve, ENOSPC for one that this queue cannot.
    fn eq_adjust_reserved(&mut self, file: u32, id: u32, change: i32) -> Result<i32, Errno> {
        let eq = self.eqs.queues.of_mut(file, id)?;
        let reserved = eq.reserved.checked_add_signed(change.into());
        let reserved =
            reserved.filter(|reserved| *reserved <= MAX_RESERVED).ok_or(Errno::EINVAL)?;
        if reserved >= eq.slots {
            return Err(Errno::ENOSPC);
        }
        eq.reserved = reserved;
        let reserved = u32::try_from(reserved).map_err(|_| Errno::EINVAL)?;
        let engine = &mut self.data_path.state().engine;
        engine.set_reserved_slots(small(id), reserved);
        i32::try_from(reserved).map_err(|_| Errno::EINVAL)
    }
}

/// EFAULT for a buffer that cannot be pinned, EINVAL for pages that are not contiguous.
fn check_pages(memory: &Answer) -> Result<(), Errno> {
    if memory.backing == Backing::Missing {
        return Err(Errno::EFAULT);
    }
    memory.is_contiguous.then_some(()).ok_or(Errno::EINVAL)
}

/// EINVAL for fill levels that do not fit into a queue. They descend from the base.
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
