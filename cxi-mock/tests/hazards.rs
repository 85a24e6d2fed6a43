//! Requests that could crash a real kernel are handled safely, and recorded.

mod common;

use common::{alloc, cp, desc, lni, nic, root, send};
use cxi_ioctl::abi::domain::DomainReserveCmd;
use cxi_ioctl::abi::lni::LniFreeCmd;
use cxi_ioctl::abi::queue::{CQ_IS_TX, CqAllocCmd};
use cxi_ioctl::abi::service::{
    SvcDesc, SvcDestroyCmd, SvcFlags, SvcGetExclusiveCpCmd, SvcGetVniRangeCmd, SvcMember,
    SvcSetExclusiveCpCmd, SvcSetLprCmd, SvcSetVniRangeCmd, SvcUpdateCmd,
};
use cxi_ioctl::{DriverRelease, Errno};
use cxi_mock::{HazardKind, Nic};

fn unrestricted(num_vld_vnis: u8) -> SvcDesc {
    let mut desc = desc(&[]);
    desc.flags &= !SvcFlags::RESTRICTED_VNIS.bits();
    desc.num_vld_vnis = num_vld_vnis;
    desc
}

fn kinds(nic: &Nic) -> Vec<HazardKind> {
    nic.hazards().into_iter().map(|event| event.kind).collect()
}

#[test]
fn a_second_refused_range_drops_a_reference_twice() {
    let nic = nic(DriverRelease::Main2026_07);
    let root = root(&nic);
    let svc_id = alloc(&root, unrestricted(0)).unwrap();
    let range = SvcSetVniRangeCmd::of(svc_id, 64, 127);
    assert_eq!(send(&root, &range), Ok(()));
    assert_eq!(send(&root, &range), Err(Errno::EEXIST));
    assert_eq!(kinds(&nic), []);
    assert_eq!(send(&root, &range), Err(Errno::EEXIST));
    assert_eq!(kinds(&nic), [HazardKind::ReferenceDroppedTwice { svc_id }]);
}

/// Members that an update has stored are checked after the range is taken.
#[test]
fn a_range_refused_for_its_members_is_used_afterward() {
    let nic = nic(DriverRelease::Main2026_07);
    let root = root(&nic);
    let svc_id = alloc(&root, unrestricted(0)).unwrap();
    let mut update = SvcUpdateCmd::new();
    update.svc_desc = unrestricted(0);
    update.svc_desc.svc_id = svc_id;
    update.svc_desc.flags |= SvcFlags::RESTRICTED_MEMBERS.bits();
    update.svc_desc.members[0] = SvcMember { id: u32::MAX, kind: 1 };
    assert_eq!(send(&root, &update).map(drop), Ok(()));
    assert_eq!(send(&root, &SvcSetVniRangeCmd::of(svc_id, 64, 127)), Err(Errno::EBADR));
    assert_eq!(kinds(&nic), []);
    assert!(send(&root, &SvcGetVniRangeCmd::of(svc_id)).is_err());
    assert!(send(&root, &SvcGetExclusiveCpCmd::of(svc_id)).is_err());
    let read = HazardKind::FreedProfileRead { svc_id };
    assert_eq!(kinds(&nic), [read.clone(), read.clone()]);
    assert!(send(&root, &SvcSetExclusiveCpCmd::of(svc_id, 1)).is_err());
    assert_eq!(kinds(&nic), [read.clone(), read, HazardKind::DanglingRange { svc_id }]);
}

#[test]
fn a_refused_range_leaves_a_dangling_profile() {
    let nic = nic(DriverRelease::Shs14_0_1);
    let root = root(&nic);
    let svc_id = alloc(&root, unrestricted(0)).unwrap();
    let range = SvcSetVniRangeCmd::of(svc_id, 64, 127);
    assert_eq!(send(&root, &range), Ok(()));
    assert_eq!(send(&root, &range), Err(Errno::EEXIST));
    assert_eq!(kinds(&nic), []);
    assert_eq!(send(&root, &SvcDestroyCmd::of(svc_id)), Ok(()));
    assert_eq!(kinds(&nic), [HazardKind::DanglingRange { svc_id }]);
}

