//! What sequences start from: what random steps seldom come to by themselves.

use crate::sequence::model::{AC, LE};
use crate::sequence::operation::{Caller, Command, Descriptor, Operation};

/// The steps of each start; the first has none.
pub(super) fn all() -> Vec<Vec<Operation>> {
    vec![vec![], exclusive_range(), shared_rgid(), few_le_pools()]
}

fn steps(commands: impl IntoIterator<Item = Command>) -> Vec<Operation> {
    let commands = commands.into_iter().map(|command| Operation::Command {
        file: 0,
        caller: Caller::ROOT,
        command,
    });
    std::iter::once(Operation::Open { file: 0 })
        .chain(commands)
        .collect()
}

/// A range of VNIs whose CPs have table entries of their own, and an LNI.
fn exclusive_range() -> Vec<Operation> {
    let svc_id = 2;
    steps([
        Command::SvcAlloc {
            new: Box::default(),
        },
        Command::SvcSetVniRange {
            svc_id,
            min: 64,
            max: 71,
        },
        Command::SvcSetExclusiveCp {
            svc_id,
            exclusive: true,
        },
        Command::SvcEnable {
            svc_id,
            enable: true,
        },
        Command::LniAlloc { svc_id },
    ])
}

/// Three LNIs that share an RGID, with most of its address contexts in use.
fn shared_rgid() -> Vec<Operation> {
    let svc_id = 2;
    let mut descriptor = Descriptor {
        restricted_vnis: true,
        resource_limits: true,
        num_vld_vnis: 1,
        vnis: [30, 0, 0, 0],
        limits: [(20, 2); 8],
        ..Descriptor::default()
    };
    descriptor.limits[AC] = (40, 2);
    let begin = [
        Command::SvcAlloc {
            new: Box::new(descriptor),
        },
        Command::SvcSetLpr {
            svc_id,
            lnis_per_rgid: 3,
        },
    ];
    let lnis = (0..3).map(|_| Command::LniAlloc { svc_id });
    let mappings = [(1, 0), (1, 1), (1, 32), (2, 0), (2, 1), (2, 33)];
    let mappings = mappings.map(|(lni, flags)| Command::AtuMap {
        lni,
        va: 1 << 20,
        len: 4096,
        flags,
    });
    steps(begin.into_iter().chain(lnis).chain(mappings))
}

/// Services that leave one LE pool.
fn few_le_pools() -> Vec<Operation> {
    let mut descriptor = Descriptor {
        restricted_vnis: true,
        resource_limits: true,
        ..Descriptor::default()
    };
    descriptor.limits[LE] = (4, 2);
    steps((0..14).map(|_| Command::SvcAlloc {
        new: Box::new(descriptor.clone()),
    }))
}
