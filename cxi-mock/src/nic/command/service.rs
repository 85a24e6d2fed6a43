//! The commands for services.

use cxi_ioctl::Errno;
use cxi_ioctl::abi::service::{
    DEFAULT_SVC_ID, Limits, RSRC_COUNT, RSRC_LE, RSRC_TLE, RsrcUse, SVC_MAX_VNIS, SvcAllocCmd,
    SvcAllocParentCmd, SvcAllocResp, SvcDesc, SvcEnableCmd, SvcFailInfo, SvcFlags, SvcGetCmd,
    SvcGetExclusiveCpCmd, SvcGetExclusiveCpResp, SvcGetLprCmd, SvcGetNetnsCmd, SvcGetValueResp,
    SvcGetVniRangeCmd, SvcGetVniRangeResp, SvcIsParentGetCmd, SvcIsParentGetResp, SvcListGetCmd,
    SvcListGetResp, SvcRsrcGetCmd, SvcRsrcListGetCmd, SvcRsrcListGetResp, SvcSetExclusiveCpCmd,
    SvcSetLprCmd, SvcSetNetnsCmd, SvcSetVniRangeCmd, SvcUpdateCmd, SvcUpdateResp,
};
use zerocopy::{FromZeros, IntoBytes};

use super::Call;
use crate::HazardKind;
use crate::nic::device::Device;
use crate::nic::parts::access::{Access, AccessList};
use crate::nic::parts::accounting::Slot;
use crate::nic::parts::descriptor;
use crate::nic::parts::group::{Group, Held, ProfilePair, flags};
use crate::nic::parts::profile::{Profile, Tx};
use crate::nic::parts::vnis::Refused;
use crate::rules::TleUsageWithoutPool;

/// Stands for a number that makes no sense.
const NOT_APPLICABLE: u16 = u16::MAX;
/// Most LNIs that may share an RGID.
const MAX_LNIS_PER_RGID: u32 = 8;

/// The flags that SVC_UPDATE stores, in addition to `enable`, and the two bits of the counter pool.
/// Limits and `is_system_svc` stay as they were when the service was made.
const UPDATED: u8 = SvcFlags::RESTRICTED_MEMBERS.bits()
    | SvcFlags::RESTRICTED_VNIS.bits()
    | SvcFlags::RESTRICTED_TCS.bits()
    | 0b1100_0000;

/// Makes a service, and answers with its id or with what was short.
fn answer_alloc(
    call: &mut Call<'_>,
    alloc: impl FnOnce(&mut SvcFailInfo) -> Result<u32, Errno>,
) -> Result<(), Errno> {
    let mut fail_info = SvcFailInfo::new_zeroed();
    let result = alloc(&mut fail_info);
    let svc_id = result.unwrap_or(0);
    call.respond(&SvcAllocResp { svc_id, fail_info })?;
    result.map(drop)
}

pub(super) fn svc_alloc(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let desc = call.command::<SvcAllocCmd>()?.svc_desc;
    let function = device.files.virtual_function(call.caller.file);
    answer_alloc(call, |info| match function {
        None => device.svc_alloc(&desc, info),
        Some(function) => device.svc_alloc_child(function, &desc, info),
    })
}

pub(super) fn svc_alloc_parent(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let desc = call.command::<SvcAllocParentCmd>()?.svc_desc;
    answer_alloc(call, |info| device.svc_alloc_parent(&desc, info))
}

pub(super) fn svc_update(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let command: SvcUpdateCmd = call.command()?;
    let result = device.svc_update(&command.svc_desc);
    call.respond(&SvcUpdateResp::new_zeroed())?;
    result
}

pub(super) fn svc_enable(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    device.svc_enable(call.command()?)
}

pub(super) fn svc_set_lpr(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    device.svc_set_lnis_per_rgid(call.command()?)
}

pub(super) fn svc_set_exclusive_cp(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    device.svc_set_exclusive_cp(call.command()?)
}

