//! LNIs and what is below them, as tried.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;

use crate::model::Model;
use crate::operation::{Command, EventQueueRequest, Operation, QueueRequest};

use super::pick;

/// Memory that is registered: few places, of different length.
const PLACES: [u64; 3] = [1 << 20, 2 << 20, (1 << 20) + 4096];
const LENGTHS: [u64; 3] = [4096, 8192, 100_000];

/// An LNI is allocated or freed.
pub(super) fn lni_command(state: &Model, file: usize) -> BoxedStrategy<Command> {
    let enabled = state.services.iter().filter(|(_, service)| service.enabled);
    let enabled: Vec<u32> = enabled.map(|(svc_id, _)| *svc_id).collect();
    let strange: Vec<u32> = state.services.keys().copied().chain([0, 99]).collect();
    let service = prop_oneof![3 => pick(enabled, &strange), 1 => select(strange)];
    let own = lnis(state, file);
    let idle = own.iter().copied().filter(|lni| !state.has_objects(*lni));
    let free = prop_oneof![
        pick(idle.collect(), &[0, 300]),
        pick(own, &[0, 300]),
        pick(state.lnis.keys().copied().collect(), &[0, 300]),
    ];
    prop_oneof![
        3 => service.prop_map(|svc_id| Command::LniAlloc { svc_id }),
        1 => free.prop_map(|lni| Command::LniFree { lni }),
    ]
    .boxed()
}

/// A command on something below an LNI; none without LNI.
pub(super) fn command(state: &Model, file: usize) -> Option<BoxedStrategy<Command>> {
    let lnis = lnis(state, file);
    if lnis.is_empty() {
        return None;
    }
    let foreign: Vec<u32> = state.lnis.keys().copied().chain([0, 300]).collect();
    let lni = pick(lnis, &foreign);
    let choices = vec![
        (12, communication(state, file, &lni)),
        (10, domains(state, file, &lni)),
        (14, queues(state, file, &lni)),
        (14, event_queues(state, file, &lni)),
        (12, portals(state, file, &lni)),
        (8, counters(state, file, &lni)),
        (14, memory(state, file, &lni)),
        (4, waits(state, file, &lni)),
    ];
    Some(Union::new_weighted(choices).boxed())
}

fn communication(state: &Model, file: usize, lni: &BoxedStrategy<u32>) -> BoxedStrategy<Command> {
    let class = prop_oneof![
        12 => select(vec![(1, 0), (2, 0), (3, 0), (3, 1), (3, 2), (1, 3)]),
        1 => (0_u32..9, 0_u32..5),
    ];
    let kind = prop_oneof![2 => Just(None), 3 => (0_u32..4).prop_map(Some)];
    let vnis: Vec<u32> = state.tx.0.values().flat_map(numbers).collect();
    let vni = pick(vnis, &[0, 5, 77, 65_536]);
    let own = state.cps.keys().filter(|(owner, _)| *owner == file);
    let cp = pick(own.map(|(_, cp)| *cp).collect(), &[0, 99]);
    let alloc = (lni.clone(), vni.clone(), class, kind);
    prop_oneof![
        6 => alloc.prop_map(|(lni, vni, (tc, tc_type), kind)| Command::CpAlloc {
            lni,
            vni,
            tc,
            tc_type,
            kind,
        }),
        2 => cp.clone().prop_map(|cp| Command::CpFree { cp }),
        1 => (cp, vni).prop_map(|(cp, vni)| Command::CpModify { cp, vni }),
    ]
    .boxed()
}

fn numbers(profile: &crate::model::Profile) -> [u32; 2] {
    let low = u32::from(profile.low);
    [low, (low + 1).min(u32::from(profile.high))]
}

fn domains(state: &Model, file: usize, lni: &BoxedStrategy<u32>) -> BoxedStrategy<Command> {
    let pid = || {
        prop_oneof![
            8 => 0_u32..12,
            3 => Just(511),
            2 => 500_u32..511,
            1 => select(vec![512, u32::MAX]),
        ]
    };
    let count = prop_oneof![10 => 1_u32..6, 2 => 480_u32..=511, 1 => select(vec![0, 512])];
    let vnis: Vec<u32> = state.rx.0.values().flat_map(numbers).collect();
    let vni = pick(vnis, &[0, 5, 77, 65_536]);
    let own = state.domains.iter().filter(|(_, found)| found.file == file);
    let domain = pick(own.map(|(id, _)| *id).collect(), &[0, 1, 99]);
    let reserve = (lni.clone(), vni.clone(), pid(), count);
    prop_oneof![
        5 => (lni.clone(), vni, pid())
            .prop_map(|(lni, vni, pid)| Command::DomainAlloc { lni, vni, pid }),
        2 => reserve.prop_map(|(lni, vni, pid, count)| Command::DomainReserve {
            lni,
            vni,
            pid,
            count,
        }),
        2 => domain.prop_map(|domain| Command::DomainFree { domain }),
    ]
    .boxed()
}

