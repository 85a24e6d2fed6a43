//! Both libraries on a kernel that lies: random, long, short and absurd answers to every function, in
//! programs of C (`c/lied_to.c`, `c/lied_to_job.c`) into which the lies are preloaded (`c/liar.c`).

use std::process::Command;

use crate::compiled::{Bench, can_serve, printed, served, skip};
use crate::need_bench;

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
    let command = [&command[..], runner, &[&program, &seeds]].concat();
    assert_eq!(printed(&served(&command, &[])).lines().last(), Some("ok"));
}

#[test]
fn no_lie_of_a_driver_ends_a_program() {
    let bench = need_bench!();
    if can_serve() {
        lie(bench, LIBCXI, &[], 60);
        lie(bench, LIBCXI_JOB, &[], 20);
    }
}

#[test]
fn no_lie_of_a_driver_makes_a_library_touch_what_is_not_its_own() {
    let bench = need_bench!();
    if Command::new("valgrind").arg("--version").output().is_err() {
        return skip("valgrind is not installed");
    }
    if can_serve() {
        let valgrind = ["valgrind", "-q", "--error-exitcode=99"];
        lie(bench, LIBCXI, &valgrind, 8);
        lie(bench, LIBCXI_JOB, &valgrind, 2);
    }
}
