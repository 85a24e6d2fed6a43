//! 3: event queues.

use std::sync::Arc;

use cxi_engine::{Effect, EventBuffer, EventFlags, PortalOptions, Thresholds};
use cxi_hw::{
    DmaFlags, EqStatus, EventSize, EventType, PtlteState, ReturnCode, StateReason, TargetFlags,
};

use crate::quiet;
use crate::rig::*;

fn status(rig: &Rig, eq: u16) -> EqStatus {
    EqStatus::decode(&rig.memory.bytes(rig.readers[&eq].va, 64).try_into().unwrap())
}

fn mask(rig: &mut Rig, masked: bool) {
    let reader = rig.readers.get_mut(&EQ).unwrap();
    reader.state.event_int_disable = masked;
    reader.store(&mut rig.engine, EQ);
}

#[test]
fn rule_3_1_events_start_at_byte_64_and_wrap_to_there() {
    let mut rig = quiet();
    rig.add_eq(5, 64, EventFlags::empty());
    for round in 0..200_u32 {
        rig.put(&put(0).with_eq(5).with_len(round % 8));
        assert_eq!(rig.event(5).initiator().mlength, round % 8);
    }
    assert_eq!(rig.memory.bytes(rig.readers[&5].va, 64), [0; 64]);
}

/// The rest of an event's block is NULL events.
#[test]
fn rule_3_2_short_events_are_padded() {
    let mut rig = Rig::matching();
    rig.link(&entry(7, BUFFER, 64));
    rig.put(&put(1));
    let block = |eq: u16| rig.memory.bytes(rig.readers[&eq].va + rig.readers[&eq].read * 64, 64);
    let null = |block: &[u8]| {
        let (size, kind) = (EventSize(block[14] & 3), EventType((block[14] >> 2) & 31));
        let code = ReturnCode(block[size.bytes() - 1]);
        (size.bytes(), kind, code)
    };
    let ack = block(EQ);
    assert_eq!(ack[14] & 3, EventSize::BYTES_16.0);
    assert_eq!(null(&ack[16..]), (16, EventType::NULL_EVENT, ReturnCode::OK));
    assert_eq!(null(&ack[32..]), (32, EventType::NULL_EVENT, ReturnCode::OK));
    let event = block(TARGET_EQ);
    assert_eq!(event[14] & 3, EventSize::BYTES_32.0);
    assert_eq!(null(&event[32..]), (32, EventType::NULL_EVENT, ReturnCode::OK));
    assert_ne!(event[63], 0);
}

/// The block with padding and all of the event but its last eight bytes, then these.
#[test]
fn rule_3_3_the_last_bytes_come_last() {
    type Parts = Vec<(u64, Vec<u8>)>;
    #[derive(Debug, Default)]
    struct Watched(std::sync::Mutex<Vec<Parts>>);
    impl cxi_engine::ClientMemory for Watched {
        fn read(&self, _: u64, _: &mut [u8]) -> Result<(), cxi_engine::MemoryFault> {
            Err(cxi_engine::MemoryFault)
        }
        fn write(&self, parts: &[(u64, &[u8])]) -> Result<(), cxi_engine::MemoryFault> {
            let parts = parts.iter().map(|(va, part)| (*va, part.to_vec())).collect();
            self.0.lock().unwrap().push(parts);
            Ok(())
        }
    }
    let watched = Arc::new(Watched::default());
    let mut rig = quiet();
    let buffer = EventBuffer { memory: Arc::clone(&watched) as _, va: 0x8000, len: 4096 };
    rig.engine.add_event_queue(5, event_queue(RGID, buffer));
    rig.put(&put(1).with_eq(5));
    let writes = watched.0.lock().unwrap().clone();
    let event = 0x8040;
    let [parts] = &writes[..] else { panic!("{writes:?}") };
    let [(first, block), (second, last)] = &parts[..] else { panic!("{parts:?}") };
    assert_eq!((*first, block.len()), (event, 64));
    assert_eq!(block[8..16], [0; 8]);
    assert_eq!((*second, last.len()), (event + 8, 8));
    assert_ne!(last[7], 0);
}

#[test]
fn rules_3_4_3_10_a_block_is_written_again_when_it_is_acknowledged() {
    let mut rig = quiet();
    rig.add_eq(5, 64, EventFlags::empty());
    let send = |rig: &mut Rig, user_ptr| {
        rig.put(&put(1).with_eq(5).with_user_ptr(user_ptr));
    };
    // 62 of 64 blocks hold events.
    for number in 0..63 {
        send(&mut rig, number);
    }
    let full = status(&rig, 5);
    assert!(full.unackd_dropped_event && full.event_drop_seq_no);
    for number in 0..62 {
        assert_eq!(rig.event(5).initiator().user_ptr, number);
    }
    assert_eq!(rig.try_event(5), None);
    // Lost events are reported once, until they are acknowledged.
    let reader = rig.readers.get_mut(&5).unwrap();
    reader.state.event_drop_seq_no = true;
    reader.store(&mut rig.engine, 5);
    for number in 0..70 {
        send(&mut rig, 100 + number);
    }
    assert!(!status(&rig, 5).event_drop_seq_no);
    assert_eq!(rig.event(5).initiator().user_ptr, 100);
}

