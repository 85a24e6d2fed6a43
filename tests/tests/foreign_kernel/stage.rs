//! Tries calls, and checks what must be true afterward.

use std::sync::Arc;

use cxi::ServiceId;
use cxi_ioctl::{DriverRelease, Errno, Exchange, Fault, Faulty, Opcode, Record};
use cxi_mock::{Nic, NicState};
pub(crate) use cxi_test_kit::{full, nic};
use cxi_tests::calls::{self, Call};
pub(crate) use cxi_tests::stage::{DEVICE, Stage, Value, block, shown, vni};

use crate::twist::{Twist, Twisted};

/// Plan of the faults once a call has been made.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    /// Nothing.
    Fine,
    /// Commands fail.
    Fail(Fault),
    /// The answers to a command differ.
    Twist(Opcode, Twist),
    /// Windows of device memory cannot be mapped.
    Windows(Errno),
}

/// The outcome of a call.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) result: cxi::Result<Value>,
    /// The commands that the call and the end of its handles sent.
    pub(crate) log: Vec<Exchange>,
    /// Services that exist now, and did not before.
    pub(crate) made: Vec<ServiceId>,
    /// `true` if the NIC is as before while the file is still open, new services aside.
    pub(crate) clean: bool,
}

/// Releases that differ in what calls send, or all of them.
pub(crate) fn releases() -> &'static [DriverRelease] {
    if full() {
        &DriverRelease::ALL
    } else {
        &[DriverRelease::Shs13_0, DriverRelease::Shs14_0_1, DriverRelease::Main2026_07]
    }
}

/// Each call on each release that can do it, with what comes of it when nothing goes wrong.
pub(crate) fn each_call(mut act: impl FnMut(DriverRelease, &Arc<Nic>, &Call, Run)) {
    for release in releases() {
        let nic = nic(*release);
        for call in calls::all() {
            if let Some(fine) = run(&nic, call, Plan::Fine) {
                act(*release, &nic, call, fine);
            }
        }
    }
}

/// Makes a call on a NIC, and gives the NIC back as it was. `None` if the release does not have
/// what the call needs.
pub(crate) fn run(nic: &Arc<Nic>, call: &Call, plan: Plan) -> Option<Run> {
    if !(call.possible)(nic.config().release) {
        return None;
    }
    let (before, hazards) = (nic.state(), nic.hazards());
    let keeps_numbers = !matches!(plan, Plan::Twist(..));
    let fault = Arc::new(Faulty::new(Arc::new(Twisted::new(nic.root().unwrap()))));
    let record = Arc::new(Record::new(Arc::clone(&fault)));
    let earlier = Arc::clone(&record);
    let file: Arc<Record<_>> = Arc::clone(&record);
    let stage = Stage::new(nic, file, move || {
        let _before = earlier.take();
        let twisted = fault.inner();
        match &plan {
            Plan::Fine => {}
            Plan::Fail(injection) => fault.inject(injection.clone()),
            Plan::Twist(opcode, twist) => twisted.plan(*opcode, twist.clone()),
            Plan::Windows(errno) => twisted.refuse_windows(*errno),
        }
    });
    let result = (call.act)(&stage);
    let mut log = record.take().exchanges;
    log.retain(|sent| sent.opcode().is_some());
    let made = stage.made();
    let clean = no_objects(&nic.state());
    // The file closes with the stage: what handles could not give back is free then.
    drop(record);
    stage.end();
    while nic.tick() {}
    assert_eq!(nic.state(), before, "{}: the NIC is not as it was", call.name);
    if keeps_numbers {
        assert_eq!(nic.hazards(), hazards, "{}: a hazard", call.name);
    }
    Some(Run { result, log, made, clean })
}

fn no_objects(state: &NicState) -> bool {
    state.stats == cxi_mock::ObjectCounts::default() && state.rgids.is_empty()
}
