//! One act over all NICs.

use std::collections::BTreeSet;

use cxi::{Limit, Limits, LnisPerRgid, Member, Resource, TrafficClasses, VniAccess, VniRange};
use cxi_ioctl::{Errno, Fault, Opcode};
use cxi_job::allocate::{Cause, LeftBehindReason};
use cxi_job::limits::{CutReason, Mode};
use cxi_job::{JobLimits, JobRequest, NicPolicy, Node};
use cxi_mock::{MockNode, NicConfig};

use crate::support::{
    allocate, cxi, devices, faulty, id, ids, job, like, mock, node, planned, refuse, texts,
    user_services, virtual_function, vni,
};

#[test]
fn one_service_on_each_nic_and_the_job_is_told() {
    let mock = mock(4);
    let node = node(&mock);
    // Ids differ between NICs.
    allocate(&node, job(7, 9).nics(NicPolicy::Listed([cxi(2)].into())));
    let grant = allocate(&node, job(1000, 4034).limits(planned(16, Mode::Strict)));
    let vars = grant.env().unwrap().vars();
    assert_eq!(
        vars,
        [
            ("SLINGSHOT_VNIS", "4034".to_owned()),
            ("SLINGSHOT_DEVICES", "cxi0,cxi1,cxi2,cxi3".to_owned()),
            ("SLINGSHOT_SVC_IDS", "2,2,3,2".to_owned()),
            ("SLINGSHOT_TCS", "0xa".to_owned()),
        ]
    );
    for (device, service) in user_services(&mock) {
        if service.vnis().to_string() != "4034" {
            continue;
        }
        let entry = grant.services.iter().find(|entry| entry.device == device).unwrap();
        assert_eq!(entry.service, service.id());
        assert_eq!(entry.granted, Some(service.limits()));
        assert_eq!(service.limits()[Resource::Txqs], Limit::new(32, 1024).unwrap());
        assert!(service.members().unwrap().contains(Member::Uid(1000)));
        assert_eq!(
            service.traffic_classes(),
            Some(TrafficClasses::LOW_LATENCY | TrafficClasses::BEST_EFFORT)
        );
        assert!(!entry.adopted && entry.cuts.is_empty());
    }
}

#[test]
fn a_second_run_adopts_what_is_there() {
    let range = VniRange::new(vni(2048), 16).unwrap();
    let limits = Limits::none()
        .with(Resource::Tles, Limit::exactly(3))
        .with(Resource::Txqs, Limit::new(4, 8).unwrap());
    let requests = [
        job(1000, 4034),
        job(1000, 4034).limits(JobLimits::Fixed(limits)),
        job(1000, 4034).limits(planned(16, Mode::Strict)),
        job(1000, 4034).limits(planned(400, Mode::ScaleBack { floor: 1 })),
        job(1000, 4034).limits(planned(16, Mode::BestEffort)),
        JobRequest::builder().uid(1000).vni_range(range),
        JobRequest::builder().member(Member::NetNs(4_026_532_000)).vni(vni(4034)),
        JobRequest::builder().member(Member::NetNs(4_026_532_000)).vni_range(range),
        job(1000, 4034).lnis_per_rgid(LnisPerRgid::new(4).unwrap()),
    ];
    for request in requests {
        let mock = mock(2);
        let node = node(&mock);
        let first = allocate(&node, request.clone());
        let second = allocate(&node, request.clone());
        assert_eq!(user_services(&mock).len(), 2, "{request:?}");
        for (was, is) in first.services.iter().zip(&second.services) {
            assert!(!was.adopted && is.adopted);
            let mut expected = was.clone();
            expected.adopted = true;
            assert_eq!(*is, expected);
        }
    }
}

#[test]
fn what_differs_is_not_adopted() {
    let others = [
        job(1001, 4034),
        job(1000, 4035),
        job(1000, 4034).vni(vni(4035)),
        job(1000, 4034).traffic_classes(TrafficClasses::BULK_DATA),
        job(1000, 4034).limits(JobLimits::Fixed(Limits::default())),
        job(1000, 4034).member(Member::Gid(5)),
        job(1000, 4034).adopt(false),
    ];
    for other in others {
        let mock = mock(1);
        let node = node(&mock);
        allocate(&node, job(1000, 4034));
        let grant = allocate(&node, other.clone());
        assert!(!grant.services[0].adopted, "{other:?}");
        assert_eq!(user_services(&mock).len(), 2);
    }
}

