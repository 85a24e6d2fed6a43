//! 8: puts and gets at the target.

use cxi_engine::PortalOptions;
use cxi_hw::{
    DmaFlags, DmaOp, EventType, List, MatchId, PtlteState, ReturnCode, StateReason, TargetFlags,
};

use crate::rig::*;

#[test]
fn rule_8_1_the_order_of_lists() {
    let mut rig = Rig::matching();
    rig.append(&request_list(3));
    rig.append(&overflow(2, BUFFER + 0x4000, 4096));
    rig.append(&entry(1, BUFFER, 64));
    rig.append(&entry(9, BUFFER, 64));
    rig.events(TARGET_EQ);
    let where_to = |rig: &mut Rig, bits| {
        rig.put(&put(1).with_match_bits(bits));
        rig.event(EQ).initiator().ptl_list
    };
    assert_eq!(where_to(&mut rig, 0), List::PRIORITY);
    assert_eq!(rig.event(TARGET_EQ).short().buffer_id, 1);
    assert_eq!(where_to(&mut rig, 5), List::OVERFLOW);
    rig.set_state(PORTAL, PtlteState::DISABLED, 0);
    rig.set_state(PORTAL, PtlteState::SOFTWARE_MANAGED, 0);
    assert_eq!(where_to(&mut rig, 0), List::PRIORITY);
    assert_eq!(where_to(&mut rig, 5), List::REQUEST);
}

#[test]
fn rule_8_2_match_bits_and_ignore_bits() {
    let mut rig = Rig::matching();
    rig.append(&entry(1, BUFFER, 64).with_match_bits(0xff00).with_ignore_bits(0x00ff));
    for (bits, matches) in
        [(0xff00, true), (0xff77, true), (0xfe00, false), (1 << 63 | 0xff00, false)]
    {
        assert_eq!(
            rig.outcome(&put(1).with_match_bits(bits)) == ReturnCode::OK,
            matches,
            "{bits:x}"
        );
    }
}

#[test]
fn rule_8_2_portals_that_do_not_match_take_everything() {
    let mut rig = Rig::with_portal(PortalOptions::empty());
    rig.append(&entry(1, BUFFER, 64).with_match_bits(9).with_match_id(MatchId(0)));
    assert_eq!(rig.outcome(&put(1).with_match_bits(77)), ReturnCode::OK);
}

#[test]
fn rule_8_3_a_message_that_was_asked_for() {
    let mut rig = Rig::matching();
    rig.link(&entry(1, BUFFER + 4096, 64));
    rig.memory.put(BUFFER, b"payload");
    rig.put(&put(7).with_header(0x77).with_offset(2));
    assert_eq!(rig.memory.bytes(BUFFER + 4096, 10), b"\0\0payload\0");
    let event = rig.event(TARGET_EQ).short();
    assert_eq!(event.event_type, EventType::PUT);
    assert_eq!(event.ptl_list, List::PRIORITY);
    assert_eq!((event.header_data, event.length), (0x77, 7));
}

#[test]
fn rule_8_3_a_message_that_nobody_asked_for() {
    let mut rig = Rig::matching();
    rig.link(&overflow(1, BUFFER + 4096, 64));
    rig.memory.put(BUFFER, b"payload");
    rig.put(&put(7));
    rig.put(&put(0));
    assert_eq!(rig.memory.bytes(BUFFER + 4096, 8), b"payload\0");
    for (start, len) in [(BUFFER + 4096, 7), (BUFFER + 4096 + 7, 0)] {
        let event = rig.event(TARGET_EQ).long();
        assert_eq!(event.event_type, EventType::PUT);
        assert_eq!(event.ptl_list, List::OVERFLOW);
        assert_eq!((event.start, event.mlength), (start, len));
    }
    assert_eq!(rig.unexpected(), 2);
    // Without headers, a later search finds nothing.
    let flags = overflow(2, BUFFER, 64).flags | TargetFlags::UNEXPECTED_HDR_DISABLE;
    rig.append(&unlink(List::OVERFLOW, 1));
    rig.append(&overflow(2, BUFFER + 4096, 64).with_flags(flags));
    rig.put(&put(1));
    assert_eq!(rig.unexpected(), 2);
}

