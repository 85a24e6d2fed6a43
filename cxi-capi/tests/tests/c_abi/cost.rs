//! What a life of a device costs in system calls, beside HPE's library.

use std::fs;
use std::path::Path;

use crate::compiled::{can_serve, printed, served, skip};
use crate::need_bench;

/// HPE's library of the development branch, on a driver of that branch.
const THEIRS: usize = 38;
/// This library.
const OURS: usize = 15;
/// Says where HPE's library is.
const LIBRARY: &str = "CXI_TEST_LIBCXI_LIB";

#[test]
fn a_life_takes_less_than_half_of_the_system_calls() {
    let bench = need_bench!();
    if std::process::Command::new("strace")
        .arg("-V")
        .output()
        .is_err()
    {
        return skip("strace is not installed");
    }
    if !can_serve() {
        return;
    }
    let directory = bench.libraries().display();
    let program = bench.compile_own("callers.c", &[&format!("-L{directory}"), "-lcxi", "-ldl"]);
    let program = program.display().to_string();
    let count = |library: &Path| {
        let trace = bench.place("life.trace").display().to_string();
        let command = [
            "--release",
            "main",
            "--",
            "strace",
            "-o",
            &trace,
            &program,
            "life",
        ];
        let place = library.display().to_string();
        let environment = [("LD_LIBRARY_PATH", place.as_str())];
        assert_eq!(printed(&served(&command, &environment)), "ok");
        let text = fs::read_to_string(&trace).expect("a trace");
        let mut parts = text.split("getppid()");
        // Behind the first mark the rest of its line is left.
        let calls = parts.nth(1).expect("a mark").lines().skip(1);
        // The standard library asks for the flags of a file before it closes it, in builds with
        // assertions.
        let asserted = |line: &&str| cfg!(debug_assertions) && line.contains("F_GETFD");
        let calls: Vec<String> = calls.filter(|l| !asserted(l)).map(str::to_owned).collect();
        assert_eq!(parts.count(), 1, "two marks: {text}");
        calls
    };
    let ours = count(bench.libraries());
    assert_eq!(ours.len(), OURS, "{ours:#?}");
    const { assert!(OURS * 2 < THEIRS) };
    match std::env::var_os(LIBRARY) {
        Some(theirs) => assert_eq!(count(Path::new(&theirs)).len(), THEIRS),
        None => skip(&format!("{LIBRARY} does not say where HPE's library is")),
    }
}
