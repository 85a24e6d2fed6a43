//! Threads do everything at once on the NICs of a node: services, LNIs and all below them,
//! jobs, queries, faults that come and go. In the end every NIC is as it was.
//!
//! The numbers of threads and rounds bound the test, not time. `CXI_TEST_FULL=1` makes it long,
//! `CXI_TEST_ROUNDS` says how long.

#![allow(missing_docs, reason = "a test has no users")]

mod acts;
mod siblings;

use std::sync::atomic::{AtomicU64, Ordering};

use cxi::Device;
use cxi_ioctl::{DriverRelease, Errno, Opcode};
use cxi_job::Node;
use cxi_mock::{Fault, MockNode, NicConfig};
use cxi_test_kit::{devices, full};

use acts::{ACTS, Act};

const THREADS: u64 = 6;
const NICS: u8 = 2;

fn rounds() -> u64 {
    if let Some(rounds) = std::env::var("CXI_TEST_ROUNDS").ok().filter(|text| !text.is_empty()) {
        return rounds.parse().expect("CXI_TEST_ROUNDS is a number");
    }
    if full() { 4000 } else { 60 }
}

/// Objects that a thread works on: its own file on each NIC, and files that all threads share.
pub(crate) struct Place {
    pub(crate) own: Vec<Device>,
    pub(crate) shared: Vec<Device>,
    /// The thread, by which it has VNIs and users of its own.
    pub(crate) thread: u16,
    pub(crate) round: u64,
}

/// The errors that an act may get while faults come and go.
#[derive(Debug, Default)]
pub(crate) struct Met {
    done: AtomicU64,
    refused: AtomicU64,
}

impl Met {
    fn count(&self, act: &Act, result: cxi::Result<()>) {
        match result {
            Ok(()) => self.done.fetch_add(1, Ordering::Relaxed),
            Err(error) => {
                let expected = error.errno() == Errno::EAGAIN || (act.2)(&error);
                assert!(expected, "{}: {error}", act.0);
                self.refused.fetch_add(1, Ordering::Relaxed)
            }
        };
    }
}

/// Arms and disarms faults that do no lasting harm: EAGAIN for commands that only query.
fn disturb(mock: &MockNode, rounds: u64) {
    const ASKING: [Opcode; 4] =
        [Opcode::SVC_RSRC_LIST_GET, Opcode::DEV_INFO_GET, Opcode::INBOUND_WAIT, Opcode::PTE_STATUS];
    for round in 0..rounds {
        for (nic, opcode) in mock
            .nics()
            .iter()
            .zip(ASKING.iter().cycle().skip(usize::try_from(round).unwrap() % ASKING.len()))
        {
            nic.faults().inject(Fault::errno(Errno::EAGAIN).on(*opcode).times(2));
            std::thread::yield_now();
            let _state = nic.state();
            let _events = nic.hazards();
            if round % 8 == 7 {
                nic.faults().clear();
            }
        }
        let snapshot = mock.snapshot();
        let again = MockNode::restore(&snapshot).expect("a snapshot at any moment is whole");
        assert_eq!(again.snapshot(), snapshot);
    }
}

fn all_at_once(release: DriverRelease, rounds: u64) {
    let mock = MockNode::with_nics(NICS, &NicConfig::new().release(release)).unwrap();
    let before: Vec<_> = mock.nics().iter().map(|nic| nic.state()).collect();
    let shared = devices(&mock);
    let met = Met::default();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (mock, shared, met) = (&mock, &shared, &met);
            scope.spawn(move || {
                let mut place = Place {
                    own: devices(mock),
                    shared: shared.clone(),
                    thread: u16::try_from(thread).unwrap(),
                    round: 0,
                };
                for round in 0..rounds {
                    place.round = round;
                    // Each thread begins with another act, so that all pairs of acts overlap.
                    let start = thread * 5 + round;
                    for offset in 0..ACTS.len() as u64 {
                        let at = usize::try_from(start + offset * 7).unwrap() % ACTS.len();
                        let act = &ACTS[at];
                        met.count(act, (act.1)(&place));
                    }
                    if round % 4 == thread % 4 {
                        place.own = devices(mock);
                    }
                }
            });
        }
        scope.spawn(|| disturb(&mock, rounds));
    });
    drop(shared);
    for (nic, before) in mock.nics().iter().zip(before) {
        nic.faults().clear();
        while nic.tick() {}
        assert_eq!(nic.state(), before, "{release}");
        assert_eq!(nic.hazards(), [], "{release}");
    }
    let (done, refused) = (met.done.into_inner(), met.refused.into_inner());
    let acts = THREADS * rounds * ACTS.len() as u64;
    assert_eq!(done + refused, acts);
    assert!(done > acts / 2, "{release}: {done} of {acts} acts were done");
}

#[test]
fn everything_at_once_on_the_newest_driver() {
    all_at_once(DriverRelease::Main2026_07, rounds());
}

#[test]
fn everything_at_once_on_a_driver_that_shares_no_vnis() {
    all_at_once(DriverRelease::Shs14_0_0, rounds() / 2);
}

#[test]
fn jobs_on_all_nics_from_several_threads() {
    let mock = cxi_test_kit::node(4);
    let before: Vec<_> = mock.nics().iter().map(|nic| nic.state()).collect();
    let node = Node::from_devices(devices(&mock));
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let node = &node;
            scope.spawn(move || {
                for round in 0..rounds() {
                    acts::job(node, thread, round);
                }
            });
        }
    });
    assert!(acts::job(&node, 0, 0), "nothing is in the way any more");
    drop(node);
    let after: Vec<_> = mock.nics().iter().map(|nic| nic.state()).collect();
    assert_eq!(after, before);
}
