//! Programs that are linked with libcxi, from a directory that `CXI_TEST_LIBCXI_BIN` names.

#![allow(clippy::print_stdout, reason = "says what each program did")]

mod node;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Output;

use node::{Run, server, skip};

/// The programs, with arguments for which they have nothing to complain about.
const QUIET: [(&str, &[&str]); 4] = [
    ("cxi_stat", &["-a"]),
    ("cxi_stat", &["-m"]),
    ("cxi_service", &["list", "-v"]),
    ("cxi_device_list", &[]),
];

/// Runs a program on a node of two NICs, for at most a minute.
fn on_a_node(program: &OsStr, arguments: &[&str]) -> Output {
    server(["run", "--nics", "2", "--set", "disable_default_svc=0", "--"])
        .args(["timeout", "60"])
        .arg(program)
        .args(arguments)
        .run()
}

#[test]
fn programs_find_all_that_they_read() {
    need_node!();
    let Some(directory) = std::env::var_os("CXI_TEST_LIBCXI_BIN").map(PathBuf::from) else {
        return skip("CXI_TEST_LIBCXI_BIN names no directory of programs");
    };
    let mut failed = Vec::new();
    for (name, arguments) in QUIET {
        let program = directory.join(name);
        let call = format!("{name} {}", arguments.join(" "));
        if !program.exists() {
            skip(&format!("there is no {}", program.display()));
            continue;
        }
        let output = on_a_node(program.as_os_str(), arguments);
        let good = output.status.success() && output.stderr.is_empty();
        println!("{} {call}", if good { "pass" } else { "FAIL" });
        if !good {
            failed.push(format!("{call}: {output:?}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
