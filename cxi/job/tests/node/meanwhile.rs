//! A service that appears while one is being made: the job's own, or another's.

use cxi::{Limit, Limits, Member, Resource, ServiceId, ServiceSpec, ServiceSpecBuilder};
use cxi_ioctl::{DriverRelease, Errno, Fault, Opcode};
use cxi_job::allocate::LeftBehindReason;
use cxi_job::limits::{CutReason, Mode};
use cxi_job::{AllocateError, Grant, JobLimits, JobRequest};
use cxi_mock::{MockNode, NicConfig};

use crate::around::before;
use crate::support::{
    allocate, devices, faulty, ids, job, mock, planned, refuse, user_services, vni,
};

/// Returns the result of an allocation that fails: the services that exist, and its message.
fn outcome(request: &JobRequest, other: ServiceSpecBuilder) -> (usize, Vec<(ServiceId, bool)>) {
    let mock = mock(1);
    let device = devices(&mock).remove(0);
    let spec = other.build().unwrap();
    let create = move || _ = device.services().create(&spec).unwrap();
    // The other service is made at the moment of an SVC_ALLOC whose answer is lost.
    let node = before(&mock, Opcode::SVC_ALLOC, create, Some(Errno::EFAULT));
    let error = node.allocate(request).unwrap_err();
    let named = error.left().iter().map(|left| {
        let unclear = matches!(left.reason, LeftBehindReason::Unclear);
        (left.service.unwrap(), unclear)
    });
    (user_services(&mock).len(), named.collect())
}

const DESTROYED: (usize, Vec<(ServiceId, bool)>) = (0, Vec::new());
const NOT_OURS: (usize, Vec<(ServiceId, bool)>) = (1, Vec::new());

fn limits(most: u16) -> Limits {
    Limits::none().with(Resource::Cts, Limit::at_most(most))
}

/// As a job's service on VNI 1024 with at most 5 CTs is made.
fn like(member: Option<Member>) -> ServiceSpecBuilder {
    ServiceSpec::builder()
        .members(member)
        .traffic_classes(cxi::TrafficClasses::LOW_LATENCY | cxi::TrafficClasses::BEST_EFFORT)
        .limits(limits(5))
}

const UID: Option<Member> = Some(Member::Uid(1000));

#[test]
fn only_the_jobs_own_service_is_destroyed() {
    let request = job(1000, 1024).limits(JobLimits::Fixed(limits(5)));
    let request = request.build().unwrap();
    let left = |other| outcome(&request, other);
    assert_eq!(left(like(UID).vni(vni(1024))), DESTROYED);
    for (what, other) in [
        ("more of a resource", like(UID).limits(limits(6)).vni(vni(1024))),
        ("another VNI", like(UID).vni(vni(1025))),
        ("another user", like(Some(Member::Uid(1001))).vni(vni(1024))),
        ("nobody", like(None).vni(vni(1024))),
        ("no VNIs", like(UID).unrestricted_vnis()),
    ] {
        assert_eq!(left(other), NOT_OURS, "{what}");
    }
    let unlimited = ServiceSpec::builder().member(Member::Uid(1000)).vni(vni(1024));
    assert_eq!(left(unlimited), NOT_OURS);
    // And in the opposite order.
    let request = job(1000, 1024).limits(JobLimits::Unlimited).build().unwrap();
    assert_eq!(outcome(&request, like(UID).vni(vni(1024))), NOT_OURS);
}

#[test]
fn one_that_waits_for_its_range_is_named() {
    let range = "2048-2063".parse().unwrap();
    let request = JobRequest::builder().uid(1000).vni_range(range);
    let request = request.limits(JobLimits::Fixed(limits(5))).build().unwrap();
    let left = |other| outcome(&request, other);
    let waiting = (1, vec![(ServiceId::new(2).unwrap(), true)]);
    assert_eq!(left(like(UID).unrestricted_vnis()), waiting);
    assert_eq!(left(like(None).unrestricted_vnis()), NOT_OURS);
    assert_eq!(left(like(UID).vni(vni(1024))), NOT_OURS);
}

#[test]
fn one_that_waits_for_its_namespace_is_known_by_its_vnis() {
    let netns = Some(Member::NetNs(77));
    let request = JobRequest::builder().member(Member::NetNs(77)).vni(vni(1024));
    let request = request.limits(JobLimits::Fixed(limits(5))).build().unwrap();
    let left = |other| outcome(&request, other);
    assert_eq!(left(like(None).vni(vni(1024))), DESTROYED);
    assert_eq!(left(like(netns).vni(vni(1024))), DESTROYED);
    assert_eq!(left(like(UID).vni(vni(1024))), NOT_OURS);
    assert_eq!(left(like(None).vni(vni(1025))), NOT_OURS);
}

