//! LNIs and domains.

use std::ffi::c_int;

use cxi_ioctl::abi::domain::{DomainAllocCmd, DomainFreeCmd, DomainReserveCmd};
use cxi_ioctl::abi::lni::LniFreeCmd;

use super::service::existing;
use crate::child::{Domain, Lni};
use crate::device::{Counted, Dev};
use crate::ffi::{Out, status};
use crate::handle::{Handle, Room, Shared, Tag};
use crate::public::DomainPublic;
use crate::send::{alloc_lni, send};

#[unsafe(no_mangle)]
extern "C" fn cxil_alloc_lni(dev: Handle<Dev>, lni: Out<*mut u32>, svc_id: u32) -> c_int {
    status(|| {
        let dev = dev.get()?;
        let lni = Room::new(lni)?;
        let service = existing(svc_id)?;
        let id = alloc_lni(dev, service)?;
        lni.fill(Lni {
            dev: Counted::new(dev),
            id: Shared::new(id),
            service,
            tag: Tag::of::<Lni>(),
        });
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_destroy_lni(lni: Handle<Lni>) -> c_int {
    status(|| lni.end(|lni| send(&lni.dev, &LniFreeCmd::of(lni.id.get()))))
}

#[unsafe(no_mangle)]
extern "C" fn cxil_reserve_domain(lni: Handle<Lni>, vni: u32, pid: u32, count: u32) -> c_int {
    status(|| {
        let lni = lni.get()?;
        let command = DomainReserveCmd::of(lni.id.get(), vni, pid, count);
        Ok(lni.send(&command, None)?.pid.cast_signed())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_alloc_domain(
    lni: Handle<Lni>,
    vni: u32,
    pid: u32,
    domain: Out<*mut DomainPublic>,
) -> c_int {
    status(|| {
        let lni = lni.get()?;
        let domain = Room::new(domain)?;
        let command = DomainAllocCmd::of(lni.id.get(), vni, pid);
        let response =
            send(&lni.dev, &command).map_err(|failure| lni.on_vni(failure, vni, false))?;
        domain.fill(Domain {
            public: Shared::new(DomainPublic { vni: response.vni, pid: response.pid }),
            dev: Counted::new(&lni.dev),
            tag: Tag::of::<Domain>(),
            number: response.domain,
        });
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_destroy_domain(domain: Handle<Domain>) -> c_int {
    status(|| domain.end(|domain| send(&domain.dev, &DomainFreeCmd::of(domain.number))))
}
