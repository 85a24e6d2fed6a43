//! 7: list entries.

use cxi_engine::{EntryPool, PoolLimits, PortalOptions, Settings};
use cxi_hw::{DmaOp, EventType, FullDma, List, ReturnCode, TargetCommand, TargetFlags};

use crate::rig::*;

fn with(command: TargetCommand, flags: TargetFlags) -> TargetCommand {
    command.with_flags(command.flags | flags)
}

#[test]
fn rule_7_1_an_append_is_answered() {
    let mut rig = Rig::matching();
    for list in [List::PRIORITY, List::OVERFLOW, List::REQUEST] {
        rig.append(&entry(9, BUFFER, 64).with_list(list));
        let event = rig.event(TARGET_EQ);
        assert_eq!((event.what(), event.0.len()), (LINK, 64));
        let event = event.long();
        assert_eq!(event.buffer_id, 9);
        assert_eq!(event.ptlte_index, PORTAL);
        assert_eq!(event.ptl_list, list);
    }
    rig.append(&with(entry(9, BUFFER, 64), TargetFlags::EVENT_LINK_DISABLE));
    assert_eq!(rig.events(TARGET_EQ), []);
    rig.append(&entry(9, BUFFER, 64).with_list(List::UNEXPECTED));
    assert_eq!(rig.event(EQ).code(), ReturnCode::CMD_INVALID_ARG);
}

#[test]
fn rule_7_2_no_space_closes_the_list() {
    let mut rig = Rig::matching();
    rig.limit_entries(2);
    let quiet = |id| with(entry(id, BUFFER, 64), TargetFlags::EVENT_LINK_DISABLE);
    for id in 1..=3 {
        rig.append(&quiet(id));
    }
    let failed = rig.event(TARGET_EQ);
    assert_eq!(failed.what(), link(ReturnCode::NO_SPACE));
    assert_eq!(failed.long().buffer_id, 3);
    rig.append(&unlink(List::PRIORITY, 1));
    rig.append(&quiet(4));
    assert_eq!(rig.events(TARGET_EQ), [UNLINK, link(ReturnCode::NO_SPACE)]);
    rig.append(&quiet(4).with_restart(true));
    assert_eq!(rig.events(TARGET_EQ), []);
}

#[test]
fn rule_7_3_unexpected_messages_are_entries_of_the_pool() {
    let mut rig = Rig::matching();
    rig.limit_entries(4);
    rig.append(&overflow(1, BUFFER, 4096));
    let linked = rig.event(TARGET_EQ).long();
    assert_eq!((linked.lpe_stat_1, linked.lpe_stat_2), (1, 4));
    for _ in 0..4 {
        rig.put(&put(1));
    }
    assert_eq!(rig.engine.entries_in_use(EntryPool::default()), 4);
    let codes = rig.codes(EQ);
    assert_eq!(codes[..3], [ReturnCode::OK; 3]);
    assert_eq!(codes[3], ReturnCode::NO_SPACE);
}

/// A pool without a limit ends with its processing element.
#[test]
fn rule_7_3_a_processing_element_has_so_many_entries() {
    let settings = Settings { list_entries: 2, ..Settings::default() };
    let mut rig = Rig::with_settings(settings, PortalOptions::IS_MATCHING);
    for id in 1..=3 {
        rig.append(&entry(id, BUFFER, 64));
    }
    let failed = link(ReturnCode::NO_SPACE);
    assert_eq!(rig.events(TARGET_EQ), [LINK, LINK, failed]);
}

/// A reservation is kept, whoever else asks.
#[test]
fn rule_7_3_reservations() {
    let mut rig = Rig::matching();
    let other = EntryPool { element: 0, pool: 1 };
    rig.engine.set_entry_pool(other, PoolLimits { reserved: 16_383, max: 16_383 });
    let quiet = |id| with(entry(id, BUFFER, 64), TargetFlags::EVENT_LINK_DISABLE);
    rig.append(&quiet(1));
    rig.append(&quiet(2));
    assert_eq!(rig.events(TARGET_EQ), [link(ReturnCode::NO_SPACE)]);
    assert_eq!(rig.engine.entries_in_use(EntryPool::default()), 1);
}

