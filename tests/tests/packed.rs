//! The packed copy of the scenarios is whole, and what it holds can be replayed.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use cxi_ioctl::DriverRelease;
use cxi_tests::scenario::{Scenario, Step};
use cxi_tests::{archive, encode, uapi};
use serde_json::{Map, Value};

#[test]
fn has_every_driver() {
    let mut counts = BTreeMap::new();
    for file in archive::packed().unwrap() {
        let (driver, name) = file.path.split_once('/').unwrap();
        let scenario = Scenario::parse(&file.json).unwrap();
        assert_eq!(scenario.driver.name(), driver, "{}", file.path);
        assert_eq!(format!("{}.json", scenario.name), name);
        *counts.entry(scenario.driver).or_insert(0) += 1;
    }
    let expected = [
        (DriverRelease::Shs12_0, 256),
        (DriverRelease::Shs13_0, 256),
        (DriverRelease::Shs13_1, 258),
        (DriverRelease::Shs14_0_0, 258),
        (DriverRelease::Shs14_0_1, 327),
        (DriverRelease::Main, 342),
    ];
    assert_eq!(counts, BTreeMap::from(expected));
}

#[test]
fn packs_to_the_same_bytes() {
    let files = archive::packed().unwrap();
    let some: Vec<_> = files.iter().take(40).cloned().collect();
    let bytes = archive::pack(&some).unwrap();
    let mut backwards = some.clone();
    backwards.reverse();
    assert_eq!(archive::pack(&backwards).unwrap(), bytes);
    let mut unpacked = archive::unpack(&bytes).unwrap();
    let mut some = some;
    some.sort();
    unpacked.sort();
    assert_eq!(unpacked, some);
}

#[test]
fn damage_is_reported() {
    let files = archive::packed().unwrap();
    let bytes = archive::pack(files.get(..3).unwrap()).unwrap();
    let cut = bytes.get(..bytes.len() / 2).unwrap();
    let error = archive::unpack(cut).unwrap_err();
    assert!(
        error.starts_with("the packed scenarios are damaged"),
        "{error}"
    );
}

/// Puts a number where a saved value would go.
fn resolved(value: &Value) -> Value {
    match value {
        Value::String(text) if text.starts_with('$') => 1.into(),
        Value::Object(map) => Value::Object(all_resolved(map)),
        other => other.clone(),
    }
}

fn all_resolved(map: &Map<String, Value>) -> Map<String, Value> {
    map.iter()
        .map(|(name, value)| (name.clone(), resolved(value)))
        .collect()
}

fn encode_all(steps: &[Step], release: DriverRelease, encoded: &mut usize) {
    for step in steps {
        encode_all(&step.steps, release, encoded);
        if let Some(inner) = &step.step {
            encode_all(std::slice::from_ref(inner), release, encoded);
        }
        let Some(opcode) = uapi::opcode(&step.op) else {
            continue;
        };
        let bytes = encode::request(&step.op, &all_resolved(&step.cmd), release).unwrap();
        assert_eq!(bytes.get(..4).unwrap(), opcode.number().to_le_bytes());
        if let Some(cxi_ioctl::RequestLen::Exact(length)) = opcode.request_len(release) {
            assert_eq!(bytes.len(), length, "{} of {release}", step.op);
        }
        *encoded += 1;
    }
}

#[test]
fn every_command_can_be_encoded() {
    let mut encoded = 0;
    for file in archive::packed().unwrap() {
        let scenario = Scenario::parse(&file.json).unwrap();
        encode_all(&scenario.steps, scenario.driver, &mut encoded);
    }
    assert!(encoded > 20_000, "{encoded}");
}
