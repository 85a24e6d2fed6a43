//! A program whose system calls are counted.
//!
//! `counted act …` is the child that makes the calls. `counted node cxiN` counts those of such a
//! child on a NIC of the node that it runs on, and prints them: what is traced has to be on the
//! same side of a node's walls.

use std::io::Write;
use std::process::{Command, ExitCode};

use cxi_tests::counted::{OPERATIONS, Place, act, count};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            let _ = writeln!(std::io::stderr(), "counted: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [act_, rest @ ..] if act_ == "act" => act(rest),
        [node, name] if node == "node" => {
            let program = std::env::current_exe().map_err(|error| error.to_string())?;
            let mut child = Command::new(program);
            child.arg("act");
            let counts = count(child, Place::Node(name)).map_err(|error| error.to_string())?;
            for (operation, calls) in OPERATIONS.iter().zip(counts) {
                let line = format!("{}: {calls:?}", operation.name);
                writeln!(std::io::stdout(), "{line}").map_err(|error| error.to_string())?;
            }
            Ok(())
        }
        _ => Err("usage: counted act …, or counted node cxiN".to_owned()),
    }
}
