//! NICs are served at the same time.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use cxi::Device;
use cxi_ioctl::{Errno, Mapping, Opcode, Request, Transport};
use cxi_job::{Filter, Node, ReleaseOptions, ReleaseStatus};
use cxi_mock::InProcess;

use crate::support::{cxi, job, mock, open, user_services, vni};

const NICS: usize = 8;

/// Lets a command through when all NICs have got one.
#[derive(Debug, Default)]
struct Meeting {
    arrived: Mutex<usize>,
    all_here: Condvar,
}

#[derive(Debug)]
struct Meets {
    inner: InProcess,
    at: Opcode,
    meeting: Arc<Meeting>,
}

impl Transport for Meets {
    fn submit(&self, request: Request<'_>) -> Result<(), Errno> {
        if request.opcode() == self.at {
            let mut arrived = self.meeting.arrived.lock().unwrap();
            *arrived += 1;
            self.meeting.all_here.notify_all();
            let patience = Duration::from_secs(30);
            let met = &self.meeting.all_here;
            let wait = met.wait_timeout_while(arrived, patience, |arrived| *arrived < NICS);
            let timed_out = wait.unwrap().1.timed_out();
            if timed_out {
                return Err(Errno::ETIMEDOUT);
            }
        }
        self.inner.submit(request)
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        self.inner.map(offset, len)
    }
}

fn meeting(mock: &cxi_mock::MockNode, at: Opcode) -> Node {
    let meeting = Arc::new(Meeting::default());
    let devices = mock.nics().iter().zip(0..).map(|(nic, number)| {
        let transport = Meets {
            inner: open(nic),
            at,
            meeting: Arc::clone(&meeting),
        };
        Device::with_transport(cxi(number), Arc::new(transport))
    });
    Node::from_devices(devices)
}

#[test]
fn all_nics_get_their_command_before_any_is_answered() {
    let mock = mock(8);
    let request = job(1000, 1024).build().unwrap();
    let node = meeting(&mock, Opcode::SVC_ALLOC);
    node.allocate(&request)
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(user_services(&mock).len(), NICS);
    let node = meeting(&mock, Opcode::SVC_DESTROY);
    let release = node.release(&Filter::vnis([vni(1024)]), &ReleaseOptions::once());
    assert_eq!(release.status(), ReleaseStatus::Done, "{release}");
}
