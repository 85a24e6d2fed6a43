//! Objects that come and go while there is traffic: nothing leaks, nothing hangs, nothing is
//! touched that is not there.

mod rig;

use cxi_engine::{
    CounterDoorbell, EntryPool, EventFlags, Fabric, FabricFaults, PortalOptions, Settings,
};
use cxi_hw::{CtOp, DmaFlags, DmaOp, List, PtlteState, TargetFlags};
use proptest::prelude::*;
use rig::*;

/// NIC addresses.
const NIDS: [u32; 2] = [0x10, 0x20];
const SOURCE: u16 = 2;
/// Longer than a step copies.
const LONG: u32 = 0x18_0000;

/// Event at a NIC.
#[derive(Clone, Debug)]
enum Act {
    Send(DmaOp, u32, u64),
    Receive(u64, bool),
    Overflow,
    Unlink(List),
    State(u8),
    Trigger(u64),
    Count,
    Cancel,
    Step(u8),
    Tick,
    Read,
    RemoveQueue(u16),
    RemovePortal,
    RemoveRegion,
    RemoveEvents(u16),
    RemoveCounter,
    Unmap,
    Resize,
    /// A removed object is made again.
    Make,
}

fn act() -> impl Strategy<Value = Act> {
    let op = prop_oneof![Just(DmaOp::PUT), Just(DmaOp::GET), Just(DmaOp::RENDEZVOUS_PUT)];
    let len = prop_oneof![3 => 0..300_u32, 1 => Just(5000), 1 => Just(LONG)];
    let queue = prop_oneof![Just(TXQ), Just(TRIGQ), Just(TGQ)];
    let traffic = prop_oneof![
        6 => (op, len, 0..2_u64).prop_map(|(op, len, bits)| Act::Send(op, len, bits)),
        4 => (0..2_u64, any::<bool>()).prop_map(|(bits, once)| Act::Receive(bits, once)),
        2 => Just(Act::Overflow),
        1 => prop_oneof![Just(List::PRIORITY), Just(List::OVERFLOW)].prop_map(Act::Unlink),
        1 => (0..4_u8).prop_map(Act::State),
        2 => (0..6_u64).prop_map(Act::Trigger),
        2 => Just(Act::Count),
        6 => (0..9_u8).prop_map(Act::Step),
        2 => Just(Act::Tick),
        3 => Just(Act::Read),
    ];
    let change = prop_oneof![
        queue.prop_map(Act::RemoveQueue),
        Just(Act::RemovePortal),
        Just(Act::RemoveRegion),
        prop_oneof![Just(EQ), Just(TARGET_EQ)].prop_map(Act::RemoveEvents),
        Just(Act::RemoveCounter),
        Just(Act::Cancel),
        Just(Act::Unmap),
        Just(Act::Resize),
    ];
    prop_oneof![20 => traffic, 2 => change, 2 => Just(Act::Make)]
}

fn make(rig: &mut Rig) {
    rig.add_tx(TXQ, false);
    rig.add_tx(TRIGQ, true);
    rig.add_target(TGQ);
    rig.add_eq(EQ, 64, EventFlags::empty());
    rig.add_eq(TARGET_EQ, 64, EventFlags::TARGET_LONG);
    rig.add_ct(CT);
    rig.region(1, BUFFER, BUFFER_LEN);
    let options = FLOW;
    rig.portal_disabled(PORTAL, 0, options);
    rig.portal_disabled(SOURCE, 255, PortalOptions::IS_MATCHING);
    for portal in [PORTAL, SOURCE] {
        rig.set_state(portal, PtlteState::ENABLED, 0xff_ffff);
    }
    rig.append(
        &entry(9, 0, (1 << 56) - 1)
            .with_portal(SOURCE)
            .with_flags(TargetFlags::OP_GET)
            .with_ignore_bits(u64::MAX),
    );
}