pub(super) fn svc_set_vni_range(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    device.svc_set_vni_range(call.command()?)
}

pub(super) fn svc_set_netns(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    device.svc_set_netns(call.command()?)
}

pub(super) fn svc_get(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let id = call.command::<SvcGetCmd>()?.svc_id;
    call.respond(&device.services.get(id)?.desc)
}

pub(super) fn svc_rsrc_get(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let id = call.command::<SvcRsrcGetCmd>()?.svc_id;
    // Unlike the list, this command leaves the id out.
    call.respond(&device.usage(0, device.services.get(id)?))
}

pub(super) fn svc_list_get(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let count = device.services.count();
    if call.command::<SvcListGetCmd>()?.count >= count {
        call.memory.list = Some(device.svc_list().as_bytes().to_vec());
    }
    call.respond(&SvcListGetResp { count })
}

pub(super) fn svc_rsrc_list_get(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let count = device.services.count();
    if call.command::<SvcRsrcListGetCmd>()?.count >= count {
        call.memory.list = Some(device.svc_usage_list().as_bytes().to_vec());
    }
    call.respond(&SvcRsrcListGetResp { count })
}

pub(super) fn svc_get_lpr(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let command: SvcGetLprCmd = call.command()?;
    let value = device.svc_lnis_per_rgid(command.svc_id);
    call.respond(&SvcGetValueResp { value })
}

pub(super) fn svc_get_exclusive_cp(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let command: SvcGetExclusiveCpCmd = call.command()?;
    device.check_transmit_profile(command.svc_id, true);
    let group = device.services.get(command.svc_id)?;
    let exclusive_cp = device.first_tx(group)?.extra.exclusive_cp.into();
    call.respond(&SvcGetExclusiveCpResp { exclusive_cp })
}

pub(super) fn svc_is_parent_get(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let command: SvcIsParentGetCmd = call.command()?;
    let is_parent = device.services.get(command.svc_id)?.is_parent.into();
    call.respond(&SvcIsParentGetResp { is_parent })
}

pub(super) fn svc_get_vni_range(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let command: SvcGetVniRangeCmd = call.command()?;
    device.check_transmit_profile(command.svc_id, true);
    let (vni_min, vni_max) = device.svc_vni_range(command.svc_id)?;
    call.respond(&SvcGetVniRangeResp { vni_min, vni_max })
}

pub(super) fn svc_get_netns(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let command: SvcGetNetnsCmd = call.command()?;
    let access = &device.services.get(command.svc_id)?.access;
    let value = access.lowest_netns().ok_or(Errno::EINVAL)?;
    call.respond(&SvcGetValueResp { value })
}

impl Device {
    /// SVC_ALLOC. `info` receives the reason for a failure.
    pub(in crate::nic) fn svc_alloc(
        &mut self,
        desc: &SvcDesc,
        info: &mut SvcFailInfo,
    ) -> Result<u32, Errno> {
        descriptor::check(desc, &self.services.totals(), &self.rules)?;
        let id = self.services.next_id()?;
        let group = self.new_group(id, desc, info)?;
        self.services.add(group);
        Ok(id)
    }

    fn new_group(
        &mut self,
        id: u32,
        desc: &SvcDesc,
        info: &mut SvcFailInfo,
    ) -> Result<Group, Errno> {
        // Releases differ in what they check first: bad members, or VNIs that are taken.
        let mut access = descriptor::access(desc, &self.rules);
        if self.rules.members_before_vnis {
            access = Ok(access?);
        }
        let for_profiles = descriptor::profile_access(desc, &self.rules).unwrap_or_default();
        let profiles = self.claim_vnis(id, desc, &for_profiles)?;
        let made = access.and_then(|access| self.new_group_of(id, desc, info, access, profiles));
        made.inspect_err(|_| self.vnis.drop_creators(profiles))
    }

