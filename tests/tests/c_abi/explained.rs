//! Reasons of failed calls, in the words of the crate `cxi`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use cxi_ioctl::DriverRelease;

use crate::compiled::{Bench, can_unshare, served};
use crate::need_bench;
use cxi_tests::node::{possible, printed, windows};

fn program(bench: &Bench) -> PathBuf {
    let arguments = bench.link_arguments();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    bench.compile_own("refused.c", &arguments)
}

/// A refused call on a driver: its errno with the explanation, and what is printed if the
/// environment asks for it.
fn refused(bench: &Bench, release: &str, what: &str) -> (String, String) {
    let program = program(bench).display().to_string();
    // The NICs have a virtual function each.
    let config = bench.place(&format!("{what}.json"));
    fs::write(&config, r#"{"virtual_functions": 1}"#).expect("a file");
    let config = config.display().to_string();
    let node = ["--release", release, "--config", &config];
    let arguments = [&node[..], &["--", &program, what]].concat();
    let output = served(&arguments, &[]);
    let text = printed(&output);
    let (first, second) = text.split_once('\n').expect("two lines");
    assert!(first.ends_with(second), "{text}");
    // Nothing is printed unless asked for.
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let loud = served(&arguments, &[("CXI_EXPLAIN", "1")]);
    assert_eq!(printed(&loud), text);
    let printed = String::from_utf8_lossy(&loud.stderr).into_owned();
    (first.to_owned(), printed)
}

/// As [`refused`], of a call that is a failure.
fn said(bench: &Bench, release: &str, what: &str) -> String {
    let (text, printed) = refused(bench, release, what);
    let (_, reason) = text.split_once(' ').expect("an errno");
    assert_eq!(printed, format!("libcxi: {reason}\n"));
    text
}

#[test]
fn a_service_is_refused_for_what_is_short() {
    let bench = need_bench!();
    if !possible() {
        return;
    }
    for release in DriverRelease::ALL.map(DriverRelease::name) {
        assert_eq!(
            said(bench, release, "short"),
            "-28 cxi0: SVC_ALLOC: not enough TXQs: 900 requested, 124 available",
            "{release}"
        );
    }
}

#[test]
fn other_refusals_have_their_reasons_too() {
    let bench = need_bench!();
    if !(possible() && windows()) {
        return;
    }
    let said = |what| said(bench, "shs-14.0.1", what);
    assert_eq!(
        said("limit"),
        "-22 cxi0: SVC_ALLOC: CTs: 4 reserved but at most 3: expected a maximum no lower than the \
         reservation"
    );
    assert_eq!(said("busy"), "-16 cxi0: SVC_DESTROY: service 2 is still in use");
    assert_eq!(said("lni"), "-22 cxi0: LNI_ALLOC: there is no service 77");
    for (what, command, resource) in [
        ("ct", "CT_ALLOC", "CTs"),
        ("pte", "PTE_ALLOC", "PTEs"),
        ("txq", "CQ_ALLOC", "TXQs"),
        ("tgq", "CQ_ALLOC", "TGQs"),
    ] {
        let expected = format!(
            "-28 cxi0: {command}: service 2 has no {resource} left: 1 of at most 1 are in use, or \
             kept for its LNIs"
        );
        assert_eq!(said(what), expected);
    }
    assert!(said("domain").starts_with("-17 cxi0: DOMAIN_ALLOC: the PID is taken on this VNI"));
    assert_eq!(
        said("null"),
        "-22 invalid argument: NULL, 0, or something that is not, or no longer, a handle"
    );
}

/// A driver of the development branch reads past the end of its array for such a queue: it must not
/// get the command. What the driver refuses is explained with the name of the command.
#[test]
fn an_empty_event_queue_of_a_virtual_function_is_not_sent() {
    let bench = need_bench!();
    if !(possible() && windows()) {
        return;
    }
    let text = said(bench, "main", "empty");
    assert!(text.starts_with("-22 invalid argument"), "{text}");
}

#[test]
fn what_is_missing_is_named() {
    let bench = need_bench!();
    if !possible() {
        return;
    }
    for (what, expected) in [
        ("device", "-2 cxi7: cannot open /dev/cxi7: there is no such device"),
        ("service", "-22 cxi0: SVC_GET: there is no service 77"),
        ("use", "-22 cxi0: SVC_RSRC_GET: there is no service 77"),
        ("enable", "-22 cxi0: SVC_ENABLE: there is no service 77"),
        ("nothing", "-22 cxi0: SVC_GET_NETNS: there is no service 77"),
    ] {
        assert_eq!(said(bench, "main", what), expected);
    }
}

/// HPE's tools ask each service for what few have.
#[test]
fn nothing_is_printed_of_an_answer_in_the_form_of_an_error() {
    let bench = need_bench!();
    if !possible() {
        return;
    }
    for (what, expected) in [
        ("netns", "-22 cxi0: SVC_GET_NETNS: service 1 has no network namespace (EINVAL)"),
        ("range", "-22 cxi0: SVC_GET_VNI_RANGE: service 1 has no VNI range (EINVAL)"),
    ] {
        let (text, printed) = refused(bench, "main", what);
        assert_eq!((text.as_str(), printed.as_str()), (expected, ""));
    }
}

#[test]
fn parent_services_are_made_by_drivers_that_have_them() {
    let bench = need_bench!();
    if !possible() {
        return;
    }
    assert!(said(bench, "main", "parent").starts_with("-22 cxi0: SVC_ALLOC_PARENT: "));
    // A function makes no parent, and nothing of another VNI than its parent's.
    let (text, printed) = refused(bench, "main-2026-11", "child");
    assert!(text.starts_with("-22 cxi1: SVC_ALLOC: "), "{text}");
    assert!(printed.starts_with("libcxi: cxi1: SVC_ALLOC_PARENT: not permitted"), "{printed}");
}

/// Opens a `/dev/cxi0` that a shell's `setup` makes, with `/sys` of a NIC.
fn open_of(bench: &Bench, setup: &str) -> String {
    let script = format!(
        "set -e; mount -t tmpfs none /sys; mount -t tmpfs none /dev; cd /sys; \
         mkdir -p class/cxi_user/cxi0 pci/0000:21:00.0/properties bus/cxi_ss1; \
         ln -s /sys/pci/0000:21:00.0 class/cxi_user/cxi0/device; cd pci/0000:21:00.0; \
         ln -s /sys/bus/cxi_ss1 driver; truncate -s 4G resource0; {setup}; {} open",
        program(bench).display(),
    );
    let output = Command::new("unshare").args(["-m", "sh", "-c", &script]).output();
    printed(&output.expect("a shell"))
}

#[test]
fn what_is_no_nic_is_refused() {
    let bench = need_bench!();
    if !can_unshare() {
        return;
    }
    let silent = "-71 cxi0: DEV_INFO_GET: the driver wrote 0 bytes of response, this library \
                  expects 120: it does not know this version of the driver's interface";
    for node in ["mkfifo /dev/cxi0", "echo > /dev/cxi0", "mknod /dev/cxi0 c 1 3"] {
        assert_eq!(open_of(bench, node), silent, "{node}");
    }
    // A driver without DEV_INFO_GET: writing to /dev/full fails. The properties are files then.
    let full = "mknod /dev/cxi0 c 1 7";
    let nid = "cxi0: /sys/class/cxi_user/cxi0/device/properties/nid";
    assert!(open_of(bench, full).starts_with(&format!("-2 {nid}: No such file")));
    assert_eq!(
        open_of(bench, &format!("{full}; echo none > properties/nid")),
        format!("-22 {nid}: invalid \"none\": expected a number")
    );
    assert!(open_of(bench, &format!("{full}; rm driver")).contains("cxi0/device/driver: No such"));
}
