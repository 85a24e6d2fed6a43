//! A benchmark that is killed or terminated on a NIC leaves no service behind, and takes none of
//! others.
//!
//! This program starts a node and runs itself on it. There it starts itself as a benchmark that
//! creates services, and ends that.
#![allow(clippy::print_stdout, reason = "the benchmark says when it is ready")]

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use cxi::{Device, DeviceId, ServiceSpec, Vni};
use cxi_benches::nic::{self, Modest, Workplace, device};
use cxi_benches::run;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const PART: &str = "CXI_BENCH_KILLED";
/// Longer than a cleanup takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    // The process that cleans up is this program, too.
    nic::keep_if_asked();
    match std::env::var(PART).as_deref() {
        Ok("judge") => judge(),
        Ok(_) => work(),
        Err(_) => return run::on_a_node("killed benchmarks", &[], (PART, "judge")),
    }
    ExitCode::SUCCESS
}

/// The benchmark.
fn work() {
    let _services = Modest::create(&device().expect("the NIC"), 3).expect("services");
    let _place = Workplace::new().expect("an LNI");
    println!("ready");
    std::thread::park();
}

fn judge() {
    let services = || {
        let device = Device::open(DeviceId::new(0)).expect("the NIC");
        device.services().list().expect("a list").len()
    };
    let before = services();
    // Not SIGINT: shells let what they start in the background ignore it.
    for signal in [Signal::SIGKILL, Signal::SIGTERM] {
        let mut benchmark = Command::new(std::env::current_exe().expect("this program"))
            .envs([(PART, "work"), ("CXI_BENCH_DEVICE", "cxi0")])
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program");
        let output = BufReader::new(benchmark.stdout.take().expect("a pipe"));
        let said = output.lines().next().expect("a line").expect("text");
        assert_eq!(said, "ready");
        assert_eq!(services(), before + 4);
        // A job that starts now, on a VNI that benchmarks use as well.
        let device = Device::open(DeviceId::new(0)).expect("the NIC");
        let job = ServiceSpec::builder().vni(Vni::new(64_300).expect("a VNI"));
        let job = job.build().expect("a specification");
        let job = device.services().create(&job).expect("a service");
        let pid = i32::try_from(benchmark.id()).expect("a process");
        kill(Pid::from_raw(pid), signal).expect("it runs");
        let status = benchmark.wait().expect("it ends");
        assert!(!status.success(), "{status}");
        let start = Instant::now();
        while services() > before + 1 {
            assert!(start.elapsed() < PATIENCE, "{signal}: services are left");
            std::thread::sleep(Duration::from_millis(5));
        }
        device.services().destroy(job).expect("it is still there");
    }
}
