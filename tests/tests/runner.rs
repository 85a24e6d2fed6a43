//! The runner itself, on a device with scripted answers.
#![forbid(unsafe_code)]
#![allow(clippy::needless_pass_by_value, reason = "steps read better without references")]

use std::cell::Cell;

use cxi_ioctl::{DriverRelease, Errno, Opcode};
use cxi_mock::{CallerMemory, Credentials};
use cxi_tests::archive::File;
use cxi_tests::device::{Device, LoadFailure, Report};
use cxi_tests::run::run;
use cxi_tests::scenario::{Scenario, Setup};
use cxi_tests::suite;
use serde_json::{Value, json};

/// Hands out LNIs 1, 2 and 3, then ENOSPC; frees LNI 2 only; panics at DOMAIN_FREE.
struct Scripted {
    next: Cell<u32>,
}

impl Device for Scripted {
    type File = ();

    fn load(_release: DriverRelease, setup: &Setup) -> Result<Self, LoadFailure> {
        if setup.params.contains_key("refuse") {
            return Err(LoadFailure::Refused(Errno::EINVAL));
        }
        Ok(Self { next: Cell::new(1) })
    }

    fn open(&self, _caller: &Credentials, _virtual_function: bool) -> Result<(), Errno> {
        Ok(())
    }

    fn write(
        &self,
        _file: &(),
        _caller: &Credentials,
        command: &[u8],
        memory: &mut dyn CallerMemory,
    ) -> Result<usize, Errno> {
        let word = |at: usize| u32::from_le_bytes(command[at..at + 4].try_into().unwrap());
        match Opcode::from_number(word(0)) {
            Opcode::LNI_ALLOC if self.next.get() > 3 => return Err(Errno::ENOSPC),
            Opcode::LNI_ALLOC => {
                memory.respond(&self.next.get().to_le_bytes())?;
                self.next.set(self.next.get() + 1);
            }
            Opcode::LNI_FREE if word(4) != 2 => return Err(Errno::EBUSY),
            Opcode::DOMAIN_FREE => panic!("a domain"),
            _ => {}
        }
        Ok(command.len())
    }

    fn tick(&self) -> bool {
        false
    }

    fn report(&self, _report: Report) -> Result<(), String> {
        Ok(())
    }

    fn state(&self) -> Result<Value, String> {
        Ok(json!({"dev_refcount": 1, "svc_count": 1, "extra": 2}))
    }
}

fn step(op: &str, cmd: Value, expect: Value) -> Value {
    json!({
        "as": {"uid": 5, "gid": 6, "admin": false, "netns": 4_026_531_840_u32},
        "fd": "a", "op": op, "cmd": cmd, "expect": expect
    })
}

fn scenario(steps: &[Value]) -> Scenario {
    let mut all = vec![step("OPEN", json!({}), json!({"errno": "OK"}))];
    all.extend_from_slice(steps);
    let file = json!({"name": "t", "driver": "main", "steps": all});
    Scenario::parse(file.to_string().as_bytes()).unwrap()
}

const NOTHING: [&str; 0] = [];

/// The differences as text, with their steps.
fn differences(steps: &[Value]) -> Vec<String> {
    let failures = run::<Scripted>(&scenario(steps));
    let lines = failures.iter().flat_map(|failure| {
        let lines = failure.differences.iter();
        lines.map(move |difference| format!("{}: {difference}", failure.step))
    });
    lines.collect()
}

fn alloc(lni: u32) -> Value {
    step("LNI_ALLOC", json!({"svc_id": 1}), json!({"errno": "OK", "resp": {"lni": lni}}))
}

#[test]
fn what_is_as_recorded_passes() {
    let mut saved = alloc(1);
    saved["save"] = json!({"l": "lni"});
    let freed = step("LNI_FREE", json!({"lni": "$l"}), json!({"errno": "EBUSY"}));
    assert_eq!(differences(&[saved, freed]), NOTHING);
}

#[test]
fn what_differs_is_named() {
    assert_eq!(differences(&[alloc(2)]), ["1: resp.lni: expected 2, got 1"]);
    let refused = step("LNI_ALLOC", json!({}), json!({"errno": "EPERM"}));
    assert_eq!(
        differences(&[refused]),
        ["1: errno: expected EPERM, got OK", "1: resp: expected nothing written, got {\"lni\":1}"]
    );
    let answered = step("LNI_FREE", json!({"lni": 2}), json!({"errno": "OK", "resp": {"a": 1}}));
    assert_eq!(differences(&[answered]), ["1: resp: expected {\"a\":1}, got nothing written"]);
    let bad = step("LNI_ALLOC", json!({"__bad_resp": true}), json!({"errno": "EFAULT"}));
    assert_eq!(differences(&[bad]), NOTHING);
}

