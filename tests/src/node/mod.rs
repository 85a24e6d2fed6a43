//! Programs on a served node, where this machine can serve one.
#![allow(clippy::missing_panics_doc, reason = "tests panic")]

mod limit;
mod server;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use cxi_test_kit::{Directory, full};
use serde_json::Value;

pub use crate::need_node;
pub use limit::limit;
pub use server::*;

/// Leaves a test if no node can be served here as files, or one of more conditions does not hold.
#[macro_export]
macro_rules! need_node {
    ($($condition:expr),*) => {
        if !($crate::node::possible() $(&& $condition)*) {
            return;
        }
    };
}

/// The standard error of a program.
pub fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The lines that programs printed, sorted, because the order of nodes varies.
#[track_caller]
pub fn sorted(output: &Output) -> Vec<String> {
    let mut lines: Vec<_> = printed(output).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Expects that the server refused something with this reason.
#[track_caller]
pub fn refused(output: &Output, why: &str) {
    let text = errors(output);
    assert_eq!(output.status.code(), Some(125), "{text}");
    assert!(text.contains(why), "{text}");
}

/// The first device of a node.
pub const DEVICE: &str = "/dev/cxi0";
/// Options by which all users may use the default service.
pub const OPEN: [&str; 2] = ["--set", "disable_default_svc=0"];

/// Runs a shell script on its own node and returns what it printed.
pub fn script(options: &[&str], script: &str) -> String {
    let output = server(["run"])
        .args(options)
        .args(["--", "sh", "-euc", script])
        .env("SERVER", cxi_mock())
        .env("CLIENT", client())
        .run();
    printed(&output)
}

/// Programs that can be started.
pub trait Run {
    /// Runs it to its end.
    fn run(&mut self) -> Output;

    /// Starts it, with a pipe for its output.
    fn start(&mut self) -> Child;
}

impl Run for Command {
    fn run(&mut self) -> Output {
        self.output().expect("the program runs")
    }

    fn start(&mut self) -> Child {
        let started = self.stdout(Stdio::piped()).spawn();
        started.expect("the program runs")
    }
}

/// A node that is served as long as this exists.
#[derive(Debug)]
pub struct Served {
    process: Child,
    directory: Directory,
}

impl Served {
    /// Starts a node and waits until it answers.
    pub fn start(options: &[&str]) -> Self {
        Self::with("serve", options)
    }

    /// Starts a cluster and waits until it answers.
    pub fn cluster(options: &[&str]) -> Self {
        Self::with("cluster", options)
    }

    fn with(command: &str, options: &[&str]) -> Self {
        Self::of(|dir| {
            let mut server = server([command, "--dir", dir]);
            server.args(options);
            server
        })
    }

    /// Starts a node below a shell that runs a script first.
    pub fn after(script: &str) -> Self {
        Self::after_with(script, &[])
    }

    /// As [`after`](Self::after), with options for the node.
    pub fn after_with(script: &str, options: &[&str]) -> Self {
        Self::of(|dir| {
            let script = format!("{script}; exec \"$@\"");
            let mut shell = Command::new("sh");
            shell.args(["-euc", &script, "sh", cxi_mock(), "serve", "--dir", dir]).args(options);
            shell
        })
    }

    fn of(make: impl FnOnce(&str) -> Command) -> Self {
        let directory = Directory::new();
        let process =
            make(&directory.join("node")).stdin(Stdio::null()).spawn().expect("the server runs");
        let node = Self { process, directory };
        let deadline = Instant::now() + Duration::from_secs(20);
        while !node.ctl(&["state"]).status.success() {
            assert!(Instant::now() < deadline, "the node does not answer");
            sleep(Duration::from_millis(10));
        }
        node
    }

    /// The directory of the node.
    pub fn dir(&self) -> String {
        self.directory.join("node")
    }

    /// Runs `cxi-mock ctl`.
    pub fn ctl(&self, order: &[&str]) -> Output {
        server(["ctl", "--dir", &self.dir()]).args(order).run()
    }

    /// Runs `cxi-mock ctl`, which must succeed.
    pub fn order(&self, order: &[&str]) {
        let output = self.ctl(order);
        assert!(output.status.success(), "{output:?}");
    }

    /// The state of all NICs.
    pub fn nics(&self) -> Vec<Value> {
        let nics = self.state_of(&[])["nics"].clone();
        nics.as_array().expect("a list").clone()
    }

    /// The state of the first NIC.
    pub fn nic(&self) -> Value {
        self.nics().swap_remove(0)
    }

    /// The accounting of the first NIC's driver.
    pub fn state(&self) -> Value {
        self.nic()["state"].clone()
    }

    /// The addresses of the first two NICs.
    pub fn nids(&self) -> [String; 2] {
        ["cxi0", "cxi1"].map(|device| printed(&self.enter(&[client(), "nid", device])))
    }

    /// Returns whether nothing but services is left on any NIC.
    pub fn is_idle(&self) -> bool {
        self.nics().iter().all(|nic| {
            let counts = nic["state"]["stats"].as_object().expect("an object");
            counts.values().all(|count| count == 0)
        })
    }

    /// A program on the node, not started yet.
    pub fn command(&self, program: &[&str]) -> Command {
        let mut command = server(["enter", "--dir", &self.dir(), "--"]);
        command.args(program);
        command
    }

    /// A program on a node of the cluster, not started yet.
    pub fn command_on(&self, node: &str, program: &[&str]) -> Command {
        let mut command = server(["enter", "--dir", &self.dir(), "--node", node, "--"]);
        command.args(program);
        command
    }

    /// Runs a program on a node of the cluster.
    pub fn on(&self, node: &str, program: &[&str]) -> Output {
        self.command_on(node, program).run()
    }

    /// The state of a node, or of the whole cluster.
    pub fn state_of(&self, node: &[&str]) -> Value {
        let order = [node, &["state"]].concat();
        serde_json::from_str(&printed(&self.ctl(&order))).expect("the state is JSON")
    }

    /// Runs a program on the node.
    pub fn enter(&self, program: &[&str]) -> Output {
        self.command(program).run()
    }

    /// The process that serves.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Ends the node with a signal and returns how it ended.
    pub fn end(&mut self, signal: &str) -> ExitStatus {
        kill(signal, self.pid());
        self.process.wait().expect("the server ends")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Not killed, so that it cleans up, and writes what it covered where that is measured.
        kill("TERM", self.pid());
        let _ = self.process.wait();
    }
}

/// The lines of a file of JSON.
pub fn json_lines(file: &str) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("the file is there");
    let line = |line| serde_json::from_str(line).expect("a line is JSON");
    text.lines().map(line).collect()
}

