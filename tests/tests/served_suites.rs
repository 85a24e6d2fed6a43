//! The suites of libfabric, built by somebody: each call on the node that
//! `docs/suites/suites.csv` names for it, with a time limit, and compared with what the table expects.
//! `CXI_TEST_SUITES` names the directories of their programs, with colons between them, and
//! `CXI_TEST_SUITES_ONLY` the calls that are meant, with commas between parts of them.

#![allow(clippy::print_stdout, reason = "says what each program did")]

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use cxi_test_kit::{Directory, skip};
use cxi_tests::node::{self, Run, Served, errors};

const TABLE: &str = include_str!("../../docs/suites/suites.csv");
const PAGE: &str = include_str!("../../docs/SUITES.md");
/// Calls that `runfabtests.sh -f` leaves out.
const EXCLUDED: &str = include_str!("../../docs/suites/cxi.exclude");

const COLUMNS: &str =
    "suite,tests,processes,instances,node,environment,own node,result,failing tests,reason";

/// Seconds for a call of fabtests, and for a suite of unit tests.
const LIMITS: [(&str, u64); 2] = [("fabtests", 120), ("cxitest", 600)];

/// The unit tests reserve huge pages of the machine, unless they see none. Some pass pointers into
/// another process, which are valid there only if both have the same addresses.
const UNIT_TESTS: &str = r#"mount -t tmpfs none /sys/kernel/mm/hugepages || exit
    exec setarch -R timeout -k 5 "$LIMIT" "$PROGRAM" -j1 --filter "$TESTS""#;

/// A server that listens on the port of out-of-band messages, and its clients. If the server crashes or
/// takes too long, the clients' ends say nothing.
const SEVERAL: &str = r#"
    timeout -k 2 "$LIMIT" "$PROGRAM" $ARGUMENTS $OF_SERVER > "$SAID" 2>&1 & server=$!
    until cat /proc/net/tcp* | grep -q ":$PORT 0*:0000 0A"; do
        grep -q "^State:.[RSDTt]" /proc/$server/status 2> /dev/null || break
        sleep 0.05
    done
    clients=
    while [ $((PROCESSES -= 1)) != 0 ]; do
        timeout -k 2 "$LIMIT" "$PROGRAM" $ARGUMENTS $OF_CLIENT 2>&1 & clients="$clients $!"
    done
    client=0
    for one in $clients; do wait $one || client=$?; done
    [ $client = 0 ] || { sleep 2; kill $server 2> /dev/null; }
    wait $server; server=$?
    case $server in 38 | 61 | 124 | 13[245679]) exit $server ;; esac
    [ $client = 0 ] || exit $client
    exit $server"#;

const ALONE: &str = r#"exec timeout -k 2 "$LIMIT" "$PROGRAM" $ARGUMENTS 2>&1"#;

/// The port of out-of-band messages, and what the server and its clients have as arguments in addition:
/// of a test of two processes, and of three.
const PAIR: [&str; 3] = ["0BB8", "-E", "-E 127.0.0.1"];
const GROUP: [&str; 3] = ["2420", "-n 3 -s 127.0.0.1", "-n 3 -s 127.0.0.1"];

/// A row of the table.
struct Row {
    suite: &'static str,
    tests: &'static str,
    processes: &'static str,
    instances: u32,
    node: &'static str,
    environment: &'static str,
    own_node: bool,
    expected: Outcome,
    reason: &'static str,
}

/// The end of a call.
#[derive(Debug, PartialEq)]
struct Outcome {
    /// One of `pass`, `not supported`, `fails`, `crashes` and `hangs`.
    result: String,
    /// Unit tests that failed.
    failing: BTreeSet<String>,
}

fn rows() -> Vec<Row> {
    let mut lines = TABLE.lines();
    assert_eq!(lines.next(), Some(COLUMNS));
    let row = |line: &'static str| {
        let cells: Vec<&str> = line.split(',').collect();
        let [suite, tests, processes, instances, node, environment, own, result, failing, reason] =
            cells[..]
        else {
            panic!("{line}: expected {COLUMNS}");
        };
        Row {
            suite,
            tests,
            processes,
            instances: instances.parse().expect("a number"),
            node,
            environment,
            own_node: own == "yes",
            expected: Outcome {
                result: result.to_owned(),
                failing: failing.split_whitespace().map(str::to_owned).collect(),
            },
            reason,
        }
    };
    lines.map(row).collect()
}

