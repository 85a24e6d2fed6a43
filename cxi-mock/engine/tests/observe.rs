//! The calls of an observer, and the content of a snapshot of the lists.

mod rig;

use std::sync::{Arc, Mutex};
use std::time::Instant;

use cxi_engine::{ObservedOperation, Observer, PortalOptions};
use cxi_hw::{
    DmaOp, EventType, InitiatorShort, List, MatchId, PtlteState, ReturnCode, TargetFlags,
};
use rig::*;

#[derive(Debug, Default)]
struct Seen {
    operations: Vec<ObservedOperation>,
    /// Queue, type, bytes, whether it was lost.
    events: Vec<(u16, EventType, usize, bool)>,
    /// Times that it reports when asked for the time.
    times: Vec<Instant>,
}

#[derive(Debug)]
struct Watcher(Arc<Mutex<Seen>>);

impl Observer for Watcher {
    fn now(&mut self) -> Option<Instant> {
        let now = Instant::now();
        self.0.lock().unwrap().times.push(now);
        Some(now)
    }

    fn operation(&mut self, operation: &ObservedOperation) {
        self.0.lock().unwrap().operations.push(*operation);
    }

    fn event(&mut self, eq: u16, event: &[u8], lost: bool) {
        let head = InitiatorShort::decode(event.first_chunk().unwrap());
        let seen = (eq, head.event_type, event.len(), lost);
        self.0.lock().unwrap().events.push(seen);
    }
}

fn watched() -> (Rig, Arc<Mutex<Seen>>) {
    let mut rig = Rig::new();
    let seen = Arc::<Mutex<Seen>>::default();
    rig.portal(PORTAL, 0, PortalOptions::IS_MATCHING);
    rig.append(&entry(7, BUFFER, 0x1000));
    rig.engine.set_observer(Some(Box::new(Watcher(Arc::clone(&seen)))));
    (rig, seen)
}

#[test]
fn an_operation_is_seen_once_wherever_it_ends() {
    let (mut rig, seen) = watched();
    let pid = 5 << 23 | NID;
    let command = put(16).with_initiator(MatchId(pid));
    rig.store(TXQ, &[&command.encode()]);
    // No endpoint at that index, no NIC at that address, no such memory.
    let missing = command.with_index(9);
    let nowhere = message(DmaOp::GET, 0x99, BUFFER, 8);
    let unmapped = command.with_local_addr(1 << 50);
    for command in [missing, nowhere, unmapped] {
        rig.store(TXQ, &[&command.encode()]);
    }
    rig.engine.run_until_idle();
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    let ends: Vec<_> = seen.operations.iter().map(|it| (it.op, it.code)).collect();
    assert_eq!(
        ends,
        [
            (DmaOp::PUT, ReturnCode::OK),
            (DmaOp::PUT, ReturnCode::PTLTE_NOT_FOUND),
            (DmaOp::GET, ReturnCode::UNDELIVERABLE),
            (DmaOp::PUT, ReturnCode::NO_TRANSLATION),
        ]
    );
    // The last one finds no data to send, but was executed as well.
    let started: Vec<_> = seen.operations.iter().filter_map(|it| it.started).collect();
    assert_eq!((started.len(), started), (4, seen.times));
    let first = seen.operations[0];
    assert_eq!((first.from, first.to), ((NID, 5), (NID, 0, 0)));
    assert_eq!((first.vni, first.length, first.moved), (VNI, 16, 16));
    assert_eq!(first.match_bits, command.match_bits);
    assert_eq!(first.list, List::PRIORITY);
    assert_eq!(seen.operations[1].to, (NID, 0, 9));
    assert_eq!(seen.operations[2].to.0, 0x99);
}

#[test]
fn events_are_seen_as_they_are_written_and_when_they_are_lost() {
    let (mut rig, seen) = watched();
    for _ in 0..300 {
        rig.store(TXQ, &[&put(16).encode()]);
        rig.engine.run_until_idle();
    }
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(seen.events[0], (TARGET_EQ, EventType::PUT, 32, false));
    assert_eq!(seen.events[1], (EQ, EventType::ACK, 16, false));
    let of_initiator = seen.events.iter().filter(|it| it.0 == EQ);
    let lost: Vec<bool> = of_initiator.map(|it| it.3).collect();
    // 256 blocks, less the status and one that stays empty.
    assert_eq!(lost.iter().position(|it| *it), Some(254));
    assert!(lost[254..].iter().all(|it| *it));
    rig.engine.set_observer(None);
}

#[test]
fn a_snapshot_shows_states_entries_and_unexpected_messages() {
    let (mut rig, _) = watched();
    let managed = overflow(9, BUFFER + 0x1000, 0x800).with_match_bits(0).with_ignore_bits(u64::MAX);
    rig.append(&managed);
    let unexpected = put(24).with_match_bits(0xfe);
    rig.store(TXQ, &[&unexpected.encode()]);
    rig.engine.run_until_idle();
    let portals = rig.engine.portals();
    let [portal] = portals.as_slice() else { panic!("{portals:?}") };
    assert_eq!((portal.number, portal.state), (PORTAL, PtlteState::ENABLED));
    assert_eq!(portal.drop_count, 0);
    let ids = portal.lists.each_ref().map(|list| {
        let ids = list.iter().map(|entry| (entry.buffer_id, entry.offset));
        ids.collect::<Vec<_>>()
    });
    assert_eq!(ids, [vec![(7, 0)], vec![(9, 24)], vec![]]);
    assert_eq!(portal.lists[1][0].ignore_bits, u64::MAX);
    assert!(portal.lists[1][0].flags.contains(TargetFlags::MANAGE_LOCAL));
    let [message] = portal.unexpected.as_slice() else { panic!("{portal:?}") };
    assert_eq!(message.match_bits, 0xfe);
    assert_eq!(message.length, 24);
    assert_eq!(message.kept, 24);
    assert_eq!(message.start, BUFFER + 0x1000);
}

#[test]
fn telemetry_counts_events_by_type_and_requests_by_operation() {
    let (mut rig, _) = watched();
    let before = rig.engine.telemetry();
    let command = put(16);
    let missing = command.with_index(9);
    let get = message(DmaOp::GET, NID, BUFFER, 8);
    for command in [command, command, missing, get] {
        rig.store(TXQ, &[&command.encode()]);
    }
    rig.engine.run_until_idle();
    rig.profile(0, VNI + 1);
    rig.store(TXQ, &[&command.encode()]);
    rig.engine.run_until_idle();
    let after = rig.engine.telemetry();
    let events = |kind: EventType| after.events[kind.0] - before.events[kind.0];
    let counted = [
        events(EventType::PUT),
        events(EventType::GET),
        events(EventType::ACK),
        events(EventType::REPLY),
    ];
    // No entry takes the get.
    assert_eq!(counted, [2, 0, 4, 1]);
    let commands = |op: DmaOp| after.commands[op.0];
    assert_eq!((commands(DmaOp::PUT), commands(DmaOp::GET)), (2, 1));
    let refused = |code: ReturnCode| after.refusals[code.0];
    let missing = [ReturnCode::PTLTE_NOT_FOUND, ReturnCode::VNI_NOT_FOUND];
    assert_eq!(missing.map(refused), [1, 1]);
}
