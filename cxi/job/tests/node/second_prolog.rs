//! A job whose prolog runs twice keeps its services, and prologs of a node take turns.

use std::thread;
use std::time::Duration;

use cxi_ioctl::{DriverRelease, Errno, Opcode};
use cxi_job::release::Outcome;
use cxi_job::{Filter, JobRequest, ReleaseOptions};
use cxi_mock::{MockNode, NicConfig};

use crate::around::before;
use crate::support::{allocate, cxi, id, ids, job, like, lock, mock, node, user_services, vni};

#[test]
fn a_second_prolog_that_is_refused_leaves_the_first_ones_service() {
    for errno in [Errno::ENOSPC, Errno::EEXIST, Errno::EPERM] {
        let mock = mock(1);
        let first = node(&mock);
        let start = move || drop(allocate(&first, job(1000, 1024)));
        let second = before(&mock, Opcode::SVC_ALLOC, start, Some(errno));
        let request = job(1000, 1024).build().unwrap();
        let error = second.allocate(&request).unwrap_err();
        assert!(error.left().is_empty(), "{error}");
        assert_eq!(user_services(&mock).len(), 1, "{errno}");
    }
}

#[test]
fn prologs_of_the_same_job_at_the_same_time_get_the_same_services() {
    let (_directory, lock) = lock();
    let config = NicConfig::new().release(DriverRelease::Shs14_0_0);
    for _ in 0..10 {
        let mock = MockNode::with_nics(2, &config).unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                let node = node(&mock).with_lock(lock.clone());
                scope.spawn(move || allocate(&node, job(1000, 1024)));
            }
        });
        let there = ids(&user_services(&mock));
        assert_eq!(there, [(cxi(0), id(2)), (cxi(1), id(2))]);
    }
}

#[test]
fn a_lock_that_cannot_be_had_changes_nothing() {
    let (_directory, lock) = lock();
    let lock = lock.wait(Duration::from_millis(1));
    let mock = mock(1);
    allocate(&node(&mock), job(1000, 1024));
    let node = node(&mock).with_lock(lock.clone());
    let _held = lock.acquire().unwrap();
    let request: JobRequest = job(1001, 1025).build().unwrap();
    let error = node.allocate(&request).unwrap_err();
    like(&error, "*locked by another process*");
    assert!(error.failures().is_empty() && error.left().is_empty());
    let release = node.release(&Filter::vnis([vni(1024)]), &ReleaseOptions::once());
    let Outcome::Failed { errno, .. } = release.services[0].outcome else { panic!("{release}") };
    assert_eq!(Errno::from_raw(errno), Errno::EAGAIN);
    assert_eq!(user_services(&mock).len(), 1);
}
