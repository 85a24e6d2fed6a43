//! The packed copy of the scenarios is complete.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use cxi_ioctl::DriverRelease;
use cxi_tests::archive;
use cxi_tests::scenario::Scenario;

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
fn damage_is_reported() {
    let packed = include_bytes!("../conformance/scenarios.tar.xz");
    let error = archive::unpack(&packed[..packed.len() / 2]).unwrap_err();
    assert!(error.starts_with("the packed scenarios are damaged"), "{error}");
}
