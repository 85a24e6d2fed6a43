//! Invariants of the device after every step.

use std::collections::BTreeSet;

use cxi_ioctl::abi::service::{RsrcUse, SvcDesc, SvcGetLprCmd, SvcListGetCmd, SvcRsrcListGetCmd};
use cxi_mock::{Client, Credentials, Nic};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

use super::Machine;
use super::send::write;
use crate::sequence::model::{Model, Service, TOTALS};

/// Names of the types in the driver's accounting; LEs are counted by each processing element.
const NAMES: [&[&str]; 8] = [
    &["ptes"],
    &["txqs"],
    &["tgqs"],
    &["eqs"],
    &["cts"],
    &["le0", "le1", "le2", "le3"],
    &["tles"],
    &["acs"],
];

/// Everything that can be seen of the device.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Snapshot {
    state: serde_json::Value,
    services: Vec<u8>,
}

impl Snapshot {
    pub(super) fn take(nic: &Nic, observer: &Client) -> Self {
        let state = serde_json::to_value(nic.state()).unwrap();
        let mut command = SvcListGetCmd::new();
        command.count = 1000;
        let (result, buffers) = write(observer, &Credentials::root(), command.as_bytes());
        result.unwrap();
        Self { state, services: buffers.list }
    }

    /// Everything except what stays set on the default service.
    pub(super) fn accounting(&self) -> serde_json::Value {
        let mut state = self.state.clone();
        if let Some(fields) = state.as_object_mut() {
            fields.remove("rgroups");
        }
        state
    }
}

impl Machine {
    /// Reserved and shared make up the device; reservations and units in use are those of the
    /// services.
    pub(super) fn conservation(&self, reference: &Model) {
        let state = self.nic.state();
        for (kind, names) in NAMES.iter().enumerate() {
            let services = || reference.services.values();
            let reserved: u16 = services().map(|service| service.held.limits[kind].res).sum();
            assert_eq!(reserved, reference.device.reserved[kind]);
            let in_use: u16 = services().map(|service| service.in_use[kind]).sum();
            for name in *names {
                let resource = &state.resources[name];
                assert_eq!(resource.max, u32::from(TOTALS[kind]), "{name}");
                assert_eq!(resource.reserved + resource.shared, resource.max, "{name}");
                assert_eq!(resource.reserved, u32::from(reserved), "{name}");
                assert_eq!(resource.in_use, u32::from(in_use), "{name}");
                let shared_use = reference.device.shared_use[kind];
                assert_eq!(resource.shared_use, u32::from(shared_use), "{name}");
            }
        }
    }

    /// The driver's counts of objects are those alive, and those held back.
    pub(super) fn counts(&self, reference: &Model) {
        let state = self.nic.state();
        let lnis = || reference.lnis.values();
        let contexts: usize = lnis().map(|lni| lni.contexts.len()).sum();
        let held = |kind| reference.numbers.held(kind);
        let counts = [
            ("LNIs", state.stats.lni, reference.lnis.len()),
            ("domains", state.stats.domain, reference.domains.len()),
            ("PTEs", state.stats.pt, held(0)),
            ("TXQs", state.stats.txq, held(1)),
            ("TGQs", state.stats.tgq, held(2)),
            ("EQs", state.stats.eq, held(3)),
            ("CTs", state.stats.ct, held(4)),
            ("ACs", state.stats.ac, contexts),
            ("MDs", state.stats.md, reference.mds.len()),
            ("list counters", state.plec, reference.list_counters()),
            ("CPs", state.cp_used, reference.cp_table_use()),
            ("services", state.svc_count, reference.services.len()),
            ("TLE pools", state.tle_pools_used, reference.device.tle_pools_used()),
            (
                "pending LNIs",
                state.lni_cleanups_pending,
                lnis().filter(|lni| lni.file.is_none()).count(),
            ),
        ];
        for (what, got, expected) in counts {
            assert_eq!(got as usize, expected, "{what}");
        }
        let reserved = lnis().map(|lni| lni.spare_eqs.len()).sum::<usize>();
        assert_eq!(held(3), reference.eqs.len() + reserved);
        let enabled = reference.rx.0.values().filter(|profile| profile.enabled);
        assert_eq!(state.rmu_used as usize, enabled.count());
    }

