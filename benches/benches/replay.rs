//! Replaying a recorded scenario, as the tests do with all of them, beside the same bytes given to
//! the mock with nobody who encodes, decodes and compares.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use cxi_benches::{nic, run};
use cxi_ioctl::{DriverRelease, Errno};
use cxi_mock::{CallerMemory, Client, Credentials, Nic, NicConfig};
use cxi_tests::device::{Device, LoadFailure, Report};
use cxi_tests::mock::InProcess;
use cxi_tests::report::Outcome;
use cxi_tests::scenario::{Scenario, Setup};
use cxi_tests::{archive, run as runner};

/// 62 commands of 26 kinds, and the accounting between them.
const SCENARIO: &str = "shs-14.0.1/rand_00140.json";

/// What reaches a device.
enum Act {
    Open(usize),
    Write(usize, Credentials, Vec<u8>),
    Close(usize),
}

static ACTS: Mutex<Vec<Act>> = Mutex::new(Vec::new());
static FILES: AtomicUsize = AtomicUsize::new(0);

fn note(act: Act) {
    ACTS.lock().expect("nobody panicked").push(act);
}

/// The mock, with a note of what reaches it.
struct Noted(InProcess);

struct File {
    number: usize,
    client: Client,
}

impl Drop for File {
    fn drop(&mut self) {
        note(Act::Close(self.number));
    }
}

impl Device for Noted {
    type File = File;

    fn load(release: DriverRelease, setup: &Setup) -> Result<Self, LoadFailure> {
        InProcess::load(release, setup).map(Self)
    }

    fn open(&self, caller: &Credentials, virtual_function: bool) -> Result<File, Errno> {
        let client = self.0.open(caller, virtual_function)?;
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        note(Act::Open(number));
        Ok(File { number, client })
    }

    fn write(
        &self,
        file: &File,
        caller: &Credentials,
        command: &[u8],
        memory: &mut dyn CallerMemory,
    ) -> Result<usize, Errno> {
        note(Act::Write(file.number, caller.clone(), command.to_vec()));
        self.0.write(&file.client, caller, command, memory)
    }

    fn tick(&self) -> bool {
        self.0.tick()
    }

    fn report(&self, report: Report) -> Result<(), String> {
        self.0.report(report)
    }

    fn state(&self) -> Result<serde_json::Value, String> {
        self.0.state()
    }
}

/// Takes whatever is written.
struct Sink([u8; 256]);

impl CallerMemory for Sink {
    fn respond(&mut self, response: &[u8]) -> Result<(), Errno> {
        self.0[..response.len()].copy_from_slice(response);
        Ok(())
    }

    fn read_response(&mut self, bytes: &mut [u8]) -> Result<(), Errno> {
        bytes.fill(0);
        Ok(())
    }

    fn write_list(&mut self, _list: &[u8]) -> Result<(), Errno> {
        Ok(())
    }
}

fn dispatch(release: DriverRelease, acts: &[Act]) -> usize {
    let nic = Nic::new(NicConfig::new().release(release)).expect("a mock");
    let mut files = Vec::new();
    let mut memory = Sink([0; 256]);
    let mut done = 0;
    for act in acts {
        match act {
            Act::Open(number) => {
                files.resize_with((*number + 1).max(files.len()), || None);
                files[*number] = Some(nic.open().expect("an open file"));
            }
            Act::Write(number, caller, command) => {
                let file = files[*number].as_ref().expect("an open file");
                done += usize::from(file.write(caller, command, &mut memory).is_ok());
            }
            Act::Close(number) => files[*number] = None,
        }
    }
    done
}

fn replay(criterion: &mut Criterion) {
    if nic::only_on_a_mock("replay") {
        return;
    }
    let files = archive::packed().expect("the scenarios");
    let file = files.iter().find(|file| file.path == SCENARIO);
    let scenario = Scenario::parse(&file.expect("the scenario").json).expect("a scenario");
    let passed = |outcome| assert!(matches!(outcome, Outcome::Passed), "{outcome:?}");
    passed(runner::run::<Noted>(&scenario));
    let acts = std::mem::take(&mut *ACTS.lock().expect("nobody panicked"));
    let writes = acts.iter().filter(|act| matches!(act, Act::Write(..)));
    let commands = writes.count() as u64;
    assert!(dispatch(scenario.driver, &acts) > 0, "no command worked");

    let mut group = criterion.benchmark_group("replay");
    group.throughput(Throughput::Elements(commands));
    group.bench_function("dispatch", |bencher| {
        bencher.iter(|| dispatch(scenario.driver, &acts));
    });
    group.bench_function("scenario", |bencher| {
        bencher.iter(|| passed(runner::run::<InProcess>(&scenario)));
    });
    group.finish();
}

criterion_group!(name = benches; config = run::criterion(); targets = replay);
criterion_main!(benches);
