//! What programs do that they should not, many at once, forks and reloads: `c/callers.c`.

use crate::compiled::{Bench, can_serve, printed, served};
use crate::need_bench;

/// Runs one of them on a node of the newest release and of one before it.
fn run(bench: &Bench, what: &[&str], environment: &[(&str, &str)]) {
    let arguments = bench.link_arguments();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let program = bench.compile_own("callers.c", &arguments);
    let program = program.display().to_string();
    for release in ["shs-14.0.1", "main"] {
        let mut command = vec!["--release", release, "--", &program];
        command.extend(what);
        assert_eq!(printed(&served(&command, environment)), "ok", "{release}");
    }
}

#[test]
fn null_ends_no_program() {
    let bench = need_bench!();
    if can_serve() {
        run(bench, &["null"], &[]);
    }
}

#[test]
fn handles_that_are_given_back_twice_are_refused() {
    let bench = need_bench!();
    if can_serve() {
        run(bench, &["twice"], &[]);
    }
}

#[test]
fn threads_do_not_get_into_each_others_way() {
    let bench = need_bench!();
    if can_serve() {
        run(bench, &["threads"], &[]);
        run(bench, &["threads"], &[("CXI_FORK_SAFE", "1")]);
    }
}

#[test]
fn a_child_closes_for_itself_alone() {
    let bench = need_bench!();
    if can_serve() {
        run(bench, &["fork"], &[]);
        run(bench, &["fork"], &[("CXI_FORK_SAFE", "1")]);
    }
}

#[test]
fn a_thousand_reloads_leave_nothing_behind() {
    let bench = need_bench!();
    if can_serve() {
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
