//! Services: allocation and destruction.

use cxi_ioctl::abi::service::{
    DEFAULT_SVC_ID, Limits, RSRC_LE, RSRC_TLE, RsrcLimits, SVC_MAX_VNIS, SvcAllocCmd, SvcAllocResp,
    SvcDesc, SvcDestroyCmd, SvcEnableCmd, SvcFailInfo, SvcFlags, SvcGetCmd, SvcGetExclusiveCpCmd,
    SvcGetExclusiveCpResp, SvcGetLprCmd, SvcGetNetnsCmd, SvcGetValueResp, SvcGetVniRangeCmd,
    SvcGetVniRangeResp, SvcListGetCmd, SvcListGetResp, SvcRsrcGetCmd, SvcRsrcListGetCmd,
    SvcRsrcListGetResp, SvcSetExclusiveCpCmd, SvcSetLprCmd, SvcSetNetnsCmd, SvcSetVniRangeCmd,
    SvcUpdateCmd, SvcUpdateResp,
};
use cxi_ioctl::{Errno, Opcode};

use zerocopy::{FromZeros, IntoBytes};

use super::Device;
use super::accounting::{Entries, Slot};
use super::descriptor;
use super::dispatch::Call;
use super::group::{Group, Held, flags};
use super::pools::LePools;
use crate::HazardKind;
use crate::rules::{LePoolWhen, UnrestrictedMeans};

/// What a group got of the device.
struct Reservation {
    entries: Entries,
    le_pools: Option<LePools>,
    tle_pool: Option<u8>,
}

