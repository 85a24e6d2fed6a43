//! Cleaning up after jobs that did not end as they should.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cxi::driver::Quirks;
use cxi::{Device, Limits, Member, ServiceSpec, VniRange};
use cxi_job::clean::{KeepReason, OrphanReason};
use cxi_job::{JobRequest, Node, ReleaseOptions, ReleaseStatus};
use cxi_mock::{Ended, HazardKind, MockNode, NicConfig, SweepConfig, sweep_with};

use crate::support::{
    FakeClock, allocate, devices, id, job, mock, node, pool, texts, user_services, vni,
};

const MINUTES: Duration = Duration::from_secs(300);
const SECOND: Duration = Duration::from_secs(1);

#[test]
fn clean_spares_what_is_not_an_orphan() {
    let mock = mock(2);
    let node = node(&mock);
    allocate(&node, job(1000, 1024));
    allocate(&node, job(1001, 1025));
    allocate(&node, job(1002, 9));
    let services = devices(&mock)[0].services();
    let system = ServiceSpec::builder().member(Member::Uid(0)).vni(vni(1030)).system(true);
    services.create(&system.limits(Limits::default()).build().unwrap()).unwrap();
    let live = || Ok([1025].into_iter().collect());
    let policy = pool().live(&live);
    let dry = node.clean(&policy.clone().dry_run(true), &ReleaseOptions::once()).unwrap();
    assert_eq!(user_services(&mock).len(), 7);
    assert!(dry.release.is_none());
    let clean = node.clean(&policy, &ReleaseOptions::once()).unwrap();
    assert_eq!(clean.orphans, dry.orphans);
    let lines = texts(&clean.orphans);
    assert_eq!(
        lines,
        [0, 1].map(|nic| format!(
            "cxi{nic}: service 2 (uid 1000, VNI 1024): its VNI is in the pool, and no live job has \
             it"
        ))
    );
    let text = dry.to_string();
    assert!(text.starts_with(&format!(
        "Would destroy {}\nWould destroy {}\nKeeps cxi0: service 1 (",
        lines[0], lines[1]
    )));
    assert_eq!(text.lines().count(), 2 + clean.kept.len());
    let release = clean.release.as_ref().unwrap();
    assert_eq!(clean.to_string(), release.to_string());
    let kept: Vec<KeepReason> = clean.kept.iter().map(|verdict| verdict.reason).collect();
    assert_eq!(
        kept,
        [
            KeepReason::Default,
            KeepReason::Live,
            KeepReason::OutsidePool,
            KeepReason::System,
            KeepReason::Default,
            KeepReason::Live,
            KeepReason::OutsidePool,
        ]
    );
    assert_eq!(clean.release.unwrap().status(), ReleaseStatus::Done);
    assert_eq!(user_services(&mock).len(), 5);
}

/// A killed process leaves the results of the commands that it got to send.
#[test]
fn clean_finds_all_after_death_at_any_point() {
    let range = VniRange::new(vni(2048), 16).unwrap();
    let netns = Member::NetNs(4_026_532_000);
    let requests = [
        job(1000, 1024),
        JobRequest::builder().uid(1000).vni_range(range),
        JobRequest::builder().member(netns).vni(vni(1024)),
        JobRequest::builder().member(netns).vni_range(range),
    ];
    let left_over = AtomicUsize::new(0);
    let config = SweepConfig::new(NicConfig::new()).nics(4).kill(true);
    for request in requests {
        let request = request.build().unwrap();
        let allocate = |mock: &MockNode| node(mock).allocate(&request).map(drop);
        let cleaned = |mock: &MockNode, _: &Ended| {
            let left = user_services(mock).len();
            left_over.fetch_add(left, Ordering::Relaxed);
            let clock = FakeClock::default();
            let options = ReleaseOptions::until(MINUTES).clock(&clock);
            let policy = pool();
            let policy = policy.unfinished(Some(SECOND));
            let clean = node(mock).clean(&policy, &options).map_err(|error| error.to_string())?;
            let all = clean.orphans.len() == left;
            all.then_some(()).ok_or_else(|| format!("{left} are left: {clean:?}"))
        };
        sweep_with(&config, allocate, cleaned).unwrap().expect_no_findings();
    }
    assert!(left_over.into_inner() > 100);
}

