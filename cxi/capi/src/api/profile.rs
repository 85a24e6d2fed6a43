//! Communication profiles.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use cxi_ioctl::abi::profile::{
    CpAllocCmd, CpAllocResp, CpFreeCmd, CpModifyCmd, LCID_ANY, LCID_NON_TRIG, TrigCpAllocCmd,
};
use cxi_ioctl::{Errno, LniForm};

use crate::child::{Cp, Lni};
use crate::device::{Counted, Dev};
use crate::failure::Result;
use crate::ffi::{Out, status};
use crate::handle::{Handle, Room, Shared, Tag};
use crate::public::CpPublic;
use crate::send::send;

/// The first of the traffic classes for Ethernet frames.
const ETHERNET: u32 = 5;

/// Value of `Dev::profiles`: the driver accepts TRIG_CP_ALLOC, which came with SHS 13.1.
const TRIGGERED: u8 = 1;
/// Value of `Dev::profiles`: the driver accepts only CP_ALLOC.
const PLAIN: u8 = 2;

#[unsafe(no_mangle)]
extern "C" fn cxil_alloc_cp(
    lni: Handle<Lni>,
    vni: u32,
    tc: u32,
    tc_type: u32,
    cp: Out<*mut CpPublic>,
) -> c_int {
    status(|| alloc(lni, [vni, tc, tc_type], LCID_ANY, cp))
}

#[unsafe(no_mangle)]
extern "C" fn cxil_alloc_trig_cp(
    lni: Handle<Lni>,
    vni: u32,
    tc: u32,
    tc_type: u32,
    cp_type: u32,
    cp: Out<*mut CpPublic>,
) -> c_int {
    status(|| alloc(lni, [vni, tc, tc_type], cp_type, cp))
}

fn alloc(
    lni: Handle<Lni>,
    [vni, tc, tc_type]: [u32; 3],
    cp_type: u32,
    cp: Out<*mut CpPublic>,
) -> Result<()> {
    let lni = lni.get()?;
    let cp = Room::new(cp)?;
    let command = TrigCpAllocCmd::of(lni.id.get(), vni, tc, tc_type, cp_type);
    let response = send_alloc(&lni.dev, &command)
        .map_err(|failure| lni.on_vni(failure, vni, tc >= ETHERNET))?;
    cp.fill(Cp {
        public: Shared::new(CpPublic { vni, tc, tc_type, lcid: response.lcid }),
        tag: Tag::of::<Cp>(),
        number: response.cp_hndl,
        dev: Counted::new(&lni.dev),
    });
    Ok(())
}

/// Sends the newer command, or the older one to a driver that does not know the newer one. The results
/// are equivalent unless LCID 0 was requested.
fn send_alloc(dev: &Dev, command: &TrigCpAllocCmd) -> Result<CpAllocResp> {
    let known = match dev.lnis.known() {
        Some(LniForm::Long) => TRIGGERED,
        _ => dev.profiles.load(Ordering::Relaxed),
    };
    let replaceable = matches!(command.cp_type, LCID_ANY | LCID_NON_TRIG);
    if known != PLAIN || !replaceable {
        match send(dev, command) {
            Err(failure) if known != TRIGGERED && failure.errno == Errno::EINVAL && replaceable => {
            }
            result => {
                if result.is_ok() {
                    dev.profiles.store(TRIGGERED, Ordering::Relaxed);
                }
                return result;
            }
        }
    }
    let plain = CpAllocCmd::of(command.lni, command.vni, command.tc, command.tc_type);
    let result = send(dev, &plain);
    if result.is_ok() {
        dev.profiles.store(PLAIN, Ordering::Relaxed);
    }
    result
}

#[unsafe(no_mangle)]
extern "C" fn cxil_destroy_cp(cp: Handle<Cp>) -> c_int {
    status(|| cp.end(|cp| send(&cp.dev, &CpFreeCmd::of(cp.number))))
}

/// Callers write the new VNI into the handle themselves.
#[unsafe(no_mangle)]
extern "C" fn cxil_modify_cp(lni: Handle<Lni>, cp: Handle<Cp>, vni: u32) -> c_int {
    status(|| {
        let lni = lni.get()?;
        let command = CpModifyCmd::of(cp.get()?.number, vni);
        send(&lni.dev, &command)
    })
}
