//! Requests that a driver answers with damage are not sent, on every driver release the mock
//! models.

use std::sync::Arc;

use crate::common::{
    ALL, ask, create, for_each_release, modest, modest_range, nic, range, root, says, user, vni,
};
use cxi::driver::Quirks;
use cxi::{
    Device, DriverRelease, ErrorKind, Limit, Limits, LnisPerRgid, Resource, ServiceId, ServiceSpec,
    TrafficClass,
};
use cxi_ioctl::abi::profile::CpAllocCmd;
use cxi_ioctl::abi::service::{SvcAllocCmd, SvcFlags};
use cxi_ioctl::{Errno, Opcode, Record, execute};
use cxi_mock::{Fault, Nic};

#[test]
fn pids_are_not_reserved_where_a_refusal_does_harm() {
    for_each_release(|release, nic| {
        let services = root(nic).services();
        let id = create(&services, modest(70));
        let (first, second) = (user(nic), user(nic));
        let first = first.alloc_lni(id).unwrap();
        let reserved = first.reserve_pids(vni(70), None, 500);
        assert_eq!(reserved.is_ok(), release >= DriverRelease::Shs13_1, "{release}");
        let second = second.alloc_lni(id).unwrap();
        // On 13.0 this one would be the fatal one.
        let error = second.reserve_pids(vni(70), None, 500);
        if release >= DriverRelease::Shs13_1 {
            assert_eq!(error.unwrap_err().errno(), Errno::ENOSPC);
        } else {
            assert!(matches!(
                error.unwrap_err().kind(),
                ErrorKind::Quirk { quirk: Quirks::REFUSED_RESERVE, .. }
            ));
        }
    });
    // Who insists gets it.
    let nic = nic(DriverRelease::Shs13_0);
    let id = create(&root(&nic).services(), modest(70));
    let insisting = user(&nic).allow_quirks(Quirks::REFUSED_RESERVE);
    let lni = insisting.alloc_lni(id).unwrap();
    lni.reserve_pids(vni(70), None, 500).unwrap();
    assert_eq!(nic.hazards(), []);
    lni.reserve_pids(vni(70), None, 500).unwrap_err();
    assert_eq!(nic.hazards().len(), 1);
}

#[test]
fn rgids_are_not_shared_where_that_crashes_the_kernel() {
    for_each_release(|release, nic| {
        let services = root(nic).services();
        let id = create(&services, modest(71));
        services.set_lnis_per_rgid(id, LnisPerRgid::new(1).unwrap()).unwrap();
        let set = services.set_lnis_per_rgid(id, LnisPerRgid::new(2).unwrap());
        assert_eq!(set.is_ok(), release >= DriverRelease::Shs13_1, "{release}");
        let device = user(nic);
        // A hole below a shared RGID is what it takes.
        let first = device.alloc_lni(id).unwrap();
        let other = create(&services, modest(72));
        let second = device.alloc_lni(other).unwrap();
        let third = device.alloc_lni(id).unwrap();
        first.close().unwrap();
        let fourth = device.alloc_lni(id).unwrap();
        drop((second, third, fourth));
    });
}

#[test]
fn a_refused_service_costs_nothing() {
    for_each_release(|release, nic| {
        let services = root(nic).services();
        // Without limits, so that each takes a TLE pool: three fit.
        let spec = |number| ServiceSpec::builder().vni(vni(number)).build().unwrap();
        for number in 100..103 {
            services.create(&spec(number)).unwrap();
        }
        let before = nic.state();
        for _ in 0..20 {
            let error = services.create(&spec(200)).unwrap_err();
            assert_eq!(error.errno(), Errno::ENOSPC);
            assert!(matches!(error.kind(), ErrorKind::NotEnough(_)));
        }
        assert_eq!(nic.state(), before, "{release}");
        // TLEs that are not there, with LEs that would be.
        services.destroy(ServiceId::new(2).unwrap()).unwrap();
        let before = nic.state();
        let greedy = modest(200)
            .limits(
                Limits::none()
                    .with(Resource::Les, Limit::at_most(64))
                    .with(Resource::Tles, Limit::exactly(2048)),
            )
            .build()
            .unwrap();
        for _ in 0..20 {
            let error = services.create(&greedy).unwrap_err();
            assert_eq!(error.errno(), Errno::ENOSPC);
        }
        assert_eq!(nic.state(), before, "{release}");
    });
}

