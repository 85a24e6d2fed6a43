//! Snapshots of a device, and devices of snapshots.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cxi_ioctl::abi::service::{
    DEFAULT_SVC_ID, Limits, RSRC_LE, RSRC_TLE, RsrcLimits, SvcAllocCmd, SvcDesc, SvcMember,
};

use super::access::{Access, AccessList};
use super::accounting::{Entries, Slot};
use super::boot::VNI_SLOTS;
use super::group::{Group, Held, ProfilePair};
use super::ids::Ids;
use super::pid::PidTable;
use super::profile::{Profile, Profiles, Rx, Tx};
use super::{Device, Nic};
use crate::rules::ListOrder;
use crate::snapshot::{
    AccessSnapshot, HeldSnapshot, Inconsistency, NicSnapshot, RxProfileSnapshot, ServiceSnapshot,
    SnapshotError, TxProfileSnapshot,
};

impl Nic {
    /// What outlives open files.
    #[must_use]
    pub fn snapshot(&self) -> NicSnapshot {
        let device = self.device();
        let (le_pools, tle_pools) = device.pools.taken();
        let services = device.groups.listed(ListOrder::Allocation);
        NicSnapshot {
            config: self.config.clone(),
            services: services
                .into_iter()
                .map(|(id, group)| save_group(id, group))
                .collect(),
            tx_profiles: device
                .tx
                .iter()
                .filter(|(_, profile)| profile.creator)
                .map(|(id, profile)| TxProfileSnapshot {
                    id,
                    vni: profile.vni,
                    ignore: profile.ignore,
                    access: save_access(&profile.access),
                    enabled: profile.enabled,
                    tcs: profile.extra.tcs,
                    exclusive_cp: profile.extra.exclusive_cp,
                })
                .collect(),
            rx_profiles: device
                .rx
                .iter()
                .filter(|(_, profile)| profile.creator)
                .map(|(id, profile)| RxProfileSnapshot {
                    id,
                    vni: profile.vni,
                    ignore: profile.ignore,
                    access: save_access(&profile.access),
                    enabled: profile.enabled,
                    vni_slot: profile.extra.vni_slot,
                })
                .collect(),
            le_pools,
            tle_pools,
        }
    }

    /// A NIC as it was, without open files.
    ///
    /// # Errors
    ///
    /// The snapshot contradicts itself, or its configuration is bad.
    pub fn restore(snapshot: &NicSnapshot) -> Result<Arc<Self>, SnapshotError> {
        let mut device = Device::empty(&snapshot.config)?;
        device.restore_profiles(snapshot)?;
        device.restore_services(snapshot)?;
        device.pools.mark(&snapshot.le_pools, snapshot.tle_pools);
        Ok(Self::with(snapshot.config.clone(), device))
    }
}

fn save_group(id: u32, group: &Group) -> ServiceSnapshot {
    let desc = &group.desc;
    ServiceSnapshot {
        id,
        flags: desc.flags,
        num_vld_vnis: desc.num_vld_vnis,
        vnis: desc.vnis,
        tcs: desc.tcs,
        members: desc.members.map(|member| (member.kind, member.id)),
        limits: desc.limits.types.map(|limit| (limit.max, limit.res)),
        enabled: group.enabled,
        access: save_access(&group.access),
        lnis_per_rgid: group.lnis_per_rgid,
        system: group.system,
        cntr_pool_id: group.cntr_pool_id,
        le_pools: group.le_pools,
        tle_pool: group.tle_pool,
        profiles: group
            .profiles
            .map(|pair| (save_held(pair.tx), save_held(pair.rx))),
    }
}

fn save_held(held: Held) -> HeldSnapshot {
    match held {
        Held::None => HeldSnapshot::None,
        Held::Profile(id) => HeldSnapshot::Profile(id),
        Held::Dangling => HeldSnapshot::Dangling,
    }
}

