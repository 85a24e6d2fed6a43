//! Any bytes as commands to the mock, of any release, by any caller, from several open files.

use cxi_ioctl::abi::service::SvcDestroyCmd;
use cxi_ioctl::{DriverRelease, Errno, Opcode, RequestLen};
use cxi_mock::{CallerMemory, Client, Credentials, Nic, NicConfig};
use zerocopy::IntoBytes;

use cxi_tests::device::Report;
use cxi_tests::sequence::operation::{self, Operation};

use crate::input::Input;
use crate::sequence;

/// Files that are open at once.
const FILES: usize = 8;

/// The longest sequence to which a step is added.
const LONGEST: usize = 4096;

/// Network namespaces: that of the machine and another.
const NETNS: [u32; 2] = [4_026_531_840, 4_026_532_000];
const UIDS: [u32; 4] = [0, 1000, 1001, 65534];
const GIDS: [u32; 4] = [0, 100, 1000, 65534];

/// Caller, in one byte.
#[derive(Clone, Copy, Debug)]
struct Caller(u8);

impl Caller {
    /// The one that is closest to a caller of the model.
    fn like(who: &operation::Caller) -> Self {
        let index = |table: [u32; 4], id: u32| {
            let index = table.iter().position(|known| *known == id);
            u8::try_from(index.unwrap_or(1)).unwrap_or(1)
        };
        let other_netns = who.netns != NETNS[0];
        Self(
            index(UIDS, who.uid)
                | index(GIDS, who.gid) << 2
                | u8::from(who.admin) << 4
                | u8::from(who.admin) << 5
                | u8::from(other_netns) << 6,
        )
    }

    fn credentials(self) -> Credentials {
        let index = |shift: u8| usize::from(self.0 >> shift & 3);
        let mut who = Credentials::user(UIDS[index(0)], GIDS[index(2)]);
        who.sys_admin = self.0 & 16 != 0;
        who.net_raw = self.0 & 32 != 0;
        who.netns = NETNS[usize::from(self.0 >> 6 & 1)];
        who
    }
}

/// Step of a sequence.
#[derive(Debug)]
enum Step<'a> {
    /// A file is opened.
    Open {
        /// Of the virtual function.
        virtual_function: bool,
    },
    /// A file is closed.
    Close {
        /// Number of the file.
        file: u8,
    },
    /// The cleanup runs.
    Tick,
    /// The hardware has commands of a queue in flight.
    InFlight {
        /// The queue.
        index: u32,
        /// Number of entries.
        value: u32,
    },
    /// A command is written.
    Command {
        /// To which file.
        file: u8,
        /// By whom.
        caller: Caller,
        /// Its bytes.
        command: &'a [u8],
    },
}

/// Begins a sequence.
fn header(release: DriverRelease, input: &mut Vec<u8>) {
    let index = DriverRelease::ALL.iter().position(|known| *known == release);
    input.push(u8::try_from(index.unwrap_or(0)).unwrap_or(0));
}

impl Step<'_> {
    /// Adds it to an input.
    fn write(&self, input: &mut Vec<u8>) {
        let low = |number: u32| u8::try_from(number & 0xFF).unwrap_or(0);
        match self {
            Self::Open { virtual_function } => input.push(u8::from(*virtual_function)),
            Self::Close { file } => input.extend([2, *file]),
            Self::Tick => input.push(3),
            Self::InFlight { index, value } => {
                input.extend([4, low(*index), low(*index >> 8), low(*value)]);
            }
            Self::Command { file, caller, command } => {
                // As long as the release expects: zeros at the end need not be stored.
                let end = command[4..].iter().rposition(|byte| *byte != 0);
                let rest = &command[4..][..end.map_or(0, |last| last + 1)];
                let len = u8::try_from(rest.len()).expect("a short command");
                input.extend([5, *file, caller.0, command[0], len]);
                input.extend(rest);
            }
        }
    }
}

/// Memory that takes everything.
#[derive(Debug, Default)]
struct Memory {
    written: usize,
}

impl CallerMemory for Memory {
    fn respond(&mut self, response: &[u8]) -> Result<(), Errno> {
        self.written += response.len();
        Ok(())
    }

    fn read_response(&mut self, bytes: &mut [u8]) -> Result<(), Errno> {
        bytes.fill(0xFF);
        Ok(())
    }

    fn write_list(&mut self, list: &[u8]) -> Result<(), Errno> {
        self.written += list.len();
        Ok(())
    }
}

/// The length that a release expects of a command.
fn wanted_len(opcode: u8, release: DriverRelease) -> usize {
    match Opcode::from_number(opcode.into()).request_len(release) {
        Some(RequestLen::Exact(len) | RequestLen::AtLeast(len)) => len,
        _ => 16,
    }
}

/// The next command: of the length that is wanted (kind 5), or of any.
fn command(kind: u8, release: DriverRelease, input: &mut Input<'_>) -> Vec<u8> {
    let (len, mut command) = if kind == 5 {
        let opcode = input.byte();
        let mut command = u32::from(opcode).to_ne_bytes().to_vec();
        command.extend_from_slice(input.block());
        (wanted_len(opcode, release), command)
    } else {
        let (len, stored) = (input.u16(), input.u16());
        (len.into(), input.take(stored.into()).to_vec())
    };
    command.resize(len, 0);
    command
}

