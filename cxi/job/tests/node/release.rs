//! Ending jobs.

use std::sync::Mutex;
use std::time::Duration;

use cxi::{Device, Member, ServiceSpec, VniRange};
use cxi_ioctl::{Errno, Fault, Opcode};
use cxi_job::release::{Outcome, Waiting};
use cxi_job::{Filter, JobRequest, NicPolicy, ReleaseOptions, ReleaseStatus};

use crate::support::{
    FakeClock, FaultyFile, add_process, allocate, cxi, devices, empty_proc, faulty, id, ids, job,
    like, mock, node, user_services, vni,
};

const MINUTES: Duration = Duration::from_secs(300);

fn busy(fault: &FaultyFile, times: u64) {
    let injection = Fault::errno(Errno::EBUSY).on(Opcode::SVC_DESTROY);
    fault.inject(injection.times(times));
}

#[test]
fn services_are_found_by_what_they_are() {
    let mock = mock(2);
    let node = node(&mock);
    let range = VniRange::new(vni(2048), 4).unwrap();
    let first = allocate(&node, job(1000, 1024).vni(vni(1025)));
    allocate(&node, job(1001, 1024).nics(NicPolicy::Listed([cxi(0)].into())));
    allocate(&node, JobRequest::builder().member(Member::Gid(50)).vni_range(range));
    let selected = |filter: &Filter| {
        let services = user_services(&mock);
        let found = services.into_iter().filter(|(nic, service)| filter.selects(*nic, service));
        ids(&found.collect::<Vec<_>>())
    };
    let (one, both) = ([(cxi(0), id(3))], [(cxi(0), id(2)), (cxi(1), id(2))]);
    let range_services = [(cxi(0), id(4)), (cxi(1), id(3))];
    assert_eq!(selected(&Filter::vnis([vni(1024)])), one);
    assert_eq!(selected(&Filter::vnis([vni(1025), vni(1024)])), both);
    assert_eq!(selected(&Filter::vnis(range.iter())), range_services);
    assert_eq!(selected(&Filter::vnis([vni(2048)])), []);
    assert_eq!(selected(&Filter::vnis([vni(1025)])), []);
    assert_eq!(selected(&Filter::member(Member::Uid(1001))), one);
    assert_eq!(selected(&Filter::vnis([vni(1024)]).uid(1000)), []);
    assert_eq!(selected(&Filter::member(Member::Gid(50))), range_services);
    assert_eq!(selected(&Filter::services([(cxi(1), id(2))])), [(cxi(1), id(2))]);
    assert_eq!(selected(&Filter::for_grant(&first)), both);
    // Neither the default service nor, by what it is, a system service.
    let spec = ServiceSpec::builder().member(Member::Uid(1000)).vni(vni(10)).system(true);
    let services = devices(&mock)[0].services();
    let spec = spec.limits(cxi::Limits::default()).build().unwrap();
    let system = services.create(&spec).unwrap();
    for vnis in [&[vni(1), vni(10)][..], &[vni(10)]] {
        assert_eq!(selected(&Filter::vnis(vnis.iter().copied())), []);
    }
    assert_eq!(selected(&Filter::services([(cxi(0), system)])), [(cxi(0), system)]);
    let default = services.get(id(1)).unwrap();
    assert!(!Filter::services([(cxi(0), id(1))]).selects(cxi(0), &default));
}

#[test]
fn an_id_that_was_used_again_is_not_the_grants_any_more() {
    let mock = mock(1);
    let node = node(&mock);
    let grant = allocate(&node, job(1000, 1024));
    assert_eq!(
        node.release(&Filter::for_grant(&grant), &ReleaseOptions::once()).status(),
        ReleaseStatus::Done
    );
    allocate(&node, job(1000, 1025));
    assert_eq!(ids(&user_services(&mock)), [(cxi(0), id(2))]);
    let again = node.release(&Filter::for_grant(&grant), &ReleaseOptions::once());
    assert_eq!(again.status(), ReleaseStatus::NothingToDo);
    assert_eq!(user_services(&mock).len(), 1);
}

#[test]
fn busy_for_a_while_then_gone() {
    for times in 0..12 {
        let mock = mock(2);
        let (node, faults) = faulty(&mock);
        allocate(&node, job(1000, 1024));
        busy(&faults[1], times);
        let clock = FakeClock::default();
        let options = ReleaseOptions::until(MINUTES).clock(&clock);
        let release = node.release(&Filter::vnis([vni(1024)]), &options);
        assert_eq!(release.status(), ReleaseStatus::Done);
        assert!(user_services(&mock).is_empty());
        let expected: Vec<Duration> = (0..times)
            .map(|attempt| Duration::from_millis(1 << attempt).min(Duration::from_secs(1)))
            .collect();
        assert_eq!(clock.pauses(), expected);
    }
}