#[test]
fn only_a_service_that_would_leak_is_not_sent() {
    let nic = nic(DriverRelease::Shs12_0);
    let services = root(&nic).services();
    for number in 0..4 {
        create(&services, modest(100 + number));
    }
    let tles = Limit::exactly(2048 - 512 - 8);
    create(&services, modest(200).limits(Limits::none().with(Resource::Tles, tles)));
    nic.faults().inject(Fault::errno(Errno::ENOMEM).on(Opcode::SVC_ALLOC));
    for (les, tles, sent) in [
        (Limit::at_most(1), Limit::exactly(9), false),
        (Limit::at_most(1), Limit::exactly(8), true),
        (Limit::at_most(1), Limit::NONE, true),
        (Limit::exactly(1), Limit::exactly(9), true),
        (Limit::NONE, Limit::exactly(9), true),
    ] {
        let spec =
            modest(300).limits(Limits::none().with(Resource::Les, les).with(Resource::Tles, tles));
        let error = services.create(&spec.build().unwrap()).unwrap_err();
        let expected = if sent { Errno::ENOMEM } else { Errno::ENOSPC };
        assert_eq!(error.errno(), expected, "{les} {tles}");
    }
}

#[test]
fn uid_0_gets_no_profile_that_is_used_after_it_is_freed() {
    for_each_release(|release, nic| {
        let device = root(nic);
        let services = device.services();
        let id = create(&services, modest(80));
        let lni = device.alloc_lni(id).unwrap();
        let error = lni.alloc_cp(vni(4242), TrafficClass::BestEffort);
        let errno = error.unwrap_err().errno();
        assert!([Errno::ENOENT, Errno::EINVAL].contains(&errno), "{release}");
        // That of another enabled service is fine, except where the LNI's service decides.
        create(&services, modest(81));
        let other = lni.alloc_cp(vni(81), TrafficClass::BestEffort);
        assert_eq!(other.is_ok(), release > DriverRelease::Shs12_0, "{release}");
        drop(other);
        // That of a disabled one is as if it were not there, or its profile is not the caller's.
        create(&services, modest(82).enabled(false));
        let disabled = lni.alloc_cp(vni(82), TrafficClass::BestEffort);
        assert_eq!(disabled.is_ok(), release == DriverRelease::Shs13_0, "{release}");
    });
}

#[test]
fn an_unrestricted_service_lends_what_it_lists() {
    let nic = nic(DriverRelease::Shs13_0);
    let file = nic.root().unwrap();
    let mut command = SvcAllocCmd::new();
    command.svc_desc.num_vld_vnis = 1;
    command.svc_desc.vnis[0] = 90;
    execute(&file, &command).unwrap();
    let device = root(&nic);
    let id = create(&device.services(), modest(81));
    let lni = device.alloc_lni(id).unwrap();
    let class = TrafficClass::BestEffort;
    drop(lni.alloc_cp(vni(90), class).unwrap());
    let refused = lni.alloc_cp(vni(4242), class).unwrap_err();
    assert_eq!(refused.errno(), Errno::ENOENT);
    assert_eq!(nic.hazards(), []);
}

#[test]
fn who_insists_on_a_profile_of_uid_0_gets_it() {
    let nic = nic(DriverRelease::Shs14_0_1);
    let device = root(&nic).allow_quirks(Quirks::ORPHANED_PROFILE);
    let id = create(&device.services(), modest(80));
    let lni = device.alloc_lni(id).unwrap();
    let profile = lni.alloc_cp(vni(4242), TrafficClass::BestEffort).unwrap();
    profile.close().unwrap();
    assert_eq!(nic.hazards().len(), 1);
}

#[test]
fn a_range_that_only_a_domain_is_in_the_way_of_stays_alone() {
    for_each_release(|release, nic| {
        if release < DriverRelease::Shs13_1 {
            return;
        }
        let device = root(nic);
        let services = device.services();
        let id = create(&services, modest(200));
        let lni = device.alloc_lni(id).unwrap();
        let _domain = lni.alloc_domain(vni(70), None).unwrap();
        let error = ask(&services, modest_range("64-127")).unwrap_err();
        assert_eq!(error.errno(), Errno::EEXIST, "{release}");
        let left = error.leftover().expect("the service stays");
        assert!(matches!(left.error.kind(), ErrorKind::Quirk { .. }));
        assert!(!services.get(left.service).unwrap().is_enabled());
    });
}

