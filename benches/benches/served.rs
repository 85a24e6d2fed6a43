//! A command through the served mock, next to a write to a FUSE file that does nothing: both are
//! served by separate processes.
//!
//! This program starts a node and runs itself on it; there it starts itself once more, to serve
//! the bare file.

#![allow(missing_docs, reason = "a benchmark has no users")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use criterion::{BenchmarkId, Criterion};
use cxi::{Device, DeviceId};
use cxi_benches::nic::Modest;
use cxi_benches::{bare, run};
use cxi_ioctl::abi::device::DevInfoGetCmd;
use cxi_ioctl::abi::service::{SvcGetCmd, SvcGetLprCmd, SvcSetLprCmd};
use cxi_ioctl::{CharDev, SafeCommand, execute};
use cxi_tests::fuse_file;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Part of this program: unset at the start; then one of the two below.
const PART: &str = "CXI_BENCH_SERVED";
const MEASURE: &str = "measure";
/// Followed by the directory to mount the bare file on.
const BARE: &str = "bare:";
/// Name of the bare file.
const BARE_FILE: &str = "bare";

fn main() -> ExitCode {
    let part = std::env::var(PART).unwrap_or_default();
    if let Some(directory) = part.strip_prefix(BARE) {
        return serve_bare(Path::new(directory));
    }
    if part == MEASURE {
        let mut criterion = run::criterion();
        measure(&mut criterion);
        criterion.final_summary();
        return ExitCode::SUCCESS;
    }
    stay_on_one_processor();
    run::on_a_node("served", &[], (PART, MEASURE))
}

/// Both servers and their client: how long another processor takes to wake up is not measured.
fn stay_on_one_processor() {
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this).unwrap_or_default();
    let first = (0..CpuSet::count()).find(|cpu| allowed.is_set(*cpu) == Ok(true));
    let mut one = CpuSet::new();
    if let Some(cpu) = first
        && one.set(cpu).is_ok()
    {
        // Refused, the figures are only noisier.
        let _ = sched_setaffinity(this, &one);
    }
}

/// Serves the bare file until its input ends.
fn serve_bare(directory: &Path) -> ExitCode {
    // It does nothing with what it takes: the round trip alone.
    let taken = |_, data: &[u8]| Ok(u32::try_from(data.len()).unwrap_or(u32::MAX));
    let mounted = match fuse_file::mount(directory, BARE_FILE, taken) {
        Ok(mounted) => mounted,
        Err(why) => {
            let _ = writeln!(std::io::stdout(), "{why}");
            return ExitCode::FAILURE;
        }
    };
    let _ = writeln!(std::io::stdout(), "ok");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    drop(mounted);
    ExitCode::SUCCESS
}

/// The process that serves the bare file; it ends when its input does.
struct Bare {
    process: Child,
    _directory: tempfile::TempDir,
}

impl Bare {
    fn start() -> Result<(Self, CharDev), String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let process = Command::new(program)
            .env(PART, format!("{BARE}{}", directory.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut process = process.map_err(|error| error.to_string())?;
        let mut line = String::new();
        if let Some(output) = process.stdout.take() {
            let read = BufReader::new(output).read_line(&mut line);
            read.map_err(|error| error.to_string())?;
        }
        let path = directory.path().join(BARE_FILE);
        let bare = Self { process, _directory: directory };
        if line.trim() != "ok" {
            return Err(line.trim().to_owned());
        }
        let file = CharDev::open(path).map_err(|error| error.to_string())?;
        Ok((bare, file))
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

fn measure(criterion: &mut Criterion) {
    let (_bare, bare) = match Bare::start() {
        Ok(bare) => bare,
        Err(why) => return run::skip("served", format_args!("no bare FUSE file: {why}")),
    };
    let device = Device::open(DeviceId::new(0)).expect("the NIC of the node");
    let made = Modest::create(&device, 1).expect("a service");
    let service = made.first().expect("a service").get();

    pair(criterion, &bare, &device, &DevInfoGetCmd::new());
    pair(criterion, &bare, &device, &SvcGetCmd::of(service));
    pair(criterion, &bare, &device, &SvcGetLprCmd::of(service));
    // Takes the privilege, and answers nothing.
    pair(criterion, &bare, &device, &SvcSetLprCmd::of(service, 1));
}

fn pair<C: SafeCommand>(criterion: &mut Criterion, file: &CharDev, device: &Device, command: &C) {
    let mut group = criterion.benchmark_group("served");
    group.bench_function(BenchmarkId::new("bare FUSE file", C::OPCODE), |bencher| {
        bencher.iter(|| bare::write(file, command).expect("a write"));
    });
    let transport = &**device.transport();
    group.bench_function(BenchmarkId::new("mock", C::OPCODE), |bencher| {
        bencher.iter(|| execute(transport, command).expect("an answer"));
    });
    group.finish();
}
