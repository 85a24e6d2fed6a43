//! Checks that no command of the interface and no function of libcxi that the library replaces is
//! without a case.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use cxi_ioctl::{DriverRelease, Exchange, Opcode, abi};

use crate::calls;
use crate::stage::{Plan, nic, run};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Commands that are typed, and that the library does not send.
const NOT_SENT: &[Opcode] = &[
    Opcode::CQ_ALLOC_BUF,
    Opcode::MAP_CSRS,
    Opcode::SBUS_OP,
    Opcode::SBUS_OP_RESET,
    Opcode::SERDES_OP,
];

/// Functions of libcxi that are replaced by something that sends no command.
const WITHOUT_A_COMMAND: &[&str] = &[
    "cxil_get_device_list",
    "cxil_open_device",
    "cxil_read_cntr",
    "cxil_set_amo_remap_to_pcie_fadd",
];

#[test]
fn every_command_is_sent_by_a_call_of_the_table() {
    let mut sent = BTreeSet::new();
    for release in DriverRelease::ALL {
        let nic = nic(release);
        for call in calls::all() {
            let Some(run) = run(&nic, call, Plan::Fine) else { continue };
            assert!(run.result.is_ok(), "{release}: {}: {run:?}", call.name);
            assert!(run.clean, "{release}: {}: something is left", call.name);
            sent.extend(run.log.iter().filter_map(Exchange::opcode));
        }
    }
    let known: BTreeSet<Opcode> = abi::commands().map(|command| command.opcode).collect();
    let not_sent: BTreeSet<Opcode> = known.difference(&sent).copied().collect();
    assert_eq!(not_sent, NOT_SENT.iter().copied().collect());
}

/// The library's source, without the functions that messages of other programs name.
fn sources() -> String {
    fn add(directory: &Path, text: &mut String) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("cxi/src/explain") {
                continue;
            }
            if path.is_dir() {
                add(&path, text);
            } else {
                text.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }
    let mut text = String::new();
    add(&Path::new(ROOT).join("cxi/src"), &mut text);
    text
}

/// The functions in attributes, including those that a macro writes.
fn aliases(text: &str) -> BTreeSet<&str> {
    let found = text.match_indices("\"cxil_");
    found.filter_map(|(at, _)| text.get(at + 1..)?.split('"').next()).collect()
}

#[test]
fn every_function_has_a_call_in_the_table() {
    let text = sources();
    let called = calls::all().flat_map(|call| call.aliases).copied();
    let covered: BTreeSet<&str> = called.chain(WITHOUT_A_COMMAND.iter().copied()).collect();
    let documented = aliases(&text);
    let differ: Vec<_> = documented.symmetric_difference(&covered).collect();
    assert!(differ.is_empty(), "{differ:?}");
}

#[test]
fn every_alias_is_in_the_document_and_every_method_of_the_document_exists() {
    let table = fs::read_to_string(Path::new(ROOT).join("docs/COVERAGE.md")).unwrap();
    let text = sources();
    for name in aliases(&text) {
        assert!(table.contains(&format!("`{name}`")), "{name} is missing");
    }
    let here = table.split('`').skip(1).step_by(2);
    for method in here.filter_map(|code| code.split_once("::")) {
        let (_, name) = method;
        let there = ["fn ", "pub ", "closable!(\n    ", "use host::{FoundDevice, Host, "]
            .iter()
            .any(|before| text.contains(&format!("{before}{name}")))
            || ["execute", "execute_unchecked"].contains(&name);
        assert!(there, "{name} does not exist");
    }
}
