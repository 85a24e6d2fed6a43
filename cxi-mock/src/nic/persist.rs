//! Snapshots of a device, and devices of snapshots.
//!
//! A snapshot comes from outside: each number, limit and reference in it is checked before anything
//! is made of it, so that a restored device is one that a driver could have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cxi_ioctl::abi::service::{
    DEFAULT_SVC_ID, Limits, RsrcLimits, SvcAllocCmd, SvcDesc, SvcMember,
};

use super::Nic;
use super::device::Device;
use super::parts::access::{Access, AccessList};
use super::parts::group::{Group, Held, ProfilePair};
use super::parts::ids::Ids;
use super::parts::pid::PidTable;
use super::parts::profile::{Profile, Profiles, Rx, Tx};
use super::parts::vnis::{VNI_SLOTS, Vnis};
use crate::rules::ListOrder;
use crate::snapshot::{
    Inconsistency, NicSnapshot, RxProfileSnapshot, ServiceSnapshot, SnapshotError,
    TxProfileSnapshot,
};

/// More than a driver could make; keeps a broken file from asking for the memory.
const MOST_PROFILES: u32 = 1 << 20;
const MOST_SERVICES: u32 = 1 << 20;

impl Nic {
    /// What outlives open files.
    #[must_use]
    pub fn snapshot(&self) -> NicSnapshot {
        let device = self.device();
        let (le_pools, tle_pools) = device.services.pools().taken();
        let services = device.services.listed(ListOrder::Allocation).into_iter();
        let (tx, rx) = (device.vnis.tx().iter(), device.vnis.rx().iter());
        NicSnapshot {
            config: self.config.clone(),
            services: services.map(|(id, group)| save_group(id, group)).collect(),
            tx_profiles: tx
                .filter(|(_, profile)| profile.creator)
                .map(|(id, profile)| TxProfileSnapshot {
                    id,
                    vni: profile.vni,
                    ignore: profile.ignore,
                    access: profile.access.entries().collect(),
                    enabled: profile.enabled,
                    tcs: profile.extra.tcs,
                    exclusive_cp: profile.extra.exclusive_cp,
                })
                .collect(),
            rx_profiles: rx
                .filter(|(_, profile)| profile.creator)
                .map(|(id, profile)| RxProfileSnapshot {
                    id,
                    vni: profile.vni,
                    ignore: profile.ignore,
                    access: profile.access.entries().collect(),
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
        access: group.access.entries().collect(),
        lnis_per_rgid: group.lnis_per_rgid,
        system: group.system,
        cntr_pool_id: group.cntr_pool_id,
        le_pools: group.reserved.le_pools,
        tle_pool: group.reserved.tle_pool,
        profiles: group.profiles.map(|pair| (pair.tx, without_users(pair.rx))),
    }
}

/// What a service holds when all files are closed.
fn without_users(held: Held) -> Held {
    match held {
        Held::GivenUp(_) => Held::Dangling,
        held => held,
    }
}

fn load_access(
    entries: &[Access],
    what: &'static str,
    id: u32,
) -> Result<AccessList, Inconsistency> {
    let mut list = AccessList::default();
    for entry in entries {
        list.add(*entry)
            .map_err(|errno| Inconsistency::Access { what, id, errno })?;
    }
    Ok(list)
}

/// Takes a number that must be new, and from `first` on below `end`.
fn number(
    taken: &mut BTreeSet<u32>,
    what: &'static str,
    id: u32,
    (first, end): (u32, u32),
) -> Result<(), Inconsistency> {
    if (first..end).contains(&id) && taken.insert(id) {
        Ok(())
    } else {
        Err(Inconsistency::Number { what, id })
    }
}

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
                number(&mut slots, "VNI table slot", slot, (0, VNI_SLOTS))?;
            }
            let extra = Rx {
                vni_slot: saved.vni_slot,
                pids: PidTable::default(),
            };
            let mut profile = Profile::of_service(saved.vni, saved.ignore, access, extra);
            profile.enabled = saved.enabled;
            rx.push((saved.id, profile));
        }
        let tx = self.restore_kind(tx, "TX profile")?;
        let rx = self.restore_kind(rx, "RX profile")?;
        let slots = Ids::with_taken(0, VNI_SLOTS, &slots);
        self.vnis = Vnis::restored(tx, rx, slots, &self.rules);
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
            number(&mut ids, what, id, (1, MOST_PROFILES))?;
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
        let mut groups = BTreeMap::new();
        for (seq, saved) in (0..).zip(&snapshot.services) {
            number(&mut ids, "service", saved.id, (1, MOST_SERVICES))?;
            let mut group = self.restore_group(saved)?;
            group.seq = seq;
            groups.insert(saved.id, Box::new(group));
        }
        if !ids.contains(&DEFAULT_SVC_ID) {
            return Err(Inconsistency::NoDefaultService);
        }
        let leaked = (snapshot.le_pools, snapshot.tle_pools);
        self.services.restore(groups, leaked);
        Ok(())
    }

    fn restore_group(&mut self, saved: &ServiceSnapshot) -> Result<Group, Inconsistency> {
        let id = saved.id;
        let desc = restore_desc(saved);
        let claimed = self
            .services
            .claim(&desc.limits, saved.le_pools, saved.tle_pool);
        let reserved = claimed.map_err(|pool| match pool {
            Some((what, id)) => Inconsistency::Number {
                what,
                id: id.into(),
            },
            None => Inconsistency::Limits { service: id },
        })?;
        self.wire_pools(&reserved, &desc.limits);
        let mut profiles = [ProfilePair::default(); 4];
        for (pair, (tx, rx)) in profiles.iter_mut().zip(saved.profiles) {
            for (held, there) in [
                (
                    tx,
                    tx.id().is_none_or(|id| self.vnis.tx().get(id).is_some()),
                ),
                (
                    rx,
                    rx.id().is_none_or(|id| self.vnis.rx().get(id).is_some()),
                ),
            ] {
                if let (Held::Profile(profile), false) = (held, there) {
                    let service = id;
                    return Err(Inconsistency::NoProfile { service, profile });
                }
            }
            *pair = ProfilePair {
                tx: without_users(tx),
                rx: without_users(rx),
            };
        }
        let mut group = Group {
            seq: 0,
            desc,
            enabled: saved.enabled,
            access: load_access(&saved.access, "service", id)?,
            reserved,
            lnis_per_rgid: saved.lnis_per_rgid,
            system: saved.system,
            cntr_pool_id: saved.cntr_pool_id,
            lnis: 0,
            profiles,
        };
        group.set_enabled(saved.enabled);
        Ok(group)
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
