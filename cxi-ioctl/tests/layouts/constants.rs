use std::collections::{BTreeMap, BTreeSet};

use cxi_ioctl::abi::constants;
use cxi_ioctl::abi::memory::MapFlags;
use serde_json::Value;

use crate::recorded::{self, Recorded};
use crate::{LeftOut, Reasons, report};

/// Constants that are not defined here.
const LEFT_OUT: &Reasons = &[
    ("a count that changed with a release", &["CXI_SVC_MEMBER_MAX"]),
    ("a hint that the header does not explain; unreleased", &["CXI_MAP_HUGEPAGE"]),
    ("register settings of the kernel driver", &["C1_DEFAULT_"]),
    ("what the NIC calls its lists and states: in `cxi-hw`", &["C_PTL_LIST_", "C_PTLTE_"]),
    ("error reports over netlink, not commands", &["CXIERR_"]),
    ("Ethernet of virtual functions, kernel to kernel", &["CXI_ETH_HASH_KEY_SIZE", "CXI_ETH_MAX_"]),
];

/// All constants of a release by name, those of hardware aside.
fn of_header(recorded: &Recorded) -> BTreeMap<&str, i64> {
    let groups = [recorded.section("enums"), recorded.section("flag_groups")];
    groups
        .into_iter()
        .flat_map(|group| group.values().filter_map(Value::as_object))
        .chain([recorded.section("constants")])
        .flatten()
        // A string is not a constant of a command.
        .filter_map(|(name, value)| Some((name.as_str(), value.as_i64()?)))
        .collect()
}

fn here() -> Vec<(String, i64, Option<cxi_ioctl::DriverRelease>)> {
    let flags = MapFlags::all()
        .iter_names()
        .map(|(name, flag)| (format!("CXI_MAP_{name}"), i64::from(flag.bits()), None));
    constants()
        .map(|constant| (constant.c_name.to_owned(), constant.value, constant.since))
        .chain(flags)
        .collect()
}

#[test]
fn every_constant_has_the_kernels_value() {
    let mut problems = Vec::new();
    for recorded in recorded::all() {
        let release = recorded.release;
        let header = of_header(&recorded);
        let hardware = recorded.section("hardware_constants");
        for (name, value, since) in here() {
            let kernel =
                header.get(name.as_str()).copied().or_else(|| hardware.get(&name)?.as_i64());
            let expected = since.is_none_or(|since| since <= release).then_some(value);
            if kernel != expected {
                problems
                    .push(format!("{release}: {name} is {expected:?}, the kernel has {kernel:?}"));
            }
        }
    }
    report(&problems);
}

#[test]
fn every_constant_of_the_kernel_is_here_or_has_a_reason() {
    let here: BTreeSet<String> = here().into_iter().map(|constant| constant.0).collect();
    let mut problems = Vec::new();
    let mut left_out = LeftOut::new(LEFT_OUT);
    for recorded in recorded::all() {
        for name in of_header(&recorded).into_keys() {
            if !(here.contains(name) || left_out.has(name)) {
                problems.push(format!("{}: {name} is missing", recorded.release));
            }
        }
    }
    left_out.report(problems);
}