#[test]
fn busy_for_ever() {
    let mock = mock(2);
    let (node, faults) = faulty(&mock);
    allocate(&node, job(1000, 1024));
    allocate(&node, job(1000, 1024).adopt(false));
    busy(&faults[0], u64::MAX);
    let (root, proc) = empty_proc();
    add_process(root.path(), 4711, "a.out", 1000);
    let clock = FakeClock::default();
    let told: Mutex<Vec<Waiting>> = Mutex::default();
    let progress = |waiting: &Waiting| told.lock().unwrap().push(waiting.clone());
    let options = ReleaseOptions::until(MINUTES).clock(&clock).progress(&progress);
    let node = node.with_proc(proc);
    let release = node.release(&Filter::vnis([vni(1024)]), &options);
    assert_eq!(release.status(), ReleaseStatus::StillBusy);
    // Those of the other NIC are gone anyway.
    assert_eq!(ids(&user_services(&mock)), [(cxi(0), id(2)), (cxi(0), id(3))]);
    assert_eq!(
        release.to_string(),
        "cxi0: service 2 (uid 1000, VNI 1024): still in use after 300.0 s and 310 attempts; process \
         4711 (a.out, uid 1000) has the NIC open\n\
         cxi0: service 3 (uid 1000, VNI 1024): still in use after 300.0 s and 310 attempts; process \
         4711 (a.out, uid 1000) has the NIC open\n\
         cxi1: service 2 (uid 1000, VNI 1024): destroyed\n\
         cxi1: service 3 (uid 1000, VNI 1024): destroyed"
    );
    let spent: Duration = clock.pauses().iter().sum();
    assert_eq!(spent, MINUTES);

    let told = told.into_inner().unwrap();
    assert!(told.iter().all(|waiting| waiting.device == cxi(0) && waiting.left <= MINUTES));
    assert_eq!(
        told[0].to_string(),
        "cxi0: service 2 (uid 1000, VNI 1024) is still in use; process 4711 (a.out, uid 1000) has \
         the NIC open; 300 s left"
    );
    assert!(told.last().unwrap().left <= Duration::from_secs(1));
    assert_eq!(told.last().unwrap().attempts, 309);
}

#[test]
fn an_open_lni_keeps_a_service_until_it_is_closed() {
    let mock = mock(1);
    let node = node(&mock);
    allocate(&node, job(0, 1024));
    let user = devices(&mock).remove(0);
    let lni = user.alloc_lni(id(2)).unwrap();
    let filter = Filter::vnis([vni(1024)]);
    let once = node.release(&filter, &ReleaseOptions::once());
    assert_eq!(once.status(), ReleaseStatus::StillBusy);
    assert!(matches!(once.services[0].outcome, Outcome::StillBusy { attempts: 1, .. }));
    drop(lni);
    let later = node.release(&filter, &ReleaseOptions::once());
    assert_eq!(later.status(), ReleaseStatus::Done);
}

#[test]
fn one_failure_stops_nothing_else() {
    let mock = mock(3);
    let (node, faults) = faulty(&mock);
    allocate(&node, job(1000, 1024));
    allocate(&node, job(1000, 1024).adopt(false));
    faults[0].inject(Fault::errno(Errno::EPERM).on(Opcode::SVC_DESTROY).once());
    // The driver destroys it, and its answer gets lost.
    let lost = Fault::errno(Errno::EINTR).on(Opcode::SVC_DESTROY).once();
    faults[1].inject(lost.carried_out());
    faults[2].inject(Fault::errno(Errno::EIO).on(Opcode::SVC_LIST_GET));
    let release = node.release(&Filter::vnis([vni(1024)]), &ReleaseOptions::once());
    assert_eq!(release.status(), ReleaseStatus::Failed);
    assert_eq!(
        release.to_string(),
        "cxi0: service 2 (uid 1000, VNI 1024): not destroyed: cxi0: SVC_DESTROY: not permitted: \
         it needs CAP_SYS_ADMIN in the initial user namespace, and a physical function\n\
         cxi0: service 3 (uid 1000, VNI 1024): destroyed\n\
         cxi1: service 2 (uid 1000, VNI 1024): destroyed\n\
         cxi1: service 3 (uid 1000, VNI 1024): destroyed\n\
         cxi2: SVC_LIST_GET: the device has been removed"
    );
    assert_eq!(ids(&user_services(&mock)), [(cxi(0), id(2)), (cxi(2), id(2)), (cxi(2), id(3))]);
}

#[test]
fn a_nic_that_disappears_while_it_is_waited_for() {
    for k in 0..12 {
        let mock = mock(2);
        let (node, faults) = faulty(&mock);
        allocate(&node, job(1000, 1024));
        busy(&faults[0], 3);
        faults[0].clear();
        faults[0].inject(Fault::errno(Errno::EIO).after(k));
        busy(&faults[0], 3);
        let clock = FakeClock::default();
        let options = ReleaseOptions::until(MINUTES).clock(&clock);
        let release = node.release(&Filter::vnis([vni(1024)]), &options);
        let left = ids(&user_services(&mock));
        assert!(!left.contains(&(cxi(1), id(2))), "the other NIC is done");
        if left.is_empty() {
            assert_eq!(release.status(), ReleaseStatus::Done, "{k}: {release}");
        } else {
            assert_eq!(release.status(), ReleaseStatus::Failed, "{k}: {release}");
            like(&release, "*the device has been removed*");
        }
    }
}

#[derive(Debug)]
struct Meanwhile(Device);
impl cxi::Clock for Meanwhile {
    fn now(&self) -> Duration {
        Duration::ZERO
    }
    fn sleep(&self, _: Duration) {
        self.0.services().destroy(id(2)).unwrap();
        let spec = ServiceSpec::builder().member(Member::Uid(1)).vni(vni(1024)).build();
        assert_eq!(self.0.services().create(&spec.unwrap()).unwrap(), id(2));
    }
}

#[test]
fn a_service_that_another_epilog_destroyed_is_gone() {
    let mock = mock(1);
    let (node, faults) = faulty(&mock);
    allocate(&node, job(1000, 1024));
    busy(&faults[0], 1);
    // While this one pauses, another epilog destroys the service, and a new job gets its id.
    let other: Device = devices(&mock).remove(0);
    let clock = Meanwhile(other);
    let options = ReleaseOptions::until(MINUTES).clock(&clock);
    let release = node.release(&Filter::vnis([vni(1024)]), &options);
    assert_eq!(release.services[0].outcome, Outcome::AlreadyGone);
    assert_eq!(release.status(), ReleaseStatus::Done);
    assert_eq!(user_services(&mock).len(), 1);
}
