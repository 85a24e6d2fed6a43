//! Both libraries on a kernel that lies: random, long, short and absurd answers to every function, in
//! programs of C (`c/lied_to.c`, `c/lied_to_job.c`) into which the lies are preloaded (`c/liar.c`).

use std::process::Command;

use cxi_capi_build::{LIBCXI as C_LIBRARY, LIBCXI_JOB as JOB_LIBRARY};

use crate::compiled::{Bench, served};
use crate::need_bench;
use cxi_test_kit::{full, skip};
use cxi_tests::node::{possible, printed};

/// A library that programs are linked with, and how: both have the same directory.
const LIBCXI: (&str, &str) = ("lied_to.c", "-lcxi");
const LIBCXI_JOB: (&str, &str) = ("lied_to_job.c", "-lcxi_job");

/// Runs a program with this many seeds, after these words of another that runs it.
fn lie(bench: &Bench, (source, library): (&str, &str), runner: &[&str], seeds: u32) {
    let directory = bench.libraries().display().to_string();
    let search = format!("-L{directory}");
    let path = format!("-Wl,-rpath,{directory}");
    let program = bench.compile_own(source, &[&search, &path, library, "-ldl"]);
    let liar = bench.compile_own("liar.c", &["-shared", "-fPIC", "-ldl"]);
    let (program, seeds) = (program.display().to_string(), seeds.to_string());
    let preload = format!("LD_PRELOAD={}", liar.display());
    let command = ["--nics", "2", "--release", "main", "--", "env", &preload];
    let records = tempfile::tempdir().expect("a directory");
    let records = records.path().display().to_string();
    let command = [&command[..], runner, &[&program, &seeds, &records]].concat();
    assert_eq!(printed(&served(&command, &[])).lines().last(), Some("ok"));
}

/// Names of a library's script that a program does not call.
fn not_called(program: &str, names: &[String]) -> Vec<String> {
    let is_missing = |name: &&String| !program.contains(&format!("{name}("));
    names.iter().filter(is_missing).cloned().collect()
}

#[test]
fn every_function_is_lied_to() {
    let libcxi = C_LIBRARY.names().expect("a script");
    assert_eq!(not_called(include_str!("../../../cxi/capi/tests/c/lied_to.c"), &libcxi), [""; 0]);
    let job = JOB_LIBRARY.names().expect("a script");
    assert_eq!(not_called(include_str!("../../../cxi/capi/tests/c/lied_to_job.c"), &job), [""; 0]);
}

#[test]
fn no_lie_of_a_driver_ends_a_program() {
    let bench = need_bench!();
    if possible() {
        // A job's life waits for several of its lies.
        let (libcxi, job) = if full() { (60, 20) } else { (30, 4) };
        lie(bench, LIBCXI, &[], libcxi);
        lie(bench, LIBCXI_JOB, &[], job);
    }
}

#[test]
fn no_lie_of_a_driver_makes_a_library_touch_what_is_not_its_own() {
    let bench = need_bench!();
    if Command::new("valgrind").arg("--version").output().is_err() {
        return skip("valgrind is not installed");
    }
    if possible() {
        let valgrind = ["valgrind", "-q", "--error-exitcode=99"];
        let (libcxi, job) = if full() { (20, 6) } else { (5, 1) };
        lie(bench, LIBCXI, &valgrind, libcxi);
        lie(bench, LIBCXI_JOB, &valgrind, job);
    }
}
