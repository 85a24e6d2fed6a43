//! Services of live jobs stay, whatever happens between a look at a NIC and an act on it.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use cxi::{Clock, Device, Member, ServiceSpec};
use cxi_ioctl::{DriverRelease, Errno, Fault, Mapping, Opcode, Request, Transport};
use cxi_job::clean::{KeepReason, OrphanReason};
use cxi_job::release::Outcome;
use cxi_job::{CleanPolicy, FileLock, Filter, IdSet, JobRequest, Node, ReleaseOptions};
use cxi_mock::{InProcess, MockNode, NicConfig};

use crate::support::{
    FakeClock, allocate, cxi, devices, faulty, id, ids, job, mock, node, open, user_services, vni,
};

type Act = Box<dyn FnOnce() + Send>;

/// Does something once, around a command.
struct Around {
    inner: InProcess,
    opcode: Opcode,
    before: Mutex<Option<Act>>,
    after: Mutex<Option<Act>>,
    answer: Option<Errno>,
}

impl fmt::Debug for Around {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Around")
    }
}

impl Transport for Around {
    fn submit(&self, request: Request<'_>) -> Result<(), Errno> {
        if request.opcode() != self.opcode {
            return self.inner.submit(request);
        }
        let act = |act: &Mutex<Option<Act>>| {
            let act = act.lock().unwrap().take();
            let some = act.is_some();
            if let Some(act) = act {
                act();
            }
            some
        };
        if act(&self.before)
            && let Some(errno) = self.answer
        {
            return Err(errno);
        }
        let result = self.inner.submit(request);
        act(&self.after);
        result
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        self.inner.map(offset, len)
    }
}

fn around(mock: &MockNode, opcode: Opcode) -> Around {
    Around {
        inner: open(&mock.nics()[0]),
        opcode,
        before: Mutex::default(),
        after: Mutex::default(),
        answer: None,
    }
}

fn node_of(transport: Around) -> Node {
    Node::from_devices([Device::with_transport(cxi(0), Arc::new(transport))])
}

fn pool() -> CleanPolicy<'static> {
    CleanPolicy::new("1024-65535".parse().unwrap())
}

/// Another process's node on the same NICs.
fn other(mock: &MockNode) -> Node {
    node(mock)
}

#[test]
fn who_lives_is_asked_after_the_list() {
    let mock = mock(1);
    let records: Arc<Mutex<IdSet>> = Arc::default();
    let mut transport = around(&mock, Opcode::SVC_LIST_GET);
    let (starting, recorded) = (other(&mock), Arc::clone(&records));
    // A job starts while services are about to be listed: first its record, then its service.
    transport.before = Mutex::new(Some(Box::new(move || {
        recorded.lock().unwrap().insert(1024);
        allocate(&starting, job(1000, 1024));
    })));
    let live = || Ok(records.lock().unwrap().clone());
    let clean = node_of(transport)
        .clean(&pool().live(&live), &ReleaseOptions::once())
        .unwrap();
    assert_eq!(clean.orphans, []);
    assert_eq!(user_services(&mock).len(), 1);
}

/// A job that is recorded while others wait.
#[derive(Debug)]
struct Records<'a>(&'a AtomicBool);

impl Clock for Records<'_> {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn who_lives_is_asked_before_each_attempt() {
    let mock = mock(1);
    let (node, faults) = faulty(&mock);
    allocate(&node, job(1000, 1024));
    faults[0].inject(Fault::errno(Errno::EBUSY).on(Opcode::SVC_DESTROY));
    let started = AtomicBool::new(false);
    let live = || {
        let lives = started.load(Ordering::SeqCst).then_some(1024);
        Ok(lives.into_iter().collect::<IdSet>())
    };
    let clock = Records(&started);
    let options = ReleaseOptions::until(Duration::from_secs(60)).clock(&clock);
    let clean = node.clean(&pool().live(&live), &options).unwrap();
    let release = clean.release.unwrap();
    assert_eq!(release.services[0].outcome, Outcome::Kept);
    assert_eq!(release.left().count(), 0);
    assert_eq!(faults[0].injected(), 1);
}

