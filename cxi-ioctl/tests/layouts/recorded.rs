//! The recorded interfaces; `tests/abi/minimise.jq` says what they are made from.

use cxi_ioctl::{DriverRelease, EveryRelease};
use serde_json::{Map, Value};

pub(crate) struct Recorded {
    pub(crate) release: DriverRelease,
    root: Value,
}

impl Recorded {
    pub(crate) fn section(&self, name: &str) -> &Map<String, Value> {
        self.root[name].as_object().unwrap_or_else(|| panic!("{}: no section {name}", self.release))
    }

    pub(crate) fn number(&self, name: &str) -> u64 {
        self.root[name].as_u64().expect("a number")
    }
}

/// All releases, oldest first. 14.0.0 and 14.0.1 have the same interface.
pub(crate) fn all() -> Vec<Recorded> {
    DriverRelease::ALL
        .into_iter()
        .map(|release| {
            let (name, text) = match release.every() {
                EveryRelease::Shs12_0 => ("shs-12.0", include_str!("../abi/shs-12.0.json")),
                EveryRelease::Shs13_0 => ("shs-13.0", include_str!("../abi/shs-13.0.json")),
                EveryRelease::Shs13_1 => ("shs-13.1", include_str!("../abi/shs-13.1.json")),
                EveryRelease::Shs14_0_0 | EveryRelease::Shs14_0_1 => {
                    ("shs-14.0", include_str!("../abi/shs-14.0.json"))
                }
                EveryRelease::Main2026_07 => ("main", include_str!("../abi/main.json")),
                EveryRelease::Main2026_11 => {
                    ("main-2026-11", include_str!("../abi/main-2026-11.json"))
                }
            };
            let root: Value = serde_json::from_str(text).expect("a recorded interface");
            assert_eq!(root["release"], name);
            Recorded { release, root }
        })
        .collect()
}

/// An array of objects; nothing if there is none.
pub(crate) fn objects(value: &Value) -> impl Iterator<Item = &Map<String, Value>> {
    value.as_array().into_iter().flatten().filter_map(Value::as_object)
}

pub(crate) fn size(object: &Map<String, Value>, key: &str) -> usize {
    object[key]
        .as_u64()
        .and_then(|number| number.try_into().ok())
        .unwrap_or_else(|| panic!("no {key} in {object:?}"))
}