#[test]
fn five_vnis_overrun_on_allocation_or_destruction() {
    for (release, on_alloc) in [
        (DriverRelease::Shs13_0, true),
        (DriverRelease::Shs13_1, false),
        (DriverRelease::Main2026_07, false),
    ] {
        let nic = nic(release);
        let root = root(&nic);
        let mut desc = unrestricted(5);
        desc.vnis = [5, 6, 7, 8];
        let svc_id = alloc(&root, desc).unwrap();
        assert_eq!(kinds(&nic).len(), usize::from(on_alloc), "{release}");
        assert_eq!(send(&root, &SvcDestroyCmd::of(svc_id)), Ok(()));
        let expected = HazardKind::CountBeyondProfiles { svc_id, num_vld_vnis: 5 };
        assert_eq!(kinds(&nic), [expected], "{release}");
        assert_eq!(nic.state().tx_profiles.len(), 2, "{release}");
    }
}

#[test]
fn four_vnis_overrun_nothing() {
    for release in DriverRelease::ALL {
        let nic = nic(release);
        let root = root(&nic);
        assert_eq!(
            send(&root, &SvcDestroyCmd::of(alloc(&root, desc(&[5, 6, 7, 8])).unwrap())),
            Ok(())
        );
        assert_eq!(kinds(&nic), [], "{release}");
    }
}

#[test]
fn a_refused_reservation_corrupts_on_13_0_only() {
    for release in DriverRelease::ALL {
        let nic = nic(release);
        let root = root(&nic);
        let lni = lni(&root, alloc(&root, desc(&[5])).unwrap()).unwrap();
        let reserve = DomainReserveCmd::of(lni, 5, 0, 1);
        assert!(send(&root, &reserve).is_ok());
        assert_eq!(send(&root, &reserve).unwrap_err(), Errno::EEXIST);
        let noted = kinds(&nic) == [HazardKind::ReserveOutsideTable { vni: 5 }];
        assert_eq!(noted, release == DriverRelease::Shs13_0, "{release}");
        drop(root);
        // One for each VNI of the two services; SHS 12.0 makes them when they are used.
        let references = nic.state().rx_profiles;
        let references: Vec<_> = references.iter().map(|profile| profile.refcount).collect();
        let kept = if release == DriverRelease::Shs12_0 { 0 } else { 3 };
        assert_eq!(references, [1, 1, 1][..kept], "{release}");
    }
}

#[test]
fn an_rgid_behind_a_hole_is_wrong_on_old_drivers() {
    for release in DriverRelease::ALL {
        let nic = nic(release);
        let root = root(&nic);
        let (one, two) = (alloc(&root, desc(&[5])).unwrap(), alloc(&root, desc(&[6])).unwrap());
        send(&root, &SvcSetLprCmd::of(two, 2)).unwrap();
        let hole = lni(&root, one).unwrap();
        lni(&root, two).unwrap();
        send(&root, &LniFreeCmd::of(hole)).unwrap();
        let late = lni(&root, two).unwrap();
        assert_eq!(cp(&root, late, 6).unwrap().lcid, 0);
        let mut queue = CqAllocCmd::new();
        queue.lni = late;
        queue.opts.flags = CQ_IS_TX;
        let queue = send(&root, &queue).map(drop);
        let lcids = nic.state().rgids[0].lcids;
        drop(root);
        let old = release <= DriverRelease::Shs13_0;
        let expected = HazardKind::WrongRgid { lni: late, rgid: 1 };
        assert_eq!(kinds(&nic) == [expected], old, "{release}");
        assert_eq!(lcids, u32::from(!old), "{release}");
        let unregistered = if old { Err(Errno::EINVAL) } else { Ok(()) };
        assert_eq!(queue, unregistered, "{release}");
        assert_eq!(nic.state().rgids, [], "{release}");
    }
}
