//! Rules that differ between releases and that show only in what comes later.

mod common;

use common::{alloc, desc, domain, lni, nic, only, root, send};
use cxi_ioctl::abi::domain::PID_ANY;
use cxi_ioctl::abi::profile::CpAllocCmd;
use cxi_ioctl::abi::service::{
    Limits, RSRC_LE, RSRC_TLE, SvcDesc, SvcDestroyCmd, SvcEnableCmd, SvcFlags, SvcGetCmd,
    SvcGetLprCmd, SvcRsrcGetCmd, SvcSetNetnsCmd, SvcUpdateCmd,
};
use cxi_ioctl::{DriverRelease, Errno};
use cxi_mock::{Credentials, InProcess, Nic, NicConfig};

fn cp_of_class(transport: &InProcess, lni: u32, vni: u32, tc: u32) -> Result<u32, Errno> {
    let mut command = CpAllocCmd::new();
    (command.lni, command.vni, command.tc) = (lni, vni, tc);
    send(transport, &command).map(|response| response.lcid)
}

#[test]
fn ethernet_classes_take_priorities_and_need_a_privilege() {
    for release in DriverRelease::ALL {
        let nic = nic(release);
        let root = root(&nic);
        let lni = lni(&root, alloc(&root, desc(&[50])).unwrap()).unwrap();
        assert_eq!(cp_of_class(&root, lni, 7, 5), Ok(0), "{release}");
        assert_eq!(cp_of_class(&root, lni, 7, 5), Ok(0), "{release}");
        assert_eq!(cp_of_class(&root, lni, 0, 6), Ok(1), "{release}");
        for (priority, class) in [(8, 5), (1, 7), (1, 8)] {
            let refused = cp_of_class(&root, lni, priority, class);
            assert_eq!(refused, Err(Errno::EINVAL), "{release}");
        }
        let user = root.with_credentials(Credentials::user(7, 7));
        assert_eq!(cp_of_class(&user, lni, 1, 5), Err(Errno::EPERM));
        assert_eq!(cp_of_class(&user, lni, 8, 5), Err(Errno::EINVAL));
        // Class 4 is not a class by priority: VNI 1, which the disabled default service has.
        let exclusive = matches!(release, DriverRelease::Shs13_1 | DriverRelease::Shs14_0_0);
        let expected = if exclusive { Errno::EEXIST } else { Errno::EINVAL };
        assert_eq!(cp_of_class(&root, lni, 1, 4), Err(expected), "{release}");
    }
}

#[test]
fn asking_for_any_pid_of_a_shared_vni_may_meet_another_profile() {
    for (release, first, second) in [
        (DriverRelease::Main2026_07, Err(Errno::EEXIST), Ok(1)),
        (DriverRelease::Shs14_0_1, Err(Errno::EEXIST), Ok(1)),
        (DriverRelease::Shs12_0, Ok(1), Ok(2)),
    ] {
        let nic = nic(release);
        let root = root(&nic);
        let one = alloc(&root, only(desc(&[50]), 5)).unwrap();
        let two = alloc(&root, only(desc(&[50]), 7)).unwrap();
        let five = root.with_credentials(Credentials::user(5, 5));
        let seven = root.with_credentials(Credentials::user(7, 7));
        let (one, two) = (lni(&five, one).unwrap(), lni(&seven, two).unwrap());
        assert_eq!(domain(&five, one, 50, 0).map(|domain| domain.pid), Ok(0));
        assert_eq!(domain(&seven, two, 50, 0).unwrap_err(), Errno::EEXIST);
        for expected in [first, second] {
            let pid = domain(&seven, two, 50, PID_ANY).map(|domain| domain.pid);
            assert_eq!(pid, expected, "{release}");
        }
    }
}

#[test]
fn a_service_updated_to_fewer_vnis_leaves_profiles_behind() {
    for release in DriverRelease::ALL {
        let nic = nic(release);
        let root = root(&nic);
        let svc_id = alloc(&root, desc(&[50, 51])).unwrap();
        let mut update = SvcUpdateCmd::of(desc(&[50]));
        update.svc_desc.svc_id = svc_id;
        update.svc_desc.flags |= SvcFlags::ENABLE.bits();
        send(&root, &update).unwrap();
        send(&root, &SvcDestroyCmd::of(svc_id)).unwrap();
        let left: Vec<_> = nic.state().tx_profiles.iter().map(|tx| tx.vni).collect();
        let expected: &[u32] = match release {
            DriverRelease::Shs12_0 => &[],
            DriverRelease::Shs13_0 => &[1, 10],
            _ => &[1, 10, 51],
        };
        assert_eq!(left, expected, "{release}");
    }
}

