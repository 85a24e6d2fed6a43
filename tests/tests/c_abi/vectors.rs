//! Recorded behavior of C libcxi, case by case.
//!
//! The program of the cases calls every function under a tracer that plays the kernel, which has
//! been done with three releases of the C library. What is strict: commands, mappings, advice,
//! what is printed on stderr, return values and results; which files are opened, in order. What
//! may differ is named here, and nothing else.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::compiled::{Bench, can_unshare};
use crate::need_bench;
use crate::recorded::{Case, Cases, run, vectors};
use cxi_test_kit::skip;

/// A group of cases and what its environment has.
const GROUPS: [(&str, &[&str]); 3] = [
    ("main", &[]),
    ("fork", &["CXI_FORK_SAFE"]),
    ("forkhp", &["CXI_FORK_SAFE", "CXI_FORK_SAFE_HP"]),
];

/// Commands that C libcxi does not send: they find out what the driver knows. TRIG_CP_ALLOC, to a
/// driver before 13.1, once for each device.
const PROBES: [(&str, &str, &str); 1] = [("13.0", "alloc_cp", "53000000")];

/// Cases of the rule by which a NIC is a virtual function: that of the newest library, on all
/// drivers. Those before main take a file for it that a virtual machine does not see.
const FUNCTION_RULE: [&str; 4] =
    ["get_device_list", "get_device_list.dev_info_fails_once", "open_device.6", "open_device.10"];

/// Line that the older libraries print as well, if a command is refused that maps memory.
const CHATTER: &str = "cxil_map: write error\n";

/// Uninitialised memory of the older libraries; here it is zeros.
const INDETERMINATE: [&str; 2] = ["alloc_svc.eperm", "update_svc.fails"];

#[test]
fn main_on_main() {
    compare("main", 385, 0);
}

#[test]
fn shs_14_0_on_14_0() {
    compare("14.0", 375, FUNCTION_RULE.len());
}

#[test]
fn shs_13_0_on_13_0() {
    compare("13.0", 326, FUNCTION_RULE.len());
}

