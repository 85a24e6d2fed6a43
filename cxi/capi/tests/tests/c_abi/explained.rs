//! Why a call failed, in the words of the crate `cxi`.

use crate::compiled::{Bench, can_serve, printed, served};
use crate::need_bench;

/// Refused calls on a driver, with their errnos and explanations.
fn said(bench: &Bench, release: &str, what: &str) -> String {
    let arguments = bench.link_arguments();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let program = bench.compile_own("refused.c", &arguments);
    let program = program.display().to_string();
    let output = served(&["--release", release, "--", &program, what], &[]);
    let text = printed(&output);
    let (first, second) = text.split_once('\n').expect("two lines");
    assert!(first.ends_with(second), "{text}");
    // Nothing is printed that nobody asked for.
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let loud = served(
        &["--release", release, "--", &program, what],
        &[("CXI_EXPLAIN", "1")],
    );
    assert_eq!(printed(&loud), text);
    let printed = String::from_utf8_lossy(&loud.stderr).into_owned();
    assert_eq!(printed, format!("libcxi: {second}\n"));
    first.to_owned()
}

#[test]
fn a_service_is_refused_for_what_is_short() {
    let bench = need_bench!();
    if !can_serve() {
        return;
    }
    for release in [
        "shs-12.0",
        "shs-13.0",
        "shs-13.1",
        "shs-14.0.0",
        "shs-14.0.1",
        "main",
    ] {
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
    if !can_serve() {
        return;
    }
    let said = |what| said(bench, "shs-14.0.1", what);
    assert_eq!(
        said("limit"),
        "-22 cxi0: SVC_ALLOC: EINVAL: CTs: 4 reserved but at most 3: expected a maximum of at \
         least what is reserved"
    );
    assert_eq!(
        said("busy"),
        "-16 cxi0: SVC_DESTROY: service 2 is still in use"
    );
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
