//! 9: which event, where, how long.

use cxi_engine::PortalOptions;
use cxi_hw::{DmaFlags, DmaOp, EventType, FullDma, List, ReturnCode, TargetFlags};

use crate::rig::*;

fn append(rig: &mut Rig, flags: TargetFlags) {
    let flags = flags | PUTS_AND_GETS;
    rig.link(&entry(1, BUFFER + 4096, 64).with_flags(flags).with_ct(CT));
}

#[test]
fn rule_9_1_suppressed_events() {
    let mut rig = Rig::matching();
    append(&mut rig, TargetFlags::empty());
    let quiet = DmaFlags::EVENT_SUCCESS_DISABLE;
    rig.put(&put(1).with_eq(0));
    rig.put(&put(1).with_flags(quiet));
    assert_eq!(rig.events(EQ), []);
    rig.put(&put(65).with_flags(quiet));
    assert_eq!(rig.events(EQ), [ack(ReturnCode::OP_VIOLATION)]);
    // SEND comes when the data has been read.
    rig.put(&put(1).with_flags(DmaFlags::empty()));
    assert_eq!(rig.events(EQ), [SEND, ACK]);
}

#[test]
fn rule_9_2_counting_at_the_initiator() {
    let mut rig = Rig::matching();
    let wb = rig.add_ct(CT);
    append(&mut rig, TargetFlags::empty());
    let mut counted = |flags: DmaFlags, command: FullDma| {
        let before = rig.count(CT, wb);
        let flags = flags | DmaFlags::EVENT_SUCCESS_DISABLE;
        rig.put(&command.with_flags(flags).with_ct(CT));
        let after = rig.count(CT, wb);
        (after.0 - before.0, after.1 - before.1)
    };
    let (ack, reply) = (DmaFlags::EVENT_CT_ACK, DmaFlags::EVENT_CT_REPLY);
    let bytes = DmaFlags::EVENT_CT_BYTES;
    assert_eq!(counted(DmaFlags::empty(), put(8)), (0, 0));
    assert_eq!(counted(ack, put(8)), (1, 0));
    assert_eq!(counted(reply, put(8)), (0, 0));
    assert_eq!(counted(reply, get(8)), (1, 0));
    assert_eq!(counted(ack | bytes, put(8)), (8, 0));
    assert_eq!(counted(reply | bytes, get(20)), (20, 0));
    assert_eq!(counted(ack | bytes, put(80)), (0, 1));
    assert_eq!(counted(DmaFlags::EVENT_CT_SEND, put(8)), (1, 0));
}

#[test]
fn rule_9_3_what_an_ack_says() {
    let mut rig = Rig::matching();
    rig.append(&overflow(2, BUFFER + 8192, 64));
    rig.put(&put(8).with_user_ptr(0x1234_5678_9abc));
    let ack = rig.event(EQ).initiator();
    assert_eq!((ack.user_ptr, ack.mlength), (0x1234_5678_9abc, 8));
    assert_eq!((ack.ptl_list, ack.tgt_error), (List::OVERFLOW, false));
    rig.put(&put(100));
    let ack = rig.event(EQ).initiator();
    assert!(ack.tgt_error);
    assert_eq!(ack.return_code, ReturnCode::ENTRY_NOT_FOUND);
    assert_eq!(ack.mlength, 0);
}

#[test]
fn rule_9_4_counting_at_the_target() {
    let mut rig = Rig::matching();
    let wb = rig.add_ct(CT);
    append(&mut rig, TargetFlags::EVENT_CT_COMM | TargetFlags::EVENT_COMM_DISABLE);
    rig.put(&put(8));
    rig.put(&get(8));
    assert_eq!(rig.count(CT, wb), (2, 0));
    rig.put(&put(65));
    assert_eq!(rig.count(CT, wb), (2, 1));
    rig.append(&unlink(List::PRIORITY, 1));
    rig.event(TARGET_EQ);
    append(&mut rig, TargetFlags::EVENT_CT_COMM | TargetFlags::EVENT_CT_BYTES);
    rig.put(&put(50));
    assert_eq!(rig.count(CT, wb), (52, 1));
}

