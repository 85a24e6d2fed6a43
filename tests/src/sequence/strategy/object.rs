//! Generated operations on LNIs and the objects below them.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;

use crate::device::Report;
use crate::sequence::model::{ETHERNET_PTE, MATCHING, Model, SPACE_CHECK, handles, kind, of_file};
use crate::sequence::operation::{Command, CqAllocCmd, Operation, PtAllocOpts, command};

use super::pick;
use super::queue::{event_queues, optional_eq, queues};

/// Memory to register: few addresses, different lengths.
pub(super) const PLACES: [u64; 3] = [1 << 20, 2 << 20, (1 << 20) + 4096];
const LENGTHS: [u64; 3] = [4096, 8192, 100_000];

/// An LNI is allocated or freed.
pub(super) fn lni_command(state: &Model, file: usize) -> BoxedStrategy<Command> {
    let enabled = state.services.iter().filter(|(_, service)| service.enabled);
    let enabled: Vec<u32> = enabled.map(|(svc_id, _)| *svc_id).collect();
    let strange: Vec<u32> = state.services.keys().copied().chain([0, 99]).collect();
    let sharing = state.services.iter();
    let sharing = sharing.filter(|(_, service)| service.enabled && service.lnis_per_rgid >= 3);
    let sharing = pick(sharing.map(|(svc_id, _)| *svc_id).collect(), &strange);
    let service = prop_oneof![3 => pick(enabled, &strange), 1 => sharing, 1 => select(strange)];
    let own = state.lnis_of(file);
    let idle = own.iter().copied().filter(|lni| !state.has_objects(*lni));
    let free = prop_oneof![
        pick(idle.collect(), &[0, 300]),
        pick(own, &[0, 300]),
        pick(state.lnis.keys().copied().collect(), &[0, 300]),
    ];
    prop_oneof![
        3 => service.prop_map(|svc_id| command!(LniAlloc(LniAllocCmd { svc_id }))),
        1 => free.prop_map(|lni| command!(LniFree(LniFreeCmd { lni }))),
    ]
    .boxed()
}