#[test]
fn rule_8_4_nothing_matches() {
    let mut rig = Rig::matching();
    assert_eq!(rig.outcome(&put(1)), ReturnCode::ENTRY_NOT_FOUND);
    assert_eq!(rig.events(TARGET_EQ), []);

    let mut rig = Rig::with_portal(FLOW);
    rig.put(&put(1));
    rig.put(&put(1));
    assert_eq!(rig.events(EQ), [ack(ReturnCode::PT_DISABLED); 2]);
    assert_eq!(rig.event(TARGET_EQ).state().reason, StateReason::FC_NO_MATCH);
    rig.set_state(PORTAL, PtlteState::SOFTWARE_MANAGED, 0xff_ffff);
    rig.event(TARGET_EQ);
    rig.put(&put(1));
    let change = rig.event(TARGET_EQ).state();
    assert_eq!(change.state, PtlteState::DISABLED);
    assert_eq!(change.reason, StateReason::FC_REQUEST_FULL);
    assert_eq!(rig.event(EQ).code(), ReturnCode::PT_DISABLED);
}

#[test]
fn rule_8_5_disabled_and_reset() {
    let mut rig = Rig::new();
    rig.portal_disabled(PORTAL, 0, PortalOptions::IS_MATCHING);
    rig.append(&entry(1, BUFFER, 64));
    for (state, drops) in [(PtlteState::DISABLED, 1), (PtlteState::RESET, 0)] {
        rig.set_state(PORTAL, state, 0);
        assert_eq!(rig.outcome(&put(1)), ReturnCode::PT_DISABLED);
        assert_eq!(rig.engine.portal_status(PORTAL).unwrap().drop_count, drops);
    }
}

#[test]
fn rule_8_6_an_entry_takes_what_waits_oldest_first() {
    let mut rig = Rig::matching();
    let wb = rig.add_ct(CT);
    rig.append(&overflow(1, BUFFER + 4096, 4096));
    for header_data in 1..=4 {
        rig.put(&put(10).with_header(header_data).with_offset(99).with_match_bits(header_data % 2));
    }
    rig.events(TARGET_EQ);
    let flags = TargetFlags::OP_PUT | TargetFlags::MANAGE_LOCAL | TargetFlags::EVENT_CT_OVERFLOW;
    rig.append(
        &entry(2, BUFFER, 25).with_flags(flags).with_ct(CT).with_min_free(10).with_match_bits(1),
    );
    for (header_data, at, last) in [(1, 0, false), (3, 20, true)] {
        let event = rig.event(TARGET_EQ).long();
        assert_eq!(event.event_type, EventType::PUT_OVERFLOW);
        assert_eq!(event.ptl_list, List::PRIORITY);
        assert_eq!((event.buffer_id, event.header_data), (2, header_data));
        assert_eq!((event.mlength, event.rlength), (10, 10));
        assert_eq!((event.start, event.remote_offset), (BUFFER + 4096 + at, 0));
        assert_eq!(event.auto_unlinked, last);
    }
    assert_eq!(rig.events(TARGET_EQ), []);
    assert_eq!(rig.count(CT, wb), (2, 0));
    // A use-once entry takes one.
    let once = TargetFlags::OP_PUT | TargetFlags::USE_ONCE;
    rig.append(&entry(3, BUFFER, 64).with_flags(once));
    assert_eq!(rig.event(TARGET_EQ).long().header_data, 2);
    assert_eq!(rig.events(TARGET_EQ), []);
    assert_eq!(rig.unexpected(), 1);
}

/// The events of the buffer and of the entry carry the same address.
#[test]
fn rule_8_7_both_events_say_where_the_message_is() {
    let mut rig = Rig::matching();
    rig.link(&overflow(1, BUFFER + 4096, 4096));
    rig.put(&put(10));
    rig.put(&put(10));
    let starts: Vec<_> = (0..2).map(|_| rig.event(TARGET_EQ).long().start).collect();
    rig.append(&entry(2, BUFFER, 64));
    assert_eq!([0, 1].map(|_| rig.event(TARGET_EQ).long().start).as_slice(), starts);
}

