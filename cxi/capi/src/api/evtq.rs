//! Event queues.

use std::cell::Cell;
use std::ffi::c_int;

use cxi::Resource;
use cxi_ioctl::abi::memory::MD_NONE;
use cxi_ioctl::abi::queue::{
    EQ_PASSTHROUGH, EqAllocCmd, EqAttr, EqFreeCmd, EqResizeCmd, EqResizeCompleteCmd,
};
use cxi_ioctl::abi::wait::WAIT_NONE;

use crate::child::{Evtq, Lni, Md, Wait};
use crate::device::Counted;
use crate::failure::{Failure, Result};
use crate::ffi::{In, Memory, Out, status};
use crate::handle::{Handle, Room, Shared, Tag};
use crate::public::EvtqPublic;
use crate::send::{adjust_reserved_fc, send};
use crate::window::Window;

#[unsafe(no_mangle)]
extern "C" fn cxil_alloc_evtq(
    lni: Handle<Lni>,
    md: Handle<Md>,
    attr: In<EqAttr>,
    event_wait: Handle<Wait>,
    status_wait: Handle<Wait>,
    evtq: Out<*mut EvtqPublic>,
) -> c_int {
    status(|| {
        let lni = lni.get()?;
        let attr = attr.get()?;
        let evtq = Room::new(evtq)?;
        let queue_md = if attr.flags & EQ_PASSTHROUGH == 0 { md.get()?.number } else { MD_NONE };
        let queue = Memory::at(attr.queue).required()?;
        // On a virtual function, a driver of the development branch would read past the end of an empty
        // array if there is no memory descriptor.
        if queue_md == MD_NONE && attr.queue_len == 0 && lni.dev.info.get().is_vf != 0 {
            return Err(Failure::argument());
        }
        let wait = |wait: &Handle<Wait>| -> Result<u32> {
            Ok(wait.optional()?.map_or(WAIT_NONE, |wait| wait.number))
        };
        let command = EqAllocCmd {
            lni: lni.id.get(),
            queue_md,
            event_wait: wait(&event_wait)?,
            status_wait: wait(&status_wait)?,
            attr,
            ..EqAllocCmd::new()
        };
        let len = usize::try_from(attr.queue_len).map_err(|_| Failure::argument())?;
        // This must be set before the NIC may write events.
        queue.clear(len);
        let response = lni.send(&command, Some(Resource::Eqs))?;
        let registers = Window::of(&lni.dev, response.csr).inspect_err(|_| {
            // The caller gets the error of the mapping.
            let _ = send(&lni.dev, &EqFreeCmd::of(response.eq));
        })?;
        let public = EvtqPublic::new(response.eq, queue, attr.queue_len, registers.address());
        evtq.fill(Evtq {
            lni: std::ptr::from_ref(lni),
            number: response.eq,
            tag: Tag::of::<Evtq>(),
            dev: Counted::new(&lni.dev),
            registers,
            resized: Cell::new((Memory::NONE, 0)),
            public: Shared::new(public),
        });
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_destroy_evtq(evtq: Handle<Evtq>) -> c_int {
    status(|| {
        evtq.end(|evtq| {
            evtq.registers.unmap()?;
            send(&evtq.dev, &EqFreeCmd::of(evtq.number))
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_evtq_adjust_reserved_fc(evtq: Handle<Evtq>, value: c_int) -> c_int {
    status(|| {
        let evtq = evtq.get()?;
        // The form of the command is known since the LNI was allocated.
        let form = evtq.dev.lnis.known().ok_or_else(Failure::argument)?;
        adjust_reserved_fc(&evtq.dev, form, evtq.number, value)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_evtq_resize(
    evtq: Handle<Evtq>,
    queue: Memory,
    queue_len: usize,
    queue_md: Handle<Md>,
) -> c_int {
    status(|| {
        let evtq = evtq.get()?;
        let command = EqResizeCmd {
            eq_hndl: evtq.number,
            queue: queue.address(),
            queue_len: queue_len as u64,
            queue_md: queue_md.optional()?.map_or(MD_NONE, |md| md.number),
            ..EqResizeCmd::new()
        };
        send(&evtq.dev, &command)?;
        evtq.resized.set((queue, queue_len));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_evtq_resize_complete(evtq: Handle<Evtq>) -> c_int {
    status(|| {
        let evtq = evtq.get()?;
        send(&evtq.dev, &EqResizeCompleteCmd::of(evtq.number))?;
        let (queue, len) = evtq.resized.get();
        evtq.public.set(evtq.public.get().resized(queue, len));
        Ok(())
    })
}