#[test]
fn rule_9_5_what_a_long_event_says() {
    let mut rig = Rig::with_portal(PortalOptions::IS_MATCHING | PortalOptions::USE_LONG_EVENT);
    let flags = TargetFlags::OP_PUT
        | TargetFlags::MANAGE_LOCAL
        | TargetFlags::USE_ONCE
        | TargetFlags::EVENT_UNLINK_DISABLE;
    rig.link(&entry(0x55, BUFFER + 4096, 5).with_flags(flags).with_match_bits(0xabcd));
    rig.put(&put(8).with_header(0x1111).with_offset(0x2222).with_match_bits(0xabcd));
    let event = rig.event(TARGET_EQ).long();
    assert_eq!(event.event_type, EventType::PUT);
    assert_eq!((event.header_data, event.match_bits), (0x1111, 0xabcd));
    assert_eq!((event.initiator.0, event.vni), (NID, VNI));
    assert_eq!((event.mlength, event.rlength), (5, 8));
    // The initiator's offset, though the entry has its own.
    assert_eq!((event.remote_offset, event.start), (0x2222, BUFFER + 4096));
    assert_eq!((event.buffer_id, event.ptlte_index), (0x55, PORTAL));
    assert!(event.auto_unlinked && !event.rendezvous && !event.get_issued);
}

#[test]
fn rule_9_6_entries_may_be_quiet() {
    for (flags, put_events, failed_events) in [
        (TargetFlags::empty(), 1, 1),
        (TargetFlags::EVENT_SUCCESS_DISABLE, 0, 1),
        (TargetFlags::EVENT_COMM_DISABLE, 0, 0),
    ] {
        let mut rig = Rig::matching();
        append(&mut rig, flags);
        rig.put(&put(8));
        assert_eq!(rig.events(TARGET_EQ).len(), put_events);
        // The memory behind the entry is gone.
        rig.engine.remove_region(1);
        rig.put(&put(0).with_len(0));
        assert_eq!(rig.events(TARGET_EQ).len(), put_events);
        rig.submit(TXQ, &[&c_state(DmaFlags::EVENT_SEND_DISABLE).encode(), &idc_put(&[1])]);
        let failed = rig.events(TARGET_EQ);
        assert_eq!(failed.len(), failed_events);
        assert!(failed.iter().all(|event| event.1 == ReturnCode::NO_TRANSLATION));
    }
}

/// Of a message to oneself: UNLINK, MATCH, PUT, then ACK.
#[test]
fn rule_9_7_the_order_of_events() {
    let mut rig = Rig::new();
    let options = PortalOptions::IS_MATCHING | PortalOptions::EN_EVENT_MATCH;
    rig.portal_at(PORTAL, EQ, options);
    rig.engine.map_portal(1, 0, 0, PORTAL);
    rig.set_state(PORTAL, cxi_hw::PtlteState::ENABLED, 0);
    let flags = TargetFlags::OP_PUT | TargetFlags::USE_ONCE | TargetFlags::EVENT_LINK_DISABLE;
    rig.append(&entry(1, BUFFER, 64).with_flags(flags));
    rig.events(EQ);
    rig.put(&put(8));
    let order = [EventType::UNLINK, EventType::MATCH, EventType::PUT, EventType::ACK];
    assert_eq!(rig.kinds(EQ), order);
}

#[test]
fn rule_9_8_long_messages_have_long_events() {
    let mut rig = Rig::matching();
    let len = 1 << 20;
    rig.link(&entry(1, BUFFER + 0x20_0000, 1 << 21));
    rig.put(&message(DmaOp::PUT, NID, BUFFER, len - 1));
    assert_eq!(rig.event(TARGET_EQ).short().length, len - 1);
    rig.put(&message(DmaOp::PUT, NID, BUFFER, len));
    assert_eq!(rig.event(TARGET_EQ).long().mlength, len);
}