#[test]
fn nothing_is_destroyed_if_nobody_says_who_lives() {
    let mock = mock(1);
    let node = node(&mock);
    allocate(&node, job(1000, 1024));
    let live = || Err(io::Error::other("no records"));
    let error = node.clean(&pool().live(&live), &ReleaseOptions::once());
    assert_eq!(error.unwrap_err().to_string(), "no records");
    // Nor if they can no longer be found.
    let first = AtomicBool::new(true);
    let live = || {
        let first = first.swap(false, Ordering::SeqCst);
        let live = first.then(IdSet::new);
        live.ok_or_else(|| io::Error::other("no records"))
    };
    let clean = node.clean(&pool().live(&live), &ReleaseOptions::once());
    let release = clean.unwrap().release.unwrap();
    assert_eq!(release.left().count(), 1, "{release}");
    assert_eq!(user_services(&mock).len(), 1);
}

/// Somebody destroys service 2, and another job gets its id.
fn taken_over(mock: &MockNode) -> Act {
    let (device, other) = (devices(mock).remove(0), other(mock));
    Box::new(move || {
        device.services().destroy(id(2)).unwrap();
        let grant = allocate(&other, job(2000, 2000));
        assert_eq!(grant.services[0].service, id(2));
    })
}

#[test]
fn an_id_that_is_another_jobs_after_the_list_is_left_alone() {
    let policy = pool().keep_services([]);
    for clean in [false, true] {
        let mock = mock(1);
        allocate(&node(&mock), job(1000, 1024));
        let mut transport = around(&mock, Opcode::SVC_LIST_GET);
        transport.after = Mutex::new(Some(taken_over(&mock)));
        let node = node_of(transport);
        let once = ReleaseOptions::once();
        if clean {
            let _ = node.clean(&policy, &once).unwrap();
        } else {
            let release = node.release(&Filter::vnis([vni(1024)]), &once);
            assert_eq!(release.services[0].outcome, Outcome::AlreadyGone);
        }
        let left = user_services(&mock);
        assert_eq!(left.len(), 1, "clean: {clean}");
        assert_eq!(left[0].1.vnis().to_string(), "2000");
    }
}

#[test]
fn an_id_that_is_another_jobs_after_a_failure_means_that_the_service_is_gone() {
    let mock = mock(1);
    allocate(&node(&mock), job(1000, 1024));
    let mut transport = around(&mock, Opcode::SVC_DESTROY);
    transport.before = Mutex::new(Some(taken_over(&mock)));
    transport.answer = Some(Errno::ENOMEM);
    let release = node_of(transport).release(&Filter::vnis([vni(1024)]), &ReleaseOptions::once());
    assert_eq!(release.services[0].outcome, Outcome::AlreadyGone);
    assert_eq!(user_services(&mock).len(), 1);
}

#[test]
fn a_second_prolog_that_is_refused_leaves_the_first_ones_service() {
    for errno in [Errno::ENOSPC, Errno::EEXIST, Errno::EPERM] {
        let mock = mock(1);
        let first = other(&mock);
        let mut transport = around(&mock, Opcode::SVC_ALLOC);
        transport.before = Mutex::new(Some(Box::new(move || {
            allocate(&first, job(1000, 1024));
        })));
        transport.answer = Some(errno);
        let request = job(1000, 1024).build().unwrap();
        let error = node_of(transport).allocate(&request).unwrap_err();
        assert!(error.left().is_empty(), "{error}");
        assert_eq!(user_services(&mock).len(), 1, "{errno}");
    }
}

#[test]
fn prologs_of_the_same_job_at_the_same_time_get_the_same_services() {
    let directory = tempfile::tempdir().unwrap();
    let lock = FileLock::new(directory.path().join("node.lock"));
    let config = NicConfig::new().release(DriverRelease::Shs14_0_0);
    for _ in 0..10 {
        let mock = MockNode::with_nics(2, &config).unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                let node = other(&mock).with_lock(lock.clone());
                scope.spawn(move || allocate(&node, job(1000, 1024)));
            }
        });
        let there = ids(&user_services(&mock));
        assert_eq!(there, [(cxi(0), id(2)), (cxi(1), id(2))]);
    }
}

fn unfinished(mock: &MockNode) -> Device {
    let device = devices(mock).remove(0);
    let spec = ServiceSpec::builder().member(Member::Uid(1000));
    let spec = spec.unrestricted_vnis().build().unwrap();
    let service = device.services().create(&spec).unwrap();
    device.services().set_enabled(service, false).unwrap();
    device
}