#[test]
fn the_default_for_sharing_rgids_is_for_user_services() {
    for release in DriverRelease::ALL {
        let config = NicConfig::new().release(release);
        let nic = Nic::new(config.parameters(|params| params.default_lnis_per_rgid = 4)).unwrap();
        let root = root(&nic);
        let mut system = desc(&[51]);
        system.flags |= SvcFlags::IS_SYSTEM_SVC.bits();
        alloc(&root, desc(&[50])).unwrap();
        alloc(&root, system).unwrap();
        let shared = [1, 2, 3].map(|svc_id| send(&root, &SvcGetLprCmd::of(svc_id)).unwrap().value);
        let known = release >= DriverRelease::Shs13_1;
        assert_eq!(shared, [1, if known { 4 } else { 1 }, 1], "{release}");
    }
}

#[test]
fn members_are_looked_at_before_or_after_vnis() {
    for release in DriverRelease::ALL {
        let nic = nic(release);
        let root = root(&nic);
        alloc(&root, desc(&[50])).unwrap();
        // A member that no driver with access entries takes, on a VNI that may be taken.
        let both = only(desc(&[50]), u32::MAX - 100_000);
        let expected = match release {
            DriverRelease::Shs12_0 => Ok(3),
            DriverRelease::Shs13_0 => Err(Errno::EEXIST),
            _ => Err(Errno::EBADR),
        };
        assert_eq!(alloc(&root, both), expected, "{release}");
    }
}

#[test]
fn a_namespace_is_added_to_every_profile_there_is() {
    let nic = nic(DriverRelease::Main2026_07);
    let root = root(&nic);
    let closed = |mut desc: SvcDesc| {
        desc.flags |= SvcFlags::RESTRICTED_MEMBERS.bits();
        alloc(&root, desc).unwrap()
    };
    let set = |svc_id| {
        send(&root, &SvcEnableCmd::of(svc_id, 0)).unwrap();
        send(&root, &SvcSetNetnsCmd::of(svc_id, 77)).map(drop)
    };
    let four = closed(desc(&[50, 51, 52, 53]));
    assert_eq!(set(four), Ok(()));
    let mut five = desc(&[]);
    five.flags &= !SvcFlags::RESTRICTED_VNIS.bits();
    five.num_vld_vnis = 5;
    assert_eq!(set(closed(five)), Err(Errno::ENODATA));
}

#[test]
fn tles_in_use_of_a_service_without_any() {
    for release in DriverRelease::ALL {
        let nic = nic(release);
        let root = root(&nic);
        let svc_id = alloc(&root, desc(&[50])).unwrap();
        nic.hardware().set_tles_in_use(0, 5).unwrap();
        let tles = send(&root, &SvcRsrcGetCmd::of(svc_id)).unwrap().in_use[RSRC_TLE];
        let expected = match release {
            DriverRelease::Main2026_07 | DriverRelease::Main2026_11 => u16::MAX,
            DriverRelease::Shs14_0_1 => 5,
            _ => 0,
        };
        assert_eq!(tles, expected, "{release}");
    }
}

#[test]
fn a_service_refused_for_tles_costs_le_pools_on_12_0() {
    for release in DriverRelease::ALL {
        let nic = nic(release);
        let root = root(&nic);
        let with = |vni, les, tles| {
            let mut desc = desc(&[vni]);
            desc.limits.types[RSRC_LE] = les;
            desc.limits.types[RSRC_TLE] = Limits { max: tles, res: tles };
            desc
        };
        let none = Limits { max: 0, res: 0 };
        alloc(&root, with(50, none, 1536)).unwrap();
        let before = nic.state().le_pools_used;
        for les in [Limits { max: 9, res: 0 }, Limits { max: 9, res: 9 }] {
            let refused = alloc(&root, with(51, les, 8));
            assert_eq!(refused, Err(Errno::ENOSPC), "{release}");
        }
        let leaked = u32::from(release == DriverRelease::Shs12_0);
        let expected = before.map(|used| used + leaked);
        assert_eq!(nic.state().le_pools_used, expected, "{release}");
    }
}

#[test]
fn an_update_stores_restrictions_and_the_counter_pool() {
    for release in DriverRelease::ALL {
        let nic = nic(release);
        let root = root(&nic);
        let svc_id = alloc(&root, desc(&[50])).unwrap();
        let always = SvcFlags::RESOURCE_LIMITS | SvcFlags::ENABLE;
        let restricted =
            SvcFlags::RESTRICTED_MEMBERS | SvcFlags::RESTRICTED_VNIS | SvcFlags::RESTRICTED_TCS;
        for flags in [(always | restricted).bits() | 0b1100_0000, always.bits() | 0b0100_0000] {
            let mut update = SvcUpdateCmd::of(only(desc(&[50]), 7));
            (update.svc_desc.svc_id, update.svc_desc.flags) = (svc_id, flags);
            send(&root, &update).unwrap();
            let stored = send(&root, &SvcGetCmd::of(svc_id)).unwrap().flags;
            assert_eq!(stored, flags, "{release}");
        }
    }
}
