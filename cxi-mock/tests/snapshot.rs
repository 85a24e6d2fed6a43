//! What outlives open files, saved and restored.
#![cfg(feature = "serde")]

mod common;

use common::{alloc, cp, desc, lni, nic, only, root, send};
use cxi_ioctl::abi::domain::DomainReserveCmd;
use cxi_ioctl::abi::service::{
    RSRC_LE, RSRC_TLE, SvcDestroyCmd, SvcEnableCmd, SvcListGetCmd, SvcSetVniRangeCmd,
};
use cxi_ioctl::{DriverRelease, Errno, fetch_list};
use cxi_mock::{
    Inconsistency, MockNode, Nic, NicSnapshot, NodeSnapshot, SnapshotError, SnapshotHeader,
};

/// A NIC with services of all kinds.
fn busy(release: DriverRelease) -> std::sync::Arc<Nic> {
    let nic = nic(release);
    let root = root(&nic);
    let mut rich = desc(&[50, 51]);
    rich.limits.types[RSRC_LE].res = 10;
    rich.limits.types[RSRC_TLE].max = 100;
    alloc(&root, only(rich, 7)).unwrap();
    let gone = alloc(&root, desc(&[60])).unwrap();
    alloc(&root, desc(&[61])).unwrap();
    let mut destroy = SvcDestroyCmd::new();
    destroy.svc_id = gone;
    send(&root, &destroy).unwrap();
    let mut range = desc(&[]);
    range.flags &= !cxi_ioctl::abi::service::SvcFlags::RESTRICTED_VNIS.bits();
    let ranged = alloc(&root, range).unwrap();
    assert_eq!(ranged, gone);
    let mut set = SvcSetVniRangeCmd::new();
    (set.svc_id, set.vni_min, set.vni_max) = (ranged, 64, 127);
    // Older drivers have no ranges.
    let has_ranges = send(&root, &set).is_ok();
    assert_eq!(has_ranges, release >= DriverRelease::Shs13_1, "{release}");
    let mut enable = SvcEnableCmd::new();
    (enable.svc_id, enable.enable) = (ranged, 1);
    assert_eq!(send(&root, &enable).is_ok(), has_ranges, "{release}");
    nic
}

#[test]
fn a_restored_nic_is_the_same() {
    for release in DriverRelease::ALL {
        let nic = busy(release);
        let json = serde_json::to_string(&nic.snapshot()).unwrap();
        let snapshot: NicSnapshot = serde_json::from_str(&json).unwrap();
        let again = Nic::restore(&snapshot).unwrap();
        assert_eq!(again.state(), nic.state(), "{release}");
        assert_eq!(again.snapshot(), snapshot, "{release}");
        let list = |nic| {
            let mut list = Vec::new();
            fetch_list::<SvcListGetCmd>(&root(nic), &mut list).unwrap();
            list
        };
        assert_eq!(list(&again), list(&nic), "{release}");
        // Identifiers go on where they were.
        let next = |nic| alloc(&root(nic), desc(&[200])).unwrap();
        assert_eq!(next(&again), next(&nic), "{release}");
        assert_eq!(again.state(), nic.state(), "{release}");
    }
}

#[test]
fn what_belongs_to_open_files_is_left_out() {
    let nic = busy(DriverRelease::Main);
    let before = nic.state();
    let root = root(&nic);
    let lni = lni(&root, 3).unwrap();
    cp(&root, lni, 61).unwrap();
    cp(&root, lni, 999).unwrap();
    let mut reserve = DomainReserveCmd::new();
    (reserve.lni, reserve.vni, reserve.count) = (lni, 61, 4);
    send(&root, &reserve).unwrap();
    let again = Nic::restore(&nic.snapshot()).unwrap();
    assert_eq!(again.state(), before);
}