#[test]
fn what_cannot_be_done_is_a_failure() {
    let cases = [
        ("LNI_FREE", json!({"lni": "$x"}), "needs $x"),
        ("LNI_FREE", json!({"nli": 1}), "cmd.nli"),
        ("LNI_FREE", json!({"__odd": 1}), "cmd.__odd"),
        ("LNI_FERE", json!({}), "unknown operation 'LNI_FERE'"),
        ("DRAIN", json!({}), "DRAIN needs step"),
        ("HW_SET", json!({"what": "x"}), "cmd.what"),
    ];
    for (op, cmd, reason) in cases {
        let step = step(op, cmd, json!({"errno": "OK"}));
        let found = differences(&[step]);
        assert!(found.len() == 1 && found[0].contains(reason), "{found:?}");
    }
}

#[test]
fn state_is_compared_whole() {
    let state = |resp| step("STATE", json!({}), json!({"errno": "OK", "resp": resp}));
    assert_eq!(
        differences(&[state(json!({"dev_refcount": 9, "svc_count": 2, "missing": 0}))]),
        [
            "1: state.missing: expected 0, got no such field",
            "1: state.svc_count: expected 2, got 1",
            "1: state.extra: expected no such field, got 2",
        ]
    );
}

#[test]
fn repeat_compares_every_pass_unless_it_varies() {
    let mut inner = alloc(1);
    let repeat = |inner: &Value| {
        json!({
            "as": inner["as"], "op": "REPEAT", "times": 2, "steps": [inner],
            "expect": {"errno": "OK"}
        })
    };
    assert_eq!(differences(&[repeat(&inner)]), ["1 (pass 1, step 0): resp.lni: expected 1, got 2"]);
    inner["varies"] = true.into();
    assert_eq!(differences(&[repeat(&inner)]), NOTHING);
}

#[test]
fn fill_and_drain() {
    let inner = step("LNI_ALLOC", json!({"svc_id": 1}), Value::Null);
    let fill = |limit: u32, expect: Value| {
        json!({
            "as": inner["as"], "fd": "a", "op": "FILL", "limit": limit, "step": inner,
            "collect": ["l", "lni"], "expect": expect
        })
    };
    let drain = |expect: Value| {
        json!({
            "as": inner["as"], "fd": "a", "op": "DRAIN", "list": "l", "field": "lni",
            "step": step("LNI_FREE", json!({}), Value::Null), "expect": expect
        })
    };
    let everything = json!({"errno": "ENOSPC", "successes": 3, "first": 1, "last": 3});
    let freed = json!({"errno": "OK", "successes": 1, "errors": ["EBUSY"]});
    assert_eq!(differences(&[fill(9, everything.clone()), drain(freed)]), NOTHING);
    assert_eq!(
        differences(&[
            fill(2, everything),
            drain(json!({"errno": "OK", "successes": 2, "errors": []}))
        ]),
        [
            "1: errno: expected ENOSPC, got OK",
            "1: successes: expected 3, got 2",
            "1: last: expected 3, got 2",
            "2: successes: expected 2, got 1",
            "2: errors: expected [], got [\"EBUSY\"]",
        ]
    );
}

#[test]
fn a_driver_that_does_not_load() {
    let parse = |file: Value| Scenario::parse(file.to_string().as_bytes()).unwrap();
    let refused = json!({"params": {"refuse": 1}});
    let file = json!({"name": "t", "driver": "main", "device": refused, "boot_errno": "EINVAL"});
    assert_eq!(run::<Scripted>(&parse(file)), []);
    for file in [
        json!({"name": "t", "driver": "main", "device": refused, "boot_errno": "EEXIST"}),
        json!({"name": "t", "driver": "main", "device": refused}),
        json!({"name": "t", "driver": "main", "boot_errno": "EINVAL"}),
    ] {
        assert_eq!(run::<Scripted>(&parse(file)).len(), 1);
    }
}

#[test]
fn malformed_files_and_panics_are_failures() {
    let panics = step("DOMAIN_FREE", json!({"domain": 1}), json!({"errno": "OK"}));
    let panics = json!({
        "name": "t", "driver": "main",
        "steps": [step("OPEN", json!({}), json!({"errno": "OK"})), panics]
    });
    let file =
        |path: &str, json: &str| File { path: path.to_owned(), json: json.as_bytes().to_vec() };
    let head = r#"{"name": "t", "driver": "main", "steps": ["#;
    let files = [
        file("cut.json", head),
        file("driver.json", &head.replace("main", "shs-15").replace('[', "[]}")),
        file("empty.json", &head.replace('[', "[]}")),
        file("panics.json", &panics.to_string()),
    ];
    let summary = suite::run_all::<Scripted>(&files);
    assert_eq!(summary.line(), "conformance: 1 passed, 3 failed");
    let reasons: Vec<_> = summary
        .failed
        .iter()
        .map(|(path, failures)| format!("{path}: {}", failures[0].differences[0].got))
        .collect();
    assert!(reasons[0].starts_with("cut.json: EOF while parsing"), "{reasons:?}");
    assert!(reasons[1].contains("unknown driver release 'shs-15'"), "{reasons:?}");
    assert_eq!(reasons[2], "panics.json: a domain");
}
