//! State that outlives open files, saved and restored.
#![cfg(feature = "serde")]

mod common;

use std::sync::{Arc, Mutex};

use common::{alloc, cp, desc, lni, nic, only, root, send};
use cxi_ioctl::abi::domain::DomainReserveCmd;
use cxi_ioctl::abi::service::{
    RSRC_LE, RSRC_TLE, SvcDestroyCmd, SvcEnableCmd, SvcListGetCmd, SvcSetVniRangeCmd,
};
use cxi_ioctl::{DriverRelease, Errno, fetch_list};
use cxi_mock::{Nic, NicSnapshot, NodeSnapshot, SnapshotError};
use serde_json::Value;

/// A NIC with services of all kinds.
fn busy(release: DriverRelease) -> Arc<Nic> {
    let nic = nic(release);
    let root = root(&nic);
    let mut rich = desc(&[50, 51]);
    rich.limits.types[RSRC_LE].res = 10;
    rich.limits.types[RSRC_TLE].max = 100;
    alloc(&root, only(rich, 7)).unwrap();
    let gone = alloc(&root, desc(&[60])).unwrap();
    alloc(&root, desc(&[61])).unwrap();
    send(&root, &SvcDestroyCmd::of(gone)).unwrap();
    let mut range = desc(&[]);
    range.flags &= !cxi_ioctl::abi::service::SvcFlags::RESTRICTED_VNIS.bits();
    let ranged = alloc(&root, range).unwrap();
    assert_eq!(ranged, gone);
    let set = SvcSetVniRangeCmd::of(ranged, 64, 127);
    // Older drivers have no ranges.
    let has_ranges = send(&root, &set).is_ok();
    assert_eq!(has_ranges, release >= DriverRelease::Shs13_1, "{release}");
    assert_eq!(send(&root, &SvcEnableCmd::of(ranged, 1)).is_ok(), has_ranges, "{release}");
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
        let list = |nic| fetch_list::<SvcListGetCmd>(&root(nic), 0).unwrap();
        assert_eq!(list(&again), list(&nic), "{release}");
        // Identifiers go on where they were.
        let next = |nic| alloc(&root(nic), desc(&[200])).unwrap();
        assert_eq!(next(&again), next(&nic), "{release}");
        assert_eq!(again.state(), nic.state(), "{release}");
    }
}

