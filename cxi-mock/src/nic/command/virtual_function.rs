//! Requests of a virtual function's kernel driver to that of the physical function.

use cxi_ioctl::Errno;

use super::Call;
use crate::HazardKind;
use crate::nic::device::Device;

/// Position of the LNI in PHYS_LAC_ALLOC, which has no layout here, as PHYS_LAC_FREE; the LAC is at
/// another.
const LNI_OF_ALLOC: usize = 16;
const LNI_OF_FREE: usize = 4;
const LAC_OF_FREE: usize = 8;
/// The lower half of the address of a response.
const RESPONSE: usize = 8;
/// No Ethernet priority was asked for.
const NO_PRIORITY: i32 = -1;

pub(super) fn phys_lac_alloc(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let id = call.word(LNI_OF_ALLOC)?;
    let lni = device.lnis.live.of_mut(call.caller.file, id)?;
    // An LNI of a virtual function has its context already.
    if device.files.is_virtual(call.caller.file) {
        return Err(Errno::EOPNOTSUPP);
    }
    let lac = device.rgids.take_lac(lni.rgid).ok_or(Errno::ENOSPC)?;
    lni.lacs.push(lac);
    lni.lac_holds += 1;
    device.lnis.live.hold(id);
    call.respond(&u32::from(lac))
}

pub(super) fn phys_lac_free(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let (id, lac) = (call.word(LNI_OF_FREE)?, call.word(LAC_OF_FREE)?);
    let lni = device.lnis.live.of_mut(call.caller.file, id)?;
    if let Some(at) = lni.lacs.iter().position(|held| u32::from(*held) == lac) {
        device.rgids.give_lac(lni.rgid, lni.lacs.remove(at));
    }
    // The driver drops a reference for any number, whether it was held or not. If there were none to
    // drop, it would free an LNI that is in use.
    if lni.lac_holds == 0 {
        device.hazard(HazardKind::LniReferenceDropped { lni: id });
        return Ok(());
    }
    lni.lac_holds -= 1;
    device.lnis.live.release(id);
    Ok(())
}

pub(super) fn eth_link_state_get(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let is_up = device.registers.link.is_up();
    call.respond(&u8::from(is_up))
}

pub(super) fn eth_max_rxsize_get(_: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let mtu = u32::try_from(call.nic.config().identity.link_mtu).map_err(|_| Errno::EINVAL)?;
    call.respond(&mtu)
}

pub(super) fn eth_pause_get(_: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    call.respond(&[0u8; 8])
}

pub(super) fn rmu_eth_hash_key_get(_: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    call.respond(&[0u8; 44])
}

pub(super) fn vf_get_token(_: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    call.respond(&0u32)
}

pub(super) fn eth_tc_req_pcp_get(_: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    call.respond(&NO_PRIORITY)
}

/// Only its answer without an address for the response is known.
pub(super) fn eth_dev_info_get(_: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    Err(if call.word(RESPONSE)? == 0 { Errno::EINVAL } else { Errno::EOPNOTSUPP })
}

/// Only its answer without an address for the response is known.
pub(super) fn rmu_eth_alloc(_: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let may = call.caller.credentials.net_raw;
    Err(if may && call.word(RESPONSE)? == 0 { Errno::EFAULT } else { Errno::EOPNOTSUPP })
}

/// A command about a handle of RMU_ETH_ALLOC: none exists.
pub(super) fn no_such_handle(_: &mut Device, _: &mut Call<'_>) -> Result<(), Errno> {
    Err(Errno::EINVAL)
}
