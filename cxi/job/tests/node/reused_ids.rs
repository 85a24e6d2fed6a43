//! An id that was another service's a moment ago: what has it now stays.

use cxi_ioctl::{Errno, Opcode};
use cxi_job::release::Outcome;
use cxi_job::{Filter, ReleaseOptions};
use cxi_mock::MockNode;

use crate::around::{after, before};
use crate::support::{allocate, devices, id, job, mock, node, pool, user_services, vni};

/// Service 2 is destroyed, and another job gets its id.
fn taken_over(mock: &MockNode) -> impl FnOnce() + Send + use<> {
    let (device, other) = (devices(mock).remove(0), node(mock));
    move || {
        device.services().destroy(id(2)).unwrap();
        let grant = allocate(&other, job(2000, 2000));
        assert_eq!(grant.services[0].service, id(2));
    }
}

#[test]
fn an_id_that_is_another_jobs_after_the_list_is_left_alone() {
    let policy = pool();
    for clean in [false, true] {
        let mock = mock(1);
        allocate(&node(&mock), job(1000, 1024));
        let node = after(&mock, Opcode::SVC_LIST_GET, taken_over(&mock));
        let once = ReleaseOptions::once();
        let release = if clean {
            node.clean(&policy, &once).unwrap().release.unwrap()
        } else {
            node.release(&Filter::vnis([vni(1024)]), &once)
        };
        assert_eq!(release.services[0].outcome, Outcome::AlreadyGone);
        let left = user_services(&mock);
        assert_eq!(left.len(), 1, "clean: {clean}");
        assert_eq!(left[0].1.vnis().to_string(), "2000");
    }
}

#[test]
fn an_id_that_is_another_jobs_after_a_failure_means_that_the_service_is_gone() {
    let mock = mock(1);
    allocate(&node(&mock), job(1000, 1024));
    let refused = Some(Errno::ENOMEM);
    let node = before(&mock, Opcode::SVC_DESTROY, taken_over(&mock), refused);
    let release = node.release(&Filter::vnis([vni(1024)]), &ReleaseOptions::once());
    assert_eq!(release.services[0].outcome, Outcome::AlreadyGone);
    assert_eq!(user_services(&mock).len(), 1);
}
