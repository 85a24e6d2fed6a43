//! The initial states of sequences, which random steps rarely reach.

use crate::sequence::model::{AC, LE};
use crate::sequence::operation::{Caller, Command, Operation, SvcDesc, command};
use zerocopy::FromZeros;

use super::service::limited;

/// The steps that lead to each initial state; the first has none.
pub(super) fn all() -> Vec<Vec<Operation>> {
    vec![vec![], exclusive_range(), shared_rgid(), few_le_pools()]
}

fn steps(commands: impl IntoIterator<Item = Command>) -> Vec<Operation> {
    let commands = commands.into_iter().map(|command| Operation::Command {
        file: 0,
        caller: Caller::ROOT,
        command,
    });
    std::iter::once(Operation::Open { file: 0 }).chain(commands).collect()
}

/// A range of VNIs whose CPs have table entries of their own, and an LNI.
fn exclusive_range() -> Vec<Operation> {
    let svc_id = 2;
    let (vni_min, vni_max) = (64, 71);
    steps([
        command!(SvcAlloc(SvcAllocCmd { svc_desc: SvcDesc::new_zeroed() })),
        command!(SvcSetVniRange(SvcSetVniRangeCmd { svc_id, vni_min, vni_max })),
        command!(SvcSetExclusiveCp(SvcSetExclusiveCpCmd { svc_id, exclusive_cp: 1 })),
        command!(SvcEnable(SvcEnableCmd { svc_id, enable: 1 })),
        command!(LniAlloc(LniAllocCmd { svc_id })),
    ])
}

/// Three LNIs that share an RGID, with most of its address contexts in use.
fn shared_rgid() -> Vec<Operation> {
    let svc_id = 2;
    let mut limits = [(20, 2); 8];
    limits[AC] = (40, 2);
    let svc_desc = SvcDesc { num_vld_vnis: 1, vnis: [30, 0, 0, 0], ..limited(limits) };
    let begin = [
        command!(SvcAlloc(SvcAllocCmd { svc_desc })),
        command!(SvcSetLpr(SvcSetLprCmd { svc_id, lnis_per_rgid: 3 })),
    ];
    let lnis = (0..3).map(|_| command!(LniAlloc(LniAllocCmd { svc_id })));
    let mappings = [(1, 0), (1, 1), (1, 32), (2, 0), (2, 1), (2, 33)];
    let (va, len) = (1 << 20, 4096);
    let mappings = mappings.map(|(lni, flags)| command!(AtuMap(AtuMapCmd { lni, va, len, flags })));
    steps(begin.into_iter().chain(lnis).chain(mappings))
}

/// Services that leave one LE pool.
fn few_le_pools() -> Vec<Operation> {
    let mut limits = [(0, 0); 8];
    limits[LE] = (4, 2);
    let svc_desc = limited(limits);
    steps((0..14).map(|_| command!(SvcAlloc(SvcAllocCmd { svc_desc }))))
}
