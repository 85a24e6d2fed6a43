//! Whether a service has a VNI at all.

use cxi_ioctl::{Errno, Opcode};

use super::{LniInner, explain};
use crate::driver::{Capabilities, Quirks};
use crate::error::{Error, Result};
use crate::{DriverRelease, Service, Vni, VniAccess};

/// Refuses a communication profile on a VNI that no service has.
///
/// The driver refuses it too, except for uid 0: root gets a profile of its own, and when that is
/// freed, the kernel uses memory that it has freed before.
pub(super) fn check(lni: &LniInner, vni: u32) -> Result<()> {
    let device = lni.device();
    let Ok(vni) = u16::try_from(vni)
        .map_err(drop)
        .and_then(|vni| Vni::new(vni).map_err(drop))
    else {
        return Ok(());
    };
    if own(lni).is_some_and(|vnis| vnis.contains(vni))
        || !device.threatens(Quirks::ORPHANED_PROFILE)?
    {
        return Ok(());
    }
    // There the driver checks only the LNI's own service, which may allow every VNI.
    if device
        .driver()?
        .detected_release()
        .may_be(DriverRelease::Shs12_0)
    {
        return Ok(());
    }
    let disabled_off = device.driver()?.can(Capabilities::DISABLED_VNIS_OFF);
    let reachable = |service: &Service| {
        let listed = match service.vnis() {
            VniAccess::Unrestricted => service.listed_vnis().contains(vni),
            vnis => vnis.contains(vni),
        };
        listed && (service.is_enabled() || !disabled_off)
    };
    if device.services().list()?.iter().any(reachable) {
        return Ok(());
    }
    Err(Error::new(explain::no_service_has_vni(), Errno::ENOENT)
        .during(Opcode::CP_ALLOC)
        .on(device.id()))
}

/// The VNIs of the LNI's service, queried once.
fn own(lni: &LniInner) -> Option<VniAccess> {
    if let Some(vnis) = lni.vnis.get() {
        return Some(*vnis);
    }
    let vnis = lni.device().services().get(lni.service).ok()?.vnis();
    Some(*lni.vnis.get_or_init(|| vnis))
}
