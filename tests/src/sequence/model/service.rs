//! Services.

use cxi_ioctl::Errno;
use cxi_ioctl::abi::service::{
    RsrcLimits, SvcAllocResp, SvcDesc, SvcFailInfo, SvcFlags, SvcSetVniRangeCmd,
};
use zerocopy::FromZeros;

use super::accounting::{Reservation, TOTALS};
use super::profile::{Profile, has, vni};
use super::{Access, Answer, Model, Values, access, lowest_free};

pub const DEFAULT_SERVICE: u32 = 1;
const MEMBER_KINDS: u32 = 4;
const ALL_CLASSES: [u8; 5] = [1; 5];

#[derive(Clone, Debug)]
pub struct Service {
    pub descriptor: SvcDesc,
    pub enabled: bool,
    pub access: Access,
    /// Traffic classes, as allocated.
    pub tcs: [u8; 5],
    /// Its profiles: TX and RX of each VNI, or of its range.
    pub profiles: Vec<(u32, u32)>,
    pub lnis_per_rgid: u32,
    pub held: Reservation,
    /// Units in use, by type.
    pub in_use: [u16; 8],
}

impl Service {
    /// Returns whether it has a range of VNIs.
    pub fn has_range(&self) -> bool {
        !self.restricts_vnis() && !self.profiles.is_empty()
    }

    pub fn restricts_vnis(&self) -> bool {
        has(&self.descriptor, SvcFlags::RESTRICTED_VNIS)
    }

    /// Its descriptor, as a driver reports it.
    pub fn shown(&self) -> SvcDesc {
        let mut shown = self.descriptor;
        shown.flags &= !SvcFlags::ENABLE.bits();
        if self.enabled {
            shown.flags |= SvcFlags::ENABLE.bits();
        }
        shown
    }
}

impl Model {
    pub(super) fn add_default_service(&mut self, held: Reservation) {
        let flags = SvcFlags::RESTRICTED_VNIS | SvcFlags::RESOURCE_LIMITS;
        let descriptor = SvcDesc {
            flags: flags.bits(),
            num_vld_vnis: 2,
            vnis: [1, 10, 0, 0],
            tcs: [1, 1, 1, 1, 0],
            limits: RsrcLimits { types: held.limits },
            svc_id: DEFAULT_SERVICE,
            ..SvcDesc::new_zeroed()
        };
        let profiles = [1, 10].map(|vni| self.add_profiles(vni, vni, &Access::Open, ALL_CLASSES));
        let service = Service {
            descriptor,
            enabled: false,
            access: Access::Open,
            tcs: ALL_CLASSES,
            profiles: profiles.to_vec(),
            lnis_per_rgid: 1,
            held,
            in_use: [0; 8],
        };
        self.services.insert(DEFAULT_SERVICE, service);
    }

    pub(super) fn svc_alloc(&mut self, asked: &SvcDesc) -> Answer {
        let mut response = SvcAllocResp::new_zeroed();
        let result = match self.try_svc_alloc(asked) {
            Ok(svc_id) => {
                response.svc_id = svc_id;
                Ok(())
            }
            Err((errno, info)) => {
                response.fail_info = info;
                Err(errno)
            }
        };
        Answer::Allocated(result, response)
    }

    fn try_svc_alloc(&mut self, asked: &SvcDesc) -> Result<u32, (Errno, SvcFailInfo)> {
        let plain = |errno| (errno, SvcFailInfo::new_zeroed());
        validate(asked).map_err(plain)?;
        let access = access(asked).map_err(plain)?;
        let restricted = has(asked, SvcFlags::RESTRICTED_VNIS);
        let vnis = if restricted { &asked.vnis[..usize::from(asked.num_vld_vnis)] } else { &[] };
        let conflict = |vni| self.tx.conflict(vni, vni) || self.rx.conflict(vni, vni);
        if vnis.iter().any(|vni| conflict(*vni)) {
            return Err(plain(Errno::EEXIST));
        }
        let limits = has(asked, SvcFlags::RESOURCE_LIMITS).then_some(asked.limits.types);
        let held = self.device.take(limits).map_err(|info| (Errno::ENOSPC, info))?;
        let svc_id = lowest_free(1, self.services.keys().copied());
        let tcs = classes(asked);
        let profiles = vnis.iter().map(|vni| self.add_profiles(*vni, *vni, &access, tcs)).collect();
        let descriptor = SvcDesc { svc_id, limits: RsrcLimits { types: held.limits }, ..*asked };
        let service = Service {
            descriptor,
            enabled: false,
            access,
            tcs,
            profiles,
            lnis_per_rgid: 1,
            held,
            in_use: [0; 8],
        };
        self.services.insert(svc_id, service);
        self.order.push(svc_id);
        if restricted {
            self.switch(svc_id, true);
        }
        Ok(svc_id)
    }

    fn add_profiles(&mut self, low: u16, high: u16, access: &Access, tcs: [u8; 5]) -> (u32, u32) {
        let profile = Profile::new(low, high, access.clone(), tcs);
        (self.tx.add(profile.clone()), self.rx.add(profile))
    }

    /// Enables or disables a service and its profiles.
    fn switch(&mut self, svc_id: u32, enable: bool) {
        let Some(service) = self.services.get_mut(&svc_id) else { return };
        service.enabled = enable;
        for (tx, rx) in &service.profiles {
            self.tx.get_mut(*tx).enabled = enable;
            self.rx.get_mut(*rx).enabled = enable;
        }
    }