/// The error of a job on two NICs of which the second refuses.
fn refused_by_the_second(mock: &MockNode, destroy: Fault) -> AllocateError {
    let (node, faults) = faulty(mock);
    faults[1].inject(Fault::errno(Errno::ENOMEM).on(Opcode::SVC_ALLOC));
    faults[0].inject(destroy.on(Opcode::SVC_DESTROY).times(1));
    refuse(&node, job(1000, 1024))
}

#[test]
fn undoing_is_tried_again() {
    for destroy in [
        Fault::errno(Errno::ENOMEM),
        // It was carried out, and the second attempt finds nothing.
        Fault::errno(Errno::ENOMEM).carried_out(),
    ] {
        let mock = mock(2);
        let error = refused_by_the_second(&mock, destroy);
        assert!(error.left().is_empty(), "{error}");
        assert!(ids(&user_services(&mock)).is_empty());
    }
}

#[test]
fn where_nothing_can_be_left_nothing_is_said_to_be() {
    // Whatever of the lists fails afterward.
    for skip in 0..6 {
        let lists = Fault::errno(Errno::ENOMEM).on(Opcode::SVC_LIST_GET);
        // Not sent: the driver knows no namespaces.
        let config = NicConfig::new().release(DriverRelease::Shs13_1);
        let old = MockNode::with_nics(1, &config).unwrap();
        let (node, faults) = faulty(&old);
        faults[0].inject(lists.clone().after(skip));
        let request = JobRequest::builder().member(Member::NetNs(7)).vni(vni(5));
        let error = refuse(&node, request);
        assert!(error.left().is_empty(), "{skip}: {error}");

        // Refused with a reason, and refused with none.
        for (errno, may_be) in [(Errno::EPERM, false), (Errno::ENOMEM, true)] {
            let mock = mock(1);
            let (node, faults) = faulty(&mock);
            faults[0].inject(lists.clone().after(skip));
            faults[0].inject(Fault::errno(errno).on(Opcode::SVC_ALLOC));
            let error = refuse(&node, job(1000, 5));
            let unknown = error.left().iter().any(|left| left.service.is_none());
            let sent = error.to_string().contains("SVC_ALLOC");
            let listed = faults[0].injected() > 1;
            assert_eq!(unknown, may_be && sent && listed, "{skip} {errno}: {error}");
        }
    }
}

/// Returns the result for a job of this size on a NIC where others take this much after the plan is
/// made.
fn taken_meanwhile(cores: u32, resource: Resource, services: u16, each: u16) -> Grant {
    let mock = mock(1);
    let other = devices(&mock).remove(0);
    let limits = Limits::none().with(resource, Limit::exactly(each));
    let take = move || {
        for number in 0..services {
            let spec = like(UID).vni(vni(100 + number)).limits(limits);
            other.services().create(&spec.build().unwrap()).unwrap();
        }
    };
    let request = job(1000, 1024).limits(planned(cores, Mode::ScaleBack { floor: 1 }));
    allocate(&before(&mock, Opcode::SVC_ALLOC, take, None), request)
}

/// Pools are all or nothing, whatever the floor.
#[test]
fn pools_that_others_take_after_the_plan_are_done_without() {
    for (resource, pools) in [(Resource::Tles, 3), (Resource::Les, 15)] {
        let grant = taken_meanwhile(4, resource, pools, 8);
        let cuts: Vec<_> = grant.cuts().collect();
        let [cut] = cuts[..] else { panic!("{cuts:?}") };
        assert_eq!((cut.resource, cut.available), (resource, 0));
        assert!(cut.wanted > 0, "{cut}");
        let held = match (resource, &cut.reason) {
            (Resource::Tles, CutReason::NoTlePool(held))
            | (Resource::Les, CutReason::NoLePool(held)) => held.len(),
            (_, reason) => panic!("{reason:?}"),
        };
        assert!(held >= usize::from(pools), "{cut}");
        let limits = grant.services[0].granted.unwrap();
        assert_eq!(limits[resource].reserved(), 0);
        assert!(limits[Resource::Txqs].reserved() > 0);
    }
}

/// The default service has 512 of 2,048, and the driver reserves at least 8.
#[test]
fn tles_that_others_take_after_the_plan_are_done_without() {
    for (taken, left) in [(1500, 36), (1528, 8), (1529, 0)] {
        let grant = taken_meanwhile(100, Resource::Tles, 1, taken);
        let limits = grant.services[0].granted.unwrap();
        assert_eq!(limits[Resource::Tles], Limit::exactly(left));
        let cuts: Vec<_> = grant.cuts().collect();
        assert!(
            matches!(cuts[..], [cut] if cut.available == u32::from(left) && cut.wanted == 100),
            "{cuts:?}"
        );
    }
}