#[test]
fn what_a_killed_run_left_disabled_is_finished() {
    let mock = mock(1);
    let range = VniRange::new(vni(2048), 16).unwrap();
    let request = JobRequest::builder().uid(1000).vni_range(range);
    let (broken, faults) = faulty(&mock);
    faults[0].inject(Fault::errno(Errno::EIO).on(Opcode::SVC_ENABLE));
    faults[0].inject(Fault::errno(Errno::EIO).on(Opcode::SVC_DESTROY));
    let error = refuse(&broken, request.clone());
    assert_eq!(error.left().len(), 1, "{error}");
    let grant = allocate(&node(&mock), request);
    assert!(grant.services[0].adopted);
    let services = user_services(&mock);
    assert_eq!(services.len(), 1);
    assert!(services[0].1.is_enabled());
    assert_eq!(services[0].1.vnis(), VniAccess::Range(range));
}

#[test]
fn unusable_nics_by_policy() {
    let config = NicConfig::new();
    let down = config.clone().identity(|identity| identity.link_up = false);
    let mock = MockNode::new([config.clone(), down, config]).unwrap();
    let node = node(&mock);
    let with = |policy| job(1000, 4034).nics(policy);

    let error = refuse(&node, with(NicPolicy::All));
    assert_eq!(error.to_string(), "cxi1: its link is down\nThe job has no service on any NIC.");
    assert!(matches!(error.failures()[0].cause, Cause::Unusable(_)));
    let error = refuse(&node, with(NicPolicy::AnyUsable(3)));
    assert_eq!(error.to_string(), "3 usable NICs wanted, 2 found\n  cxi1: its link is down");
    let listed: BTreeSet<_> = [cxi(0), cxi(1), cxi(7)].into();
    let error = refuse(&node, with(NicPolicy::Listed(listed)));
    assert_eq!(
        error.to_string(),
        "cxi1: its link is down\ncxi7: the node has no such NIC\n\
         The job has no service on any NIC."
    );
    assert!(user_services(&mock).is_empty());

    let grant = allocate(&node, with(NicPolicy::AnyUsable(2)));
    assert_eq!(ids(&user_services(&mock)), [(cxi(0), id(2)), (cxi(2), id(2))]);
    assert_eq!(grant.left_out.len(), 1);
    assert_eq!(grant.left_out[0].problems[0].to_string(), "its link is down");
    let env = grant.env().unwrap();
    assert!(env.services().iter().all(|(device, _)| *device != cxi(1)));
}

#[test]
fn every_nic_means_every_physical_function() {
    let (mock, _sysfs, function) = virtual_function();
    let node = Node::from_devices(devices(&mock).into_iter().chain([function]));

    let grant = allocate(&node, job(1000, 4034));
    assert_eq!(ids(&user_services(&mock)), [(cxi(0), id(2))]);
    assert_eq!(grant.left_out.len(), 1);
    assert_eq!(grant.left_out[0].device, cxi(1));
}

#[test]
fn nothing_is_made_if_one_nic_has_no_room() {
    let config = NicConfig::new();
    let small = config.clone().totals(|totals| totals.txqs = 16);
    let mock = MockNode::new([config, small]).unwrap();
    let limits = Limits::none().with(Resource::Txqs, Limit::new(8, 32).unwrap());
    let request = job(1000, 4034).limits(JobLimits::Fixed(limits));
    let (node, faults) = faulty(&mock);
    // An allocation would be noticed.
    faults[0].inject(Fault::errno(Errno::EIO).on(Opcode::SVC_ALLOC));
    let error = refuse(&node, request);
    assert_eq!(
        error.to_string(),
        "cxi1: TXQs: the requested maximum, 32, exceeds the NIC's total, 16\n  \
         This was found before anything was sent to the driver.\n\
         The job has no service on any NIC."
    );
    assert_eq!(faults[0].injected(), 0);
}