fn queues(state: &Model, file: usize, lni: &BoxedStrategy<u32>) -> BoxedStrategy<Command> {
    let eq = optional_eq(state, file);
    let count = prop_oneof![12 => 0_u32..300, 1 => select(vec![65_536, 65_537])];
    let flags = prop_oneof![
        6 => Just(0),
        6 => Just(2),
        2 => Just(2 | 8),
        1 => Just(2 | 4),
    ];
    let lcids: Vec<u32> = state.lcids.keys().map(|(_, lcid)| *lcid).collect();
    let lcid = pick(lcids, &[0, 5, 16]);
    let rare = |strange: u32| prop_oneof![20 => 0_u32..4, 1 => Just(strange)];
    let fields = (lni.clone(), eq, count, rare(4), flags, lcid, rare(4));
    let alloc = fields.prop_map(|(lni, eq, count, policy, flags, lcid, threshold)| {
        Command::CqAlloc(QueueRequest {
            lni,
            eq,
            count,
            policy,
            flags,
            lcid,
            threshold,
        })
    });
    let own = state.queues.iter().filter(|(_, queue)| queue.file == file);
    let cq = pick(own.map(|(id, _)| *id).collect(), &[0, 1024, 99]);
    prop_oneof![
        3 => alloc,
        2 => cq.prop_map(|cq| Command::CqFree { cq }),
    ]
    .boxed()
}

fn optional_eq(state: &Model, file: usize) -> BoxedStrategy<u32> {
    let own = state.eqs.iter().filter(|(_, eq)| eq.file == file);
    let own: Vec<u32> = own.map(|(id, _)| *id).collect();
    prop_oneof![1 => Just(0), 1 => pick(own, &[0, 0, 0, 99])].boxed()
}

fn event_queues(state: &Model, file: usize, lni: &BoxedStrategy<u32>) -> BoxedStrategy<Command> {
    let mds = state.mds.iter().filter(|(_, md)| md.file == file);
    let mds: Vec<(u32, u32, u64)> = mds.map(|(id, md)| (*id, md.lni, md.va)).collect();
    let lni = lni.clone();
    // Memory of an LNI, and the queue at its start.
    let place = if mds.is_empty() {
        (lni, select(vec![0, 99]), select(PLACES.to_vec())).boxed()
    } else {
        let fitting = select(mds).prop_map(|(md, lni, va)| (lni, md, va));
        let strange = (lni, select(vec![0, 99]), select(PLACES.to_vec()));
        prop_oneof![20 => fitting, 1 => strange].boxed()
    };
    let waits: Vec<u32> = state.waits.keys().map(|(_, wait)| *wait).collect();
    let wait = || prop_oneof![3 => Just(0), 1 => pick(waits.clone(), &[0, 99])];
    let shift = prop_oneof![20 => Just(0_u64), 1 => select(vec![64, 4096])];
    let len = prop_oneof![20 => Just(4096_u64), 1 => select(vec![0, 100, 8192, 1 << 20])];
    let flags = prop_oneof![8 => Just(0_u64), 1 => Just(128)];
    let reserved = prop_oneof![20 => 0_u32..64, 1 => Just(64)];
    let fields = (place, (wait(), wait()), shift, len, flags, reserved);
    let alloc = fields.prop_map(|((lni, md, va), waits, shift, len, flags, reserved_slots)| {
        Command::EqAlloc(EventQueueRequest {
            lni,
            md,
            event_wait: waits.0,
            status_wait: waits.1,
            queue: va + shift,
            len,
            flags,
            reserved_slots,
        })
    });
    let own = state.eqs.iter().filter(|(_, eq)| eq.file == file);
    let eq = pick(own.map(|(id, _)| *id).collect(), &[0, 1, 99]);
    prop_oneof![
        3 => alloc,
        2 => eq.prop_map(|eq| Command::EqFree { eq }),
    ]
    .boxed()
}