    /// Checks that the lists and single answers agree with the reference.
    pub(super) fn lists(&self, reference: &Model) {
        let in_order: Vec<&Service> = if self.release >= cxi_ioctl::DriverRelease::Main2026_07 {
            reference.services.values().collect()
        } else {
            let order = reference.order.iter();
            order.map(|svc_id| &reference.services[svc_id]).collect()
        };
        let services: Vec<SvcDesc> = list(&self.observer, in_order.len(), |count| {
            let mut command = SvcListGetCmd::new();
            command.count = count;
            command
        });
        let expected: Vec<_> = in_order.iter().map(|service| service.shown()).collect();
        assert_eq!(services, expected);
        let usage: Vec<RsrcUse> = list(&self.observer, in_order.len(), |count| {
            let mut command = SvcRsrcListGetCmd::new();
            command.count = count;
            command
        });
        let expected = in_order.iter().map(|service| {
            let mut usage = RsrcUse::new_zeroed();
            usage.svc_id = service.descriptor.svc_id;
            usage.tle_pool_id = service.held.tle_pool.unwrap_or(0);
            usage.in_use = reference.usage(service);
            usage
        });
        assert_eq!(usage, expected.collect::<Vec<_>>());
        for (svc_id, service) in &reference.services {
            let command = SvcGetLprCmd::of(*svc_id);
            let user = Credentials::user(9, 9);
            let (result, buffers) = write(&self.observer, &user, command.as_bytes());
            let expected = service.lnis_per_rgid.as_bytes();
            assert_eq!((result, buffers.response.as_deref()), (Ok(()), Some(expected)));
        }
    }

    /// Live identifiers are unique, and those of the reference.
    pub(super) fn identifiers(&self, reference: &Model) {
        let state = self.nic.state();
        let rgids: Vec<u32> = state.rgids.iter().map(|rgid| rgid.rgid).collect();
        assert_eq!(unique(&rgids), reference.rgids());
        for rgid in &state.rgids {
            let number = rgid.rgid;
            let sharing = reference.lnis.values().filter(|lni| lni.rgid == number);
            assert_eq!(rgid.refcount as usize, sharing.count(), "RGID {number}");
            let lacs = reference.lacs(number);
            assert_eq!(rgid.lacs as usize, unique(&lacs).len(), "RGID {number}");
            let lcids = reference.lcids.keys().filter(|(owner, _)| *owner == number);
            assert_eq!(rgid.lcids as usize, lcids.count(), "RGID {number}");
        }
        let rx = state.rx_profiles.iter();
        let rx: Vec<_> = rx.map(|it| (it.id, it.vni, it.enabled)).collect();
        let tx = state.tx_profiles.iter();
        let tx: Vec<_> = tx.map(|it| (it.id, it.vni, it.enabled)).collect();
        for (shown, profiles) in [(rx, &reference.rx), (tx, &reference.tx)] {
            let expected = profiles.0.iter();
            let expected = expected.map(|(id, it)| (*id, u32::from(it.low), it.enabled));
            assert_eq!(shown, expected.collect::<Vec<_>>());
        }
        let groups: Vec<u32> = state.rgroups.iter().map(|group| group.id).collect();
        assert_eq!(unique(&groups).len(), reference.services.len());
    }
}

/// The numbers, each of which is unique.
fn unique(numbers: &[u32]) -> BTreeSet<u32> {
    let unique: BTreeSet<u32> = numbers.iter().copied().collect();
    assert_eq!(unique.len(), numbers.len(), "twice the same in {numbers:?}");
    unique
}

/// Asks for as many entries as there should be, and gets exactly those.
fn list<C, E>(client: &Client, count: usize, command: impl Fn(u32) -> C) -> Vec<E>
where
    C: IntoBytes + Immutable,
    E: FromBytes + Immutable + Copy,
{
    let count = u32::try_from(count).unwrap();
    let user = Credentials::user(9, 9);
    let (result, buffers) = write(client, &user, command(count).as_bytes());
    result.unwrap();
    assert_eq!(buffers.response.as_deref(), Some(count.as_bytes()));
    let entries = buffers.list.chunks(size_of::<E>());
    entries.map(|bytes| E::read_from_bytes(bytes).unwrap()).collect()
}
