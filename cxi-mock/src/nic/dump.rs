//! The dump of the driver's accounting.

use super::device::Device;
use super::parts::group::Group;
use super::parts::ids::count;
use super::parts::profile::{Profile, Profiles};
use crate::rules::Rules;
use crate::state::{
    NicState, ObjectCounts, ProfileState, ResourceGroupState, RgidState, RxProfileState,
    TxProfileState,
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
            rx_profiles: profile_states(self.vnis.rx(), |rx| RxProfileState {
                rmu_index: rx.vni_slot.map_or(-1, u32::cast_signed),
            }),
            tx_profiles: profile_states(self.vnis.tx(), |tx| TxProfileState {
                exclusive_cp: tx.exclusive_cp,
                tcs: tx.tcs,
                cps: count(tx.cps.len()),
            }),
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

    fn dump_rgids(&self) -> Vec<RgidState> {
        self.rgids
            .iter()
            .map(|(number, rgid)| RgidState {
                rgid: number,
                svc_id: rgid.svc,
                lnis: rgid.setting,
                refcount: rgid.lnis,
                lacs: rgid.lacs.count_ones(),
                lcids: count(rgid.lcids.iter().flatten().count()),
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

fn profile_states<X, S>(profiles: &Profiles<X>, extra: impl Fn(&X) -> S) -> Vec<ProfileState<S>> {
    let state = |(id, profile): (u32, &Profile<X>)| ProfileState {
        id,
        vni: profile.vni.into(),
        ignore: profile.ignore.into(),
        enabled: profile.enabled,
        refcount: profile.references(),
        ac: profile.access.states(),
        extra: extra(&profile.extra),
    };
    profiles.iter().map(state).collect()
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
