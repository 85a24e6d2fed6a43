//! Symbols that the library exports, and that programs find.

use std::collections::BTreeSet;
use std::process::Command;

use cxi_capi_build::{LIBCXI, SONAME};

use crate::compiled::Bench;
use crate::need_bench;
use cxi_test_kit::skip;
use cxi_tests::node::printed;

/// Names that no release of HPE's library has. HPE's tests on the driver's branch call the first one.
const OWN: [&str; 2] = ["cxil_alloc_parent_svc LIBCXI_1.12", "cxi_last_error CXI_RS_1.0"];

#[test]
fn names_and_versions_are_those_of_hpe() {
    let bench = need_bench!();
    let output = match Command::new("nm")
        .args(["-D", "--defined-only", "--with-symbol-versions"])
        .arg(bench.library.shared())
        .output()
    {
        Ok(output) => output,
        Err(error) => return skip(format_args!("there is no nm: {error}")),
    };
    let text = printed(&output);
    let exported: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        // The nodes themselves are absolute symbols that bear their own names.
        .filter_map(|symbol| symbol.split_once("@@"))
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    let nodes = text.lines().filter(|line| !line.contains("@@")).count();
    let expected: BTreeSet<String> =
        Bench::text("symbols.txt").lines().chain(OWN).map(str::to_owned).collect();
    assert_eq!(exported, expected);
    // Nothing else but the nodes themselves.
    let versions = expected.iter().filter_map(|symbol| symbol.split(' ').nth(1));
    let versions: BTreeSet<&str> = versions.collect();
    assert_eq!(nodes, versions.len(), "{text}");
}

/// A function without a node is local to the shared library, which nobody notices who does not call
/// it.
#[test]
fn every_function_has_a_node() {
    need_bench!();
    let output =
        match Command::new("nm").args(["-g", "--defined-only"]).arg(Bench::unstripped()).output() {
            Ok(output) => output,
            Err(error) => return skip(format_args!("there is no nm: {error}")),
        };
    let text = printed(&output);
    let functions: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .filter(|name| name.starts_with("cxil_"))
        .collect();
    let exported = LIBCXI.names().expect("a version script");
    let exported = exported.iter().map(String::as_str);
    let exported: BTreeSet<&str> = exported.filter(|name| name.starts_with("cxil_")).collect();
    assert_eq!(functions, exported);
}

#[test]
fn the_loader_knows_it_by_hpes_name() {
    let bench = need_bench!();
    let output = match Command::new("readelf").arg("-d").arg(bench.library.shared()).output() {
        Ok(output) => output,
        Err(error) => return skip(format_args!("there is no readelf: {error}")),
    };
    let text = printed(&output);
    assert!(text.contains(&format!("Library soname: [{SONAME}]")), "{text}");
}

#[test]
fn programs_link_and_start() {
    let bench = need_bench!();
    let dynamic = bench.link_arguments();
    let archive = bench.library.archive().display().to_string();
    let dynamic: Vec<&str> = dynamic.iter().map(String::as_str).collect();
    for arguments in [&dynamic[..], &[&archive, "-lpthread", "-ldl"]] {
        let program = bench.compile("linkall.c", arguments);
        let output = Command::new(program).output().expect("it starts");
        let functions = LIBCXI.names().expect("a version script").len() - OWN.len();
        assert_eq!(printed(&output), format!("{functions} functions"));
    }
}
