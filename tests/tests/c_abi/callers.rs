//! Calls that programs should not make, many at once, forks and reloads: `c/callers.c`.

use std::path::PathBuf;
use std::process::Command;

use crate::compiled::{Bench, served};
use crate::need_bench;
use cxi_test_kit::skip;
use cxi_tests::node::{possible, printed, windows};

/// Runs one of them on a node of the newest release and of one before it.
fn run(bench: &Bench, what: &[&str], environment: &[(&str, &str)]) {
    let program = callers(bench).display().to_string();
    for release in ["shs-14.0.1", "main"] {
        let mut command = vec!["--release", release, "--", &program];
        command.extend(what);
        assert_eq!(printed(&served(&command, environment)), "ok", "{release}");
    }
}

fn callers(bench: &Bench) -> PathBuf {
    let arguments = bench.link_arguments();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    bench.compile_own("callers.c", &arguments)
}

#[test]
fn null_ends_no_program() {
    let bench = need_bench!();
    if possible() && windows() {
        run(bench, &["null"], &[]);
    }
}

#[test]
fn handles_that_are_given_back_twice_are_refused() {
    let bench = need_bench!();
    if possible() && windows() {
        run(bench, &["twice"], &[]);
    }
}

#[test]
fn threads_do_not_get_into_each_others_way() {
    let bench = need_bench!();
    if possible() {
        run(bench, &["threads"], &[]);
        run(bench, &["threads"], &[("CXI_FORK_SAFE", "1")]);
    }
}

/// Under valgrind, which sees each access of each thread. Its program has the library's archive:
/// the shared one has no names to distinguish.
#[test]
fn threads_have_no_data_race_and_leak_nothing() {
    /// Exit status of valgrind when it has found something.
    const FOUND: i32 = 99;
    let bench = need_bench!();
    if Command::new("valgrind").arg("--version").output().is_err() {
        return skip("valgrind is not installed");
    }
    if !possible() {
        return;
    }
    let archive = Bench::unstripped().display().to_string();
    let program = bench.compile_own("callers.c", &[&archive, "-lpthread", "-ldl", "-lgcc_s"]);
    let program = program.display().to_string();
    let known = concat!(env!("CARGO_MANIFEST_DIR"), "/../cxi/capi/tests/c/races.supp");
    let races = ["--tool=helgrind", &format!("--suppressions={known}")];
    let leaks = ["--leak-check=full", "--errors-for-leak-kinds=definite,possible"];
    let valgrind = |options: &[&str], what: &str, environment: &[(&str, &str)]| {
        let found = format!("--error-exitcode={FOUND}");
        let mut command = vec!["--release", "main", "--", "valgrind", "-q", &found];
        // Deep enough for a suppression to find whom it is about.
        command.push("--num-callers=40");
        command.extend(options);
        command.extend([program.as_str(), what]);
        served(&command, environment)
    };
    // A check that cannot fail would be none.
    assert_eq!(valgrind(&races, "race", &[]).status.code(), Some(FOUND));
    for environment in [&[][..], &[("CXI_FORK_SAFE", "1")]] {
        assert_eq!(printed(&valgrind(&races, "threads", environment)), "ok");
        assert_eq!(printed(&valgrind(&leaks, "threads", environment)), "ok");
    }
}

/// The line about a late protection is lost if standard error takes nothing, and nothing else is.
#[test]
fn protection_that_comes_too_late_is_reported() {
    let bench = need_bench!();
    if !possible() || !windows() {
        return;
    }
    let program = callers(bench).display().to_string();
    let output = served(&["--", &program, "late"], &[]);
    if printed(&output) == "not needed" {
        return skip("this kernel copies pinned memory at a fork");
    }
    assert_eq!(String::from_utf8_lossy(&output.stderr), "cxil_fork_init() failed: 22\n");
    let full = format!("{program} late 2>/dev/full");
    assert_eq!(printed(&served(&["--", "sh", "-c", &full], &[])), "ok");
}

#[test]
fn a_child_closes_for_itself_alone() {
    let bench = need_bench!();
    if possible() && windows() {
        run(bench, &["fork"], &[]);
        run(bench, &["fork"], &[("CXI_FORK_SAFE", "1")]);
    }
}

#[test]
fn the_last_descriptor_is_enough_for_a_device() {
    let bench = need_bench!();
    if possible() {
        run(bench, &["few"], &[]);
    }
}

#[test]
fn a_thousand_reloads_leave_nothing_behind() {
    let bench = need_bench!();
    if possible() {
        let library = bench.library.shared().display().to_string();
        // Not linked with it: it would stay loaded.
        let program = bench.compile_own(
            "callers.c",
            &["-ldl", "-lpthread", "-Wl,--unresolved-symbols=ignore-all"],
        );
        let program = program.display().to_string();
        let command = ["--", &program, "reload", &library];
        assert_eq!(printed(&served(&command, &[])), "ok");
    }
}