/// A command on an object below an LNI; `None` without an LNI.
pub(super) fn command(state: &Model, file: usize) -> Option<BoxedStrategy<Command>> {
    let lnis = state.lnis_of(file);
    if lnis.is_empty() {
        return None;
    }
    let foreign: Vec<u32> = state.lnis.keys().copied().chain([0, 300]).collect();
    let lni = pick(lnis, &foreign);
    let has_memory = state.mds.values().any(|md| md.file == file);
    let choices = vec![
        (12, communication(state, file, &lni)),
        (10, domains(state, file, &lni)),
        (14, queues(state, file, &lni)),
        (if has_memory { 18 } else { 1 }, event_queues(state, file, &lni)),
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
    let exclusive = state.tx.0.values();
    let exclusive = exclusive.filter(|profile| profile.exclusive && profile.enabled);
    let exclusive: Vec<u32> = exclusive.flat_map(numbers).collect();
    let vni = if exclusive.is_empty() {
        pick(vnis, &[0, 5, 77, 65_536])
    } else {
        prop_oneof![pick(vnis, &[0, 5, 77, 65_536]), select(exclusive)].boxed()
    };
    let cps = handles(&state.cps, file);
    let cp = pick(cps.clone(), &[0, 99]);
    let asked = (lni.clone(), vni.clone(), class, kind);
    let asked = asked.prop_map(|(lni, vni, (tc, tc_type), kind)| match kind {
        None => command!(CpAlloc(CpAllocCmd { lni, vni, tc, tc_type })),
        Some(cp_type) => command!(TrigCpAlloc(TrigCpAllocCmd { lni, vni, tc, tc_type, cp_type })),
    });
    prop_oneof![
        6 => asked,
        taken(&cps, 3) => cp.clone().prop_map(|cp_hndl| command!(CpFree(CpFreeCmd { cp_hndl }))),
        taken(&cps, 2) => (cp, vni)
            .prop_map(|(cp_hndl, vni)| command!(CpModify(CpModifyCmd { cp_hndl, vni }))),
    ]
    .boxed()
}

pub(super) fn numbers(profile: &crate::sequence::model::Profile) -> [u32; 2] {
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
    let own = of_file(&state.domains, file);
    let domain = pick(own.clone(), &[0, 1, 99]);
    let reserved = prop_oneof![3 => pid(), 2 => Just(511)];
    let reserve = (lni.clone(), vni.clone(), reserved, count);
    prop_oneof![
        5 => (lni.clone(), vni, pid())
            .prop_map(|(lni, vni, pid)| command!(DomainAlloc(DomainAllocCmd { lni, vni, pid }))),
        2 => reserve.prop_map(|(lni, vni, pid, count)| {
            command!(DomainReserve(DomainReserveCmd { lni, vni, pid, count }))
        }),
        taken(&own, 3) => domain.prop_map(|domain| command!(DomainFree(DomainFreeCmd { domain }))),
    ]
    .boxed()
}

fn portals(state: &Model, file: usize, lni: &BoxedStrategy<u32>) -> BoxedStrategy<Command> {
    let alloc = (
        lni.clone(),
        optional_eq(state, file),
        prop_oneof![
            6 => Just(MATCHING),
            2 => select(vec![0, SPACE_CHECK]),
            1 => Just(ETHERNET_PTE),
        ],
    );
    let ptes = of_file(&state.ptes, file);
    let pte = pick(ptes.clone(), &[0, 1, 99]);
    let domains = of_file(&state.domains, file);
    let any = (pte.clone(), pick(domains, &[0, 1, 99]));
    let fitting: Vec<(u32, u32)> = state
        .domains
        .iter()
        .filter(|(_, domain)| domain.file == file)
        .flat_map(|(id, domain)| {
            let of_lni = state.ptes.iter().filter(|(_, pte)| pte.lni == domain.lni);
            of_lni.map(|(pte, _)| (*pte, *id))
        })
        .collect();
    let (weight, pair) = if fitting.is_empty() {
        (1, any.boxed())
    } else {
        (6, prop_oneof![8 => select(fitting), 1 => any].boxed())
    };
    let single = prop_oneof![20 => 0_u32..256, 1 => Just(256)];
    let multicast = prop_oneof![8 => Just(300), 1 => select(vec![262_143, 262_144])];
    let offset = prop_oneof![
        2 => single.prop_map(|offset| (offset, false)),
        1 => multicast.prop_map(|offset| (offset, true)),
    ];
    let maps = of_file(&state.mappings, file);
    let index = pick(maps.clone(), &[0, 1, 99]);
    prop_oneof![
        6 => alloc.prop_map(|(lni_hndl, evtq_hndl, bits)| {
            let opts = PtAllocOpts { bits };
            command!(PteAlloc(PteAllocCmd { lni_hndl, evtq_hndl, opts }))
        }),
        taken(&ptes, 4) => pte
            .clone()
            .prop_map(|pte_number| command!(PteFree(PteFreeCmd { pte_number }))),
        taken(&ptes, 1) => (pte, select(vec![0, 0, 1])).prop_map(|(pte_index, drop_count)| {
            command!(PteTransition(PteTransitionSmCmd { pte_index, drop_count }))
        }),
        weight => (pair, offset).prop_map(|((pte_number, domain_hndl), (pid_offset, multicast))| {
            let is_multicast = u8::from(multicast);
            command!(PteMap(PteMapCmd { pte_number, domain_hndl, pid_offset, is_multicast }))
        }),
        taken(&maps, 3) => index.prop_map(|pte_index| command!(PteUnmap(PteUnmapCmd { pte_index }))),
    ]
    .boxed()
}

fn counters(state: &Model, file: usize, lni: &BoxedStrategy<u32>) -> BoxedStrategy<Command> {
    let writeback =
        prop_oneof![10 => Just(0_u64), 1 => Just(4), 1 => Just(4096), 1 => Just(1 << 47)];
    let own = of_file(&state.cts, file);
    let ct = pick(own.clone(), &[0, 1, 99]);
    prop_oneof![
        6 => (lni.clone(), writeback)
            .prop_map(|(lni, wb)| command!(CtAlloc(CtAllocCmd { lni, wb }))),
        taken(&own, 5) => ct.clone().prop_map(|ctn| command!(CtFree(CtFreeCmd { ctn }))),
        taken(&own, 1) => (ct, select(vec![0, 4, 4096, 1 << 47]))
            .prop_map(|(ctn, wb)| command!(CtUpdate(CtWbUpdateCmd { ctn, wb }))),
    ]
    .boxed()
}

fn memory(state: &Model, file: usize, lni: &BoxedStrategy<u32>) -> BoxedStrategy<Command> {
    let strange = vec![u64::MAX - 8191, 1 << 47];
    let place = prop_oneof![20 => select(PLACES.to_vec()), 1 => select(strange)];
    let len = prop_oneof![20 => select(LENGTHS.to_vec()), 1 => Just(0), 1 => Just(16_384)];
    let flags = prop_oneof![
        20 => select(vec![0, 1, 32, 33, 13, 12]),
        2 => select(vec![2, 4097, 17, 512, 1024, 128, 1 << 31, 2048, 4112]),
    ];
    // Kinds of mappings that an LNI does not have yet.
    let missing: Vec<(u32, u32)> = state
        .lnis_of(file)
        .into_iter()
        .flat_map(|lni| {
            let contexts = &state.lnis[&lni].contexts;
            let kinds = [0, 1, 32, 33].into_iter();
            let missing = kinds.filter(|flags| !contexts.contains_key(&kind(*flags)));
            missing.map(move |flags| (lni, flags))
        })
        .collect();
    let any = (lni.clone(), flags);
    let end = if missing.is_empty() {
        any.boxed()
    } else {
        prop_oneof![1 => select(missing), 1 => any].boxed()
    };
    let map = (end, place, len);
    let own = of_file(&state.mds, file);
    let md = pick(own.clone(), &[0, 1, 99]);
    let part = (select(PLACES.to_vec()), select(vec![0, 1, 4096, 1 << 20]));
    let update = (md.clone(), part, select(vec![16, 16, 17, 0]));
    prop_oneof![
        6 => map.prop_map(|((lni, flags), va, len)| {
            command!(AtuMap(AtuMapCmd { lni, va, len, flags }))
        }),
        taken(&own, 2) => md.clone().prop_map(|id| command!(AtuUnmap(AtuUnmapCmd { id }))),
        taken(&own, 1) => update.prop_map(|(id, (va, len), flags)| {
            command!(AtuUpdate(AtuUpdateMdCmd { id, va, len, flags }))
        }),
    ]
    .boxed()
}

fn waits(state: &Model, file: usize, lni: &BoxedStrategy<u32>) -> BoxedStrategy<Command> {
    let own = handles(&state.waits, file);
    let wait = pick(own.clone(), &[0, 99]);
    prop_oneof![
        5 => lni.clone().prop_map(|lni| command!(WaitAlloc(WaitAllocCmd { lni }))),
        taken(&own, 2) => wait.prop_map(|wait| command!(WaitFree(WaitFreeCmd { wait }))),
    ]
    .boxed()
}

/// A command that can be repeated until something runs out.
pub(super) fn filling(state: &Model, file: usize) -> Option<BoxedStrategy<Command>> {
    let lnis = state.lnis_of(file);
    if lnis.is_empty() {
        return None;
    }
    let target = |lni| {
        let mut queue = CqAllocCmd::new();
        (queue.lni, queue.opts.count) = (lni, 64);
        Command::CqAlloc(queue)
    };
    Some(select(lnis).prop_map(target).boxed())
}

/// Commands of an existing queue, in flight or done.
pub(super) fn in_flight(state: &Model) -> Option<BoxedStrategy<Operation>> {
    let freed = state.lnis.values().flat_map(|lni| &lni.freed_queues);
    let queues: Vec<u32> = state.queues.keys().chain(freed).copied().collect();
    if queues.is_empty() {
        return None;
    }
    let begun = (select(queues), 1_u32..9).boxed();
    let in_flight: Vec<u32> = state.in_flight.iter().copied().collect();
    let some = if in_flight.is_empty() {
        begun
    } else {
        prop_oneof![3 => (select(in_flight), Just(0)), 1 => begun].boxed()
    };
    Some(
        some.prop_map(|(queue, commands)| Operation::Report(Report::in_flight(queue, commands)))
            .boxed(),
    )
}

/// Returns the numbers of objects to free: rarely any, if there is little to free.
pub(super) fn taken(there: &[u32], weight: u32) -> u32 {
    if there.is_empty() { 1 } else { weight }
}
