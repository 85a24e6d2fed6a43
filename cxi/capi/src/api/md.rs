//! Memory that the NIC can access.

use std::ffi::c_int;

use cxi::Resource;
use cxi_ioctl::abi::memory::{
    AtuMapCmd, AtuUnmapCmd, AtuUpdateMdCmd, MapFlags, Md as MdPublic, MdHints,
};
use zerocopy::FromZeros;

use crate::child::{Lni, Md};
use crate::device::Counted;
use crate::ffi::{In, Memory, Out, guarded, status};
use crate::handle::{Handle, Room, Shared, Tag};
use crate::send::send;
use crate::{fork, smaps};

#[unsafe(no_mangle)]
extern "C" fn cxil_map(
    lni: Handle<Lni>,
    va: Memory,
    len: usize,
    flags: u32,
    hints: In<MdHints>,
    md: Out<*mut MdPublic>,
) -> c_int {
    status(|| {
        let lni = lni.get()?;
        let md = Room::new(md)?;
        let (va, len) = (va.address(), len as u64);
        let command = AtuMapCmd {
            lni: lni.id.get(),
            va,
            len,
            flags,
            hints: hints.optional().unwrap_or_else(MdHints::new_zeroed),
            ..AtuMapCmd::new()
        };
        let flags = MapFlags::from_bits_retain(flags);
        let protected = flags.contains(MapFlags::PIN) && !flags.contains(MapFlags::DEVICE);
        if protected {
            fork::protect(va, len)?;
        }
        let response = lni.send(&command, Some(Resource::Acs)).inspect_err(|_| {
            if protected {
                fork::unprotect(va, len);
            }
        })?;
        md.fill(Md {
            dev: Counted::new(&lni.dev),
            number: response.id,
            protected,
            public: Shared::new(response.md),
            tag: Tag::of::<Md>(),
        });
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_unmap(md: Handle<Md>) -> c_int {
    status(|| {
        md.end(|md| {
            send(&md.dev, &AtuUnmapCmd::of(md.number))?;
            if md.protected {
                let public = md.public.get();
                fork::unprotect(public.va, public.len);
            }
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_update_md(md: Handle<Md>, va: Memory, len: usize, flags: u32) -> c_int {
    status(|| {
        let md = md.get()?;
        let command = AtuUpdateMdCmd {
            id: md.number,
            va: va.address(),
            len: len as u64,
            flags,
            ..AtuUpdateMdCmd::new()
        };
        send(&md.dev, &command)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_page_size(base: Memory) -> usize {
    guarded(rustix::param::page_size(), || smaps::page_size(base.address() as usize))
}

#[unsafe(no_mangle)]
extern "C" fn cxil_is_copy_on_fork() -> bool {
    guarded(false, fork::copy_on_fork)
}
