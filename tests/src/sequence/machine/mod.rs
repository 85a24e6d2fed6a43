//! The mock under test: every step is a command's bytes, every answer is checked, and after every
//! step the whole device is compared with the reference.

mod check;
mod send;

use std::sync::Arc;

use cxi_ioctl::DriverRelease;
use cxi_ioctl::abi::service::{SvcDestroyCmd, SvcEnableCmd};
use cxi_mock::{Client, Nic, NicConfig};
use proptest_state_machine::StateMachineTest;

use check::Snapshot;
use send::send;

use crate::device::Report;
use crate::mock::report_of;
use crate::sequence::model::{Answer, DEFAULT_SERVICE, FILES, FILL_LIMIT, Model};
use crate::sequence::operation::{Caller, Command, Operation};

#[derive(Debug)]
pub struct Machine {
    nic: Arc<Nic>,
    release: DriverRelease,
    files: [Option<Client>; FILES],
    /// Queries the device after every step.
    observer: Client,
    loaded: Snapshot,
    before: Snapshot,
}

impl StateMachineTest for Machine {
    type SystemUnderTest = Self;
    type Reference = Model;

    fn init_test(reference: &Model) -> Self {
        let nic = Nic::new(NicConfig::new().release(reference.release)).unwrap();
        let observer = nic.open().unwrap();
        let loaded = Snapshot::take(&nic, &observer);
        let mut machine = Self {
            nic,
            release: reference.release,
            files: [const { None }; FILES],
            observer,
            before: loaded.clone(),
            loaded,
        };
        for step in &reference.start {
            machine.perform(step);
        }
        machine.before = Snapshot::take(&machine.nic, &machine.observer);
        machine
    }

    fn apply(mut machine: Self, reference: &Model, operation: Operation) -> Self {
        let answer = machine.perform(&operation);
        assert_eq!(answer, reference.answer, "{operation:?}");
        let after = Snapshot::take(&machine.nic, &machine.observer);
        if failed(&reference.answer) && !reference.leaves_trace {
            assert_eq!(after, machine.before, "a refused command changed something: {operation:?}");
        }
        machine.before = after;
        machine
    }

    fn check_invariants(machine: &Self, reference: &Model) {
        machine.conservation(reference);
        machine.counts(reference);
        machine.lists(reference);
        machine.identifiers(reference);
    }

    /// Closes and destroys everything: the device is as it was.
    fn teardown(mut machine: Self, reference: Model) {
        machine.files = [const { None }; FILES];
        for queue in &reference.in_flight {
            report_of(&machine.nic, Report::in_flight(*queue, 0)).unwrap();
        }
        machine.nic.tick();
        for svc_id in reference.services.keys() {
            let command = if *svc_id == DEFAULT_SERVICE {
                Command::SvcEnable(SvcEnableCmd::of(*svc_id, 0))
            } else {
                Command::SvcDestroy(SvcDestroyCmd::of(*svc_id))
            };
            let answer = send(&machine.observer, machine.release, Caller::ROOT, &command);
            assert_eq!(answer, Answer::Ok, "{command:?}");
        }
        let end = Snapshot::take(&machine.nic, &machine.observer);
        assert_eq!(end.accounting(), machine.loaded.accounting());
    }
}

impl Machine {
    fn perform(&mut self, operation: &Operation) -> Answer {
        match operation {
            Operation::Open { file } => self.files[*file] = Some(self.nic.open().unwrap()),
            Operation::Close { file } => self.files[*file] = None,
            Operation::Command { file, caller, command } => {
                let client = self.files[*file].as_ref().unwrap();
                return send(client, self.release, *caller, command);
            }
            Operation::Fill { file, caller, command } => {
                let client = self.files[*file].as_ref().unwrap();
                return fill(client, self.release, *caller, command);
            }
            Operation::Tick => return Answer::Ran(self.nic.tick()),
            Operation::Report(report) => report_of(&self.nic, *report).unwrap(),
        }
        Answer::Ok
    }
}

fn fill(client: &Client, release: DriverRelease, caller: Caller, command: &Command) -> Answer {
    for done in 0..FILL_LIMIT {
        if let Answer::Failed(errno) = send(client, release, caller, command) {
            return Answer::Filled(done, Some(errno));
        }
    }
    Answer::Filled(FILL_LIMIT, None)
}

fn failed(answer: &Answer) -> bool {
    match answer {
        Answer::Failed(_) | Answer::Filled(0, _) => true,
        Answer::Allocated(result, _) | Answer::Updated(result) => result.is_err(),
        Answer::Ok | Answer::Values(_) | Answer::Filled(..) | Answer::Ran(_) => false,
    }
}
