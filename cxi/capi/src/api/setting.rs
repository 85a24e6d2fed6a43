//! Settings of services.

use std::ffi::c_int;

use cxi_ioctl::abi::service::{
    SvcEnableCmd, SvcGetExclusiveCpCmd, SvcGetLprCmd, SvcGetNetnsCmd, SvcGetVniRangeCmd,
    SvcSetExclusiveCpCmd, SvcSetLprCmd, SvcSetNetnsCmd, SvcSetVniRangeCmd,
};

use super::service::existing;
use crate::device::Dev;
use crate::ffi::{Out, status};
use crate::handle::Handle;
use crate::send::send_about;

#[unsafe(no_mangle)]
extern "C" fn cxil_set_svc_lpr(dev: Handle<Dev>, svc_id: u32, lnis_per_rgid: u32) -> c_int {
    status(|| {
        let command = SvcSetLprCmd {
            svc_id,
            lnis_per_rgid,
            ..SvcSetLprCmd::new()
        };
        send_about(dev.get()?, svc_id, &command)?;
        Ok(0)
    })
}

/// For an unknown service the driver answers with a number, and C gets that number.
#[unsafe(no_mangle)]
extern "C" fn cxil_get_svc_lpr(dev: Handle<Dev>, svc_id: u32) -> c_int {
    status(|| {
        Ok(send_about(dev.get()?, svc_id, &SvcGetLprCmd::of(svc_id))?
            .value
            .cast_signed())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_svc_enable(dev: Handle<Dev>, svc_id: u32, enable: u8) -> c_int {
    status(|| {
        let dev = dev.get()?;
        let command = SvcEnableCmd {
            svc_id: existing(svc_id)?,
            enable: u8::from(enable != 0),
            ..SvcEnableCmd::new()
        };
        send_about(dev, svc_id, &command)?;
        Ok(0)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_svc_set_exclusive_cp(dev: Handle<Dev>, svc_id: u32, exclusive: u8) -> c_int {
    status(|| {
        let dev = dev.get()?;
        let command = SvcSetExclusiveCpCmd {
            svc_id: existing(svc_id)?,
            exclusive_cp: u8::from(exclusive != 0),
            ..SvcSetExclusiveCpCmd::new()
        };
        send_about(dev, svc_id, &command)?;
        Ok(0)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_svc_get_exclusive_cp(
    dev: Handle<Dev>,
    svc_id: u32,
    exclusive: Out<u8>,
) -> c_int {
    status(|| {
        let dev = dev.get()?;
        let exclusive = exclusive.required()?;
        exclusive.set(u8::from(
            send_about(dev, svc_id, &SvcGetExclusiveCpCmd::of(svc_id))?.exclusive_cp != 0,
        ));
        Ok(0)
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
        let dev = dev.get()?;
        let command = SvcSetVniRangeCmd {
            svc_id: existing(svc_id)?,
            vni_min: vni_min.into(),
            vni_max: vni_max.into(),
            ..SvcSetVniRangeCmd::new()
        };
        send_about(dev, svc_id, &command)?;
        Ok(0)
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
        let dev = dev.get()?;
        let (vni_min, vni_max) = (vni_min.required()?, vni_max.required()?);
        let command = SvcGetVniRangeCmd::of(existing(svc_id)?);
        let range = send_about(dev, svc_id, &command)?;
        // The API has half the width of the command.
        vni_min.set(range.vni_min as u16);
        vni_max.set(range.vni_max as u16);
        Ok(0)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_svc_set_netns(dev: Handle<Dev>, svc_id: u32, netns: u32) -> c_int {
    status(|| {
        let dev = dev.get()?;
        let command = SvcSetNetnsCmd {
            svc_id: existing(svc_id)?,
            netns,
            ..SvcSetNetnsCmd::new()
        };
        send_about(dev, svc_id, &command)?;
        Ok(0)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_svc_get_netns(dev: Handle<Dev>, svc_id: u32, netns: Out<u32>) -> c_int {
    status(|| {
        let dev = dev.get()?;
        let netns = netns.required()?;
        netns.set(send_about(dev, svc_id, &SvcGetNetnsCmd::of(existing(svc_id)?))?.value);
        Ok(0)
    })
}
