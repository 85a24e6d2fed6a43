//! One test for each rule of the data path, by the numbers of docs/RULES.md.

#[path = "../rig/mod.rs"]
mod rig;

mod addresses;
mod atomics;
mod counters;
mod entries;
mod event_queues;
mod events;
mod immediate;
mod memory;
mod messages;
mod numbers;
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
mod windows;

use cxi_engine::PortalOptions;
use cxi_hw::TargetFlags;
use rig::{BUFFER, Rig, TargetWith, entry};

/// A portal that takes restricted puts and says nothing, so that only the initiator reports.
fn quiet() -> Rig {
    let mut rig = Rig::with_portal(PortalOptions::empty());
    rig.link(
        &entry(7, BUFFER + 4096, 4096)
            .with_flags(TargetFlags::OP_PUT | TargetFlags::EVENT_COMM_DISABLE),
    );
    rig
}

/// A portal with an entry that takes everything.
fn matching() -> Rig {
    let mut rig = Rig::matching();
    rig.link(&entry(7, BUFFER + 4096, 4096));
    rig
}