#[test]
fn what_belongs_to_open_files_is_left_out() {
    let nic = busy(DriverRelease::Main2026_07);
    let before = nic.state();
    let root = root(&nic);
    let lni = lni(&root, 3).unwrap();
    cp(&root, lni, 61).unwrap();
    cp(&root, lni, 999).unwrap();
    send(&root, &DomainReserveCmd::of(lni, 61, 0, 4)).unwrap();
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
    let parse = |text| serde_json::from_str::<NodeSnapshot>(text).unwrap_err().to_string();
    let error = parse(r#"{"version":9,"new":[]}"#);
    assert!(error.contains("has format 9: this version reads format 1"), "{error}");
    assert!(parse(r#"{"version":1}"#).contains("missing field `nics`"));
}

/// Restores a snapshot with the value at a JSON pointer replaced: by JSON, by the value at another
/// pointer, or by nothing.
fn restore_altered(snapshot: &NicSnapshot, at: &str, to: &str) -> Result<(), SnapshotError> {
    let mut json = serde_json::to_value(snapshot).unwrap();
    let value = match to {
        _ if to.starts_with('/') => json.pointer(to).unwrap().clone(),
        _ => serde_json::from_str(to).unwrap_or_default(),
    };
    let (parent, name) = at.rsplit_once('/').unwrap();
    match json.pointer_mut(parent).unwrap() {
        Value::Object(members) if to.is_empty() => drop(members.remove(name).unwrap()),
        Value::Object(members) => drop(members.insert(name.to_owned(), value)),
        other => other[name.parse::<usize>().unwrap()] = value,
    }
    Nic::restore(&serde_json::from_value(json).unwrap()).map(drop)
}

#[test]
fn contradictions_are_named() {
    let good = busy(DriverRelease::Main2026_07).snapshot();
    restore_altered(&good, "/services/2", "/services/2").unwrap();
    let limits = "/services/2/desc/limits/types";
    let (high, slot) = (u32::MAX, "extra/vni_slot");
    let refused = format!(
        r#"
/services/1||service 1, the default service, is missing
/services/0|/services/2|service 0 is out of range
/services/{high}|/services/2|service {high} is out of range
/services/2/reserved/tle_pool|0|TLE pool 0 is out of range or in use
/services/2/reserved/tle_pool|9|TLE pool 9 is out of range
/services/2/reserved/tle_pool|null|service 2 reserves more
/services/2/reserved/le_pools|[16, 16, 16, 16]|LE pool 16 is out of range
{limits}/1|{{"max": 1025, "res": 0}}|service 2 reserves more
{limits}/1|{{"max": 5, "res": 6}}|its limits are invalid
{limits}/6|{{"max": 2000, "res": 2000}}|service 2 reserves more
/services/2/access|[{{"uid": 7}}, {{"uid": 7}}]|access entries of service 2: EEXIST
/tx_profiles/3/access|[{{"uid": {high}}}]|access entries of TX profile 3: EBADR
/rx_profiles/{high}|/rx_profiles/4|RX profile {high} is out of range
/rx_profiles/4/{slot}|/rx_profiles/3/{slot}|is out of range or in use twice
/rx_profiles/4/{slot}|256|VNI table slot 256 is out of range
/tx_profiles/3/ignore|2|profile 3 has VNI
/tx_profiles/3/vni|70|which conflicts with another profile
/tx_profiles/3||keeps profile 3, which does not exist
/config/virtual_functions|1000|invalid configuration in the snapshot"#
    );
    for line in refused.lines().skip(1) {
        let [at, to, expected] = line.split('|').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let error = restore_altered(&good, at, to).unwrap_err().to_string();
        assert!(error.contains(expected), "{line}: {error}");
    }
}

#[test]
fn a_change_that_cannot_be_kept_is_refused() {
    for release in DriverRelease::ALL {
        let nic = busy(release);
        let kept = Arc::new(Mutex::new((Ok(()), None)));
        let store = Arc::clone(&kept);
        let keep = move |snapshot| {
            let mut kept = store.lock().unwrap();
            kept.1 = Some(snapshot);
            kept.0
        };
        nic.keep(keep).unwrap();
        let last = || kept.lock().unwrap().1.take();
        assert_eq!(last(), Some(nic.snapshot()), "{release}");
        let root = root(&nic);
        let mut rich = desc(&[700]);
        rich.limits.types[RSRC_LE].res = 10;
        rich.limits.types[RSRC_TLE].max = 8;
        let made = alloc(&root, rich).unwrap();
        let before = (nic.snapshot(), nic.state(), nic.hazards());
        assert_eq!(last().as_ref(), Some(&before.0), "{release}");

        kept.lock().unwrap().0 = Err(Errno::EIO);
        rich.vnis[0] = 701;
        let destroy = SvcDestroyCmd::of(made);
        let set = SvcSetVniRangeCmd::of(3, 256, 511);
        let refused = [
            alloc(&root, rich).map(drop),
            alloc(&root, desc(&[1; 4])).map(drop),
            send(&root, &destroy).map(drop),
            send(&root, &set).map(drop),
        ];
        // Older drivers have no ranges.
        let count = 3 + usize::from(release >= DriverRelease::Shs13_1);
        assert_eq!(refused[..count], [Err(Errno::EIO); 4][..count], "{release}");
        assert_eq!((nic.snapshot(), nic.state(), nic.hazards()), before);
        lni(&root, made).unwrap();
        last();
        fetch_list::<SvcListGetCmd>(&root, 0).unwrap();
        assert_eq!(last(), None, "what changes no service is not kept");
    }
}