    /// Makes a group with these profiles. If it fails, the caller gives them up.
    pub(super) fn new_group_of(
        &mut self,
        id: u32,
        desc: &SvcDesc,
        info: &mut SvcFailInfo,
        access: AccessList,
        profiles: [ProfilePair; SVC_MAX_VNIS],
    ) -> Result<Group, Errno> {
        let limits = descriptor::effective_limits(desc, &self.services.totals());
        let mut reserved = self.services.reserve(id, &limits, &self.rules, info)?;
        let restricted = flags(desc).contains(SvcFlags::RESTRICTED_VNIS);
        // A service without a VNI list starts disabled, to wait for its range.
        let enable = restricted || !self.rules.range_to_come;
        if enable {
            let mut pairs = profiles.into_iter();
            let enabled = pairs.try_for_each(|pair| self.vnis.enable(pair));
            enabled.inspect_err(|_| self.services.give_back(&mut reserved))?;
        }
        // Not before: if the VNI table is full, the driver's answer has the numbers of the
        // reservation.
        *info = SvcFailInfo::new_zeroed();
        let system = flags(desc).contains(SvcFlags::IS_SYSTEM_SVC);
        let shareable = self.rules.rgid_parameters && !system && id != DEFAULT_SVC_ID;
        let mut desc = *desc;
        desc.svc_id = id;
        desc.limits = limits;
        let mut group = Group {
            seq: 0,
            desc,
            access,
            reserved,
            lnis_per_rgid: if shareable { self.params.default_lnis_per_rgid } else { 1 },
            system,
            // The two highest bits. The driver stores the number, and does not use it.
            cntr_pool_id: u32::from(desc.flags >> 6),
            is_parent: false,
            function: None,
            lnis: 0,
            profiles,
        };
        group.set_enabled(enable);
        self.wire_pools(&group);
        Ok(group)
    }

    /// Makes the profiles for the VNI list of a descriptor, where it has any.
    fn claim_vnis(
        &mut self,
        id: u32,
        desc: &SvcDesc,
        access: &AccessList,
    ) -> Result<[ProfilePair; SVC_MAX_VNIS], Errno> {
        let restricted = flags(desc).contains(SvcFlags::RESTRICTED_VNIS);
        let by_list = restricted || !self.rules.range_to_come;
        if !self.rules.has_profiles || !by_list {
            return Ok([ProfilePair::default(); SVC_MAX_VNIS]);
        }
        // The driver does not check the list of an unrestricted service, so its count may be
        // anything.
        if usize::from(desc.num_vld_vnis) > SVC_MAX_VNIS {
            self.hazard(HazardKind::CountBeyondProfiles {
                svc_id: id,
                num_vld_vnis: desc.num_vld_vnis,
            });
        }
        self.vnis.claim(desc, access)
    }

    /// Tells the data path how many list entries a service has.
    pub(in crate::nic) fn wire_pools(&self, group: &Group) {
        let limits = group.desc.limits.types;
        self.limit_pools(group, limits[RSRC_LE], limits[RSRC_TLE]);
    }

    /// Tells the data path that no service has these pools any more.
    pub(in crate::nic) fn unwire_pools(&self, group: &Group) {
        let nothing = Limits { max: 0, res: 0 };
        self.limit_pools(group, nothing, nothing);
    }

    fn limit_pools(&self, group: &Group, entries: Limits, triggered: Limits) {
        if let Some(pools) = group.reserved.le_pools {
            self.data_path.set_entry_pools(pools, entries);
        }
        if let Some(pool) = group.reserved.tle_pool {
            self.data_path.set_triggered_pool(pool, triggered);
        }
    }

    pub(super) fn svc_destroy(&mut self, id: u32) -> Result<(), Errno> {
        if id == DEFAULT_SVC_ID {
            return Err(Errno::EINVAL);
        }
        self.services.idle(id)?;
        self.not_assigned(id)?;
        let mut group = self.services.remove(id).ok_or(Errno::EINVAL)?;
        self.check_hazards(id, &group);
        if self.rules.disabled_profiles_off {
            // The stored count decides, which an update may have lowered. The driver leaks the
            // rest.
            self.vnis.drop_creators(group.counted().map(|(_, pair)| pair));
        } else {
            self.vnis.drop_creators(group.profiles);
        }
        self.unwire_pools(&group);
        self.services.give_back(&mut group.reserved);
        Ok(())
    }