fn change(rig: &mut Rig, act: &Act) {
    match act {
        Act::RemoveQueue(queue) => rig.engine.remove_queue(*queue),
        Act::RemovePortal => rig.engine.remove_portal(PORTAL),
        Act::RemoveRegion => rig.engine.remove_region(1),
        Act::RemoveEvents(eq) => rig.engine.remove_event_queue(*eq),
        Act::RemoveCounter => rig.engine.remove_counter(CT),
        Act::Unmap => rig.memory.unmap(BUFFER),
        Act::Resize => drop(rig.resize(EQ, 64)),
        _ => make(rig),
    }
}

fn act_at(rig: &mut Rig, peer: u32, act: &Act) {
    match act {
        Act::Send(op, len, bits) => {
            let command = message(*op, peer, BUFFER, *len)
                .with_flags(DmaFlags::EVENT_SEND_DISABLE | DmaFlags::USE_OFFSET_FOR_GET)
                .with_offset(if *op == DmaOp::RENDEZVOUS_PUT { BUFFER } else { 0 })
                .with_eager(64);
            rig.store(TXQ, &[&command.with_match_bits(*bits).encode()]);
        }
        Act::Receive(bits, once) => {
            let mut flags = TargetFlags::OP_PUT
                | TargetFlags::OP_GET
                | TargetFlags::MANAGE_LOCAL
                | TargetFlags::EVENT_CT_COMM;
            flags.set(TargetFlags::USE_ONCE, *once);
            let receive = entry(5, BUFFER + 0x20_0000, u64::from(LONG));
            let receive = receive.with_flags(flags).with_restart(true);
            rig.store(TGQ, &[&receive.with_match_bits(*bits).encode()]);
        }
        Act::Overflow => rig.store(TGQ, &[&overflow(6, BUFFER + 0x20_0000, 0x1c_0000).encode()]),
        Act::Unlink(list) => {
            let buffer = if *list == List::PRIORITY { 5 } else { 6 };
            rig.store(TGQ, &[&unlink(*list, buffer).encode()]);
        }
        Act::State(state) => {
            let command = set_state(PORTAL, PtlteState(*state), 0xff_ffff);
            rig.store(TGQ, &[&command.encode()]);
        }
        Act::Trigger(threshold) => {
            let mut command = counter(CtOp::TRIG_INC, CT);
            (command.trig_ct, command.threshold, command.ct_success) = (CT, *threshold, 1);
            rig.store(TRIGQ, &[&command.encode()]);
        }
        Act::Cancel => rig.store(TRIGQ, &[&counter(CtOp::CANCEL, CT).encode()]),
        Act::Count => rig.engine.ring_counter(CT, CounterDoorbell::AddSuccess, 1),
        Act::Step(steps) => {
            for _ in 0..*steps {
                rig.engine.step();
            }
        }
        Act::Tick => rig.fabric.tick(),
        Act::Read => {
            rig.events(EQ);
            rig.events(TARGET_EQ);
        }
        _ => change(rig, act),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn objects_come_and_go(
        acts in proptest::collection::vec((0..2_usize, act()), 1..120),
        faults in prop_oneof![
            2 => Just(FabricFaults::default()),
            1 => any::<u64>().prop_map(|seed| FabricFaults {
                seed, loss: 8000, duplication: 8000, reordering: 8000, delay: 4,
            }),
        ],
    ) {
        let fabric = Fabric::new();
        fabric.set_faults(faults);
        let mut rigs = NIDS.map(|nid| {
            let mut rig = Rig::on(fabric.clone(), nid, Settings::default());
            make(&mut rig);
            rig
        });
        for (at, act) in &acts {
            act_at(&mut rigs[*at], NIDS[1 - *at], act);
        }
        settle(&fabric, &mut rigs);
        for rig in &mut rigs {
            for queue in [TXQ, TRIGQ, TGQ] {
                rig.engine.remove_queue(queue);
                prop_assert_eq!(rig.engine.commands_in_flight(queue), 0);
            }
            rig.engine.remove_portal(PORTAL);
            rig.engine.remove_portal(SOURCE);
            prop_assert_eq!(rig.engine.entries_in_use(EntryPool::default()), 0);
            prop_assert_eq!(rig.engine.triggered_in_use(0), 0);
            prop_assert!(!rig.engine.step());
        }
    }
}
