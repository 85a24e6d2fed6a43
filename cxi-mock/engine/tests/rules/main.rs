//! One test for each rule of the data path, by the numbers of docs/DATA-PATH.md.

#[path = "../rig/mod.rs"]
mod rig;

mod addresses;
mod atomics;
mod copies;
mod counters;
mod entries;
mod event_queues;
mod events;
mod immediate;
mod memory;
mod messages;
mod objects;
mod order;
mod queues;
mod rendezvous;
mod resize;
mod search;
mod software;
mod staged;
mod states;
mod triggered;

use cxi_engine::PortalOptions;
use cxi_hw::{TargetCommand, TargetFlags};
use rig::{BUFFER, PORTAL, Rig, TARGET_EQ, entry};

/// A portal that takes restricted puts and says nothing, so that only the initiator reports.
fn quiet() -> Rig {
    let mut rig = Rig::new();
    rig.portal(PORTAL, 0, PortalOptions::empty());
    rig.append(&TargetCommand {
        flags: TargetFlags::OP_PUT | TargetFlags::EVENT_COMM_DISABLE,
        ..entry(7, BUFFER + 4096, 4096)
    });
    rig.event(TARGET_EQ);
    rig
}

/// A portal with an entry that takes everything.
fn matching() -> Rig {
    let mut rig = Rig::new();
    rig.portal(PORTAL, 0, PortalOptions::IS_MATCHING);
    rig.append(&entry(7, BUFFER + 4096, 4096));
    rig.event(TARGET_EQ);
    rig
}

/// How many rules each section has.
const RULES: [u32; 15] = [5, 15, 12, 8, 5, 7, 13, 12, 8, 9, 7, 5, 8, 5, 5];
/// Rules of front ends and of the control plane, see docs/DATA-PATH.md.
const ELSEWHERE: [(u32, u32); 5] = [(2, 7), (13, 8), (15, 2), (15, 3), (15, 5)];

/// Sections and numbers in the name of a test: `rules_6_2_11_6_what_it_says`.
fn numbers(name: &str) -> Vec<(u32, u32)> {
    let parts: Vec<_> = name
        .split('_')
        .skip(1)
        .map_while(|part| part.parse().ok())
        .collect();
    parts
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .collect()
}

#[test]
fn every_rule_has_a_test() {
    let sources = [
        include_str!("addresses.rs"),
        include_str!("atomics.rs"),
        include_str!("counters.rs"),
        include_str!("entries.rs"),
        include_str!("event_queues.rs"),
        include_str!("events.rs"),
        include_str!("immediate.rs"),
        include_str!("memory.rs"),
        include_str!("messages.rs"),
        include_str!("objects.rs"),
        include_str!("order.rs"),
        include_str!("queues.rs"),
        include_str!("rendezvous.rs"),
        include_str!("resize.rs"),
        include_str!("search.rs"),
        include_str!("software.rs"),
        include_str!("states.rs"),
        include_str!("triggered.rs"),
    ];
    let tests = sources
        .iter()
        .flat_map(|source| source.split("#[test]\nfn rule").skip(1));
    let tested: Vec<_> = tests.flat_map(numbers).collect();
    let missing: Vec<_> = (1..)
        .zip(RULES)
        .flat_map(|(section, rules)| (1..=rules).map(move |rule| (section, rule)))
        .filter(|rule| !tested.contains(rule))
        .collect();
    assert_eq!(missing, ELSEWHERE);
}