    /// Records that the driver now uses profiles that it does not have.
    fn check_hazards(&mut self, svc_id: u32, group: &Group) {
        let num_vld_vnis = group.desc.num_vld_vnis;
        if self.rules.disabled_profiles_off && usize::from(num_vld_vnis) > SVC_MAX_VNIS {
            self.hazard(HazardKind::CountBeyondProfiles { svc_id, num_vld_vnis });
        }
        let dangling = |held| match held {
            Held::GivenUp(id) => self.vnis.rx().get(id).is_none(),
            held => held == Held::Dangling,
        };
        if group.counted().any(|(_, pair)| dangling(pair.tx) || dangling(pair.rx)) {
            self.hazard(HazardKind::DanglingRange { svc_id });
        }
    }

    /// Records that the driver is about to read, or to change, a service's transmit profile that is no
    /// longer there.
    fn check_transmit_profile(&mut self, svc_id: u32, reads: bool) {
        let group = self.services.get(svc_id);
        let is_open = |group: &&Group| !group.flags().contains(SvcFlags::RESTRICTED_VNIS);
        let tx = group.ok().filter(is_open).map(|group| group.profiles[0].tx);
        if tx == Some(Held::Dangling) {
            self.hazard(if reads {
                HazardKind::FreedProfileRead { svc_id }
            } else {
                HazardKind::DanglingRange { svc_id }
            });
        }
    }

    /// SVC_UPDATE: only enabling has an effect where profiles are the authority.
    fn svc_update(&mut self, desc: &SvcDesc) -> Result<(), Errno> {
        // This order makes a bad descriptor EINVAL even if LNIs would make the service EBUSY.
        descriptor::check(desc, &self.services.totals(), &self.rules)?;
        let id = desc.svc_id;
        let group = self.services.idle(id)?;
        self.no_children(id)?;
        let wanted = flags(desc);
        if (wanted ^ group.flags()).contains(SvcFlags::RESOURCE_LIMITS) {
            return Err(Errno::EINVAL);
        }
        self.switch(id, wanted.contains(SvcFlags::ENABLE))?;
        let group = self.services.get_mut(id)?;
        group.desc.flags = (group.desc.flags & !UPDATED) | (desc.flags & UPDATED);
        group.desc.num_vld_vnis = desc.num_vld_vnis;
        group.desc.vnis = desc.vnis;
        group.desc.tcs = desc.tcs;
        group.desc.members = desc.members;
        Ok(())
    }

    fn svc_enable(&mut self, command: SvcEnableCmd) -> Result<(), Errno> {
        self.services.idle(command.svc_id)?;
        self.no_children(command.svc_id)?;
        self.switch(command.svc_id, command.enable != 0)
    }

    /// Disables a service that has no LNI.
    pub(in crate::nic) fn svc_switch_off(&mut self, id: u32) {
        // Disabling fails for unknown services only.
        let _ = self.switch(id, false);
    }