#[test]
fn rule_7_4_an_entry_that_is_used_up_at_once_is_never_linked() {
    let mut rig = Rig::matching();
    rig.append(&overflow(1, BUFFER, 4096));
    rig.put(&put(1));
    rig.events(TARGET_EQ);
    rig.append(&with(entry(2, BUFFER, 64), TargetFlags::USE_ONCE));
    let event = rig.event(TARGET_EQ);
    assert_eq!(event.kind(), EventType::PUT_OVERFLOW);
    assert!(event.long().auto_unlinked);
    assert_eq!(rig.events(TARGET_EQ), []);
    rig.append(&unlink(List::PRIORITY, 2));
    assert_eq!(rig.events(TARGET_EQ), [(EventType::UNLINK, ReturnCode::ENTRY_NOT_FOUND)]);
    // The buffer alone is left.
    assert_eq!(rig.engine.entries_in_use(EntryPool::default()), 1);
}

#[test]
fn rule_7_5_unlink_by_list_and_buffer() {
    let mut rig = Rig::matching();
    rig.link(&with(entry(5, BUFFER, 64), TargetFlags::EVENT_UNLINK_DISABLE));
    rig.append(&unlink(List::OVERFLOW, 5));
    let event = rig.event(TARGET_EQ);
    assert_eq!(event.what(), (EventType::UNLINK, ReturnCode::ENTRY_NOT_FOUND));
    assert_eq!((event.long().buffer_id, event.0.len()), (5, 64));
    rig.append(&unlink(List::PRIORITY, 5));
    let event = rig.event(TARGET_EQ);
    assert_eq!(event.what(), UNLINK);
    assert!(!event.long().auto_unlinked);
    assert_eq!(event.long().buffer_id, 5);
}

#[test]
fn rule_7_6_use_once_unlinks_before_the_message_is_reported() {
    let mut rig = Rig::matching();
    rig.link(&with(entry(5, BUFFER, 64), TargetFlags::USE_ONCE));
    rig.put(&put(1));
    let event = rig.event(TARGET_EQ);
    assert_eq!(event.kind(), EventType::UNLINK);
    assert!(event.long().auto_unlinked);
    let event = rig.event(TARGET_EQ);
    assert_eq!(event.kind(), EventType::PUT);
    assert!(event.short().auto_unlinked);
    let quiet = TargetFlags::USE_ONCE | TargetFlags::EVENT_UNLINK_DISABLE;
    rig.append(&with(entry(5, BUFFER, 64), quiet));
    rig.put(&put(1));
    assert_eq!(rig.events(TARGET_EQ), [LINK, PUT]);
}

#[test]
fn rule_7_6_min_free_unlinks_a_full_buffer() {
    let mut rig = Rig::matching();
    let managed = with(entry(5, BUFFER, 100), TargetFlags::MANAGE_LOCAL);
    rig.link(&managed.with_min_free(40));
    rig.put(&put(60));
    assert_eq!(rig.events(TARGET_EQ), [PUT]);
    rig.put(&put(1));
    assert_eq!(rig.events(TARGET_EQ), [UNLINK, PUT]);
    // Without it a full buffer stays.
    rig.append(&managed);
    rig.put(&put(100));
    rig.put(&put(1));
    assert_eq!(rig.events(TARGET_EQ), [LINK, PUT, PUT]);
}

#[test]
fn rule_7_7_a_managed_entry_has_its_own_offset() {
    let mut rig = Rig::matching();
    rig.append(&with(entry(5, BUFFER + 4096, 100), TargetFlags::MANAGE_LOCAL));
    rig.memory.put(BUFFER, b"abcdefgh");
    rig.put(&put(3).with_offset(77));
    rig.put(&put(5).with_offset(1 << 50));
    assert_eq!(rig.memory.bytes(BUFFER + 4096, 10), b"abcabcde\0\0");
}

#[test]
fn rule_7_8_an_entry_may_be_all_of_memory() {
    let mut rig = Rig::matching();
    rig.append(&entry(5, 0, (1 << 56) - 1).with_flags(TargetFlags::OP_GET));
    rig.memory.put(BUFFER + 512, &[9; 16]);
    assert_eq!(rig.outcome(&get(16).with_offset(BUFFER + 512)), ReturnCode::OK);
    assert_eq!(rig.memory.bytes(BUFFER, 16), [9; 16]);
    // But not beyond it, and not where nothing is mapped.
    assert_eq!(rig.outcome(&get(16).with_offset((1 << 56) - 8)), ReturnCode::OP_VIOLATION);
    assert_eq!(rig.outcome(&get(16).with_offset(8)), ReturnCode::NO_TRANSLATION);
}

