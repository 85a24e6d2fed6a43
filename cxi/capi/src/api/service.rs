//! Services.

use std::ffi::c_int;

use cxi::explain::Attempt;
use cxi_ioctl::abi::service::{
    RsrcUse, SvcAllocCmd, SvcAllocParentCmd, SvcAllocResp, SvcDesc, SvcDestroyCmd, SvcEnableCmd,
    SvcFailInfo, SvcGetCmd, SvcGetExclusiveCpCmd, SvcGetLprCmd, SvcGetNetnsCmd, SvcGetVniRangeCmd,
    SvcListGetCmd, SvcRsrcGetCmd, SvcRsrcListGetCmd, SvcSetExclusiveCpCmd, SvcSetLprCmd,
    SvcSetNetnsCmd, SvcSetVniRangeCmd, SvcUpdateCmd,
};
use cxi_ioctl::{Command, Errno, LIST_HEADROOM, LIST_MAX, ListCommand};
use zerocopy::{FromZeros, IntoBytes};

use crate::device::Dev;
use crate::failure::{Failure, Result};
use crate::ffi::{Fresh, In, Out, Owned, status};
use crate::handle::Handle;
use crate::send::{open_file, send_about, send_list, send_on};

/// The head of a list: the number of its elements.
const LIST_HEADER: usize = 4;

#[unsafe(no_mangle)]
extern "C" fn cxil_alloc_svc(
    dev: Handle<Dev>,
    desc: In<SvcDesc>,
    fail_info: Out<SvcFailInfo>,
) -> c_int {
    status(|| alloc(&dev, desc, &fail_info, SvcAllocCmd::of))
}

#[unsafe(no_mangle)]
extern "C" fn cxil_alloc_parent_svc(
    dev: Handle<Dev>,
    desc: In<SvcDesc>,
    fail_info: Out<SvcFailInfo>,
) -> c_int {
    status(|| alloc(&dev, desc, &fail_info, SvcAllocParentCmd::of))
}

/// Makes a service of either kind; what is short goes to `fail_info`.
#[inline]
fn alloc<C: Command<Response = SvcAllocResp>>(
    dev: &Handle<Dev>,
    desc: In<SvcDesc>,
    fail_info: &Out<SvcFailInfo>,
    command: impl FnOnce(SvcDesc) -> C,
) -> Result<c_int> {
    let dev = dev.get()?;
    let desc = desc.required()?;
    // Do this before filling in the command: an atomic access between filling it in and sending it
    // would force the compiler to copy the caller's description twice.
    let device = open_file(dev)?;
    let command = command(desc.get());
    send_on(&device, &command).map(|response| response.svc_id.cast_signed()).map_err(|error| {
        fail_info.set(error.fail_info().unwrap_or_else(SvcFailInfo::new_zeroed));
        Failure::command(dev.number, error, Attempt::Create(desc.get()))
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
        let command = SvcUpdateCmd::of(svc_desc);
        let Err(error) = send_on(&open_file(dev)?, &command) else { return Ok(0) };
        fail_info.set(error.fail_info().map_or_else(SvcFailInfo::new_zeroed, behind_id));
        let failure = Failure::command(dev.number, error, Attempt::Other);
        Err(failure.about(svc_desc.svc_id))
    })
}

/// The response to SVC_UPDATE as libcxi interprets it, with a service ID in front.
fn behind_id(answer: SvcFailInfo) -> SvcFailInfo {
    let mut shifted = SvcFailInfo::new_zeroed();
    let from = &answer.as_bytes()[size_of::<u32>()..];
    shifted.as_mut_bytes()[..from.len()].copy_from_slice(from);
    shifted
}

#[unsafe(no_mangle)]
extern "C" fn cxil_destroy_svc(dev: Handle<Dev>, svc_id: u32) -> c_int {
    status(|| change(&dev, svc_id, &SvcDestroyCmd::of(svc_id)))
}

