//! Generated operations on command queues and event queues.

use proptest::prelude::*;
use proptest::sample::select;
use zerocopy::FromZeros;

use crate::sequence::model::{Model, of_file};
use crate::sequence::operation::{Command, CqAllocOpts, EqAttr, command};

use super::object::{PLACES, taken};
use super::pick;

pub(super) fn queues(
    state: &Model,
    file: usize,
    lni: &BoxedStrategy<u32>,
) -> BoxedStrategy<Command> {
    let eq = optional_eq(state, file);
    let count = prop_oneof![12 => 0_u32..300, 1 => select(vec![65_536, 65_537])];
    let transmit = prop_oneof![6 => Just(2), 2 => Just(2 | 8), 2 => Just(2 | 4)];
    let receive = prop_oneof![9 => Just(0), 1 => Just(4)];
    let sending: Vec<(u32, u32)> = state
        .lnis_of(file)
        .into_iter()
        .flat_map(|lni| {
            let rgid = state.lnis[&lni].rgid;
            let lcids = state.lcids.keys().filter(move |(owner, _)| *owner == rgid);
            lcids.map(move |(_, lcid)| (lni, *lcid))
        })
        .collect();
    let target = (lni.clone(), Just(0), receive).boxed();
    let any = (lni.clone(), select(vec![0, 5, 16]), transmit.clone());
    let end = if sending.is_empty() {
        prop_oneof![10 => target, 1 => any].boxed()
    } else {
        let fitting =
            (select(sending), transmit).prop_map(|((lni, lcid), flags)| (lni, lcid, flags));
        prop_oneof![10 => target, 14 => fitting, 1 => any].boxed()
    };
    let rare = |strange: u32| prop_oneof![20 => 0_u32..4, 1 => Just(strange)];
    let fields = (end, eq, count, rare(4), rare(4));
    let alloc = fields.prop_map(|((lni, lcid, flags), eq, count, policy, threshold)| {
        let opts = CqAllocOpts {
            count,
            policy,
            flags,
            lcid,
            lpe_cdt_thresh_id: threshold,
            stat_cnt_pool: 0,
        };
        command!(CqAlloc(CqAllocCmd { lni, eq, opts }))
    });
    let own = of_file(&state.queues, file);
    let cq = pick(own.clone(), &[0, 1024, 99]);
    prop_oneof![
        6 => alloc,
        taken(&own, 5) => cq.prop_map(|cq| command!(CqFree(CqFreeCmd { cq }))),
    ]
    .boxed()
}

pub(super) fn optional_eq(state: &Model, file: usize) -> BoxedStrategy<u32> {
    let own = of_file(&state.eqs, file);
    prop_oneof![1 => Just(0), 1 => pick(own, &[0, 0, 0, 99])].boxed()
}

pub(super) fn event_queues(
    state: &Model,
    file: usize,
    lni: &BoxedStrategy<u32>,
) -> BoxedStrategy<Command> {
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
    let len = || {
        let strange = vec![0, 100, 8192, 1 << 21, 1 << 33];
        prop_oneof![20 => Just(4096_u64), 2 => select(strange)]
    };
    let flags = prop_oneof![5 => Just(0_u64), 2 => Just(2), 1 => Just(128), 1 => Just(130)];
    let reserved = prop_oneof![20 => 0_u32..64, 1 => select(vec![64, 16_383, 16_384])];
    let thresholds = (select(vec![0, 45, 95, 100, 101]), 0_u32..60, 0_u32..6);
    let thresholds = prop_oneof![2 => Just((0, 0, 0)), 1 => thresholds];
    let fields = (place.clone(), (wait(), wait()), shift, len(), flags, reserved, thresholds);
    let alloc = fields.prop_map(
        |((lni, queue_md, va), waits, shift, queue_len, flags, reserved_slots, thresholds)| {
            let attr = EqAttr {
                queue: va + shift,
                queue_len,
                flags,
                reserved_slots,
                status_thresh_base: thresholds.0,
                status_thresh_delta: thresholds.1,
                status_thresh_count: thresholds.2,
                ..EqAttr::new_zeroed()
            };
            let (event_wait, status_wait) = waits;
            command!(EqAlloc(EqAllocCmd { lni, queue_md, event_wait, status_wait, attr }))
        },
    );
    let own = of_file(&state.eqs, file);
    let eq = pick(own.clone(), &[0, 1, 99]);
    let resize = (eq.clone(), place, len());
    let change = prop_oneof![6 => -40..40, 1 => select(vec![16_383, -16_384])];
    prop_oneof![
        6 => alloc,
        taken(&own, 2) => resize.prop_map(|(eq_hndl, (_, queue_md, queue), queue_len)| {
            command!(EqResize(EqResizeCmd { eq_hndl, queue_md, queue, queue_len }))
        }),
        taken(&own, 2) => eq
            .clone()
            .prop_map(|eq_hndl| command!(EqResizeComplete(EqResizeCompleteCmd { eq_hndl }))),
        taken(&own, 2) => (eq.clone(), change).prop_map(|(eq_hndl, value)| {
            command!(EqAdjust(EqAdjustReservedFcCmd { eq_hndl, value }))
        }),
        taken(&own, 5) => eq.prop_map(|eq| command!(EqFree(EqFreeCmd { eq }))),
    ]
    .boxed()
}
