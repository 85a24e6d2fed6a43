//! Services.

use cxi_ioctl::Errno;

use super::accounting::{FailInfo, Reservation, TOTALS};
use super::profile::{Profile, vni};
use super::{Access, Answer, Model, Values, access, lowest_free};
use crate::sequence::operation::Descriptor;

pub const DEFAULT_SERVICE: u32 = 1;
const MEMBER_KINDS: u32 = 4;
const ALL_CLASSES: [bool; 5] = [true; 5];

#[derive(Clone, Debug)]
pub struct Service {
    pub descriptor: Descriptor,
    pub enabled: bool,
    pub access: Access,
    /// Traffic classes, as allocated.
    pub tcs: [bool; 5],
    /// Its profiles: TX and RX of each VNI, or of its range.
    pub profiles: Vec<(u32, u32)>,
    pub lnis_per_rgid: u32,
    pub held: Reservation,
    /// Units in use, by type.
    pub in_use: [u16; 8],
}

impl Service {
    /// It has a range of VNIs.
    pub fn has_range(&self) -> bool {
        !self.descriptor.restricted_vnis && !self.profiles.is_empty()
    }
}

impl Model {
    pub(super) fn add_default_service(&mut self, held: Reservation) {
        let descriptor = Descriptor {
            restricted_vnis: true,
            resource_limits: true,
            num_vld_vnis: 2,
            vnis: [1, 10, 0, 0],
            tcs: [true, true, true, true, false],
            limits: held.limits,
            svc_id: DEFAULT_SERVICE,
            ..Descriptor::default()
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

    pub(super) fn svc_alloc(&mut self, asked: &Descriptor) -> Answer {
        match self.try_svc_alloc(asked) {
            Ok(svc_id) => Answer::Allocated {
                svc_id,
                result: Ok(()),
                info: FailInfo::default(),
            },
            Err((errno, info)) => Answer::Allocated {
                svc_id: 0,
                result: Err(errno),
                info,
            },
        }
    }

    fn try_svc_alloc(&mut self, asked: &Descriptor) -> Result<u32, (Errno, FailInfo)> {
        let plain = |errno| (errno, FailInfo::default());
        validate(asked).map_err(plain)?;
        let access = access(asked).map_err(plain)?;
        let vnis = if asked.restricted_vnis {
            &asked.vnis[..usize::from(asked.num_vld_vnis)]
        } else {
            &[]
        };
        let conflict = |vni| self.tx.conflict(vni, vni) || self.rx.conflict(vni, vni);
        if vnis.iter().any(|vni| conflict(*vni)) {
            return Err(plain(Errno::EEXIST));
        }
        let limits = asked.resource_limits.then_some(asked.limits);
        let held = self
            .device
            .take(limits)
            .map_err(|info| (Errno::ENOSPC, info))?;
        let svc_id = lowest_free(1, self.services.keys().copied());
        let tcs = classes(asked);
        let profiles = vnis
            .iter()
            .map(|vni| self.add_profiles(*vni, *vni, &access, tcs))
            .collect();
        let mut descriptor = asked.clone();
        descriptor.svc_id = svc_id;
        descriptor.limits = held.limits;
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
        if asked.restricted_vnis {
            self.switch(svc_id, true);
        }
        Ok(svc_id)
    }

    fn add_profiles(&mut self, low: u16, high: u16, access: &Access, tcs: [bool; 5]) -> (u32, u32) {
        let profile = Profile::new(low, high, access.clone(), tcs);
        (self.tx.add(profile.clone()), self.rx.add(profile))
    }

    /// Enables or disables a service and its profiles.
    fn switch(&mut self, svc_id: u32, enable: bool) {
        let Some(service) = self.services.get_mut(&svc_id) else {
            return;
        };
        service.enabled = enable;
        for (tx, rx) in &service.profiles {
            self.tx.get_mut(*tx).enabled = enable;
            self.rx.get_mut(*rx).enabled = enable;
        }
    }

    pub(super) fn update(&mut self, asked: &Descriptor) -> Result<(), Errno> {
        validate(asked)?;
        let service = self.idle(asked.svc_id)?;
        if service.descriptor.resource_limits != asked.resource_limits {
            return Err(Errno::EINVAL);
        }
        self.enable(asked.svc_id, asked.enable)?;
        let service = self.service(asked.svc_id)?;
        let stored = &mut service.descriptor;
        *stored = Descriptor {
            limits: stored.limits,
            is_system_svc: stored.is_system_svc,
            svc_id: stored.svc_id,
            ..asked.clone()
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

    pub(super) fn set_range(&mut self, svc_id: u32, min: u32, max: u32) -> Values {
        let service = self.service(svc_id)?;
        if service.descriptor.restricted_vnis {
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
        if service.descriptor.restricted_vnis {
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
pub fn classes(descriptor: &Descriptor) -> [bool; 5] {
    if descriptor.restricted_tcs {
        descriptor.tcs
    } else {
        ALL_CLASSES
    }
}

fn validate(asked: &Descriptor) -> Result<(), Errno> {
    let count = usize::from(asked.num_vld_vnis);
    let vnis = asked.vnis.get(..count);
    let vnis_ok = vnis.is_some_and(|vnis| vnis.iter().all(|vni| *vni > 0));
    let members_ok = asked
        .members
        .iter()
        .all(|member| member.kind < MEMBER_KINDS);
    let limits_ok = asked
        .limits
        .iter()
        .zip(TOTALS)
        .all(|((max, res), total)| res <= max && *max <= total);
    let wrong = asked.restricted_vnis && !vnis_ok
        || asked.restricted_members && !members_ok
        || asked.resource_limits && !limits_ok;
    if wrong { Err(Errno::EINVAL) } else { Ok(()) }
}