fn save_access(list: &AccessList) -> Vec<AccessSnapshot> {
    list.entries()
        .map(|access| match access {
            Access::Uid(uid) => AccessSnapshot::Uid(uid),
            Access::Gid(gid) => AccessSnapshot::Gid(gid),
            Access::Netns(netns) => AccessSnapshot::Netns(netns),
            Access::Open => AccessSnapshot::Open,
        })
        .collect()
}

fn load_access(
    entries: &[AccessSnapshot],
    what: &'static str,
    id: u32,
) -> Result<AccessList, Inconsistency> {
    let mut list = AccessList::default();
    for entry in entries {
        let access = match *entry {
            AccessSnapshot::Uid(uid) => Access::Uid(uid),
            AccessSnapshot::Gid(gid) => Access::Gid(gid),
            AccessSnapshot::Netns(netns) => Access::Netns(netns),
            AccessSnapshot::Open => Access::Open,
        };
        list.add(access)
            .map_err(|errno| Inconsistency::Access { what, id, errno })?;
    }
    Ok(list)
}

/// Takes a number that must be new and below `end`.
fn number(
    taken: &mut BTreeSet<u32>,
    what: &'static str,
    id: u32,
    end: u32,
) -> Result<(), Inconsistency> {
    if id < end && taken.insert(id) {
        Ok(())
    } else {
        Err(Inconsistency::Number { what, id })
    }
}

/// More profiles than a driver could make; keeps a broken file from asking for the memory.
const MOST_PROFILES: u32 = 1 << 20;
const MOST_SERVICES: u32 = 1 << 20;

impl Device {
    fn restore_profiles(&mut self, snapshot: &NicSnapshot) -> Result<(), Inconsistency> {
        let mut tx = Vec::new();
        for saved in &snapshot.tx_profiles {
            let access = load_access(&saved.access, "TX profile", saved.id)?;
            let extra = Tx {
                tcs: saved.tcs,
                exclusive_cp: saved.exclusive_cp,
                cps: BTreeMap::new(),
            };
            let mut profile = Profile::of_service(saved.vni, saved.ignore, access, extra);
            profile.enabled = saved.enabled;
            tx.push((saved.id, profile));
        }
        let mut slots = BTreeSet::new();
        let mut rx = Vec::new();
        for saved in &snapshot.rx_profiles {
            let access = load_access(&saved.access, "RX profile", saved.id)?;
            if let Some(slot) = saved.vni_slot {
                number(&mut slots, "VNI table slot", slot, VNI_SLOTS)?;
            }
            let extra = Rx {
                vni_slot: saved.vni_slot,
                pids: PidTable::default(),
            };
            let mut profile = Profile::of_service(saved.vni, saved.ignore, access, extra);
            profile.enabled = saved.enabled;
            rx.push((saved.id, profile));
        }
        self.tx = self.restore_kind(tx, "TX profile")?;
        self.rx = self.restore_kind(rx, "RX profile")?;
        self.vni_table = Ids::with_taken(0, VNI_SLOTS, &slots);
        Ok(())
    }

    fn restore_kind<X>(
        &self,
        profiles: Vec<(u32, Profile<X>)>,
        what: &'static str,
    ) -> Result<Profiles<X>, Inconsistency> {
        let mut ids = BTreeSet::new();
        let mut all = Profiles::new();
        for (id, profile) in profiles {
            if id == 0 {
                return Err(Inconsistency::Number { what, id });
            }
            number(&mut ids, what, id, MOST_PROFILES)?;
            let block = (u32::from(profile.ignore) + 1).is_power_of_two()
                && profile.vni & profile.ignore == 0;
            let taken = all.conflicts(profile.vni, profile.last(), self.rules.vni_exclusivity);
            if !block || taken {
                return Err(Inconsistency::Vni {
                    id,
                    vni: profile.vni,
                });
            }
            all.restore(id, profile);
        }
        all.take_ids(&ids);
        Ok(all)
    }