#[test]
fn rule_3_5_the_register_word_counts_as_it_is() {
    let mut rig = quiet();
    rig.put(&put(1));
    mask(&mut rig, true);
    rig.engine.take_effects();
    rig.put(&put(1));
    assert_eq!(rig.engine.take_effects(), []);
}

#[test]
fn rule_3_6_events_of_a_queue_come_in_order() {
    let mut rig = quiet();
    for user_ptr in 0..50 {
        rig.put(&put(1).with_user_ptr(user_ptr));
    }
    for user_ptr in 0..50 {
        assert_eq!(rig.event(EQ).initiator().user_ptr, user_ptr);
    }
}

#[test]
fn rule_3_7_long_events_by_flag() {
    let mut rig = quiet();
    rig.add_eq(5, 64, EventFlags::INITIATOR_LONG);
    rig.put(&put(9).with_eq(5));
    let ack = rig.event(5).0;
    let ack = cxi_hw::InitiatorLong::decode(ack.as_slice().try_into().unwrap());
    assert_eq!(ack.event_size, EventSize::BYTES_32);
    assert_eq!(ack.event_type, EventType::ACK);
    assert_eq!((ack.mlength, ack.user_ptr), (9, 0xfeed));
    assert_eq!(ack.return_code, ReturnCode::OK);

    let mut rig = Rig::new();
    rig.add_eq(TARGET_EQ, 64, EventFlags::TARGET_LONG);
    rig.portal(PORTAL, 0, PortalOptions::IS_MATCHING);
    rig.link(&entry(7, BUFFER, 64));
    rig.put(&put(1));
    assert_eq!(rig.event(TARGET_EQ).0.len(), 64);
}

#[test]
fn rule_3_8_fill_levels_write_the_status() {
    let mut rig = quiet();
    let thresholds = Thresholds { base: 75, delta: 25, count: 2 };
    rig.add_eq_with(5, 64, EventFlags::empty(), thresholds, 0);
    let send = |rig: &mut Rig| rig.put(&put(1).with_eq(5));
    for _ in 0..30 {
        send(&mut rig);
    }
    assert_eq!(status(&rig, 5), EqStatus::default());
    rig.engine.take_effects();
    send(&mut rig);
    let half = status(&rig, 5);
    assert!(half.thld_sts && !half.unackd_dropped_event);
    assert_eq!((half.thld_id, half.event_slots_free), (1, 31));
    assert_eq!(half.timestamp_ns, half.timestamp_ns_cpy);
    assert!(rig.engine.take_effects().contains(&Effect::Wake(1005)));
    for _ in 0..16 {
        send(&mut rig);
    }
    let more = status(&rig, 5);
    assert_eq!((more.thld_id, more.event_slots_free), (0, 15));
    assert_ne!(more.timestamp_ns, half.timestamp_ns);
    // Below and above again.
    while rig.try_event(5).is_some() {}
    for _ in 0..31 {
        send(&mut rig);
    }
    assert_eq!(status(&rig, 5).thld_id, 1);
}

/// Slots that are kept back make a portal with flow control stop earlier.
#[test]
fn rules_3_9_3_10_a_full_queue_disables_a_portal_with_flow_control() {
    let mut rig = Rig::new();
    rig.add_eq_with(TARGET_EQ, 64, EventFlags::empty(), Thresholds::default(), 10);
    rig.portal(PORTAL, 0, FLOW);
    rig.link(&entry(7, BUFFER, 64));
    for _ in 0..53 {
        rig.put(&put(1));
    }
    let acks = rig.events(EQ);
    assert_eq!(acks[..52], [ACK; 52]);
    assert_eq!(acks[52..], [ack(ReturnCode::PT_DISABLED)]);
    for _ in 0..52 {
        assert_eq!(rig.event(TARGET_EQ).kind(), EventType::PUT);
    }
    let change = rig.event(TARGET_EQ).state();
    assert_eq!(change.state, PtlteState::DISABLED);
    assert_eq!(change.reason, StateReason::FC_EQ_FULL);
    assert!(change.by_nic);
    rig.engine.set_reserved_slots(TARGET_EQ, 0);
    rig.set_state(PORTAL, PtlteState::ENABLED, 0xff_ffff);
    assert_eq!(rig.event(TARGET_EQ).state().state, PtlteState::ENABLED);
}

