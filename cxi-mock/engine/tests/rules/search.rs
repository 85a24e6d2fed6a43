//! 11.1 to 11.4: search.

use cxi_hw::{EventType, List, MatchId, ReturnCode, TargetCommand, TargetFlags, TargetOp};

use crate::rig::*;

/// Four messages that wait, with header data 1 to 4 and match bits 1 and 0 in turn.
fn waiting() -> Rig {
    let mut rig = Rig::matching();
    rig.append(&overflow(1, BUFFER + 4096, 4096));
    for header_data in 1..=4 {
        rig.put(&put(10).with_header(header_data).with_match_bits(header_data % 2));
    }
    rig.events(TARGET_EQ);
    rig
}

fn once(command: TargetCommand) -> TargetCommand {
    command.with_flags(TargetFlags::USE_ONCE)
}

#[test]
fn rule_11_1_a_search_reports_all_or_one() {
    let mut rig = waiting();
    rig.append(&search(TargetOp::SEARCH, 77, 1));
    for header_data in [1, 3] {
        let event = rig.event(TARGET_EQ);
        assert_eq!((event.what(), event.0.len()), (SEARCH, 64));
        let event = event.long();
        assert_eq!((event.buffer_id, event.header_data), (77, header_data));
        assert_eq!(event.mlength, 10);
        assert_eq!(event.rlength, 10);
        assert_eq!(event.match_bits, 1);
        assert_eq!(event.start, BUFFER + 4096 + (header_data - 1) * 10);
    }
    let end = [(EventType::SEARCH, ReturnCode::NO_MATCH)];
    assert_eq!(rig.events(TARGET_EQ), end);
    rig.append(&once(search(TargetOp::SEARCH, 77, 1)));
    assert_eq!(rig.events(TARGET_EQ), [SEARCH]);
    rig.append(&once(search(TargetOp::SEARCH, 77, 2)));
    assert_eq!(rig.events(TARGET_EQ), end);
    let other = MatchId::new(9, 9, 9);
    rig.append(&search(TargetOp::SEARCH, 77, 1).with_match_id(other));
    assert_eq!(rig.events(TARGET_EQ), end);
    assert_eq!(rig.unexpected(), 4);
}

#[test]
fn rule_11_2_search_and_delete_takes_messages_off_the_list() {
    let mut rig = waiting();
    rig.append(&once(search(TargetOp::SEARCH_AND_DELETE, 77, 1)));
    let event = rig.event(TARGET_EQ).long();
    assert_eq!(event.event_type, EventType::PUT_OVERFLOW);
    assert_eq!(event.header_data, 1);
    assert_eq!(rig.events(TARGET_EQ), []);
    rig.append(&search(TargetOp::SEARCH_AND_DELETE, 77, 1));
    let end = (EventType::SEARCH, ReturnCode::NO_MATCH);
    assert_eq!(rig.events(TARGET_EQ), [PUT_OVERFLOW, end]);
    // Nothing there: a choice, as the hardware's behavior is unknown.
    rig.append(&once(search(TargetOp::SEARCH_AND_DELETE, 77, 1)));
    assert_eq!(rig.events(TARGET_EQ), [end]);
    let status = rig.engine.portal_status(PORTAL).unwrap();
    assert_eq!((status.unexpected.len(), status.les_allocated), (2, 3));
}

#[test]
fn rule_11_3_a_search_flushes_what_came_before() {
    let mut rig = waiting();
    let flush = search(TargetOp::SEARCH, 78, u64::MAX);
    rig.store(TGQ, &[&entry(5, BUFFER, 64).with_match_bits(1).encode(), &flush.encode()]);
    rig.engine.run_until_idle();
    let kinds = rig.kinds(TARGET_EQ);
    let expected =
        [EventType::PUT_OVERFLOW, EventType::PUT_OVERFLOW, EventType::LINK, EventType::SEARCH];
    assert_eq!(kinds, expected);
}

/// Software recovers from a disabled portal.
#[test]
fn rule_11_4_recovery() {
    let mut rig = Rig::with_portal(FLOW);
    rig.append(&overflow(1, BUFFER + 4096, 64).with_min_free(40));
    for header_data in 1..=4 {
        rig.put(&put(20).with_header(header_data));
    }
    let codes = rig.codes(EQ);
    assert_eq!(
        codes,
        [ReturnCode::OK, ReturnCode::OK, ReturnCode::PT_DISABLED, ReturnCode::PT_DISABLED]
    );
    rig.append(&search(TargetOp::SEARCH, 9, u64::MAX));
    let status = rig.engine.portal_status(PORTAL).unwrap();
    assert_eq!((status.unexpected.len(), status.drop_count), (2, 1));
    let all = search(TargetOp::SEARCH_AND_DELETE, 9, 0).with_ignore_bits(u64::MAX);
    rig.events(TARGET_EQ);
    rig.append(&all);
    assert_eq!(rig.events(TARGET_EQ).len(), 3);
    rig.append(&overflow(2, BUFFER + 8192, 4096));
    rig.append(&entry(5, BUFFER, 64).with_restart(true).with_match_bits(3));
    rig.set_state(PORTAL, cxi_hw::PtlteState::ENABLED, 1);
    rig.events(TARGET_EQ);
    for header_data in 3..=4 {
        rig.put(&put(20).with_header(header_data));
        assert_eq!(rig.event(TARGET_EQ).long().header_data, header_data);
    }
    assert_eq!(rig.events(EQ), [ACK; 2]);
    rig.append(&unlink(List::PRIORITY, 5));
}