impl Row {
    /// Finds the program in the directories of `CXI_TEST_SUITES`.
    fn program(&self) -> Option<PathBuf> {
        let name = match self.suite {
            "fabtests" => self.tests.split(' ').next()?,
            suite => suite,
        };
        let directories = env::var_os("CXI_TEST_SUITES")?;
        let mut programs = env::split_paths(&directories).map(|directory| directory.join(name));
        programs.find(|program| program.is_file())
    }

    /// Returns whether it is one of those that are meant.
    fn is_meant(&self) -> bool {
        let only = env::var("CXI_TEST_SUITES_ONLY").unwrap_or_default();
        only.is_empty() || only.split(',').any(|part| self.tests.contains(part))
    }

    fn limit(&self) -> u64 {
        let limit = LIMITS.iter().find(|(suite, _)| *suite == self.suite);
        limit.expect("a suite with a limit").1
    }

    /// Runs the call. Returns how it ended, how many tests ran, and what it said.
    fn run(&self, program: &PathBuf, node: &Served) -> (Outcome, u32, String) {
        let script = match (self.suite, self.processes) {
            ("fabtests", "1") => ALONE,
            ("fabtests", _) => SEVERAL,
            _ => UNIT_TESTS,
        };
        let [port, of_server, of_client] = if self.processes == "2" { PAIR } else { GROUP };
        let directory = Directory::new();
        let arguments = self.tests.split_once(' ').map_or("", |(_, arguments)| arguments);
        let mut command = node.command(&["sh", "-c", script]);
        for variable in self.environment.split_whitespace() {
            let (name, value) = variable.split_once('=').expect("NAME=VALUE");
            command.env(name, value);
        }
        let output = command
            .env("PROGRAM", program)
            .env("TESTS", self.tests)
            .env("ARGUMENTS", arguments)
            .env("PROCESSES", self.processes)
            .env("PORT", port)
            .env("OF_SERVER", of_server)
            .env("OF_CLIENT", of_client)
            .env("LIMIT", self.limit().to_string())
            .env("SAID", directory.join("server"))
            .run();
        let mut said = errors(&output);
        let code = output.status.code();
        if self.suite == "fabtests" {
            said += &String::from_utf8_lossy(&output.stdout);
            let result = how_it_ended(code).to_owned();
            return (Outcome { result, failing: BTreeSet::new() }, 1, said);
        }
        let (outcome, tested) = unit_tests(&said, code);
        (outcome, tested, said)
    }
}

/// The result of a call of fabtests, by its exit code: ENODATA and ENOSYS say that the provider does
/// not offer what is tested.
fn how_it_ended(code: Option<i32>) -> &'static str {
    match code {
        Some(0) => "pass",
        Some(38 | 61) => "not supported",
        Some(124 | 137) => "hangs",
        Some(129..) | None => "crashes",
        Some(_) => "fails",
    }
}

/// The result of unit tests by their report, and how many there were.
fn unit_tests(report: &str, code: Option<i32>) -> (Outcome, u32) {
    let count = |what| -> Option<u32> {
        let line = report.lines().rfind(|line| line.contains("Synthesis:"))?;
        let rest = line.split_once(what)?.1.trim_start();
        rest.split(|it: char| !it.is_ascii_digit()).next()?.parse().ok()
    };
    let names = report.lines().filter_map(|line| line.split_once("[FAIL] "));
    let failing: BTreeSet<_> =
        names.filter_map(|(_, rest)| Some(rest.split_once(": ")?.0.to_owned())).collect();
    let result = match (count("Tested:"), count("Passing:"), code) {
        (_, _, Some(124 | 137)) => "hangs",
        (None, ..) => "crashes",
        (tested, passing, _) if tested == passing => "pass",
        _ => "fails",
    };
    (Outcome { result: result.to_owned(), failing }, count("Tested:").unwrap_or(0))
}

/// Runs all rows of a suite whose programs are there.
fn compare(suite: &str) {
    if !(node::possible() && node::windows()) {
        return;
    }
    let mut shared: BTreeMap<&str, Served> = BTreeMap::new();
    let mut found = 0;
    let mut differences = String::new();
    for row in rows().iter().filter(|row| row.suite == suite && row.is_meant()) {
        let Some(program) = row.program() else { continue };
        found += 1;
        // A suite may take hours: each call has a limit. A client may wait as long as its server.
        node::limit(Duration::from_secs(2 * row.limit() + 60));
        let options: Vec<_> = row.node.split_whitespace().collect();
        let (outcome, tested, said) = if row.own_node {
            row.run(&program, &Served::start(&options))
        } else {
            row.run(&program, shared.entry(row.node).or_insert_with(|| Served::start(&options)))
        };
        let failing: Vec<_> = outcome.failing.iter().collect();
        println!("{}: {} {failing:?}, {tested} tests", row.tests, outcome.result);
        if (&outcome, tested) != (&row.expected, row.instances) {
            let _ = writeln!(
                differences,
                "{}: expected {:?}, {}; got {outcome:?}, {tested}:\n{said}",
                row.tests, row.expected, row.instances
            );
        }
    }
    if found == 0 {
        skip(format_args!(
            "CXI_TEST_SUITES names no directory with programs of {suite} that are meant"
        ));
    }
    assert!(differences.is_empty(), "{differences}");
}

