//! Counting events.

use std::ffi::c_int;

use cxi::Resource;
use cxi_ioctl::abi::counter::{CtAllocCmd, CtFreeCmd, CtWbUpdateCmd};

use crate::child::{Ct, Lni};
use crate::device::Counted;
use crate::ffi::{Memory, Out, status};
use crate::handle::{Handle, Room, Shared, Tag};
use crate::public::CtPublic;
use crate::send::send;
use crate::window::Window;

#[unsafe(no_mangle)]
extern "C" fn cxil_alloc_ct(lni: Handle<Lni>, wb: Memory, ct: Out<*mut CtPublic>) -> c_int {
    status(|| {
        let lni = lni.get()?;
        let ct = Room::new(ct)?;
        let command = CtAllocCmd { lni: lni.id.get(), wb: wb.address(), ..CtAllocCmd::new() };
        let response = lni.send(&command, Some(Resource::Cts))?;
        let doorbell = Window::of(&lni.dev, response.doorbell).inspect_err(|_| {
            // The caller gets the error of the mapping.
            let _ = send(&lni.dev, &CtFreeCmd::of(response.ctn));
        })?;
        let public = CtPublic { doorbell: doorbell.address(), ctn: response.ctn, wb };
        ct.fill(Ct {
            dev: Counted::new(&lni.dev),
            doorbell,
            tag: Tag::of::<Ct>(),
            public: Shared::new(public),
        });
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_destroy_ct(ct: Handle<Ct>) -> c_int {
    status(|| {
        ct.end(|ct| {
            ct.doorbell.unmap()?;
            send(&ct.dev, &CtFreeCmd::of(ct.public.get().ctn))
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_ct_wb_update(ct: Handle<Ct>, wb: Memory) -> c_int {
    status(|| {
        let ct = ct.get()?;
        let wb = wb.required()?;
        let public = ct.public.get();
        let command = CtWbUpdateCmd { ctn: public.ctn, wb: wb.address(), ..CtWbUpdateCmd::new() };
        send(&ct.dev, &command)?;
        ct.public.set(CtPublic { wb, ..public });
        Ok(())
    })
}