    pub(super) fn update(&mut self, asked: &SvcDesc) -> Result<(), Errno> {
        validate(asked)?;
        let service = self.idle(asked.svc_id)?;
        let limited = SvcFlags::RESOURCE_LIMITS;
        if has(&service.descriptor, limited) != has(asked, limited) {
            return Err(Errno::EINVAL);
        }
        self.enable(asked.svc_id, has(asked, SvcFlags::ENABLE))?;
        let service = self.service(asked.svc_id)?;
        let stored = &mut service.descriptor;
        let system = SvcFlags::IS_SYSTEM_SVC.bits();
        *stored = SvcDesc {
            flags: asked.flags & !system | stored.flags & system,
            limits: stored.limits,
            ..*asked
        };
        Ok(())
    }

    pub(super) fn enable(&mut self, svc_id: u32, enable: bool) -> Values {
        let service = self.idle(svc_id)?;
        let missing = service.profiles.is_empty() && service.descriptor.num_vld_vnis > 0;
        if enable && missing {
            service.enabled = false;
            self.leaves_trace = true;
            return Err(Errno::EINVAL);
        }
        self.switch(svc_id, enable);
        Ok(vec![])
    }

    pub(super) fn destroy(&mut self, svc_id: u32) -> Values {
        if svc_id == DEFAULT_SERVICE {
            return Err(Errno::EINVAL);
        }
        let service = self.idle(svc_id)?;
        assert_eq!(service.in_use, [0; 8], "units in use without an LNI");
        let (held, profiles) = (service.held, std::mem::take(&mut service.profiles));
        self.device.give_back(&held);
        self.services.remove(&svc_id);
        self.order.retain(|id| *id != svc_id);
        for (tx, rx) in profiles {
            self.tx.orphan(tx);
            self.rx.orphan(rx);
        }
        Ok(vec![])
    }

    pub(super) fn set_lpr(&mut self, svc_id: u32, lnis_per_rgid: u32) -> Values {
        if lnis_per_rgid > 8 {
            return Err(Errno::EINVAL);
        }
        self.idle(svc_id)?.lnis_per_rgid = lnis_per_rgid;
        Ok(vec![])
    }

    pub(super) fn set_range(&mut self, asked: &SvcSetVniRangeCmd) -> Values {
        let (svc_id, min, max) = (asked.svc_id, asked.vni_min, asked.vni_max);
        let service = self.service(svc_id)?;
        if service.restricts_vnis() {
            return Err(Errno::EINVAL);
        }
        let (low, high) = (vni(min)?, vni(max)?);
        let size = (max + 1).saturating_sub(min);
        if !size.is_power_of_two() || !min.is_multiple_of(size) {
            return Err(Errno::EINVAL);
        }
        service.descriptor.num_vld_vnis = 1;
        let (access, tcs) = (service.access.clone(), classes(&service.descriptor));
        if self.tx.conflict(low, high) || self.rx.conflict(low, high) {
            self.leaves_trace = true;
            return Err(Errno::EEXIST);
        }
        let profiles = self.add_profiles(low, high, &access, tcs);
        self.service(svc_id)?.profiles = vec![profiles];
        Ok(vec![])
    }

    pub(super) fn set_exclusive_cp(&mut self, svc_id: u32, exclusive: bool) -> Values {
        let service = self.service(svc_id)?;
        if service.restricts_vnis() {
            return Err(Errno::EINVAL);
        }
        let (tx, _) = *service.profiles.first().ok_or(Errno::EINVAL)?;
        let profile = self.tx.get_mut(tx);
        if profile.enabled {
            return Err(Errno::EBUSY);
        }
        profile.exclusive = exclusive;
        Ok(vec![])
    }

    fn service(&mut self, svc_id: u32) -> Result<&mut Service, Errno> {
        self.services.get_mut(&svc_id).ok_or(Errno::EINVAL)
    }

    /// A service without LNIs.
    fn idle(&mut self, svc_id: u32) -> Result<&mut Service, Errno> {
        let busy = self.lnis.values().any(|lni| lni.svc_id == svc_id);
        let service = self.service(svc_id)?;
        if busy { Err(Errno::EBUSY) } else { Ok(service) }
    }
}

/// The traffic classes that a service allows.
pub fn classes(descriptor: &SvcDesc) -> [u8; 5] {
    if has(descriptor, SvcFlags::RESTRICTED_TCS) { descriptor.tcs } else { ALL_CLASSES }
}

fn validate(asked: &SvcDesc) -> Result<(), Errno> {
    let count = usize::from(asked.num_vld_vnis);
    let vnis = asked.vnis.get(..count);
    let vnis_ok = vnis.is_some_and(|vnis| vnis.iter().all(|vni| *vni > 0));
    let members_ok = asked.members.iter().all(|member| member.kind < MEMBER_KINDS);
    let limits_ok = asked
        .limits
        .types
        .iter()
        .zip(TOTALS)
        .all(|(limit, total)| limit.res <= limit.max && limit.max <= total);
    let wrong = has(asked, SvcFlags::RESTRICTED_VNIS) && !vnis_ok
        || has(asked, SvcFlags::RESTRICTED_MEMBERS) && !members_ok
        || has(asked, SvcFlags::RESOURCE_LIMITS) && !limits_ok;
    if wrong { Err(Errno::EINVAL) } else { Ok(()) }
}