/// First the release, then steps.
///
/// # Panics
///
/// When the NIC's accounting is off, on the way or in the end.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let release = input.choose(&DriverRelease::ALL);
    let config = NicConfig::new().release(release).virtual_functions(1);
    let nic = Nic::new(config).expect("a NIC with default parameters");
    let start = held(&nic);
    let mut files: [Option<Client>; FILES] = [const { None }; FILES];
    let mut opened = 0;
    while !input.is_empty() {
        match input.byte() % 7 {
            kind @ (0 | 1) => {
                let file = if kind == 0 { nic.open() } else { nic.open_vf(0) };
                files[opened % FILES] = Some(file.expect("a NIC that is there"));
                opened += 1;
            }
            2 => files[usize::from(input.byte()) % FILES] = None,
            3 => drop(nic.tick()),
            4 => {
                let (index, value) = (input.u16(), input.byte());
                let _ = nic.hardware().set_txq_in_flight(index.into(), value.into());
            }
            kind => {
                let (file, caller) = (input.byte(), Caller(input.byte()));
                let command = command(kind, release, &mut input);
                let mut memory = Memory::default();
                if let Some(file) = &files[usize::from(file) % FILES] {
                    let written = file.write(&caller.credentials(), &command, &mut memory);
                    if let Ok(written) = written {
                        assert_eq!(written, command.len(), "a command is taken whole");
                    }
                    check(&nic);
                }
            }
        }
    }
    files = [const { None }; FILES];
    drop(files);
    ended(&nic, &start);
}

/// Everything is closed: nothing below an LNI is left. Every service that can be is destroyed: all
/// that was reserved is given back, unless a real driver would have been damaged.
fn ended(nic: &std::sync::Arc<Nic>, start: &Held) {
    for queue in 0..1024 {
        let _ = nic.hardware().set_txq_in_flight(queue, 0);
    }
    nic.tick();
    let state = nic.state();
    let counted = &state.stats;
    let objects = [
        counted.lni,
        counted.domain,
        counted.eq,
        counted.txq,
        counted.tgq,
        counted.pt,
        counted.ct,
        counted.ac,
        counted.md,
    ];
    assert_eq!(objects, [0; 9], "objects of files that are closed");
    if !nic.hazards().is_empty() {
        return;
    }
    let file = nic.open().expect("a NIC that is there");
    for group in &state.rgroups {
        let destroy = SvcDestroyCmd::of(group.id);
        let _ = file.write(&Credentials::root(), destroy.as_bytes(), &mut Memory::default());
    }
    drop(file);
    if nic.state().rgroups.len() == 1 && nic.hazards().is_empty() {
        assert_eq!(start, &held(nic), "everything was given back");
    }
}

/// Name, reserved and shared units in use of each resource.
type Held = Vec<(String, u32, u32)>;

fn held(nic: &Nic) -> Held {
    let state = nic.state();
    state
        .resources
        .iter()
        .map(|(name, resource)| (name.to_string(), resource.reserved, resource.shared_use))
        .collect()
}

fn check(nic: &Nic) {
    for (name, resource) in &nic.state().resources {
        assert_eq!(
            resource.reserved + resource.shared,
            resource.max,
            "{name}: reserved and shared are all there is"
        );
    }
}

/// Returns the sequences of the model, and every command there is, without anything in it.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let choices = sequence::seeds();
    let releases = DriverRelease::ALL.iter().cycle();
    let modeled = choices.iter().zip(releases);
    let mut seeds: Vec<_> = modeled.map(|(it, release)| of_model(it, *release)).collect();
    seeds.extend(DriverRelease::ALL.map(every_command));
    seeds
}

/// A sequence of the model, sent to a release.
fn of_model(choices: &[u8], release: DriverRelease) -> Vec<u8> {
    let mut input = Vec::new();
    header(release, &mut input);
    // The number of the file that is in a slot of the model.
    let (mut files, mut opened) = ([0; FILES], 0);
    for step in sequence::steps(choices) {
        if input.len() > LONGEST {
            break;
        }
        let command;
        let step = match &step {
            Operation::Open { file } => {
                files[*file] = opened;
                opened += 1;
                Step::Open { virtual_function: false }
            }
            Operation::Close { file } => Step::Close { file: files[*file] },
            Operation::Command { file, caller, command: it }
            | Operation::Fill { file, caller, command: it } => {
                command = it.request(release);
                Step::Command {
                    file: files[*file],
                    caller: Caller::like(caller),
                    command: &command,
                }
            }
            Operation::Report(Report::TxqInFlight { index, value }) => {
                Step::InFlight { index: *index, value: *value }
            }
            Operation::Tick => Step::Tick,
            Operation::Report(_) => continue,
        };
        step.write(&mut input);
    }
    input
}

fn every_command(release: DriverRelease) -> Vec<u8> {
    let mut input = Vec::new();
    header(release, &mut input);
    for virtual_function in [false, true] {
        Step::Open { virtual_function }.write(&mut input);
    }
    Step::InFlight { index: 1, value: 1 }.write(&mut input);
    let caller = Caller::like(&operation::Caller::ROOT);
    for info in Opcode::all() {
        for file in [0, 1] {
            let command = &info.opcode.number().to_le_bytes();
            Step::Command { file, caller, command }.write(&mut input);
        }
    }
    Step::Tick.write(&mut input);
    Step::Close { file: 0 }.write(&mut input);
    Step::Tick.write(&mut input);
    input
}