fn compare(release: &str, count: usize, by_function_rule: usize) {
    let bench = need_bench!();
    if !cfg!(target_arch = "x86_64") {
        return skip("the tracer knows x86_64 only");
    }
    if !can_unshare() {
        return;
    }
    let text = bench.vectors(release);
    let mut compared = 0;
    let mut excepted = 0;
    let mut differences = Vec::new();
    let driver = bench.compile("driver.c", &["-ldl"]);
    let kernel = bench.compile("fakecxi.c", &[]);
    for (group, environment) in GROUPS {
        let ours = play(bench, [&kernel, &driver], release, group, environment);
        for (name, theirs) in vectors(&text, group) {
            compared += 1;
            if release != "main" && FUNCTION_RULE.contains(&name.as_str()) {
                excepted += 1;
                assert_ne!(
                    ours[&name].out, theirs.out,
                    "{name} no longer differs: remove it from FUNCTION_RULE"
                );
                continue;
            }
            if let Some(difference) = difference(release, &name, &ours, theirs) {
                differences.push(format!("{group} {name}: {difference}"));
            }
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {compared} cases differ:\n{}",
        differences.len(),
        differences.join("\n")
    );
    assert_eq!((compared, excepted), (count, by_function_rule));
}

/// Runs a group of cases.
fn play(
    bench: &Bench,
    [kernel, driver]: [&PathBuf; 2],
    release: &str,
    group: &str,
    environment: &[&str],
) -> Cases {
    let file = |kind: &str| -> PathBuf { bench.place(&format!("{release}-{group}.{kind}")) };
    let printed = File::create(file("txt")).expect("a file");
    let mut command = Command::new("timeout");
    command
        .args(["120", "bash"])
        .arg(Bench::case("tree.sh"))
        .arg(kernel)
        .arg(file("log"))
        .arg(driver)
        .arg(bench.library.shared())
        .arg(group)
        .env_remove("CXI_FORK_SAFE")
        .env_remove("CXI_FORK_SAFE_HP")
        .env("FAKECXI_RELEASE", release)
        .envs(environment.iter().map(|name| (name, "1")))
        .stdout(printed);
    let output = command.output().expect("bash and timeout");
    assert!(output.status.success(), "{output:?}");
    run(&file("txt"), &file("log"))
}

/// Returns the difference that is not allowed, if there is one.
fn difference(release: &str, name: &str, ours: &Cases, theirs: Case) -> Option<String> {
    let Some(ours) = ours.get(name) else { return Some("missing".to_owned()) };
    let (ours, theirs) = (plain(release, name, ours.clone()), plain(release, name, theirs));
    if theirs.ret.starts_with("(killed by SIG") {
        return no_crash(&ours, &theirs);
    }
    if !ours.left_open.iter().all(|file| theirs.left_open.contains(file)) {
        return Some(format!("left open: {:?}", ours.left_open));
    }
    if (&ours.ret, &ours.out) != (&theirs.ret, &theirs.out) {
        return Some(format!("{ours:#?}\ninstead of {theirs:#?}"));
    }
    events_differ(&ours.events, &theirs.events)
}

/// A call that kills a program of C libcxi is EINVAL here, having done no more than that.
fn no_crash(ours: &Case, theirs: &Case) -> Option<String> {
    let child = ours.out.first().map(String::as_str);
    // A function without a result says nothing.
    let refused = matches!(child, Some("child: returned -EINVAL" | "child: returned 0"));
    let before = theirs.events.get(..ours.events.len());
    let no_more = before.is_some_and(|before| events_differ(&ours.events, before).is_none());
    (!(refused && no_more)).then(|| format!("{ours:#?}\ninstead of {theirs:#?}"))
}

/// Takes away what is known to differ.
fn plain(release: &str, name: &str, mut case: Case) -> Case {
    // A failed open leaves the caller's pointer alone.
    for line in &mut case.out {
        if line == "dev written" {
            "dev untouched".clone_into(line);
        }
        if release != "main" && INDETERMINATE.contains(&name) && line.starts_with("fail_info=") {
            // 16 bytes are the kernel's answer, moved by four; the rest is undefined.
            let known = if name == "update_svc.fails" { 32 } else { 0 };
            line.truncate("fail_info=".len() + known);
        }
    }
    case.events.retain(|event| {
        let bytes = event["bytes"].as_str().unwrap_or_default();
        let probe = |(since, case, op): &(&str, &str, &str)| {
            *since == release && *case == name && bytes.starts_with(op)
        };
        let chatter = release != "main" && event["stderr"] == CHATTER;
        !PROBES.iter().any(probe)
            && !chatter
            && event.get("access").is_none()
            && event.get("close").is_none()
    });
    case
}

fn events_differ(ours: &[Value], theirs: &[Value]) -> Option<String> {
    for (ours, theirs) in ours.iter().zip(theirs) {
        if !same(ours, theirs) {
            return Some(format!("{ours}\ninstead of {theirs}"));
        }
    }
    (ours.len() != theirs.len()).then(|| format!("{ours:#?}\ninstead of {theirs:#?}"))
}

fn same(ours: &Value, theirs: &Value) -> bool {
    let (Some(ours), Some(theirs)) = (ours.as_object(), theirs.as_object()) else { return false };
    ours.len() == theirs.len()
        && theirs.iter().all(|(key, theirs)| {
            let ours = &ours.get(key).unwrap_or(&Value::Null);
            match key.as_str() {
                "bytes" => same_bytes(ours, theirs),
                "flags" => without_cloexec(ours) == without_cloexec(theirs),
                _ => *ours == theirs,
            }
        })
}

/// Nobody looks at padding, nor at a pointer that C libcxi leaves as it was.
fn same_bytes(ours: &Value, theirs: &Value) -> bool {
    let (ours, theirs) = (ours.as_str().unwrap_or_default(), theirs.as_str().unwrap_or_default());
    let wild = |byte: u8| matches!(byte, b'.' | b'?');
    ours.len() == theirs.len()
        && ours.bytes().zip(theirs.bytes()).all(|(ours, theirs)| ours == theirs || wild(theirs))
}

fn without_cloexec(flags: &Value) -> String {
    let flags = flags.as_str().unwrap_or_default();
    flags.replace("|O_CLOEXEC", "")
}

/// That the comparison sees a difference.
#[test]
fn other_bytes_and_other_results_are_seen() {
    let event = |bytes: &str| serde_json::json!({"write": "X", "len": 4, "bytes": bytes});
    assert!(same(&event("01pp"), &event("01pp")));
    assert!(same(&event("01ff"), &event("01..")));
    assert!(!same(&event("02ff"), &event("01..")));
    assert!(!same(&event("01..ff"), &event("01..")));
    assert!(events_differ(&[], &[event("01")]).is_some());
    assert!(events_differ(&[event("01")], &[]).is_some());
    let mmap = |offset| serde_json::json!({"mmap": "/dev/cxi0", "offset": offset});
    assert!(!same(&mmap(4096), &mmap(0)));
    let (ours, theirs) = (
        Cases::from([("a".to_owned(), Case::default())]),
        Case { ret: "0".to_owned(), ..Case::default() },
    );
    assert!(difference("main", "a", &ours, theirs).is_some());
    assert!(difference("main", "b", &ours, Case::default()).is_some());
}
