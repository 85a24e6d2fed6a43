//! Runs programs on a served node, where this machine can serve one.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The command `cxi-mock`.
pub const SERVER: &str = env!("CARGO_BIN_EXE_mock-server");
/// A program for a node.
pub const CLIENT: &str = env!("CARGO_BIN_EXE_mock-client");
/// The first device of a node.
pub const DEVICE: &str = "/dev/cxi0";

/// Exit status of a server where the machine lacks something.
const MISSING: i32 = 77;

/// Says past the test harness that a test cannot be done here.
pub fn skip(why: &str) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test").to_owned();
    let _ = writeln!(std::io::stderr(), "SKIPPED {name}: {why}");
}

/// Whether a node can be served here; says why not.
pub fn possible() -> bool {
    let output = server(["run", "--", "true"])
        .output()
        .expect("the server runs");
    if output.status.code() == Some(MISSING) {
        skip(&String::from_utf8_lossy(&output.stderr));
        return false;
    }
    assert!(output.status.success(), "{output:?}");
    true
}

/// Leaves a test if no node can be served here.
#[macro_export]
macro_rules! need_node {
    () => {
        if !node::possible() {
            return;
        }
    };
}

/// The server with these arguments.
pub fn server(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(SERVER);
    command
        .args(arguments)
        .env_remove("CXI_MOCK_DIR")
        .env_remove("CXI_MOCK_NODE");
    command
}

/// Runs a program on a node of its own; options stand in front of `--`.
pub fn run(arguments: &[&str]) -> Output {
    server(["run"])
        .args(arguments)
        .output()
        .expect("the server runs")
}

/// What a program printed that had to end well.
pub fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Runs a shell script on a node of its own and returns what it printed.
pub fn script(options: &[&str], script: &str) -> String {
    let output = server(["run"])
        .args(options)
        .args(["--", "sh", "-euc", script])
        .env("SERVER", SERVER)
        .env("CLIENT", CLIENT)
        .output()
        .expect("the server runs");
    printed(&output)
}

/// A directory that goes away with the test.
#[derive(Debug)]
pub struct Directory(PathBuf);

impl Directory {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cxi-mock-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("a temporary directory");
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn join(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
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

    /// Starts a node where windows can be mapped; says why not, if they cannot.
    pub fn with_windows(options: &[&str]) -> Option<Self> {
        let node = Self::start(options);
        // The first open file finds that out.
        printed(&node.enter(&[CLIENT, "count", DEVICE]));
        let windows = node.nic()["windows"].clone();
        if windows == "mappable" {
            return Some(node);
        }
        skip(&format!("the kernel passes no windows through: {windows}"));
        None
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
        Self::of(|dir| {
            let script = format!("{script}; exec \"$@\"");
            let mut shell = Command::new("sh");
            shell.args(["-euc", &script, "sh", SERVER, "serve", "--dir", dir]);
            shell
        })
    }

    fn of(make: impl FnOnce(&str) -> Command) -> Self {
        let directory = Directory::new();
        let process = make(&directory.join("node"))
            .stdin(Stdio::null())
            .spawn()
            .expect("the server runs");
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
        server(["ctl", "--dir", &self.dir()])
            .args(order)
            .output()
            .expect("the server runs")
    }

    /// Runs `cxi-mock ctl`, which has to work.
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
        let output = self.command_on(node, program).output();
        output.expect("the server runs")
    }

    /// The state of a node, or of the whole cluster.
    pub fn state_of(&self, node: &[&str]) -> Value {
        let order = [node, &["state"]].concat();
        serde_json::from_str(&printed(&self.ctl(&order))).expect("the state is JSON")
    }

    /// Runs a program on the node.
    pub fn enter(&self, program: &[&str]) -> Output {
        self.command(program).output().expect("the server runs")
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
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
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
    processes()
        .into_iter()
        .filter(|child| parent(*child) == Some(pid))
        .collect()
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

/// Waits until something holds.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        sleep(Duration::from_millis(5));
    }
}

/// Whether the tests are to run at full length.
pub fn full() -> bool {
    std::env::var_os("CXI_TEST_FULL").is_some_and(|value| !value.is_empty())
}

/// How long a soak takes: `CXI_TEST_SECONDS`, ten minutes at full length, or as many seconds.
pub fn soak_length(seconds: u64) -> Duration {
    let said = std::env::var("CXI_TEST_SECONDS").ok();
    let said = said.map(|text| text.parse().expect("CXI_TEST_SECONDS is a number"));
    Duration::from_secs(said.unwrap_or(if full() { 600 } else { seconds }))
}

/// Whether this process is root.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// Numbers that are the same in each run.
pub struct Random(pub u32);

impl Random {
    /// The next one.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) as usize % end
    }
}
