//! The packed copy of the scenarios is complete.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};

use cxi::explain::{Code, causes_of};
use cxi_ioctl::DriverRelease;
use cxi_tests::archive;
use cxi_tests::scenario::Scenario;
use serde_json::Value;

#[test]
fn has_every_driver() {
    let mut counts = BTreeMap::new();
    for file in archive::packed().unwrap() {
        let (driver, name) = file.path.split_once('/').unwrap();
        let scenario = Scenario::parse(&file.json).unwrap();
        assert_eq!(driver.parse(), Ok(scenario.driver), "{}", file.path);
        assert_eq!(format!("{}.json", scenario.name), name);
        *counts.entry(scenario.driver).or_insert(0) += 1;
    }
    let expected = [
        (DriverRelease::Shs12_0, 256),
        (DriverRelease::Shs13_0, 256),
        (DriverRelease::Shs13_1, 258),
        (DriverRelease::Shs14_0_0, 258),
        (DriverRelease::Shs14_0_1, 327),
        (DriverRelease::Main2026_07, 349),
    ];
    assert_eq!(counts, BTreeMap::from(expected));
}

#[test]
fn damage_is_reported() {
    let packed = include_bytes!("../conformance/scenarios.tar.xz");
    let error = archive::unpack(&packed[..packed.len() / 2]).unwrap_err();
    assert!(error.starts_with("the packed scenarios are damaged"), "{error}");
}

/// Every errno that a driver gave in a recorded scenario can be explained.
#[test]
fn every_recorded_errno_has_a_cause() {
    let mut seen = BTreeSet::new();
    for file in archive::packed().unwrap() {
        let json: Value = serde_json::from_slice(&file.json).unwrap();
        collect(&json, &mut seen);
    }
    seen.remove("OK");
    assert!(seen.len() >= 15, "{seen:?}");
    for name in &seen {
        let code = Code::from_name(name).unwrap_or_else(|| panic!("{name}"));
        assert!(!causes_of(code, None, None).is_empty(), "{name}");
    }
}

/// The values of `errno`, `boot_errno` and `errors`, wherever they are.
fn collect(json: &Value, seen: &mut BTreeSet<String>) {
    match json {
        Value::Object(members) => {
            for (key, value) in members {
                match (key.as_str(), value) {
                    ("errno" | "boot_errno", Value::String(errno)) => {
                        seen.insert(errno.clone());
                    }
                    ("errors", Value::Array(errnos)) => {
                        seen.extend(errnos.iter().filter_map(Value::as_str).map(str::to_owned));
                    }
                    _ => collect(value, seen),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, seen)),
        _ => {}
    }
}