#[test]
fn a_slow_prolog_with_a_range_keeps_its_service() {
    let directory = tempfile::tempdir().unwrap();
    let lock = FileLock::new(directory.path().join("node.lock"));
    let mock = mock(1);
    let slow = unfinished(&mock);
    let held = lock.acquire().unwrap();
    let cleaning = node(&mock).with_lock(lock);
    thread::scope(|scope| {
        let clean = scope.spawn(|| {
            let clock = FakeClock::default();
            let options = ReleaseOptions::once().clock(&clock);
            let clean = cleaning.clean(&pool(), &options).unwrap();
            assert_eq!(clock.pauses(), [Duration::from_secs(1)]);
            clean
        });
        // Far longer than the pause, on the clock of the one that cleans.
        thread::sleep(Duration::from_millis(50));
        let range = "2048-2063".parse().unwrap();
        slow.services().set_vni_range(id(2), range).unwrap();
        slow.services().set_enabled(id(2), true).unwrap();
        drop(held);
        assert_eq!(clean.join().unwrap().orphans, []);
    });
    assert_eq!(user_services(&mock).len(), 1);
}

#[test]
fn without_a_lock_an_unfinished_service_may_be_on_its_way() {
    let mock = mock(1);
    unfinished(&mock);
    let clean = node(&mock).clean(&pool(), &ReleaseOptions::once()).unwrap();
    assert_eq!(clean.orphans, []);
    assert_eq!(clean.kept[1].reason, KeepReason::Unfinished);

    let directory = tempfile::tempdir().unwrap();
    let lock = FileLock::new(directory.path().join("node.lock"));
    let clock = FakeClock::default();
    let options = ReleaseOptions::once().clock(&clock);
    let clean = node(&mock).with_lock(lock).clean(&pool(), &options);
    assert_eq!(clean.unwrap().orphans[0].reason, OrphanReason::Unfinished);
    assert!(user_services(&mock).is_empty());
}

#[test]
fn an_enabled_service_with_all_vnis_is_left_alone() {
    let mock = mock(1);
    let device = unfinished(&mock);
    device.services().set_enabled(id(2), true).unwrap();
    let policy = pool().unfinished(Some(Duration::ZERO));
    let clean = node(&mock).clean(&policy, &ReleaseOptions::once()).unwrap();
    assert_eq!(clean.orphans, []);
    assert_eq!(clean.kept[1].reason, KeepReason::OutsidePool);
    assert_eq!(user_services(&mock).len(), 1);
}

#[test]
fn a_disabled_service_with_vnis_outside_the_pool_is_left_alone() {
    let mock = mock(1);
    let spec = ServiceSpec::builder().member(Member::Uid(1000)).vni(vni(9));
    let services = devices(&mock)[0].services();
    services
        .create(&spec.enabled(false).build().unwrap())
        .unwrap();
    let policy = pool().unfinished(Some(Duration::ZERO));
    let clean = node(&mock).clean(&policy, &ReleaseOptions::once()).unwrap();
    assert_eq!(clean.orphans, []);
    assert_eq!(clean.kept[1].reason, KeepReason::OutsidePool);
    assert_eq!(user_services(&mock).len(), 1);
}

#[test]
fn a_lock_that_cannot_be_had_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let lock = FileLock::new(directory.path().join("node.lock")).wait(Duration::from_millis(1));
    let mock = mock(1);
    allocate(&node(&mock), job(1000, 1024));
    let node = node(&mock).with_lock(lock.clone());
    let _held = lock.acquire().unwrap();
    let request: JobRequest = job(1001, 1025).build().unwrap();
    let error = node.allocate(&request).unwrap_err();
    assert!(error.to_string().contains("locked by another process"));
    assert!(error.failures().is_empty() && error.left().is_empty());
    let release = node.release(&Filter::vnis([vni(1024)]), &ReleaseOptions::once());
    let Outcome::Failed { errno, .. } = release.services[0].outcome else {
        panic!("{release}");
    };
    assert_eq!(Errno::from_raw(errno), Errno::EAGAIN);
    assert_eq!(user_services(&mock).len(), 1);
}