impl Device {
    /// The commands for services.
    pub(super) fn service_command(
        &mut self,
        opcode: Opcode,
        call: &mut Call<'_>,
    ) -> Result<(), Errno> {
        match opcode {
            Opcode::SVC_ALLOC => {
                let command: SvcAllocCmd = call.command()?;
                let mut fail_info = SvcFailInfo::new_zeroed();
                let result = self.svc_alloc(&command.svc_desc, &mut fail_info);
                let svc_id = result.unwrap_or(0);
                call.respond(&SvcAllocResp { svc_id, fail_info })?;
                result.map(drop)
            }
            Opcode::SVC_UPDATE => {
                let command: SvcUpdateCmd = call.command()?;
                let result = self.svc_update(&command.svc_desc);
                call.respond(&SvcUpdateResp::new_zeroed())?;
                result
            }
            Opcode::SVC_DESTROY => {
                let command: SvcDestroyCmd = call.command()?;
                self.svc_destroy(command.svc_id)
            }
            Opcode::SVC_ENABLE => {
                let command: SvcEnableCmd = call.command()?;
                self.svc_enable(command.svc_id, command.enable != 0)
            }
            Opcode::SVC_SET_LPR => {
                let command: SvcSetLprCmd = call.command()?;
                self.svc_set_lnis_per_rgid(command.svc_id, command.lnis_per_rgid)
            }
            Opcode::SVC_SET_EXCLUSIVE_CP => {
                let command: SvcSetExclusiveCpCmd = call.command()?;
                self.svc_set_exclusive_cp(command.svc_id, command.exclusive_cp != 0)
            }
            Opcode::SVC_SET_VNI_RANGE => {
                let command: SvcSetVniRangeCmd = call.command()?;
                self.svc_set_vni_range(command.svc_id, command.vni_min, command.vni_max)
            }
            Opcode::SVC_SET_NETNS => {
                let command: SvcSetNetnsCmd = call.command()?;
                self.svc_set_netns(command.svc_id, command.netns)
            }
            Opcode::SVC_GET => {
                let command: SvcGetCmd = call.command()?;
                call.respond(&self.svc_desc(command.svc_id)?)
            }
            Opcode::SVC_RSRC_GET => {
                let command: SvcRsrcGetCmd = call.command()?;
                call.respond(&self.svc_usage(command.svc_id)?)
            }
            Opcode::SVC_LIST_GET => {
                let command: SvcListGetCmd = call.command()?;
                let count = self.groups.count();
                if command.count >= count {
                    call.memory.write_list(self.svc_list().as_bytes());
                }
                call.respond(&SvcListGetResp { count })
            }
            Opcode::SVC_RSRC_LIST_GET => {
                let command: SvcRsrcListGetCmd = call.command()?;
                let count = self.groups.count();
                if command.count >= count {
                    call.memory.write_list(self.svc_usage_list().as_bytes());
                }
                call.respond(&SvcRsrcListGetResp { count })
            }
            Opcode::SVC_GET_LPR => {
                let command: SvcGetLprCmd = call.command()?;
                let value = self.svc_lnis_per_rgid(command.svc_id);
                call.respond(&SvcGetValueResp { value })
            }
            Opcode::SVC_GET_EXCLUSIVE_CP => {
                let command: SvcGetExclusiveCpCmd = call.command()?;
                let exclusive_cp = self.svc_exclusive_cp(command.svc_id)?.into();
                call.respond(&SvcGetExclusiveCpResp { exclusive_cp })
            }
            Opcode::SVC_GET_VNI_RANGE => {
                let command: SvcGetVniRangeCmd = call.command()?;
                let (vni_min, vni_max) = self.svc_vni_range(command.svc_id)?;
                call.respond(&SvcGetVniRangeResp { vni_min, vni_max })
            }
            Opcode::SVC_GET_NETNS => {
                let command: SvcGetNetnsCmd = call.command()?;
                let value = self.svc_netns(command.svc_id)?;
                call.respond(&SvcGetValueResp { value })
            }
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    /// SVC_ALLOC. `info` tells why it failed.
    pub(super) fn svc_alloc(
        &mut self,
        desc: &SvcDesc,
        info: &mut SvcFailInfo,
    ) -> Result<u32, Errno> {
        descriptor::check(desc, &self.accounting.totals(), &self.rules)?;
        let id = self.groups.ids.alloc().ok_or(Errno::ENOSPC)?;
        match self.new_group(id, desc, info) {
            Ok(group) => {
                self.groups.put(id, group);
                Ok(id)
            }
            Err(errno) => {
                self.groups.ids.free(id);
                Err(errno)
            }
        }
    }

    fn new_group(
        &mut self,
        id: u32,
        desc: &SvcDesc,
        info: &mut SvcFailInfo,
    ) -> Result<Box<Group>, Errno> {
        let mut access = descriptor::access(desc, &self.rules);
        if self.rules.members_before_vnis {
            access = Ok(access?);
        }
        let for_profiles = descriptor::profile_access(desc, &self.rules).unwrap_or_default();
        let profiles = self.claim_vnis(id, desc, &for_profiles)?;
        let limits = descriptor::effective_limits(desc, &self.accounting.totals());
        let reserved = access.and_then(|access| {
            let reservation = self.reserve(id, &limits, info)?;
            Ok((access, reservation))
        });
        let (access, reservation) = match reserved {
            Ok(reserved) => reserved,
            Err(errno) => {
                self.drop_profiles(profiles);
                return Err(errno);
            }
        };
        let restricted = flags(desc).contains(SvcFlags::RESTRICTED_VNIS);
        let enable = restricted || self.rules.unrestricted_means != UnrestrictedMeans::RangeToCome;
        if enable && let Err(errno) = self.enable_profiles(profiles) {
            self.drop_profiles(profiles);
            self.give_back(reservation, &limits, false);
            return Err(errno);
        }
        *info = SvcFailInfo {
            rsrc_avail: [0; 8],
            no_le_pools: 0,
            no_tle_pools: 0,
            no_cntr_pools: 0,
            _pad0: [0],
        };
        let system = flags(desc).contains(SvcFlags::IS_SYSTEM_SVC);
        let shareable = self.rules.rgid_parameters && !system && id != DEFAULT_SVC_ID;
        let mut desc = *desc;
        desc.svc_id = id;
        desc.limits = limits;
        let mut group = Box::new(Group {
            seq: 0,
            desc,
            enabled: enable,
            access,
            entries: reservation.entries,
            le_pools: reservation.le_pools,
            tle_pool: reservation.tle_pool,
            lnis_per_rgid: if shareable {
                self.params.default_lnis_per_rgid
            } else {
                1
            },
            system,
            cntr_pool_id: u32::from(desc.flags >> 6),
            lnis: 0,
            profiles,
        });
        group.set_enabled(enable);
        Ok(group)
    }

    /// Whether a limit that allows LEs takes a pool.
    fn takes_le_pool(&self, les: Limits) -> bool {
        match self.rules.le_pool_when {
            LePoolWhen::Reserved => les.res > 0,
            LePoolWhen::Max => true,
        }
    }

    fn reserve(
        &mut self,
        id: u32,
        limits: &RsrcLimits,
        info: &mut SvcFailInfo,
    ) -> Result<Reservation, Errno> {
        let (available, fits) = self.accounting.available(limits);
        info.rsrc_avail = available;
        fits?;
        let mut reservation = Reservation {
            entries: Entries::default(),
            le_pools: None,
            tle_pool: None,
        };
        for slot in Slot::ALL {
            if let Err(errno) = self.reserve_slot(id, slot, limits, &mut reservation, info) {
                self.give_back(reservation, limits, slot == Slot::Tle);
                return Err(errno);
            }
        }
        Ok(reservation)
    }

    fn reserve_slot(
        &mut self,
        id: u32,
        slot: Slot,
        limits: &RsrcLimits,
        reservation: &mut Reservation,
        info: &mut SvcFailInfo,
    ) -> Result<(), Errno> {
        let limit = limits.types[slot.resource()];
        if limit.max == 0 && limit.res == 0 {
            return Ok(());
        }
        if slot.resource() == RSRC_LE {
            if !self.takes_le_pool(limit) {
                return Ok(());
            }
            if reservation.le_pools.is_none() {
                reservation.le_pools = match id {
                    DEFAULT_SVC_ID => Some(self.pools.take_default_le()),
                    _ => self.pools.take_le(),
                };
            }
            if reservation.le_pools.is_none() {
                info.no_le_pools = self.rules.pool_flags.into();
                return Err(Errno::ENOSPC);
            }
        }
        self.accounting
            .reserve(&mut reservation.entries, slot, limits)?;
        if slot.resource() == RSRC_TLE {
            reservation.tle_pool = match id {
                DEFAULT_SVC_ID => Some(self.pools.take_default_tle()),
                _ => self.pools.take_tle(),
            };
            if reservation.tle_pool.is_none() {
                info.no_tle_pools = self.rules.pool_flags.into();
                return Err(Errno::ENOSPC);
            }
        }
        self.wire_pools(reservation.le_pools, reservation.tle_pool, limits);
        Ok(())
    }

    /// Tells the data path what a service has of list entries.
    pub(super) fn wire_pools(
        &self,
        le_pools: Option<LePools>,
        tle_pool: Option<u8>,
        limits: &RsrcLimits,
    ) {
        if let Some(pools) = le_pools {
            self.data_path.set_entry_pools(pools, limits.types[RSRC_LE]);
        }
        if let Some(pool) = tle_pool {
            let limit = limits.types[RSRC_TLE];
            self.data_path.set_triggered_pool(pool, limit);
        }
    }

    fn give_back(
        &mut self,
        mut reservation: Reservation,
        limits: &RsrcLimits,
        short_of_tles: bool,
    ) {
        self.accounting.release(&mut reservation.entries);
        let leak =
            short_of_tles && self.rules.refusal_leaks_le_pools && limits.types[RSRC_LE].res == 0;
        if let Some(pools) = reservation.le_pools
            && !leak
        {
            self.pools.give_le(pools);
            self.data_path.free_entry_pools(pools);
        }
        if let Some(pool) = reservation.tle_pool {
            self.pools.give_tle(pool);
            self.data_path.free_triggered_pool(pool);
        }
    }

    /// SVC_DESTROY.
    pub(super) fn svc_destroy(&mut self, id: u32) -> Result<(), Errno> {
        if id == DEFAULT_SVC_ID {
            return Err(Errno::EINVAL);
        }
        let group = self.groups.get(id).ok_or(Errno::EINVAL)?;
        if group.lnis > 0 {
            return Err(Errno::EBUSY);
        }
        let Some(mut group) = self.groups.remove(id) else {
            return Err(Errno::EINVAL);
        };
        self.check_hazards(id, &group);
        if self.rules.disabled_profiles_off {
            for (_, pair) in group.counted() {
                self.drop_pair(pair);
            }
        } else {
            self.drop_profiles(group.profiles);
        }
        self.accounting.release(&mut group.entries);
        if let Some(pools) = group.le_pools {
            self.pools.give_le(pools);
            self.data_path.free_entry_pools(pools);
        }
        if let Some(pool) = group.tle_pool {
            self.pools.give_tle(pool);
            self.data_path.free_triggered_pool(pool);
        }
        Ok(())
    }

    /// Notes that the driver now works on profiles that it does not have.
    pub(super) fn check_hazards(&mut self, svc_id: u32, group: &Group) {
        let num_vld_vnis = group.desc.num_vld_vnis;
        if self.rules.disabled_profiles_off && usize::from(num_vld_vnis) > SVC_MAX_VNIS {
            self.hazard(HazardKind::CountBeyondProfiles {
                svc_id,
                num_vld_vnis,
            });
        }
        let dangling = |held| held == Held::Dangling;
        if group
            .counted()
            .any(|(_, pair)| dangling(pair.tx) || dangling(pair.rx))
        {
            self.hazard(HazardKind::DanglingRange { svc_id });
        }
    }
}