/// Waits until a program has printed `ready`.
pub fn wait_ready(program: &mut Child) {
    let output = BufReader::new(program.stdout.take().expect("a pipe"));
    let mut lines = output.lines().map(|line| line.expect("text"));
    assert!(lines.any(|line| line == "ready"), "it ends before it is ready");
}

/// Sends a signal to a process.
pub fn kill(signal: &str, pid: u32) {
    let status = Command::new("kill")
        .args([&format!("-{signal}"), &pid.to_string()])
        .stderr(Stdio::null())
        .status();
    status.expect("kill runs");
}

/// The children of a process.
pub fn children(pid: u32) -> Vec<u32> {
    processes().into_iter().filter(|child| parent(*child) == Some(pid)).collect()
}

/// All processes whose command line has that word.
pub fn with_argument(word: &str) -> Vec<u32> {
    processes()
        .into_iter()
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| line.split(|byte| *byte == 0).any(|w| w == word.as_bytes()))
        })
        .collect()
}

fn processes() -> Vec<u32> {
    fs::read_dir("/proc")
        .expect("proc is mounted")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// Waits until a condition holds.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        sleep(Duration::from_millis(5));
    }
}

/// Returns the length of a soak: `CXI_TEST_SECONDS`, ten minutes at full length, or as many
/// seconds.
pub fn soak_length(seconds: u64) -> Duration {
    let said = std::env::var("CXI_TEST_SECONDS").ok();
    let said = said.map(|text| text.parse().expect("CXI_TEST_SECONDS is a number"));
    Duration::from_secs(said.unwrap_or(if full() { 600 } else { seconds }))
}
