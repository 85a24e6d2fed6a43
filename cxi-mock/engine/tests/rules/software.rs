//! 11.5 to 11.7: lists that software manages.

use cxi_engine::PortalOptions;
use cxi_hw::{DmaFlags, DmaOp, EventType, List, PtlteState, ReturnCode, StateReason, TargetOp};

use crate::rig::*;

const HYBRID: PortalOptions = FLOW.union(PortalOptions::EN_SW_HW_ST_CHNG);

#[test]
fn rule_11_5_software_takes_over() {
    let mut rig = Rig::with_portal(HYBRID);
    rig.append(&overflow(1, BUFFER + 4096, 4096));
    rig.append(&request_list(2));
    rig.put(&put(5));
    rig.events(TARGET_EQ);
    rig.set_state(PORTAL, PtlteState::DISABLED, 0);
    assert!(!rig.event(TARGET_EQ).state().by_nic);
    rig.append(&search(TargetOp::SEARCH_AND_DELETE, 9, 0));
    assert_eq!(rig.events(TARGET_EQ).len(), 2);
    assert_eq!(rig.engine.transition_to_software(PORTAL, 0), Ok(()));
    rig.put(&put(5));
    assert_eq!(rig.event(TARGET_EQ).long().ptl_list, List::REQUEST);
}

#[test]
fn rule_11_6_the_nic_hands_over_when_an_append_fails() {
    let mut rig = Rig::new();
    rig.limit_entries(1);
    rig.portal(PORTAL, 0, HYBRID);
    rig.link(&entry(1, BUFFER, 64));
    rig.append(&entry(2, BUFFER, 64));
    let change = rig.event(TARGET_EQ).state();
    assert_eq!(change.state, PtlteState::SOFTWARE_MANAGED);
    assert_eq!(change.reason, StateReason::SM_APPEND_FAIL);
    assert!(change.by_nic);
    let refused = link(ReturnCode::PTLTE_SW_MANAGED);
    assert_eq!(rig.events(TARGET_EQ), [refused]);
    rig.append(&entry(3, BUFFER, 64));
    assert_eq!(rig.events(TARGET_EQ), [refused]);
}

#[test]
fn rule_11_6_the_nic_hands_over_when_a_header_does_not_fit() {
    let mut rig = Rig::new();
    rig.limit_entries(2);
    rig.portal(PORTAL, 0, HYBRID);
    rig.append(&overflow(1, BUFFER + 4096, 4096));
    rig.append(&request_list(2));
    rig.events(TARGET_EQ);
    rig.put(&put(5));
    let change = rig.event(TARGET_EQ).state();
    assert_eq!(change.state, PtlteState::SOFTWARE_MANAGED);
    assert_eq!(change.reason, StateReason::SM_UNEXPECTED_FAIL);
    assert_eq!(rig.event(TARGET_EQ).long().ptl_list, List::REQUEST);
    assert_eq!(rig.event(EQ).code(), ReturnCode::OK);
}

#[test]
fn rules_6_2_11_6_without_the_option_it_disables() {
    let mut rig = Rig::new();
    rig.limit_entries(1);
    rig.portal(PORTAL, 0, FLOW);
    rig.append(&overflow(1, BUFFER + 4096, 4096));
    rig.events(TARGET_EQ);
    rig.put(&put(5));
    let change = rig.event(TARGET_EQ).state();
    assert_eq!(change.state, PtlteState::DISABLED);
    assert_eq!(change.reason, StateReason::FC_UNEXPECTED_FAIL);
    assert_eq!(rig.event(EQ).code(), ReturnCode::PT_DISABLED);
}

fn managed() -> Rig {
    let mut rig = Rig::new();
    rig.portal_disabled(PORTAL, 0, HYBRID);
    rig.append(&request_list(2));
    rig.set_state(PORTAL, PtlteState::SOFTWARE_MANAGED, 0);
    rig.events(TARGET_EQ);
    rig
}

#[test]
fn rule_11_7_the_headers_are_in_front_of_the_data() {
    let mut rig = managed();
    rig.memory.put(BUFFER, b"payload");
    let offset = 0x0011_2233_4455_6677;
    rig.put(&put(7).with_offset(offset).with_header(0xd).with_match_bits(0xb));
    let event = rig.event(TARGET_EQ).long();
    assert_eq!(event.event_type, EventType::PUT);
    assert_eq!(event.ptl_list, List::REQUEST);
    assert_eq!((event.mlength, event.rlength), (63 + 7, 7));
    assert_eq!((event.start, event.header_data), (BUFFER + 0x8000, 0xd));
    let bytes = rig.memory.bytes(BUFFER + 0x8000, 70);
    assert_eq!(bytes[0], 0x45);
    assert_eq!(bytes[4..6], VNI.to_be_bytes());
    assert_eq!(bytes[12..16], (NID << 12).to_be_bytes());
    assert_eq!(bytes[20] >> 4 & 7, 0);
    assert_eq!(bytes[22..29], offset.to_be_bytes()[1..]);
    assert_eq!(bytes[36..40], 7_u32.to_be_bytes());
    assert_eq!(bytes[40..44], NID.to_be_bytes());
    assert_eq!(bytes[44..52], 0xb_u64.to_be_bytes());
    assert_eq!(bytes[52..60], 0xd_u64.to_be_bytes());
    assert_eq!(bytes[63..], *b"payload");
    let ack = rig.event(EQ).initiator();
    assert_eq!((ack.mlength, ack.ptl_list), (7, List::REQUEST));
}

#[test]
fn rule_11_7_small_messages_have_a_shorter_header() {
    let mut rig = managed();
    rig.submit(
        TXQ,
        &[&c_state(DmaFlags::EVENT_SEND_DISABLE).encode(), &idc_message(0xb, b"small")],
    );
    let event = rig.event(TARGET_EQ).long();
    assert_eq!((event.mlength, event.rlength), (49 + 5, 5));
    let bytes = rig.memory.bytes(BUFFER + 0x8000, 54);
    assert_eq!((bytes[0], bytes[20] >> 4 & 7), (0x45, 1));
    assert_eq!(bytes[22..30], 0xdada_u64.to_be_bytes());
    assert_eq!((bytes[34] & 15, bytes[35]), (0, 5));
    assert_eq!(bytes[36..40], NID.to_be_bytes());
    assert_eq!(bytes[40..48], 0xb_u64.to_be_bytes());
    assert_eq!(bytes[49..], *b"small");
}

#[test]
fn rule_11_7_a_rendezvous_put_leaves_the_rest_to_software() {
    let mut rig = managed();
    rig.put(
        &message(DmaOp::RENDEZVOUS_PUT, NID, BUFFER, 1000)
            .with_flags(DmaFlags::USE_OFFSET_FOR_GET)
            .with_offset(BUFFER)
            .with_eager(20)
            .with_rendezvous(0x42),
    );
    let event = rig.event(TARGET_EQ).long();
    assert_eq!((event.mlength, event.rlength), (63 + 20, 1000));
    assert!(event.rendezvous);
    assert_eq!(event.rendezvous_id, 0x42);
    let bytes = rig.memory.bytes(BUFFER + 0x8000, 63);
    assert_eq!((bytes[34] & 15, bytes[35]), (4, 2 << 4 | 1 << 2));
    assert_eq!(bytes[36..40], 1000_u32.to_be_bytes());
    // 20 bits, from the highest.
    assert_eq!(bytes[60..63], [0, 1, 4 << 4]);
    assert_eq!(rig.events(TARGET_EQ), []);
}