#[derive(Debug)]
struct Finishes(Device);
impl cxi::Clock for Finishes {
    fn now(&self) -> Duration {
        Duration::ZERO
    }
    fn sleep(&self, time: Duration) {
        assert_eq!(time, Duration::from_secs(1));
        let range = VniRange::new(vni(64), 2).unwrap();
        self.0.services().set_vni_range(id(2), range).unwrap();
    }
}

#[test]
fn an_unfinished_service_gets_time_to_be_finished() {
    let mock = mock(1);
    let services = devices(&mock)[0].services();
    let spec = ServiceSpec::builder().member(Member::Uid(1000)).unrestricted_vnis();
    let service = services.create(&spec.build().unwrap()).unwrap();
    let policy = pool();
    let policy = policy.unfinished(Some(SECOND));

    let spare = policy.clone().unfinished(None);
    assert!(node(&mock).clean(&spare, &ReleaseOptions::once()).unwrap().orphans.is_empty());
    let clock = Finishes(devices(&mock).remove(0));
    let clean = node(&mock).clean(&policy, &ReleaseOptions::once().clock(&clock)).unwrap();
    assert!(clean.orphans.is_empty());
    services.destroy(service).unwrap();

    let spec = ServiceSpec::builder().member(Member::Uid(1000)).unrestricted_vnis();
    services.create(&spec.build().unwrap()).unwrap();
    let clock = FakeClock::default();
    let clean = node(&mock).clean(&policy, &ReleaseOptions::once().clock(&clock)).unwrap();
    assert_eq!(clean.orphans[0].reason, OrphanReason::Unfinished);
    assert!(user_services(&mock).is_empty());
}

#[test]
fn a_service_whose_range_was_refused_is_named_and_left() {
    let mock = mock(1);
    let device = devices(&mock).remove(0);
    let services = device.services();
    let list =
        ServiceSpec::builder().member(Member::Uid(0)).vni(vni(200)).limits(Limits::default());
    let holder = services.create(&list.build().unwrap()).unwrap();
    let lni = device.alloc_lni(holder).unwrap();
    let domain = lni.alloc_domain(vni(70), None).unwrap();
    let wanted = ServiceSpec::builder()
        .member(Member::Uid(1000))
        .vni_range(VniRange::new(vni(64), 64).unwrap());
    let error = services.create(&wanted.build().unwrap()).unwrap_err();
    let left = error.leftover().expect("it stays").service;
    domain.close().unwrap();
    lni.close().unwrap();

    let policy = pool();
    let policy = policy.unfinished(Some(SECOND));
    let clock = FakeClock::default();
    let once = ReleaseOptions::once().clock(&clock);
    let clean = node(&mock).clean(&policy, &once).unwrap();
    assert!(clean.orphans.is_empty());
    let kept = clean.kept.iter().find(|verdict| verdict.service == left);
    assert_eq!(kept.map(|verdict| verdict.reason), Some(KeepReason::RangeRefused));
    assert!(services.get(left).is_ok());
    // To ask for its range is the only way to find it, and all that was done.
    let is_read = |kind: &HazardKind| matches!(kind, HazardKind::FreedProfileRead { .. });
    assert!(mock.nics()[0].hazards().iter().all(|hazard| is_read(&hazard.kind)));

    // Who accepts the damage may have it.
    let accepting = Node::from_devices([device.allow_quirks(Quirks::REFUSED_RANGE)]);
    let clean = accepting.clean(&policy, &once).unwrap();
    assert_eq!(clean.orphans[0].reason, OrphanReason::Unfinished);
    assert!(services.get(left).is_err());
}