#[test]
fn scaling_back_takes_what_the_driver_still_has() {
    let mock = mock(2);
    let node = node(&mock);
    let hog = Limits::none()
        .with(Resource::Ptes, Limit::exactly(2000))
        .with(Resource::Tles, Limit::exactly(8));
    // The usual policy subtracts system services only: others are found by the driver's refusal.
    let listed = NicPolicy::Listed([cxi(1)].into());
    for uid in 1..=3 {
        let mut limits = hog;
        if uid > 1 {
            limits[Resource::Ptes] = Limit::NONE;
        }
        let request = job(uid, 100 + u16::try_from(uid).unwrap());
        let request = request.limits(JobLimits::Fixed(limits)).nics(listed.clone());
        allocate(&node, request);
    }
    let request = job(1000, 4034).limits(planned(16, Mode::ScaleBack { floor: 1 }));
    let grant = allocate(&node, request);
    assert!(grant.services[0].cuts.is_empty());
    let [_, entry] = &grant.services[..] else { panic!("two NICs") };
    let granted = entry.granted.unwrap();
    assert_eq!(granted[Resource::Ptes], Limit::new(48, 2048).unwrap());
    assert_eq!(granted[Resource::Tles], Limit::NONE);
    assert_eq!(entry.asked.unwrap()[Resource::Ptes], Limit::new(96, 2048).unwrap());
    let texts = texts(grant.cuts());
    assert_eq!(
        texts,
        [
            "cxi1: 96 PTEs wanted, 48 available: 2000 held by service 2 (uid 1)",
            "cxi1: 16 TLEs wanted, 0 available: all 4 TLE pools are taken, by service 1 (default \
             service), service 2 (uid 1), service 3 (uid 2), service 4 (uid 3)",
        ]
    );
    let services = user_services(&mock);
    let mine =
        services.iter().find(|(nic, service)| *nic == cxi(1) && service.id() == entry.service);
    assert_eq!(mine.unwrap().1.limits(), granted);

    // Below the floor it is refused, and the other NIC's service goes.
    let count = user_services(&mock).len();
    let request = job(1001, 4035).limits(planned(16, Mode::ScaleBack { floor: 10 }));
    let error = refuse(&node, request);
    like(&error, "cxi1: SVC_ALLOC: not enough PTEs: 96 requested, 0 available\n*");
    assert!(error.left().is_empty());
    assert_eq!(user_services(&mock).len(), count);
}

#[test]
fn pools_that_are_cut_are_recorded_in_the_grant() {
    let mock = mock(1);
    let node = node(&mock);
    for number in 0..20 {
        let request = job(1000 + u32::from(number), 2000 + number);
        let request = request.limits(planned(1, Mode::ScaleBack { floor: 1 }));
        let grant = allocate(&node, request);
        let reasons: Vec<_> = grant
            .cuts()
            .map(|cut| match cut.reason {
                CutReason::NoTlePool(_) => "TLE",
                CutReason::NoLePool(_) => "LE",
                _ => "other",
            })
            .collect();
        let expected: &[&str] = match number {
            0..3 => &[],
            3..15 => &["TLE"],
            _ => &["LE", "TLE"],
        };
        assert_eq!(reasons, expected, "job {number}");
    }
}

#[test]
fn what_cannot_be_undone_is_named() {
    let mock = mock(3);
    let (node, faults) = faulty(&mock);
    faults[2].inject(Fault::errno(Errno::ENOMEM).on(Opcode::SVC_ALLOC));
    faults[0].inject(Fault::errno(Errno::EPERM).on(Opcode::SVC_DESTROY));
    let error = refuse(&node, job(1000, 4034));
    assert_eq!(ids(&user_services(&mock)), [(cxi(0), id(2))]);
    assert_eq!(error.left().len(), 1);
    assert_eq!(
        error.to_string(),
        "cxi2: SVC_ALLOC: the driver refused with ENOMEM (Cannot allocate memory)\n\
         Left behind:\n  \
         cxi0: service 2 still exists: destroying it failed: cxi0: SVC_DESTROY: not permitted: it \
         needs CAP_SYS_ADMIN in the initial user namespace, and a physical function"
    );
}

#[test]
fn adopted_services_stay_and_are_named() {
    let mock = mock(2);
    let request = job(1000, 4034);
    let first = request.clone().nics(NicPolicy::Listed([cxi(0)].into()));
    allocate(&node(&mock), first);
    let (broken, faults) = faulty(&mock);
    faults[1].inject(Fault::errno(Errno::ENOMEM).on(Opcode::SVC_ALLOC));
    let error = refuse(&broken, request);
    assert!(matches!(error.left()[0].reason, LeftBehindReason::Adopted));
    assert_eq!(ids(&user_services(&mock)), [(cxi(0), id(2))]);
}