#[test]
fn rule_8_8_gets_read_from_the_entry() {
    let mut rig = Rig::matching();
    let flags = PUTS_AND_GETS;
    rig.link(&entry(1, BUFFER + 4096, 64).with_flags(flags));
    rig.memory.put(BUFFER + 4096, b"0123456789");
    rig.put(&get(5).with_offset(3));
    assert_eq!(rig.memory.bytes(BUFFER, 6), b"34567\0");
    let reply = rig.event(EQ).initiator();
    assert_eq!((reply.event_type, reply.mlength), (EventType::REPLY, 5));
    let event = rig.event(TARGET_EQ).short();
    assert_eq!((event.event_type, event.length), (EventType::GET, 5));
}

#[test]
fn rule_8_9_restricted_puts_are_silent_at_the_target() {
    for (options, flags, events) in [
        (PortalOptions::empty(), TargetFlags::empty(), 0),
        (PortalOptions::EN_RESTRICTED_UNICAST_LM, TargetFlags::empty(), 0),
        (PortalOptions::empty(), TargetFlags::MANAGE_LOCAL, 0),
        (PortalOptions::EN_RESTRICTED_UNICAST_LM, TargetFlags::MANAGE_LOCAL, 1),
    ] {
        let mut rig = Rig::new();
        let wb = rig.add_ct(CT);
        rig.portal(PORTAL, 0, options);
        let flags = flags | TargetFlags::OP_PUT | TargetFlags::EVENT_CT_COMM;
        rig.link(&entry(1, BUFFER, 64).with_flags(flags).with_ct(CT));
        let restricted = DmaFlags::RESTRICTED | DmaFlags::EVENT_SEND_DISABLE;
        rig.put(&put(8).with_flags(restricted));
        assert_eq!(rig.events(EQ), [ACK]);
        assert_eq!(rig.events(TARGET_EQ).len(), events, "{options:?}");
        assert_eq!(rig.count(CT, wb).0, events as u64);
    }
}

#[test]
fn rule_8_10_match_events() {
    let mut rig = Rig::with_portal(PortalOptions::IS_MATCHING | PortalOptions::EN_EVENT_MATCH);
    rig.link(&entry(1, BUFFER, 16));
    rig.put(&put(8));
    let event = rig.event(TARGET_EQ);
    assert_eq!((event.kind(), event.0.len()), (EventType::MATCH, 64));
    assert_eq!(rig.events(TARGET_EQ), [PUT]);
    rig.put(&put(17));
    assert_eq!(rig.events(TARGET_EQ), []);
}

#[test]
fn rule_8_11_flushes_and_restricted_packets_are_counted() {
    let mut rig = Rig::with_portal(PortalOptions::empty());
    rig.append(&entry(1, BUFFER, 16));
    rig.put(&put(0).with_flags(DmaFlags::FLUSH));
    rig.put(&put(0).with_flags(DmaFlags::RESTRICTED));
    let telemetry = rig.engine.telemetry();
    assert_eq!(telemetry.flush_requests, 1);
    assert_eq!(telemetry.restricted_packets, 1);
    assert_eq!((telemetry.fast_path_hits, telemetry.requests), (2, 2));
}

/// Between two steps nothing is in flight that could still reach an invalidated entry.
#[test]
fn rule_8_12_an_entry_that_is_unlinked_takes_nothing() {
    let mut rig = Rig::matching();
    rig.append(&entry(1, BUFFER, 16));
    rig.store(TXQ, &[&put(8).encode()]);
    rig.store(TGQ, &[&unlink(List::PRIORITY, 1).encode()]);
    rig.engine.run_until_idle();
    assert_eq!(rig.event(EQ).code(), ReturnCode::ENTRY_NOT_FOUND);
}

/// Remote offsets count as 0 where the portal says so.
#[test]
fn remote_offsets_can_be_cleared() {
    let mut rig = Rig::with_portal(PortalOptions::CLR_REMOTE_OFFSET);
    rig.append(&entry(1, BUFFER + 4096, 16));
    rig.memory.put(BUFFER, &[5; 4]);
    rig.put(&message(DmaOp::PUT, NID, BUFFER, 4).with_offset(1 << 40));
    assert_eq!(rig.memory.bytes(BUFFER + 4096, 4), [5; 4]);
}
