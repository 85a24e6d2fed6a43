//! Services: what can be changed of them.

use cxi_ioctl::Errno;
use cxi_ioctl::abi::service::{SvcDesc, SvcFlags};

use super::Device;
use super::access::Access;
use super::descriptor;
use super::group::{Group, Held, flags};

/// Most LNIs that may share an RGID.
const MAX_LNIS_PER_RGID: u32 = 8;

/// The flags that SVC_UPDATE stores, beside `enable`, and the counter pool.
const UPDATED: u8 = SvcFlags::RESTRICTED_MEMBERS.bits()
    | SvcFlags::RESTRICTED_VNIS.bits()
    | SvcFlags::RESTRICTED_TCS.bits()
    | 0b1100_0000;

impl Device {
    fn group(&self, id: u32) -> Result<&Group, Errno> {
        self.groups.get(id).ok_or(Errno::EINVAL)
    }

    fn group_mut(&mut self, id: u32) -> Result<&mut Group, Errno> {
        self.groups.get_mut(id).ok_or(Errno::EINVAL)
    }

    fn idle_group(&self, id: u32) -> Result<&Group, Errno> {
        let group = self.group(id)?;
        if group.lnis > 0 {
            return Err(Errno::EBUSY);
        }
        Ok(group)
    }

    /// SVC_UPDATE: only enabling has an effect where profiles are the authority.
    pub(super) fn svc_update(&mut self, desc: &SvcDesc) -> Result<(), Errno> {
        descriptor::check(desc, &self.accounting.totals(), &self.rules)?;
        let id = desc.svc_id;
        let group = self.idle_group(id)?;
        let wanted = flags(desc);
        if (wanted ^ group.flags()).contains(SvcFlags::RESOURCE_LIMITS) {
            return Err(Errno::EINVAL);
        }
        self.switch(id, wanted.contains(SvcFlags::ENABLE))?;
        let group = self.group_mut(id)?;
        group.desc.flags = (group.desc.flags & !UPDATED) | (desc.flags & UPDATED);
        group.desc.num_vld_vnis = desc.num_vld_vnis;
        group.desc.vnis = desc.vnis;
        group.desc.tcs = desc.tcs;
        group.desc.members = desc.members;
        Ok(())
    }

    /// SVC_ENABLE.
    pub(super) fn svc_enable(&mut self, id: u32, enable: bool) -> Result<(), Errno> {
        self.idle_group(id)?;
        self.switch(id, enable)
    }

    /// Disables a service that has no LNI.
    pub(super) fn svc_switch_off(&mut self, id: u32) {
        // Disabling fails for unknown services only.
        let _ = self.switch(id, false);
    }

    /// Enables or disables a service, with its profiles where they go along. A service that
    /// cannot be enabled ends disabled.
    fn switch(&mut self, id: u32, enable: bool) -> Result<(), Errno> {
        let group = self.group(id)?.clone();
        let mut result = Ok(());
        if self.rules.disabled_profiles_off {
            self.check_hazards(id, &group);
            if enable {
                result = self.switch_on(&group);
            }
            if !enable || result.is_err() {
                for (_, pair) in group.counted() {
                    self.disable_pair(pair);
                }
            }
        }
        self.group_mut(id)?.set_enabled(enable && result.is_ok());
        result
    }

    fn switch_on(&mut self, group: &Group) -> Result<(), Errno> {
        if usize::from(group.desc.num_vld_vnis) > group.profiles.len() {
            return Err(Errno::EINVAL);
        }
        for (_, pair) in group.counted() {
            let (Some(_), Some(_)) = (pair.tx.id(), pair.rx.id()) else {
                return Err(Errno::EINVAL);
            };
            self.enable_pair(pair)?;
        }
        Ok(())
    }

    /// SVC_SET_VNI_RANGE.
    ///
    /// The driver forgets what it had before it knows that the new range is free, and lets go
    /// of the wrong profiles when it is not: a second range leaks the first one, a refused one
    /// leaves the service with a profile that is freed. So do members that are refused, which
    /// only an update can have stored; they are looked at after the VNIs.
    pub(super) fn svc_set_vni_range(&mut self, id: u32, min: u32, max: u32) -> Result<(), Errno> {
        let group = self.group(id)?;
        if group.flags().contains(SvcFlags::RESTRICTED_VNIS) {
            return Err(Errno::EINVAL);
        }
        let valid = |vni| u16::try_from(vni).ok().filter(|vni| *vni != 0);
        let (Some(first), Some(last)) = (valid(min), valid(max)) else {
            return Err(Errno::EINVAL);
        };
        let ignore = last.checked_sub(first).ok_or(Errno::EINVAL)?;
        if !(u32::from(ignore) + 1).is_power_of_two() || first & ignore != 0 {
            return Err(Errno::EINVAL);
        }
        let desc = group.desc;
        let mut pair = group.profiles[0];
        let members = descriptor::profile_access(&desc, &self.rules);
        let access = members.clone().unwrap_or_default();
        let result = match self.add_tx(first, ignore, &desc, access.clone()) {
            Err(errno) => {
                pair.tx = Held::None;
                if let Some(rx) = pair.rx.id() {
                    self.drop_rx_creator(rx);
                    pair.rx = Held::Dangling;
                }
                Err(errno)
            }
            Ok(tx) => match self.add_rx(first, ignore, access) {
                Err(errno) => {
                    self.tx.remove(tx);
                    pair.tx = Held::Dangling;
                    pair.rx = Held::None;
                    Err(errno)
                }
                Ok(rx) => {
                    pair.tx = Held::Profile(tx);
                    pair.rx = Held::Profile(rx);
                    members.map(drop).inspect_err(|_| {
                        self.drop_pair(pair);
                        pair.tx = Held::Dangling;
                        pair.rx = Held::Dangling;
                    })
                }
            },
        };
        let group = self.group_mut(id)?;
        group.profiles[0] = pair;
        group.desc.num_vld_vnis = 1;
        result
    }

