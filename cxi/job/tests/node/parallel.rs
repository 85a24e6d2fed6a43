//! NICs are served at the same time.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use cxi_ioctl::{Errno, Opcode, Transport};
use cxi_job::{Filter, Node, ReleaseOptions, ReleaseStatus};
use cxi_mock::MockNode;

use crate::around::through;
use crate::support::{job, mock, user_services, vni};

const NICS: usize = 8;

/// A node that lets a command through when all NICs have got one.
fn meeting(mock: &MockNode, at: Opcode) -> Node {
    let meeting = Arc::new((Mutex::new(0), Condvar::new()));
    through(mock, move |file, request| {
        if request.opcode() == at {
            let (arrived, all_here) = &*meeting;
            let mut arrived = arrived.lock().unwrap();
            *arrived += 1;
            all_here.notify_all();
            let patience = Duration::from_secs(30);
            let wait = all_here.wait_timeout_while(arrived, patience, |arrived| *arrived < NICS);
            if wait.unwrap().1.timed_out() {
                return Err(Errno::ETIMEDOUT);
            }
        }
        file.submit(request)
    })
}

#[test]
fn all_nics_get_their_command_before_any_is_answered() {
    let mock = mock(8);
    let request = job(1000, 1024).build().unwrap();
    let node = meeting(&mock, Opcode::SVC_ALLOC);
    node.allocate(&request).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(user_services(&mock).len(), NICS);
    let node = meeting(&mock, Opcode::SVC_DESTROY);
    let release = node.release(&Filter::vnis([vni(1024)]), &ReleaseOptions::once());
    assert_eq!(release.status(), ReleaseStatus::Done, "{release}");
}