#[test]
fn fabtests_end_as_the_table_says() {
    compare("fabtests");
}

#[test]
fn cxitest_ends_as_the_table_says() {
    compare("cxitest");
}

/// The rows of the page: for each suite, how many calls and tests, and how they end.
fn summary(rows: &[Row]) -> String {
    let mut lines = String::new();
    for (suite, _) in LIMITS {
        let of_suite: Vec<_> = rows.iter().filter(|row| row.suite == suite).collect();
        let tests: u32 = of_suite.iter().map(|row| row.instances).sum();
        let mut ends: BTreeMap<&str, u32> = BTreeMap::new();
        for row in &of_suite {
            *ends.entry(&row.expected.result).or_default() += 1;
        }
        let ends: Vec<_> = ends.iter().map(|(end, count)| format!("{end}: {count}")).collect();
        let _ =
            writeln!(lines, "| `{suite}` | {} | {tests} | {} |", of_suite.len(), ends.join(", "));
    }
    lines
}

/// The rows of the page about what does not pass.
fn exceptions(rows: &[Row]) -> String {
    let mut lines = String::new();
    for row in rows.iter().filter(|row| row.expected.result != "pass") {
        let failing: Vec<_> = row.expected.failing.iter().map(String::as_str).collect();
        let what = if failing.is_empty() { row.tests.to_owned() } else { failing.join("` `") };
        let result = &row.expected.result;
        let _ = writeln!(lines, "| `{}` | `{what}` | {result} | {} |", row.suite, row.reason);
    }
    lines
}

/// The patterns for `runfabtests.sh`, which are looked for in a call.
fn excluded(rows: &[Row]) -> String {
    let mut lines = String::new();
    let fails = |row: &&Row| row.suite == "fabtests" && row.expected.result != "pass";
    for row in rows.iter().filter(fails) {
        let call = row.tests.strip_suffix(" -p cxi").unwrap_or(row.tests);
        // The script has placeholders there until it runs a call.
        let call = call.replace("127.0.0.1", "[A-Z_]*");
        let _ = writeln!(lines, "# {}: {}\n^{call}$", row.expected.result, row.reason);
    }
    lines
}

#[test]
fn the_page_and_the_exclude_file_are_those_of_the_table() {
    let rows = rows();
    let (heading, patterns) = EXCLUDED.split_once("\n\n").expect("a heading");
    assert!(heading.lines().all(|line| line.starts_with('#')), "{heading}");
    let excluded = excluded(&rows);
    assert!(patterns == excluded, "docs/suites/cxi.exclude: expected\n{excluded}");
    for part in [summary(&rows), exceptions(&rows)] {
        assert!(PAGE.contains(&part), "docs/SUITES.md: expected\n{part}");
    }
    for row in &rows {
        let all_pass = row.expected.result == "pass";
        assert_eq!(all_pass, row.reason.is_empty(), "{}: a reason if it does not pass", row.tests);
    }
}

#[test]
fn reports_of_unit_tests_are_understood() {
    let report = "[FAIL] a::b: (0.01s)\n[FAIL] a::b: (0.02s)\n[FAIL] a::c: (0.00s)\n\
                  [====] Synthesis: Tested: 9 | Passing: 6 | Failing: 2 | Crashing: 1 \n";
    let (outcome, tested) = unit_tests(report, Some(1));
    assert_eq!((outcome.result.as_str(), tested), ("fails", 9));
    assert!(outcome.failing.iter().eq(["a::b", "a::c"]), "{outcome:?}");
    let all = "[====] Synthesis: Tested: 3 | Passing: 3 | Failing: 0 | Crashing: 0 \n";
    assert_eq!(unit_tests(all, Some(0)).0.result, "pass");
    assert_eq!(unit_tests("", Some(139)).0.result, "crashes");
    assert_eq!(unit_tests(report, Some(124)).0.result, "hangs");
}