    /// Enables or disables a service, with its profiles where they go along. A service that
    /// cannot be enabled ends disabled.
    fn switch(&mut self, id: u32, enable: bool) -> Result<(), Errno> {
        let group = self.services.get(id)?.clone();
        let mut result = Ok(());
        // A service below a parent has no profiles.
        if self.rules.disabled_profiles_off && group.function.is_none() {
            self.check_hazards(id, &group);
            if enable {
                result = self.switch_on(&group);
            }
            if !enable || result.is_err() {
                for (_, pair) in group.counted() {
                    self.vnis.disable(pair);
                }
            }
        }
        self.services.get_mut(id)?.set_enabled(enable && result.is_ok());
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
            self.vnis.enable(pair)?;
        }
        Ok(())
    }

    /// SVC_SET_VNI_RANGE.
    ///
    /// The driver forgets its profiles before it knows that the new range is free, and releases the
    /// wrong ones if it is not. A second range therefore leaks the first one, and a refused one
    /// leaves the service with a freed profile. Refused members have the same effect. Only an
    /// update can have stored them, and they are checked after the VNIs.
    fn svc_set_vni_range(&mut self, command: SvcSetVniRangeCmd) -> Result<(), Errno> {
        let id = command.svc_id;
        let group = self.services.get(id)?;
        if group.flags().contains(SvcFlags::RESTRICTED_VNIS) {
            return Err(Errno::EINVAL);
        }
        let valid = |vni| u16::try_from(vni).ok().filter(|vni| *vni != 0);
        let (Some(first), Some(last)) = (valid(command.vni_min), valid(command.vni_max)) else {
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
        let result = match self.vnis.add_pair(first, ignore, &desc, &access) {
            Ok(new) => {
                pair = new;
                members.map(drop).inspect_err(|_| {
                    self.vnis.drop_creators([pair]);
                    (pair.tx, pair.rx) = (Held::Dangling, Held::Dangling);
                })
            }
            Err(Refused::Rx(errno)) => {
                (pair.tx, pair.rx) = (Held::Dangling, Held::None);
                Err(errno)
            }
            Err(Refused::Tx(errno)) => {
                pair.tx = Held::None;
                if matches!(pair.rx, Held::GivenUp(_) | Held::Dangling) {
                    self.hazard(HazardKind::ReferenceDroppedTwice { svc_id: id });
                }
                if let Some(rx) = pair.rx.id() {
                    self.vnis.drop_rx_creator(rx);
                    // The driver keeps the pointer, and the profile may live on if it has users.
                    let lives = self.vnis.rx().get(rx).is_some();
                    pair.rx = if lives { Held::GivenUp(rx) } else { Held::Dangling };
                }
                Err(errno)
            }
        };
        let group = self.services.get_mut(id)?;
        group.profiles[0] = pair;
        group.desc.num_vld_vnis = 1;
        result
    }

    /// SVC_GET_VNI_RANGE.
    fn svc_vni_range(&self, id: u32) -> Result<(u32, u32), Errno> {
        let group = self.services.get(id)?;
        if group.flags().contains(SvcFlags::RESTRICTED_VNIS) || group.desc.num_vld_vnis == 0 {
            return Err(Errno::EINVAL);
        }
        let tx = self.first_tx(group)?;
        Ok((tx.vni.into(), tx.last().into()))
    }

    fn svc_set_lnis_per_rgid(&mut self, command: SvcSetLprCmd) -> Result<(), Errno> {
        let (id, lnis) = (command.svc_id, command.lnis_per_rgid);
        if lnis > MAX_LNIS_PER_RGID {
            return Err(Errno::EINVAL);
        }
        // Without sharing, the driver answers before it looks for the service, even if there is
        // none.
        if self.rules.rgid_parameters && !self.params.enable_rgid_sharing {
            return Ok(());
        }
        self.services.idle(id)?;
        self.services.get_mut(id)?.lnis_per_rgid = lnis;
        Ok(())
    }

    /// SVC_GET_LPR: the driver takes its own error for a value.
    fn svc_lnis_per_rgid(&self, id: u32) -> u32 {
        self.services
            .get(id)
            .map_or(0u32.wrapping_sub(Errno::EINVAL.raw().unsigned_abs()), |group| {
                group.lnis_per_rgid
            })
    }

    fn svc_set_exclusive_cp(&mut self, command: SvcSetExclusiveCpCmd) -> Result<(), Errno> {
        let group = self.services.get(command.svc_id)?;
        if group.flags().contains(SvcFlags::RESTRICTED_VNIS) {
            return Err(Errno::EINVAL);
        }
        let tx = group.profiles[0].tx.id();
        self.check_transmit_profile(command.svc_id, false);
        let tx = tx.ok_or(Errno::EINVAL)?;
        let tx = self.vnis.tx_mut(Some(tx)).ok_or(Errno::EINVAL)?;
        if tx.enabled {
            return Err(Errno::EBUSY);
        }
        tx.extra.exclusive_cp = command.exclusive_cp != 0;
        Ok(())
    }

    fn first_tx(&self, group: &Group) -> Result<&Profile<Tx>, Errno> {
        let id = group.profiles[0].tx.id();
        id.and_then(|id| self.vnis.tx().get(id)).ok_or(Errno::ENOENT)
    }

    /// SVC_SET_NETNS: the group first, then the existing profiles.
    fn svc_set_netns(&mut self, command: SvcSetNetnsCmd) -> Result<(), Errno> {
        let netns = Access::Netns(command.netns);
        let group = self.services.get_mut(command.svc_id)?;
        if group.access.beyond_netns() {
            return Err(Errno::EEXIST);
        }
        if group.is_enabled() {
            return Err(Errno::EBUSY);
        }
        group.access.add(netns)?;
        let count = usize::from(group.desc.num_vld_vnis);
        let pairs = group.profiles;
        // If a profile is missing, the driver does not undo the group's entry.
        for pair in pairs.get(..count).ok_or(Errno::ENODATA)? {
            self.vnis.tx_of(*pair).ok_or(Errno::ENODATA)?.access.add(netns)?;
            self.vnis.rx_of(*pair).ok_or(Errno::ENODATA)?.access.add(netns)?;
        }
        Ok(())
    }

    /// SVC_LIST_GET: all descriptors.
    fn svc_list(&self) -> Vec<SvcDesc> {
        let groups = self.services.listed(self.rules.lists_by_id);
        groups.into_iter().map(|(_, group)| group.desc).collect()
    }

    /// SVC_RSRC_LIST_GET: the usage of all, with their ids, unlike that of one.
    fn svc_usage_list(&self) -> Vec<RsrcUse> {
        let groups = self.services.listed(self.rules.lists_by_id);
        groups.into_iter().map(|(id, group)| self.usage(id, group)).collect()
    }

    fn usage(&self, svc_id: u32, group: &Group) -> RsrcUse {
        let mut in_use = [0; RSRC_COUNT];
        for slot in Slot::all() {
            let count = group.reserved.entries.in_use(slot);
            in_use[slot.resource()] = u16::try_from(count).unwrap_or(u16::MAX);
        }
        // The driver does not count these two, but asks the hardware.
        in_use[RSRC_LE] = self.les_in_use(group);
        in_use[RSRC_TLE] = self.tles_in_use(group);
        RsrcUse { svc_id, tle_pool_id: group.reserved.tle_pool.map_or(0, u32::from), in_use }
    }

    /// The largest count of the processing elements.
    fn les_in_use(&self, group: &Group) -> u16 {
        match (self.rules.le_usage_shown, group.reserved.le_pools) {
            (false, _) => 0,
            (true, None) => NOT_APPLICABLE,
            (true, Some(pools)) => (0..)
                .zip(pools)
                .zip(&self.registers.les_allocated)
                .filter_map(|((element, pool), set)| {
                    let set = *set.get(usize::from(pool))?;
                    Some(set.max(self.data_path.entries_in_use(element, pool)))
                })
                .max()
                .unwrap_or(0),
        }
    }

    fn tles_in_use(&self, group: &Group) -> u16 {
        let pool = |pool: u8| {
            let set = self.registers.tles_in_use.get(usize::from(pool)).copied().unwrap_or(0);
            set.max(self.data_path.triggered_in_use(pool))
        };
        match (group.reserved.tle_pool, self.rules.tle_usage_without_pool) {
            (Some(own), _) => pool(own),
            (None, TleUsageWithoutPool::Zero) => 0,
            (None, TleUsageWithoutPool::DefaultPool) => pool(0),
            (None, TleUsageWithoutPool::NotApplicable) => NOT_APPLICABLE,
        }
    }
}