#[test]
fn leaked_pools_stay_leaked() {
    let nic = nic(DriverRelease::Shs12_0);
    let root = root(&nic);
    let mut open = desc(&[5]);
    open.flags &= !cxi_ioctl::abi::service::SvcFlags::RESOURCE_LIMITS.bits();
    for expected in [Ok(2), Ok(3), Ok(4), Err(Errno::ENOSPC), Err(Errno::ENOSPC)] {
        assert_eq!(alloc(&root, open), expected);
    }
    assert_eq!(nic.state().le_pools_used, [6; 4]);
    let again = Nic::restore(&nic.snapshot()).unwrap();
    assert_eq!(again.state().le_pools_used, [6; 4]);
}

#[test]
fn another_version_is_told_from_a_broken_file() {
    let mut snapshot = MockNode::from_nics(vec![busy(DriverRelease::Main)]).snapshot();
    snapshot.version += 1;
    let error = MockNode::restore(&snapshot).unwrap_err();
    assert_eq!(error, SnapshotError::Version { found: 2 });
    assert_eq!(
        error.to_string(),
        "the snapshot has format 2: this version reads format 1"
    );
    let header: SnapshotHeader = serde_json::from_str(r#"{"version":9,"new":[]}"#).unwrap();
    assert!(header.check().is_err());
    assert!(serde_json::from_str::<NodeSnapshot>(r#"{"version":1}"#).is_err());
}

#[test]
fn contradictions_are_named() {
    let good = busy(DriverRelease::Main).snapshot();
    let refuse = |change: fn(&mut NicSnapshot), expected: fn(&Inconsistency) -> bool| {
        let mut bad = good.clone();
        change(&mut bad);
        match Nic::restore(&bad) {
            Err(SnapshotError::Inconsistent(why)) => assert!(expected(&why), "{why}"),
            other => panic!("{other:?}"),
        }
    };
    refuse(
        |bad| drop(bad.services.remove(0)),
        |why| *why == Inconsistency::NoDefaultService,
    );
    let number = |why: &Inconsistency| matches!(why, Inconsistency::Number { .. });
    refuse(|bad| bad.services[1].id = 1, number);
    refuse(|bad| bad.services[1].id = 0, number);
    refuse(|bad| bad.services[1].id = u32::MAX, number);
    refuse(|bad| bad.services[1].tle_pool = Some(0), number);
    refuse(|bad| bad.services[1].tle_pool = Some(9), number);
    refuse(|bad| bad.services[1].le_pools = Some([16; 4]), number);
    refuse(|bad| bad.tx_profiles[1].id = 1, number);
    refuse(|bad| bad.rx_profiles[1].id = u32::MAX, number);
    refuse(
        |bad| bad.rx_profiles[2].vni_slot = bad.rx_profiles[3].vni_slot,
        number,
    );
    let limits = |why: &Inconsistency| matches!(why, Inconsistency::Limits { .. });
    refuse(|bad| bad.services[1].limits[1] = (1025, 0), limits);
    refuse(|bad| bad.services[1].limits[1] = (5, 6), limits);
    refuse(|bad| bad.services[1].limits[6] = (2000, 2000), limits);
    refuse(|bad| bad.services[1].tle_pool = None, limits);
    let vni = |why: &Inconsistency| matches!(why, Inconsistency::Vni { .. });
    refuse(|bad| bad.tx_profiles[2].ignore = 2, vni);
    refuse(|bad| bad.tx_profiles[2].vni = 70, vni);
    refuse(
        |bad| drop(bad.tx_profiles.remove(2)),
        |why| matches!(why, Inconsistency::NoProfile { .. }),
    );
    refuse(
        |bad| {
            let entry = bad.services[1].access[0];
            bad.services[1].access.push(entry);
        },
        |why| matches!(why, Inconsistency::Access { .. }),
    );
    let mut bad = good.clone();
    bad.config.virtual_functions = 1000;
    assert!(matches!(Nic::restore(&bad), Err(SnapshotError::Config(_))));
}
