//! The life of a job on every driver release.

use std::time::Duration;

use cxi::{Resource, TrafficClasses};
use cxi_ioctl::{DriverRelease, Errno, Fault, Opcode};
use cxi_job::limits::Mode;
use cxi_job::{AuditOptions, Filter, ReleaseOptions, ReleaseStatus};
use cxi_mock::{MockNode, NicConfig};

use crate::support::{
    FakeClock, allocate, cxi, faulty, job, node, planned, pool, user_services, vni,
};

/// Runs a part of a job's life on two NICs of each release, and looks that nothing of it is left
/// and that no driver was brought to undefined behavior.
fn for_each_release(part: impl Fn(&MockNode, DriverRelease)) {
    for release in DriverRelease::ALL {
        let mock = MockNode::with_nics(2, &NicConfig::new().release(release)).unwrap();
        part(&mock, release);
        assert!(user_services(&mock).is_empty(), "{release}: something is left");
        for nic in mock.nics() {
            assert!(nic.hazards().is_empty(), "{release}: {:?}", nic.hazards());
        }
    }
}

#[test]
fn a_job_is_granted_adopted_and_released() {
    for_each_release(|mock, release| {
        let node = node(mock);
        let request = || job(1000, 4034).limits(planned(16, Mode::Strict));
        let grant = allocate(&node, request());
        let vars = grant.env().unwrap().vars();
        assert_eq!(vars[1], ("SLINGSHOT_DEVICES", "cxi0,cxi1".to_owned()), "{release}");
        for (_, service) in user_services(mock) {
            assert!(service.is_enabled(), "{release}");
            let classes = TrafficClasses::LOW_LATENCY | TrafficClasses::BEST_EFFORT;
            assert_eq!(service.traffic_classes(), Some(classes), "{release}");
            assert_eq!(service.limits()[Resource::Txqs].reserved(), 32, "{release}");
        }
        // A prolog that runs again finds what it made.
        let again = allocate(&node, request());
        let on = |grant: &cxi_job::Grant| [cxi(0), cxi(1)].map(|nic| grant.service_on(nic));
        assert_eq!(on(&grant), on(&again), "{release}");
        let filter = Filter::vnis([vni(4034)]).uid(1000);
        let done = node.release(&filter, &ReleaseOptions::once());
        assert_eq!(done.status(), ReleaseStatus::Done, "{release}");
        let nothing = node.release(&filter, &ReleaseOptions::once());
        assert_eq!(nothing.status(), ReleaseStatus::NothingToDo, "{release}");
    });
}

#[test]
fn a_failed_allocation_leaves_nothing() {
    for_each_release(|mock, release| {
        let (node, faults) = faulty(mock);
        let refuse = Fault::errno(Errno::ENOMEM).on(Opcode::SVC_ALLOC);
        faults[1].inject(refuse.times(1));
        let request = job(1000, 4034).build().unwrap();
        let error = node.allocate(&request).unwrap_err();
        assert!(error.left().is_empty(), "{release}: {error}");
    });
}

#[test]
fn a_busy_service_is_waited_for() {
    for_each_release(|mock, release| {
        let (node, faults) = faulty(mock);
        allocate(&node, job(1000, 4034));
        let busy = Fault::errno(Errno::EBUSY).on(Opcode::SVC_DESTROY);
        faults[0].inject(busy.times(3));
        let clock = FakeClock::default();
        let options = ReleaseOptions::until(Duration::from_secs(60)).clock(&clock);
        let done = node.release(&Filter::vnis([vni(4034)]), &options);
        assert_eq!(done.status(), ReleaseStatus::Done, "{release}");
        assert!(!clock.pauses().is_empty(), "{release}");
    });
}

#[test]
fn orphans_are_cleaned_and_the_node_is_audited() {
    for_each_release(|mock, release| {
        let node = node(mock);
        allocate(&node, job(1000, 4034));
        let mut options = AuditOptions::default();
        options.pool = Some("1024-2047".parse().unwrap());
        let audit = node.audit(&options);
        let outside = audit.findings.iter().any(|finding| finding.to_string().contains("4034"));
        assert!(outside, "{release}: {:?}", audit.findings);
        let policy = pool();
        let clean = node.clean(&policy, &ReleaseOptions::once()).unwrap();
        let status = clean.release.map(|release| release.status());
        assert_eq!(status, Some(ReleaseStatus::Done), "{release}");
    });
}

#[test]
fn the_fourth_job_is_told_who_has_the_tle_pools() {
    for_each_release(|mock, release| {
        let node = node(mock);
        for (uid, number) in [(1001, 1025), (1002, 1026), (1003, 1027)] {
            allocate(&node, job(uid, number).limits(planned(8, Mode::Strict)));
        }
        let fourth = job(1004, 1028).limits(planned(8, Mode::Strict)).build().unwrap();
        let error = node.allocate(&fourth).unwrap_err().to_string();
        for holder in ["uid 1001", "uid 1002", "uid 1003", "TLE"] {
            assert!(error.contains(holder), "{release}: {holder} is not in: {error}");
        }
        for (uid, number) in [(1001, 1025), (1002, 1026), (1003, 1027)] {
            let done = node.release(&Filter::vnis([vni(number)]).uid(uid), &ReleaseOptions::once());
            assert_eq!(done.status(), ReleaseStatus::Done, "{release}");
        }
    });
}
