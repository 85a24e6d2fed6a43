//! The command `cxi-mock` for tests.

use std::ffi::OsStr;
use std::process::{Command, Output};
use std::sync::LazyLock;

use cxi_test_kit::{Directory, skip};

use super::limit::start;

macro_rules! programs {
    ($($(#[$doc:meta])* $function:ident: $name:literal;)*) => { $(
        $(#[$doc])*
        pub fn $function() -> &'static str {
            static PATH: LazyLock<String> = LazyLock::new(|| built($name));
            &PATH
        }
    )* };
}

programs! {
    /// The command `cxi-mock`.
    cxi_mock: "mock-server";
    /// A program for a node.
    client: "mock-client";
}

/// The path of a program that cargo has built for the tests of this package: they run in a directory
/// below it.
fn built(name: &str) -> String {
    let test = std::env::current_exe().expect("this program has a path");
    let path =
        test.parent().and_then(|directory| directory.parent()).expect("a directory").join(name);
    assert!(path.exists(), "{} is missing: cargo builds it with the tests", path.display());
    path.display().to_string()
}

/// Exit status of a server where the machine lacks something.
const MISSING: i32 = 77;

/// Asks the server whether something can be had here: its reasons if not.
fn what_forbids(arguments: &[&str]) -> Option<String> {
    let output = server(arguments).output().expect("the server runs");
    let missing = output.status.code() == Some(MISSING);
    assert!(missing || output.status.success(), "{output:?}");
    missing.then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Returns whether nothing forbids something, and reports what does.
fn is_allowed(misses: Option<&String>) -> bool {
    start();
    if let Some(why) = misses {
        skip(why);
    }
    misses.is_none()
}

/// Returns whether a node can be served as files here; reports why not. The first test of a process finds out.
pub fn possible() -> bool {
    static MISSES: LazyLock<Option<String>> =
        LazyLock::new(|| what_forbids(&["run", "--door", "fuse", "--", "true"]));
    is_allowed(MISSES.as_ref())
}

/// Returns whether programs on a node can map windows here; reports why not.
pub fn windows() -> bool {
    static WINDOWS: LazyLock<String> = LazyLock::new(|| {
        let directory = Directory::new();
        let dir = directory.join("node");
        // The first open file of a device finds that out.
        let look = "exec 3<> /dev/cxi0; exec \"$0\" ctl state";
        let output = run(&["--dir", &dir, "--", "sh", "-c", look, cxi_mock()]);
        let state: serde_json::Value = serde_json::from_str(&printed(&output)).expect("JSON");
        let windows = state["nics"][0]["windows"].as_str().expect("a text");
        windows.to_owned()
    });
    let mappable = *WINDOWS == "mappable";
    if !mappable {
        skip(format_args!("the kernel passes no windows through: {}", *WINDOWS));
    }
    mappable
}

/// Returns whether a cluster can be served here by the socket, which takes namespaces; reports why not.
pub fn copies() -> bool {
    static MISSES: LazyLock<Option<String>> = LazyLock::new(|| {
        what_forbids(&["cluster", "--door", "socket", "--nodes", "1", "run", "--", "true"])
    });
    is_allowed(MISSES.as_ref())
}

/// The doors by which programs on the nodes of a cluster can map windows here.
pub fn doors() -> Vec<&'static str> {
    let doors = [("fuse", possible() && windows()), ("socket", copies())];
    doors.into_iter().filter_map(|(door, here)| here.then_some(door)).collect()
}

/// The server with these arguments.
pub fn server(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    start();
    let mut command = Command::new(cxi_mock());
    command.args(arguments);
    for variable in ["CXI_MOCK_DIR", "CXI_MOCK_NODE", "CXI_NODE"] {
        command.env_remove(variable);
    }
    command
}

/// Runs a program on its own node; options stand in front of `--`.
pub fn run(arguments: &[&str]) -> Output {
    server(["run"]).args(arguments).output().expect("the server runs")
}

/// The output of a program that must succeed.
pub fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
