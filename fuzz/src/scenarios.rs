//! What the recorded scenarios do, as inputs of the target `dispatch`.

use std::cell::RefCell;
use std::collections::HashSet;

use cxi_ioctl::{DriverRelease, Errno};
use cxi_mock::{CallerMemory, Credentials};
use cxi_tests::device::{Device, LoadFailure, Report};
use cxi_tests::mock::InProcess;
use cxi_tests::run::run;
use cxi_tests::scenario::{Scenario, Setup};
use cxi_tests::{archive, device};
use serde_json::Value;

use crate::dispatch::{Caller, Step, header};

/// Longest sequence that is taken.
const LONGEST: usize = 4096;

thread_local! {
    static SEEN: RefCell<Recorded> = RefCell::default();
}

#[derive(Debug, Default)]
struct Recorded {
    input: Vec<u8>,
    files: u8,
    /// What was asked and answered: a sequence with nothing new is not worth another input.
    answers: HashSet<(u8, u32, Option<Errno>)>,
    is_new: bool,
}

fn note(step: &Step<'_>) {
    SEEN.with_borrow_mut(|seen| {
        if seen.input.len() < LONGEST {
            step.write(&mut seen.input);
        }
    });
}

/// The mock, and a note of everything that is done with it.
#[derive(Debug)]
struct Recorder {
    mock: InProcess,
    release: DriverRelease,
}

#[derive(Debug)]
struct File {
    number: u8,
    file: <InProcess as Device>::File,
}

impl Drop for File {
    fn drop(&mut self) {
        note(&Step::Close { file: self.number });
    }
}

impl Device for Recorder {
    type File = File;

    fn load(release: DriverRelease, setup: &Setup) -> Result<Self, LoadFailure> {
        SEEN.with_borrow_mut(|seen| {
            seen.input.clear();
            seen.files = 0;
            seen.is_new = false;
            header(release, &mut seen.input);
        });
        let mock = InProcess::load(release, setup)?;
        Ok(Self { mock, release })
    }

    fn open(&self, caller: &Credentials, virtual_function: bool) -> Result<File, Errno> {
        let file = self.mock.open(caller, virtual_function)?;
        note(&Step::Open { virtual_function });
        let number = SEEN.with_borrow_mut(|seen| {
            seen.files += 1;
            seen.files - 1
        });
        Ok(File { number, file })
    }

    fn write(
        &self,
        file: &File,
        caller: &Credentials,
        command: &[u8],
        memory: &mut dyn CallerMemory,
    ) -> Result<usize, Errno> {
        note(&Step::Command {
            file: file.number,
            caller: Caller::like(caller),
            command,
        });
        let result = self.mock.write(&file.file, caller, command, memory);
        let opcode = command
            .first_chunk()
            .map_or(0, |bytes| u32::from_le_bytes(*bytes));
        SEEN.with_borrow_mut(|seen| {
            let release = self.release as u8;
            seen.is_new |= seen.answers.insert((release, opcode, result.err()));
        });
        result
    }

    fn tick(&self) -> bool {
        note(&Step::Tick);
        self.mock.tick()
    }

    fn report(&self, report: device::Report) -> Result<(), String> {
        if let Report::TxqInFlight { index, value } = report {
            note(&Step::InFlight { index, value });
        }
        self.mock.report(report)
    }

    fn state(&self) -> Result<Value, String> {
        self.mock.state()
    }
}

/// The sequences of the scenarios that meet an answer which those before did not meet.
///
/// # Panics
///
/// When the packed scenarios are damaged.
#[must_use]
pub fn sequences() -> Vec<Vec<u8>> {
    let mut files = archive::packed().unwrap_or_else(|error| panic!("{error}"));
    files.sort();
    let scenarios = files
        .iter()
        .filter_map(|file| Scenario::parse(&file.json).ok());
    SEEN.set(Recorded::default());
    scenarios
        .filter(|scenario| !scenario.operations().contains(&"FILL"))
        .filter_map(|scenario| {
            run::<Recorder>(&scenario);
            SEEN.with_borrow(|seen| {
                (seen.is_new && seen.input.len() < LONGEST).then(|| seen.input.clone())
            })
        })
        .collect()
}