fn portals(state: &Model, file: usize, lni: &BoxedStrategy<u32>) -> BoxedStrategy<Command> {
    let alloc = (
        lni.clone(),
        optional_eq(state, file),
        prop::bool::weighted(0.1),
    );
    let own = state.ptes.iter().filter(|(_, pte)| pte.file == file);
    let pte = pick(own.map(|(id, _)| *id).collect(), &[0, 1, 99]);
    let own = state.domains.iter().filter(|(_, found)| found.file == file);
    let domain = pick(own.map(|(id, _)| *id).collect(), &[0, 1, 99]);
    let offset = prop_oneof![20 => 0_u32..256, 1 => Just(256)];
    let own = state.mappings.iter();
    let own = own.filter(|(_, mapped)| mapped.file == file);
    let index = pick(own.map(|(id, _)| *id).collect(), &[0, 1, 99]);
    prop_oneof![
        4 => alloc.prop_map(|(lni, eq, ethernet)| Command::PteAlloc { lni, eq, ethernet }),
        3 => pte.clone().prop_map(|pte| Command::PteFree { pte }),
        4 => (pte, domain, offset)
            .prop_map(|(pte, domain, offset)| Command::PteMap { pte, domain, offset }),
        1 => index.prop_map(|index| Command::PteUnmap { index }),
    ]
    .boxed()
}

fn counters(state: &Model, file: usize, lni: &BoxedStrategy<u32>) -> BoxedStrategy<Command> {
    let writeback = prop_oneof![10 => Just(0_u64), 1 => Just(4), 1 => Just(4096)];
    let own = state.cts.iter().filter(|(_, (owner, _))| *owner == file);
    let ct = pick(own.map(|(id, _)| *id).collect(), &[0, 1, 99]);
    prop_oneof![
        3 => (lni.clone(), writeback)
            .prop_map(|(lni, writeback)| Command::CtAlloc { lni, writeback }),
        2 => ct.prop_map(|ct| Command::CtFree { ct }),
    ]
    .boxed()
}

fn memory(state: &Model, file: usize, lni: &BoxedStrategy<u32>) -> BoxedStrategy<Command> {
    let place = prop_oneof![20 => select(PLACES.to_vec()), 1 => Just(u64::MAX - 8191)];
    let len = prop_oneof![20 => select(LENGTHS.to_vec()), 1 => Just(0), 1 => Just(16_384)];
    let flags = prop_oneof![
        20 => select(vec![0, 1, 32, 33, 13, 12]),
        1 => select(vec![2, 4097, 17]),
    ];
    let map = (lni.clone(), place, len, flags);
    let own = state.mds.iter().filter(|(_, md)| md.file == file);
    let md = pick(own.map(|(id, _)| *id).collect(), &[0, 1, 99]);
    prop_oneof![
        3 => map.prop_map(|(lni, va, len, flags)| Command::AtuMap { lni, va, len, flags }),
        1 => md.prop_map(|md| Command::AtuUnmap { md }),
    ]
    .boxed()
}

fn waits(state: &Model, file: usize, lni: &BoxedStrategy<u32>) -> BoxedStrategy<Command> {
    let own = state.waits.keys().filter(|(owner, _)| *owner == file);
    let wait = pick(own.map(|(_, wait)| *wait).collect(), &[0, 99]);
    prop_oneof![
        2 => lni.clone().prop_map(|lni| Command::WaitAlloc { lni }),
        1 => wait.prop_map(|wait| Command::WaitFree { wait }),
    ]
    .boxed()
}

/// A command that can be repeated until something runs out.
pub(super) fn filling(state: &Model, file: usize) -> Option<BoxedStrategy<Command>> {
    let lnis = lnis(state, file);
    if lnis.is_empty() {
        return None;
    }
    let target = |lni| {
        Command::CqAlloc(QueueRequest {
            lni,
            eq: 0,
            count: 64,
            policy: 0,
            flags: 0,
            lcid: 0,
            threshold: 0,
        })
    };
    let lni = || select(lnis.clone());
    Some(
        prop_oneof![
            4 => lni().prop_map(target),
            1 => lni().prop_map(|lni| Command::CtAlloc { lni, writeback: 0 }),
            1 => lni().prop_map(|lni| Command::PteAlloc { lni, eq: 0, ethernet: false }),
        ]
        .boxed(),
    )
}

/// Commands of a queue that there is, in flight or done.
pub(super) fn in_flight(state: &Model) -> Option<BoxedStrategy<Operation>> {
    let freed = state.lnis.values().flat_map(|lni| &lni.freed_queues);
    let queues: Vec<u32> = state.queues.keys().chain(freed).copied().collect();
    if queues.is_empty() {
        return None;
    }
    let commands = prop_oneof![Just(0), 1_u32..9];
    Some(
        (select(queues), commands)
            .prop_map(|(queue, commands)| Operation::InFlight { queue, commands })
            .boxed(),
    )
}

fn lnis(state: &Model, file: usize) -> Vec<u32> {
    let own = state.lnis.iter().filter(|(_, lni)| lni.file == Some(file));
    own.map(|(id, _)| *id).collect()
}
