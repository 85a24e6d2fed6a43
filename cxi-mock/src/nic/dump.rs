//! The dump of the driver's accounting.

use super::device::Device;
use super::parts::group::Group;
use crate::rules::Rules;
use crate::state::{
    NicState, ObjectCounts, ResourceGroupState, RgidState, RxProfileState, TxProfileState,
};

impl Device {
    pub(super) fn dump(&self) -> NicState {
        let (_, lni_cleanups_pending) = self.lnis.count();
        NicState {
            svc_count: self.services.count(),
            resources: self.services.resources().collect(),
            rgroups: self
                .services
                .iter()
                .map(|(id, group)| group_state(id, group, &self.rules))
                .collect(),
            rx_profiles: self.dump_rx(),
            tx_profiles: self.dump_tx(),
            rgids: self.dump_rgids(),
            lni_cleanups_pending,
            stats: self.object_counts(),
            le_pools_used: self.services.pools().le_used(),
            tle_pools_used: self.services.pools().tle_used(),
            cp_used: self.cps.used(),
            rmu_used: self.vnis.slots_used(),
            plec: self.portals.counters_used(),
        }
    }

    fn dump_rx(&self) -> Vec<RxProfileState> {
        self.vnis
            .rx()
            .iter()
            .map(|(id, profile)| RxProfileState {
                id,
                vni: profile.vni.into(),
                ignore: profile.ignore.into(),
                enabled: profile.enabled,
                refcount: profile.references(),
                ac: profile.access.states(),
                rmu_index: profile
                    .extra
                    .vni_slot
                    .and_then(|slot| i32::try_from(slot).ok())
                    .unwrap_or(-1),
            })
            .collect()
    }

    fn dump_tx(&self) -> Vec<TxProfileState> {
        self.vnis
            .tx()
            .iter()
            .map(|(id, profile)| TxProfileState {
                id,
                vni: profile.vni.into(),
                ignore: profile.ignore.into(),
                enabled: profile.enabled,
                refcount: profile.references(),
                ac: profile.access.states(),
                exclusive_cp: profile.extra.exclusive_cp,
                tcs: profile.extra.tcs,
                cps: u32::try_from(profile.extra.cps.len()).unwrap_or(u32::MAX),
            })
            .collect()
    }

    fn dump_rgids(&self) -> Vec<RgidState> {
        self.rgids
            .iter()
            .map(|(number, rgid)| RgidState {
                rgid: number,
                svc_id: rgid.svc,
                lnis: rgid.setting,
                refcount: rgid.lnis,
                lacs: rgid.lacs.count_ones(),
                lcids: rgid.lcids.iter().flatten().fold(0, |count, _| count + 1),
            })
            .collect()
    }

    fn object_counts(&self) -> ObjectCounts {
        let (txq, tgq) = self.cqs.used();
        ObjectCounts {
            lni: self.lnis.count().0,
            domain: self.domains.objects.count(),
            eq: self.eqs.queues.used(),
            txq,
            tgq,
            pt: self.portals.ptes.used(),
            ct: self.cts.used(),
            ac: self.acs.used(),
            md: self.mds.count(),
        }
    }
}

fn group_state(id: u32, group: &Group, rules: &Rules) -> ResourceGroupState {
    let name = match (rules.group_names, id) {
        (false, _) => "",
        (true, cxi_ioctl::abi::service::DEFAULT_SVC_ID) => "default",
        (true, _) => "user",
    };
    ResourceGroupState {
        id,
        name,
        enabled: group.is_enabled(),
        refcount: rules.group_references + group.lnis,
        lnis_per_rgid: group.lnis_per_rgid,
        cntr_pool_id: group.cntr_pool_id,
        system_service: group.system,
        le_pool_id: group
            .reserved
            .le_pools
            .map_or([rules.no_pool; 4], |pools| pools.map(i32::from)),
        tle_pool_id: group.reserved.tle_pool.map_or(rules.no_pool, i32::from),
        has_svc: true,
        ac: group.access.states(),
        entries: group.reserved.entries.states().collect(),
    }
}
