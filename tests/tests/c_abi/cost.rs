//! Costs of opening, using and closing a device in system calls and instructions, compared with
//! HPE's library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compiled::{Bench, served};
use crate::need_bench;
use cxi_test_kit::skip;
use cxi_tests::node::{possible, printed};

/// System calls of HPE's library of the development branch, on a driver of that branch.
const THEIRS: usize = 38;
/// Of this library.
const OURS: usize = 13;
/// Functions that are called repeatedly, with the number of instructions that a call of this
/// library may take: as many as it took when the limit was set, plus a twentieth.
const PER_CALL: [(&str, u64); 3] = [("list", 610), ("map", 580), ("service", 155)];
/// Names the directory of HPE's library.
const LIBRARY: &str = "CXI_TEST_LIBCXI_LIB";

#[test]
fn a_life_takes_less_than_half_of_the_system_calls() {
    let bench = need_bench!();
    let Some(life) = Life::under(bench, "strace") else { return };
    let count = |library: &Path| life.system_calls(library, "life");
    let ours = count(bench.libraries());
    assert_eq!(ours.len(), OURS, "{ours:#?}");
    const { assert!(OURS * 2 < THEIRS) };
    if let Some(theirs) = theirs() {
        assert_eq!(count(&theirs).len(), THEIRS);
    }
}

#[test]
fn a_counter_is_opened_read_and_closed() {
    let bench = need_bench!();
    if let Some(life) = Life::under(bench, "strace") {
        let calls = life.system_calls(bench.libraries(), "counter");
        assert_eq!(calls.len(), 3, "{calls:#?}");
    }
}

#[test]
fn a_life_takes_no_more_than_a_tenth_more_instructions() {
    let bench = need_bench!();
    let (Some(life), Some(theirs)) = (Life::counted(bench), theirs()) else { return };
    let count = |library: &Path| life.instructions(library, &["life"], "life");
    let (ours, theirs) = (count(bench.libraries()), count(&theirs));
    assert!(ours > 1000, "{ours} instructions: the life was not counted");
    assert!(ours * 10 <= theirs * 11, "{ours} here, {theirs} in HPE's library");
}

#[test]
fn a_call_takes_no_more_than_half_as_many_instructions_again() {
    let bench = need_bench!();
    let Some(life) = Life::counted(bench) else { return };
    let theirs = theirs();
    for (what, limit) in PER_CALL {
        // The first calls also pay for the heap.
        let count = |library: &Path| -> u64 {
            let calls = |count| life.instructions(library, &[what, count], &format!("call_{what}"));
            (calls("110") - calls("10")) / 100
        };
        let ours = count(bench.libraries());
        assert!(ours > 50, "{what}: {ours} instructions were not counted");
        assert!(ours <= limit, "{what}: {ours} instructions");
        if let Some(theirs) = &theirs {
            let theirs = count(theirs);
            let both = format!("{what}: {ours} here, {theirs} in HPE's library");
            assert!(ours * 2 <= theirs * 3, "{both}");
        }
    }
}

/// Returns the directory of HPE's library; says so if it was not named.
fn theirs() -> Option<PathBuf> {
    let place = std::env::var_os(LIBRARY).map(PathBuf::from);
    if place.is_none() {
        skip(format_args!("{LIBRARY} does not name the directory of HPE's library"));
    }
    place
}

/// A program that opens a device, uses it and closes it, under a tool that watches it.
struct Life<'a> {
    bench: &'a Bench,
    tool: &'static str,
    program: String,
}

impl<'a> Life<'a> {
    /// Says what the machine lacks.
    fn under(bench: &'a Bench, tool: &'static str) -> Option<Self> {
        if Command::new(tool).arg("--version").output().is_err() {
            skip(format_args!("{tool} is not installed"));
            return None;
        }
        let directory = bench.libraries().display();
        let link = [&format!("-L{directory}"), "-lcxi", "-ldl"];
        possible().then(|| Self {
            bench,
            tool,
            program: bench.compile_own("callers.c", &link).display().to_string(),
        })
    }

    /// For [`instructions`](Self::instructions).
    fn counted(bench: &'a Bench) -> Option<Self> {
        if cfg!(debug_assertions) {
            skip("the library is not optimised here; cargo test --release counts");
            return None;
        }
        Self::under(bench, "valgrind")
    }

    /// The instructions in a function and what that calls.
    fn instructions(&self, library: &Path, what: &[&str], function: &str) -> u64 {
        let counted = ["--tool=callgrind", "-q"].map(str::to_owned);
        let text = self.report(library, what, |file| {
            let options =
                [format!("--toggle-collect={function}"), format!("--callgrind-out-file={file}")];
            counted.iter().cloned().chain(options).collect()
        });
        let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
        let total = total.expect("a total").trim();
        total.parse().expect("a number of instructions")
    }

    /// The system calls between two of getppid.
    fn system_calls(&self, library: &Path, what: &str) -> Vec<String> {
        let text = self.report(library, &[what], |file| vec!["-o".to_owned(), file.to_owned()]);
        let mut parts = text.split("getppid()");
        // Behind the first mark the rest of its line is left.
        let calls = parts.nth(1).expect("a mark").lines().skip(1);
        // The standard library asks for the flags of a file before it closes it, in builds with
        // assertions.
        let asserted = |line: &&str| cfg!(debug_assertions) && line.contains("F_GETFD");
        let calls: Vec<String> = calls.filter(|l| !asserted(l)).map(str::to_owned).collect();
        assert_eq!(parts.count(), 1, "two marks: {text}");
        calls
    }

    /// Returns the text that the tool writes to the file that is in its options.
    fn report(
        &self,
        library: &Path,
        what: &[&str],
        options: impl Fn(&str) -> Vec<String>,
    ) -> String {
        // Tests run at the same time.
        let file = self.bench.place(&format!("{}-{}", self.tool, what.join("-")));
        let file = file.display().to_string();
        let options = options(&file);
        let mut command = vec!["--release", "main", "--", self.tool];
        command.extend(options.iter().map(String::as_str));
        command.push(&self.program);
        command.extend(what);
        let place = library.display().to_string();
        let environment = [("LD_LIBRARY_PATH", place.as_str()), ("LD_BIND_NOW", "1")];
        assert_eq!(printed(&served(&command, &environment)), "ok");
        fs::read_to_string(&file).expect("a report")
    }
}