/// Checks a service ID.
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
        svc_desc.required()?.set(send_about(dev, svc_id, &SvcGetCmd::of(svc_id))?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_get_svc_rsrc_use(dev: Handle<Dev>, svc_id: u32, rsrcs: Out<RsrcUse>) -> c_int {
    status(|| {
        let dev = dev.get()?;
        rsrcs.required()?.set(send_about(dev, svc_id, &SvcRsrcGetCmd::of(svc_id))?);
        Ok(())
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

/// Sends a command about a service whose ID must not be 0.
fn change<C: Command>(dev: &Handle<Dev>, svc_id: u32, command: &C) -> Result<C::Response> {
    let dev = dev.get()?;
    send_about(dev, existing(svc_id)?, command)
}

#[unsafe(no_mangle)]
extern "C" fn cxil_set_svc_lpr(dev: Handle<Dev>, svc_id: u32, lnis_per_rgid: u32) -> c_int {
    status(|| {
        let command = SvcSetLprCmd::of(svc_id, lnis_per_rgid);
        send_about(dev.get()?, svc_id, &command)
    })
}

/// For an unknown service, the driver returns a number that is an errno, and so does this function.
#[unsafe(no_mangle)]
extern "C" fn cxil_get_svc_lpr(dev: Handle<Dev>, svc_id: u32) -> c_int {
    status(|| Ok(send_about(dev.get()?, svc_id, &SvcGetLprCmd::of(svc_id))?.value.cast_signed()))
}

#[unsafe(no_mangle)]
extern "C" fn cxil_svc_enable(dev: Handle<Dev>, svc_id: u32, enable: u8) -> c_int {
    status(|| {
        let command = SvcEnableCmd::of(svc_id, u8::from(enable != 0));
        change(&dev, svc_id, &command)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_svc_set_exclusive_cp(dev: Handle<Dev>, svc_id: u32, exclusive: u8) -> c_int {
    status(|| {
        let command = SvcSetExclusiveCpCmd::of(svc_id, u8::from(exclusive != 0));
        change(&dev, svc_id, &command)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_svc_get_exclusive_cp(
    dev: Handle<Dev>,
    svc_id: u32,
    exclusive: Out<u8>,
) -> c_int {
    status(|| {
        let exclusive = exclusive.required()?;
        // HPE's library also sends this command for service 0.
        let answer = send_about(dev.get()?, svc_id, &SvcGetExclusiveCpCmd::of(svc_id))?;
        exclusive.set(u8::from(answer.exclusive_cp != 0));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_svc_set_vni_range(
    dev: Handle<Dev>,
    svc_id: u32,
    vni_min: u16,
    vni_max: u16,
) -> c_int {
    status(|| {
        let command = SvcSetVniRangeCmd::of(svc_id, vni_min.into(), vni_max.into());
        change(&dev, svc_id, &command)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_svc_get_vni_range(
    dev: Handle<Dev>,
    svc_id: u32,
    vni_min: Out<u16>,
    vni_max: Out<u16>,
) -> c_int {
    status(|| {
        let (vni_min, vni_max) = (vni_min.required()?, vni_max.required()?);
        let range = change(&dev, svc_id, &SvcGetVniRangeCmd::of(svc_id))?;
        // The fields of the API have half the width of the command's.
        vni_min.set(range.vni_min as u16);
        vni_max.set(range.vni_max as u16);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_svc_set_netns(dev: Handle<Dev>, svc_id: u32, netns: u32) -> c_int {
    status(|| {
        let command = SvcSetNetnsCmd::of(svc_id, netns);
        change(&dev, svc_id, &command)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_svc_get_netns(dev: Handle<Dev>, svc_id: u32, netns: Out<u32>) -> c_int {
    status(|| {
        netns.required()?.set(change(&dev, svc_id, &SvcGetNetnsCmd::of(svc_id))?.value);
        Ok(())
    })
}

/// Queries the number of elements, then that many elements, until all fit.
///
/// The list is followed by the same amount of space and one more element, for a driver whose elements
/// are longer. It would write there, where that is detected, rather than overwrite other memory.
fn list<C: ListCommand>(dev: Handle<Dev>, list: Out<*mut u32>) -> Result<()> {
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
        // All elements consist of whole words. Without a branch for each word, the compiler can check
        // several at a time.
        let (words, _) = elements[room..].as_chunks::<4>();
        let all = words.iter().map(|word| u32::from_ne_bytes(*word));
        if all.fold(0, |all, word| all | word) != 0 {
            return Err(Errno::EPROTO.into());
        }
        header.copy_from_slice(&count.to_ne_bytes());
        list.set(block.into_raw());
        return Ok(());
    }
}