/// Flow control keeps room for messages only. What commands report is the program's to make room
/// for: a NIC loses it.
#[test]
fn rule_3_10_an_append_for_a_full_queue_loses_its_event() {
    let mut rig = Rig::new();
    rig.add_eq(TARGET_EQ, 64, EventFlags::empty());
    rig.portal(PORTAL, 0, FLOW);
    rig.append(&overflow(1, BUFFER, 4096));
    for _ in 0..61 {
        rig.put(&put(1));
    }
    assert!(rig.events(EQ).iter().all(|event| *event == ACK));
    assert!(!status(&rig, TARGET_EQ).unackd_dropped_event);
    let receive =
        entry(7, BUFFER + 4096, 64).with_flags(TargetFlags::USE_ONCE | TargetFlags::OP_PUT);
    rig.append(&receive);
    assert!(status(&rig, TARGET_EQ).unackd_dropped_event);
    // The message is the entry's all the same.
    assert_eq!(rig.unexpected(), 60);
}

#[test]
fn rule_3_10_a_full_queue_refuses_without_flow_control() {
    let mut rig = Rig::new();
    rig.add_eq(TARGET_EQ, 64, EventFlags::empty());
    rig.portal(PORTAL, 0, PortalOptions::IS_MATCHING);
    rig.append(&entry(7, BUFFER, 64));
    for _ in 0..61 {
        rig.put(&put(1));
    }
    let all_ok = rig.events(EQ).iter().all(|event| event.1 == ReturnCode::OK);
    assert!(all_ok);
    rig.put(&put(1));
    assert_eq!(rig.events(EQ), [ack(ReturnCode::ENTRY_NOT_FOUND)]);
    rig.event(TARGET_EQ);
    rig.put(&put(1));
    assert_eq!(rig.events(EQ), [ACK]);
}

#[test]
fn rule_3_12_events_wake_unless_masked() {
    let mut rig = quiet();
    rig.engine.take_effects();
    rig.put(&put(1));
    assert_eq!(rig.engine.take_effects(), [Effect::Wake(EQ.into())]);
    assert_eq!(rig.engine.take_effects(), []);
    mask(&mut rig, true);
    rig.put(&put(1));
    assert_eq!(rig.engine.take_effects(), []);
    assert!(rig.engine.awaits_registers());
    // Unmasked while there is something to read.
    mask(&mut rig, false);
    assert_eq!(rig.engine.take_effects(), [Effect::Wake(EQ.into())]);
    // Unmasked while there is not.
    assert_eq!(rig.events(EQ), [ACK; 2]);
    rig.engine.take_effects();
    mask(&mut rig, true);
    assert!(!rig.engine.awaits_registers());
    mask(&mut rig, false);
    assert_eq!(rig.engine.take_effects(), []);
}

#[test]
fn rule_3_12_lost_events_wake_nobody() {
    let mut rig = quiet();
    rig.add_eq(5, 4, EventFlags::DROP_STATUS_DISABLE);
    rig.engine.take_effects();
    let put = put(1).with_eq(5);
    for _ in 0..2 {
        rig.put(&put);
    }
    assert_eq!(rig.engine.take_effects(), [Effect::Wake(5)]);
    rig.put(&put);
    assert_eq!(rig.engine.take_effects(), []);
}

/// A poll wakes only a client that has stored its register word.
#[test]
fn rule_3_12_polls_wake_nobody() {
    let mut rig = quiet();
    rig.put(&put(1));
    rig.engine.take_effects();
    rig.engine.poll();
    assert_eq!(rig.engine.take_effects(), []);
}

#[test]
fn status_blocks_wake_unless_masked() {
    for masked in [false, true] {
        let mut rig = quiet();
        rig.add_eq(5, 4, EventFlags::empty());
        let reader = rig.readers.get_mut(&5).unwrap();
        reader.state.eq_sts_int_disable = masked;
        reader.store(&mut rig.engine, 5);
        for _ in 0..3 {
            rig.put(&put(1).with_eq(5));
        }
        let wakes = rig.engine.take_effects().contains(&Effect::Wake(1005));
        assert_eq!(wakes, !masked);
    }
}

/// Successful events may be suppressed, and a queue that is gone affects no other.
#[test]
fn events_to_a_queue_that_is_gone_are_nowhere() {
    let mut rig = quiet();
    rig.store(TXQ, &[&put(1).with_flags(DmaFlags::empty()).encode()]);
    rig.engine.remove_event_queue(EQ);
    rig.engine.run_until_idle();
    assert_eq!(rig.try_event(EQ), None);
}