    fn restore_services(&mut self, snapshot: &NicSnapshot) -> Result<(), Inconsistency> {
        let mut ids = BTreeSet::new();
        for saved in &snapshot.services {
            if saved.id == 0 {
                let (what, id) = ("service", saved.id);
                return Err(Inconsistency::Number { what, id });
            }
            number(&mut ids, "service", saved.id, MOST_SERVICES)?;
            let group = self.restore_group(saved)?;
            self.groups.put(saved.id, Box::new(group));
        }
        if !ids.contains(&DEFAULT_SVC_ID) {
            return Err(Inconsistency::NoDefaultService);
        }
        self.groups.take_ids(&ids);
        Ok(())
    }

    fn restore_group(&mut self, saved: &ServiceSnapshot) -> Result<Group, Inconsistency> {
        let id = saved.id;
        let desc = restore_desc(saved);
        let mut entries = Entries::default();
        for slot in Slot::ALL {
            let limit = desc.limits.types[slot.resource()];
            let left_out = (limit.max == 0 && limit.res == 0)
                || (slot.resource() == RSRC_LE && saved.le_pools.is_none());
            if limit.max < limit.res
                || limit.max > self.accounting.totals().types[slot.resource()].max
            {
                return Err(Inconsistency::Limits { service: id });
            }
            if !left_out {
                self.accounting
                    .reserve(&mut entries, slot, &desc.limits)
                    .map_err(|_| Inconsistency::Limits { service: id })?;
            }
        }
        if saved.tle_pool.is_some() != (desc.limits.types[RSRC_TLE].max > 0) {
            return Err(Inconsistency::Limits { service: id });
        }
        self.restore_pools(saved)?;
        self.wire_pools(saved.le_pools, saved.tle_pool, &desc.limits);
        let mut profiles = [ProfilePair::default(); 4];
        for (pair, (tx, rx)) in profiles.iter_mut().zip(&saved.profiles) {
            let there = |profile| self.tx.get(profile).is_some();
            pair.tx = restore_held(*tx, id, there)?;
            let there = |profile| self.rx.get(profile).is_some();
            pair.rx = restore_held(*rx, id, there)?;
        }
        let mut group = Group {
            seq: 0,
            desc,
            enabled: saved.enabled,
            access: load_access(&saved.access, "service", id)?,
            entries,
            le_pools: saved.le_pools,
            tle_pool: saved.tle_pool,
            lnis_per_rgid: saved.lnis_per_rgid,
            system: saved.system,
            cntr_pool_id: saved.cntr_pool_id,
            lnis: 0,
            profiles,
        };
        group.set_enabled(saved.enabled);
        Ok(group)
    }

    fn restore_pools(&mut self, saved: &ServiceSnapshot) -> Result<(), Inconsistency> {
        if let Some(pools) = saved.le_pools
            && !self.pools.claim_le(pools)
        {
            return Err(Inconsistency::Number {
                what: "LE pool",
                id: pools[0].into(),
            });
        }
        if let Some(pool) = saved.tle_pool
            && !self.pools.claim_tle(pool)
        {
            return Err(Inconsistency::Number {
                what: "TLE pool",
                id: pool.into(),
            });
        }
        Ok(())
    }
}

fn restore_desc(saved: &ServiceSnapshot) -> SvcDesc {
    let mut desc = SvcAllocCmd::new().svc_desc;
    desc.flags = saved.flags;
    desc.num_vld_vnis = saved.num_vld_vnis;
    desc.vnis = saved.vnis;
    desc.tcs = saved.tcs;
    desc.members = saved.members.map(|(kind, id)| SvcMember { id, kind });
    desc.limits = RsrcLimits {
        types: saved.limits.map(|(max, res)| Limits { max, res }),
    };
    desc.svc_id = saved.id;
    desc
}

fn restore_held(
    held: HeldSnapshot,
    service: u32,
    there: impl Fn(u32) -> bool,
) -> Result<Held, Inconsistency> {
    match held {
        HeldSnapshot::None => Ok(Held::None),
        HeldSnapshot::Dangling => Ok(Held::Dangling),
        HeldSnapshot::Profile(profile) if there(profile) => Ok(Held::Profile(profile)),
        HeldSnapshot::Profile(profile) => Err(Inconsistency::NoProfile { service, profile }),
    }
}