#[test]
fn rule_7_9_what_does_not_fit_goes_to_the_next_entry() {
    let mut rig = Rig::matching();
    rig.append(&with(entry(5, BUFFER, 10), TargetFlags::NO_TRUNCATE));
    rig.append(&with(entry(6, BUFFER, 20), TargetFlags::NO_TRUNCATE | TargetFlags::MANAGE_LOCAL));
    rig.events(TARGET_EQ);
    let mut to = |len| {
        rig.put(&put(len));
        rig.try_event(TARGET_EQ).map(|event| event.short().buffer_id)
    };
    assert_eq!(
        [to(10), to(11), to(10), to(10), to(11)],
        [Some(5), Some(6), Some(5), Some(5), None]
    );
}

#[test]
fn rule_7_10_a_managed_entry_truncates() {
    let mut rig = Rig::matching();
    rig.link(&with(entry(5, BUFFER + 4096, 10), TargetFlags::MANAGE_LOCAL));
    for (len, moved) in [(8, 8), (8, 2), (8, 0)] {
        rig.put(&put(len));
        let ack = rig.event(EQ).initiator();
        assert_eq!((ack.return_code, ack.mlength), (ReturnCode::OK, moved));
        assert_eq!(rig.event(TARGET_EQ).short().length, moved);
    }
}

#[test]
fn rule_7_10_a_region_refuses_what_reaches_beyond_it() {
    let mut rig = Rig::matching();
    let wb = rig.add_ct(CT);
    let flags = TargetFlags::OP_GET | TargetFlags::EVENT_CT_COMM;
    rig.link(&with(entry(5, BUFFER + 4096, 10), flags).with_ct(CT));
    rig.memory.put(BUFFER, &[1; 32]);
    for command in [put(11), put(6).with_offset(5), get(11), put(1).with_offset(11)] {
        assert_eq!(rig.outcome(&command), ReturnCode::OP_VIOLATION);
    }
    assert_eq!(rig.events(TARGET_EQ), []);
    assert_eq!(rig.memory.bytes(BUFFER + 4096, 32), [0; 32]);
    assert_eq!(rig.count(CT, wb), (0, 4));
    assert_eq!(rig.outcome(&put(5).with_offset(5)), ReturnCode::OK);
}

#[test]
fn rule_7_11_portals_that_do_not_match_check_as_well() {
    let mut rig = Rig::with_portal(PortalOptions::empty());
    rig.append(&entry(5, BUFFER, 10));
    assert_eq!(rig.outcome(&put(11)), ReturnCode::OP_VIOLATION);
}

#[test]
fn rule_7_12_operations_have_to_be_allowed() {
    let code = |options: PortalOptions, flags: TargetFlags, command: &FullDma| {
        let mut rig = Rig::with_portal(options);
        rig.append(&entry(5, BUFFER, 64).with_flags(flags));
        rig.put(command);
        rig.event(EQ).code()
    };
    let (put, get) = (put(1), get(1));
    for (options, refused) in [
        (PortalOptions::IS_MATCHING, ReturnCode::ENTRY_NOT_FOUND),
        (PortalOptions::empty(), ReturnCode::OP_VIOLATION),
    ] {
        assert_eq!(code(options, TargetFlags::OP_PUT, &put), ReturnCode::OK);
        assert_eq!(code(options, TargetFlags::OP_GET, &get), ReturnCode::OK);
        assert_eq!(code(options, TargetFlags::OP_GET, &put), refused);
        assert_eq!(code(options, TargetFlags::OP_PUT, &get), refused);
    }
}

/// An event about a message that has no entry has buffer 0, and there is none.
#[test]
fn rule_7_13_buffer_0_means_no_entry() {
    let mut rig = Rig::matching();
    rig.put(&message(DmaOp::PUT, NID, BUFFER, 1));
    assert_eq!(rig.events(TARGET_EQ), []);
    assert_eq!(rig.event(EQ).code(), ReturnCode::ENTRY_NOT_FOUND);
}