    /// SVC_GET_VNI_RANGE.
    pub(super) fn svc_vni_range(&self, id: u32) -> Result<(u32, u32), Errno> {
        let group = self.group(id)?;
        if group.flags().contains(SvcFlags::RESTRICTED_VNIS) || group.desc.num_vld_vnis == 0 {
            return Err(Errno::EINVAL);
        }
        let tx = group.profiles[0].tx.id().and_then(|tx| self.tx.get(tx));
        let tx = tx.ok_or(Errno::ENOENT)?;
        Ok((tx.vni.into(), tx.last().into()))
    }

    /// SVC_SET_LPR.
    pub(super) fn svc_set_lnis_per_rgid(&mut self, id: u32, lnis: u32) -> Result<(), Errno> {
        if lnis > MAX_LNIS_PER_RGID {
            return Err(Errno::EINVAL);
        }
        if self.rules.rgid_parameters && !self.params.enable_rgid_sharing {
            return Ok(());
        }
        self.idle_group(id)?;
        self.group_mut(id)?.lnis_per_rgid = lnis;
        Ok(())
    }

    /// SVC_GET_LPR: the driver takes its own error for a value.
    pub(super) fn svc_lnis_per_rgid(&self, id: u32) -> u32 {
        self.groups.get(id).map_or(
            0u32.wrapping_sub(Errno::EINVAL.raw().unsigned_abs()),
            |group| group.lnis_per_rgid,
        )
    }

    /// SVC_SET_EXCLUSIVE_CP.
    pub(super) fn svc_set_exclusive_cp(&mut self, id: u32, exclusive: bool) -> Result<(), Errno> {
        let group = self.group(id)?;
        if group.flags().contains(SvcFlags::RESTRICTED_VNIS) {
            return Err(Errno::EINVAL);
        }
        let tx = group.profiles[0].tx.id().ok_or(Errno::EINVAL)?;
        let tx = self.tx.get_mut(tx).ok_or(Errno::EINVAL)?;
        if tx.enabled {
            return Err(Errno::EBUSY);
        }
        tx.extra.exclusive_cp = exclusive;
        Ok(())
    }

    /// SVC_GET_EXCLUSIVE_CP.
    pub(super) fn svc_exclusive_cp(&self, id: u32) -> Result<bool, Errno> {
        let tx = self.group(id)?.profiles[0].tx.id().ok_or(Errno::ENOENT)?;
        let tx = self.tx.get(tx).ok_or(Errno::ENOENT)?;
        Ok(tx.extra.exclusive_cp)
    }

    /// SVC_SET_NETNS: the group first, then the profiles that there are.
    pub(super) fn svc_set_netns(&mut self, id: u32, netns: u32) -> Result<(), Errno> {
        let group = self.group_mut(id)?;
        if group.access.beyond_netns() {
            return Err(Errno::EEXIST);
        }
        if group.enabled {
            return Err(Errno::EBUSY);
        }
        group.access.add(Access::Netns(netns))?;
        let count = usize::from(group.desc.num_vld_vnis);
        let pairs = group.profiles;
        for pair in pairs.get(..count).ok_or(Errno::ENODATA)? {
            let tx = pair.tx.id().and_then(|tx| self.tx.get_mut(tx));
            tx.ok_or(Errno::ENODATA)?.access.add(Access::Netns(netns))?;
            let rx = pair.rx.id().and_then(|rx| self.rx.get_mut(rx));
            rx.ok_or(Errno::ENODATA)?.access.add(Access::Netns(netns))?;
        }
        Ok(())
    }

    /// SVC_GET_NETNS.
    pub(super) fn svc_netns(&self, id: u32) -> Result<u32, Errno> {
        self.group(id)?.access.lowest_netns().ok_or(Errno::EINVAL)
    }
}