#[test]
fn a_range_that_a_service_is_in_the_way_of_leaves_nothing() {
    for_each_release(|release, nic| {
        if release < DriverRelease::Shs13_1 {
            return;
        }
        let services = root(nic).services();
        let holder = create(&services, modest(70));
        let before = nic.state();
        let error = says(
            ask(&services, modest_range("64-127")),
            format!("cxi0: SVC_SET_VNI_RANGE: VNIs 64-127 are taken: service {holder} has VNI 70"),
        );
        assert!(error.leftover().is_none());
        assert_eq!(nic.state(), before, "{release}");
    });
}

#[test]
fn a_second_range_is_not_sent() {
    for_each_release(|release, nic| {
        if release < DriverRelease::Shs13_1 {
            return;
        }
        let services = root(nic).services();
        let spec = modest_range("64-127").build().unwrap();
        let id = services.create(&spec).unwrap();
        for second in ["64-127", "64-65", "1024-1025"] {
            let error = services.set_vni_range(id, range(second)).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::InvalidInput(_)));
        }
        services.destroy(id).unwrap();
        // All of it is free again.
        services.create(&spec).unwrap();
    });
}

/// A service with a descriptor that another program wrote.
fn strange_service(nic: &Arc<Nic>) -> ServiceId {
    let mut command = SvcAllocCmd::new();
    command.svc_desc.flags = SvcFlags::RESOURCE_LIMITS.bits();
    command.svc_desc.num_vld_vnis = 5;
    let file = nic.root().unwrap();
    ServiceId::new(execute(&file, &command).unwrap().svc_id).unwrap()
}

#[test]
fn a_service_with_too_many_vnis_is_not_touched() {
    for release in ALL {
        if release == DriverRelease::Shs13_0 {
            // There the making of it already is the damage.
            continue;
        }
        let nic = nic(release);
        let services = root(&nic).services();
        let id = strange_service(&nic);
        let events = nic.hazards();
        let spec = ServiceSpec::builder().vnis([]).limits(Limits::default()).build().unwrap();
        for refused in [services.destroy(id).err(), services.update(id, &spec).err()] {
            let error = refused.expect("refused");
            assert!(matches!(error.kind(), ErrorKind::Quirk { .. }), "{error}");
        }
        assert_eq!(nic.hazards(), events, "{release}");
        let insisting = root(&nic).allow_quirks(Quirks::VNI_COUNT).services();
        insisting.destroy(id).unwrap();
        assert_eq!(nic.hazards().is_empty(), release == DriverRelease::Shs12_0);
    }
}

#[test]
fn who_accepts_a_hazard_pays_for_no_look_at_it() {
    let nic = nic(DriverRelease::Main2026_07);
    let file = nic.root().unwrap();
    let file = Arc::new(Record::new(file));
    let device = Device::cxi0(Arc::<Record<_>>::clone(&file));
    let spec = modest(70).build().unwrap();
    let sent = |device: Device| {
        let services = device.services();
        let id = services.create(&spec).unwrap();
        let _created = file.take();
        services.destroy(id).unwrap();
        file.take().opcodes().collect::<Vec<_>>()
    };
    assert_eq!(sent(device.clone()), [Opcode::SVC_GET, Opcode::SVC_DESTROY]);
    let insisting = device.allow_quirks(Quirks::VNI_COUNT);
    assert_eq!(sent(insisting), [Opcode::SVC_DESTROY]);
}

#[test]
fn the_mock_would_notice() {
    // The hazard that the guards keep away, sent past them.
    let nic = nic(DriverRelease::Main2026_07);
    let device = root(&nic);
    let id = create(&device.services(), modest(80));
    let lni = device.alloc_lni(id).unwrap();
    let command = CpAllocCmd::of(lni.id(), 4242, 1, 0);
    execute(&**device.transport(), &command).unwrap();
    drop((lni, device));
    assert_eq!(nic.hazards().len(), 1);
}
