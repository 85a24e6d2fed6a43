//! Services of live jobs stay: who lives is asked after services were listed, and again.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cxi::Clock;
use cxi_ioctl::{Errno, Fault, Opcode};
use cxi_job::ReleaseOptions;
use cxi_job::release::Outcome;
use cxi_site::IdSet;

use crate::around::before;
use crate::support::{allocate, faulty, job, mock, node, pool, user_services};

#[test]
fn live_jobs_are_read_after_services_are_listed() {
    let mock = mock(1);
    let records: Arc<Mutex<IdSet>> = Arc::default();
    let (starting, recorded) = (node(&mock), Arc::clone(&records));
    // A job starts while services are about to be listed: first its record, then its service.
    let start = move || {
        recorded.lock().unwrap().insert(1024);
        allocate(&starting, job(1000, 1024));
    };
    let live = || Ok(records.lock().unwrap().clone());
    let clean = before(&mock, Opcode::SVC_LIST_GET, start, None)
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
fn live_jobs_are_read_before_each_attempt() {
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
fn nothing_is_destroyed_if_live_jobs_cannot_be_listed() {
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
