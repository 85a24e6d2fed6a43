//! Runs programs on a served node, where this machine can serve one.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

mod server;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

pub use server::*;

/// Longest time of a test, unless tests run at full length.
pub const LIMIT: Duration = Duration::from_secs(600);

/// Leaves a test if no node can be served here, or one of more conditions does not hold, and ends
/// the program if the test hangs.
#[macro_export]
macro_rules! need_node {
    ($($condition:expr),*) => {
        if !(node::possible() $(&& $condition)*) {
            return;
        }
        let _limit = node::limit(node::LIMIT);
    };
}

/// Returns whether a program is installed; reports it if not.
pub fn has(program: &str) -> bool {
    let here = Command::new(program).arg("--version").output().is_ok();
    if !here {
        skip(&format!("there is no {program}"));
    }
    here
}

/// Returns whether this process is root; if not, reports what only root can do.
pub fn root(only: &str) -> bool {
    if !is_root() {
        skip(&format!("only root can {only}"));
    }
    is_root()
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

/// Ends this program and its children, with the name of the test, if the test takes longer: until
/// what is returned is dropped.
pub fn limit(longest: Duration) -> Sender<()> {
    let (running, ended) = channel();
    let test = thread::current().name().unwrap_or("a test").to_owned();
    let limit = longest + soak_length(0);
    thread::spawn(move || {
        if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            let _ = writeln!(std::io::stderr(), "{test} takes longer than {limit:?}");
            for child in children(std::process::id()) {
                kill("KILL", child);
            }
            std::process::abort();
        }
    });
    running
}

/// The command `cxi-mock`.
pub const SERVER: &str = env!("CARGO_BIN_EXE_mock-server");
/// A program for a node.
pub const CLIENT: &str = env!("CARGO_BIN_EXE_mock-client");
/// The first device of a node.
pub const DEVICE: &str = "/dev/cxi0";
/// Options by which all users may use the default service.
pub const OPEN: [&str; 2] = ["--set", "disable_default_svc=0"];

/// Runs a shell script on its own node and returns what it printed.
pub fn script(options: &[&str], script: &str) -> String {
    let output = server(["run"])
        .args(options)
        .args(["--", "sh", "-euc", script])
        .env("SERVER", SERVER)
        .env("CLIENT", CLIENT)
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

/// A directory that is removed at the end of the test.
#[derive(Debug)]
pub struct Directory(TempDir);

impl Directory {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file and returns its path.
    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.join(name);
        fs::write(&path, text).expect("the file can be written");
        path
    }

    pub fn join(&self, name: &str) -> String {
        self.path().join(name).display().to_string()
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
            shell.args(["-euc", &script, "sh", SERVER, "serve", "--dir", dir]).args(options);
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
        ["cxi0", "cxi1"].map(|device| printed(&self.enter(&[CLIENT, "nid", device])))
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

/// Returns whether the tests are to run at full length.
pub fn full() -> bool {
    std::env::var_os("CXI_TEST_FULL").is_some_and(|value| !value.is_empty())
}

/// Returns the length of a soak: `CXI_TEST_SECONDS`, ten minutes at full length, or as many
/// seconds.
pub fn soak_length(seconds: u64) -> Duration {
    let said = std::env::var("CXI_TEST_SECONDS").ok();
    let said = said.map(|text| text.parse().expect("CXI_TEST_SECONDS is a number"));
    Duration::from_secs(said.unwrap_or(if full() { 600 } else { seconds }))
}

/// Returns whether this process is root.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// Pseudorandom numbers that are the same in each run.
pub struct Random(pub u32);

impl Random {
    /// The next one.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) as usize % end
    }
}
