//! A program that polls a wait object endlessly costs the server nothing later.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use cxi_tests::node::{self, OPEN, Served, client};

const POLLS: &str = "3000";
/// Writes of the server around one interrupt, other than one for each poll before.
const FEW: u64 = 300;

#[test]
fn one_interrupt_is_one_notice_however_often_a_program_has_polled() {
    let doors = [("socket", true), ("fuse", node::possible())];
    for (door, _) in doors.iter().filter(|(_, here)| *here) {
        let node = Served::start(&[&["--door", door][..], &OPEN[..]].concat());
        if writes(node.pid()).is_none() {
            return cxi_test_kit::skip("the kernel does not count the writes of a process");
        }
        let mut command = node.command(&[client(), "polls", "cxi0", POLLS]);
        let mut program = command.stdout(Stdio::piped()).spawn().expect("the program runs");
        let output = BufReader::new(program.stdout.take().expect("a pipe"));
        let mut lines = output.lines().map_while(Result::ok);
        let object = lines.next().expect("a wait object");
        let [client, wait] = object.split(' ').collect::<Vec<_>>()[..] else { panic!("{object}") };
        let before = writes(node.pid()).expect("as before");
        node.order(&["wake", client, wait]);
        assert_eq!(lines.next().as_deref(), Some("woken"), "{door}");
        let made = writes(node.pid()).expect("as before") - before;
        assert!(made < FEW, "{door}: {made}");
        assert!(program.wait().is_ok_and(|status| status.success()), "{door}");
    }
}

/// The system calls of a process that write.
fn writes(pid: u32) -> Option<u64> {
    let counts = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    counts.lines().find_map(|line| line.strip_prefix("syscw: "))?.parse().ok()
}
