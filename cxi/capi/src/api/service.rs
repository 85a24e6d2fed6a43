//! Services.

use std::ffi::c_int;

use cxi::explain::Attempt;
use cxi_ioctl::Errno;
use cxi_ioctl::abi::service::{
    RsrcUse, SvcAllocCmd, SvcDesc, SvcDestroyCmd, SvcFailInfo, SvcGetCmd, SvcListGetCmd,
    SvcRsrcGetCmd, SvcRsrcListGetCmd, SvcUpdateCmd,
};
use cxi_ioctl::{LIST_HEADROOM, LIST_MAX, ListCommand};
use zerocopy::{FromZeros, IntoBytes};

use crate::device::Dev;
use crate::failure::{Failure, Result};
use crate::ffi::{Fresh, In, Out, Owned, status};
use crate::handle::Handle;
use crate::send::{send_about, send_explained, send_list};

/// The head of a list: the number of its elements.
const LIST_HEADER: usize = 4;

#[unsafe(no_mangle)]
extern "C" fn cxil_alloc_svc(
    dev: Handle<Dev>,
    desc: In<SvcDesc>,
    fail_info: Out<SvcFailInfo>,
) -> c_int {
    status(|| {
        let dev = dev.get()?;
        let desc = desc.get()?;
        let command = SvcAllocCmd {
            svc_desc: desc,
            ..SvcAllocCmd::new()
        };
        match send_explained(dev, &command)? {
            Ok(response) => Ok(response.svc_id.cast_signed()),
            Err(refusal) => {
                let none = SvcFailInfo::new_zeroed();
                fail_info.set(refusal.response.map_or(none, |response| response.fail_info));
                Err(
                    Failure::command(dev.number, refusal.error).during(Attempt::Create {
                        desc,
                        fail_info: refusal.response.map(|response| response.fail_info),
                    }),
                )
            }
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_update_svc(
    dev: Handle<Dev>,
    desc: In<SvcDesc>,
    fail_info: Out<SvcFailInfo>,
) -> c_int {
    status(|| {
        let dev = dev.get()?;
        let svc_desc = desc.get()?;
        let command = SvcUpdateCmd {
            svc_desc,
            ..SvcUpdateCmd::new()
        };
        let Err(refusal) = send_explained(dev, &command)? else {
            return Ok(0);
        };
        let response = refusal.response;
        fail_info.set(response.map_or_else(SvcFailInfo::new_zeroed, |response| {
            behind_id(response.fail_info)
        }));
        Err(Failure::command(dev.number, refusal.error).about(svc_desc.svc_id))
    })
}

/// How libcxi reads the answer to SVC_UPDATE: it expects a service id before it.
fn behind_id(answer: SvcFailInfo) -> SvcFailInfo {
    let mut shifted = SvcFailInfo::new_zeroed();
    let from = &answer.as_bytes()[size_of::<u32>()..];
    shifted.as_mut_bytes()[..from.len()].copy_from_slice(from);
    shifted
}

#[unsafe(no_mangle)]
extern "C" fn cxil_destroy_svc(dev: Handle<Dev>, svc_id: u32) -> c_int {
    status(|| {
        let svc_id = existing(svc_id)?;
        send_about(dev.get()?, svc_id, &SvcDestroyCmd::of(svc_id))?;
        Ok(0)
    })
}

/// Checks a service id.
pub(super) fn existing(svc_id: u32) -> Result<u32> {
    if svc_id == 0 {
        return Err(Failure::argument());
    }
    Ok(svc_id)
}

#[unsafe(no_mangle)]
extern "C" fn cxil_get_svc(dev: Handle<Dev>, svc_id: u32, svc_desc: Out<SvcDesc>) -> c_int {
    status(|| {
        let dev = dev.get()?;
        let svc_desc = svc_desc.required()?;
        svc_desc.set(send_about(dev, svc_id, &SvcGetCmd::of(svc_id))?);
        Ok(0)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_get_svc_rsrc_use(dev: Handle<Dev>, svc_id: u32, rsrcs: Out<RsrcUse>) -> c_int {
    status(|| {
        let dev = dev.get()?;
        let rsrcs = rsrcs.required()?;
        rsrcs.set(send_about(dev, svc_id, &SvcRsrcGetCmd::of(svc_id))?);
        Ok(0)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_get_svc_list(dev: Handle<Dev>, svc_list: Out<*mut u32>) -> c_int {
    status(|| list::<SvcListGetCmd>(dev, svc_list))
}

#[unsafe(no_mangle)]
extern "C" fn cxil_get_svc_rsrc_list(dev: Handle<Dev>, rsrc_list: Out<*mut u32>) -> c_int {
    status(|| list::<SvcRsrcListGetCmd>(dev, rsrc_list))
}

#[unsafe(no_mangle)]
extern "C" fn cxil_free_svc_list(svc_list: Owned) {
    drop(svc_list);
}

#[unsafe(no_mangle)]
extern "C" fn cxil_free_svc_rsrc_list(rsrc_list: Owned) {
    drop(rsrc_list);
}

/// Asks for the number of elements, then for that many, until all fit.
///
/// The list is followed by the same room again and one element, for a driver whose elements are
/// longer: what is written there is noticed, rather than other memory overwritten.
fn list<C: ListCommand>(dev: Handle<Dev>, list: Out<*mut u32>) -> Result<c_int> {
    let dev = dev.get()?;
    let list = list.required()?;
    let mut offered = 0;
    let mut count = send_list::<C>(dev, 0, &mut [])?;
    loop {
        if count > LIST_MAX {
            return Err(Errno::EOVERFLOW.into());
        }
        offered = count.max(offered);
        let room = offered as usize * size_of::<C::Item>();
        let mut block = Fresh::zeroed(LIST_HEADER + room * LIST_HEADROOM + size_of::<C::Item>())?;
        let (header, elements) = block.bytes().split_at_mut(LIST_HEADER);
        count = send_list::<C>(dev, offered, elements)?;
        if count > offered {
            continue;
        }
        // All of it, without a branch for each byte: the compiler takes words at a time.
        if elements[room..].iter().fold(0, |all, byte| all | byte) != 0 {
            return Err(Errno::EPROTO.into());
        }
        header.copy_from_slice(&count.to_ne_bytes());
        list.set(block.into_raw());
        return Ok(0);
    }
}
