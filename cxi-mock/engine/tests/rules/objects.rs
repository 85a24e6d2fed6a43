//! 1: objects.

use cxi_engine::{CommunicationProfile, EntryPool, PortalOptions};
use cxi_hw::{CqCommand, CqOp, EventType, PtlteState, ReturnCode};

use crate::rig::*;

/// The number of a queue says what it is for; 0 stands for no event queue and no counter.
#[test]
fn rule_1_1_numbers() {
    let mut rig = Rig::matching();
    rig.add_tx(1023, false);
    rig.add_target(1535);
    rig.submit(1535, &[&entry(7, BUFFER, 64).encode()]);
    assert_eq!(rig.event(TARGET_EQ).kind(), EventType::LINK);
    rig.submit(1023, &[&put(1).with_eq(0).with_ct(0).encode()]);
    assert_eq!(rig.event(TARGET_EQ).kind(), EventType::PUT);
    assert_eq!(rig.events(EQ), []);
}

/// A queue sends with the profile of its LCID, as it is when the command runs.
#[test]
fn rule_1_2_profiles_apply_to_later_commands() {
    let mut rig = Rig::new();
    rig.engine.add_receive_profile(1, 1..=9);
    rig.portal(PORTAL, 0, PortalOptions::IS_MATCHING);
    rig.link(&entry(7, BUFFER, 64));
    let vni = |rig: &mut Rig| {
        rig.put(&put(1));
        rig.event(TARGET_EQ).short().vni
    };
    assert_eq!(vni(&mut rig), VNI);
    rig.profile(0, 5);
    assert_eq!(vni(&mut rig), 5);
    rig.profile(3, 9);
    let select = CqCommand {
        command: cxi_hw::CommandByte::new(cxi_hw::Class::CQ, 1, CqOp::LCID.0),
        lcid: 3,
    };
    rig.submit(TXQ, &[&select.encode()]);
    assert_eq!(vni(&mut rig), 9);
    assert_eq!(rig.events(EQ), [ACK; 3]);
}

/// The triggered queue always has LCID 0.
#[test]
fn rule_1_2_a_triggered_queue_keeps_lcid_0() {
    let mut rig = Rig::new();
    rig.profile(3, 9);
    let select = CqCommand {
        command: cxi_hw::CommandByte::new(cxi_hw::Class::CQ, 1, CqOp::LCID.0),
        lcid: 3,
    };
    rig.submit(TRIGQ, &[&select.encode()]);
    assert_eq!(rig.events(EQ), [failed(ReturnCode::CMD_INVALID_ARG)]);
}

#[test]
fn rule_1_3_a_portal_starts_disabled() {
    let mut rig = Rig::new();
    rig.portal_disabled(PORTAL, 0, PortalOptions::IS_MATCHING);
    let status = rig.engine.portal_status(PORTAL).unwrap();
    assert_eq!(status.state, PtlteState::DISABLED.0);
    assert_eq!((status.drop_count, status.unexpected.len()), (0, 0));
}

#[test]
fn rule_1_4_one_portal_under_several_indices() {
    let mut rig = Rig::new();
    rig.portal(PORTAL, 117, PortalOptions::IS_MATCHING);
    rig.engine.map_portal(1, 0, 228, PORTAL);
    rig.link(&entry(7, BUFFER, 64));
    for index in [117, 228] {
        let (dfa, index_ext) = cxi_hw::FabricAddress::unicast(NID, 0, index, 9);
        rig.put(&put(1).with_dfa(dfa).with_index(index_ext));
        assert_eq!(rig.event(TARGET_EQ).short().buffer_id, 7);
    }
}

#[test]
fn rule_1_5_a_freed_portal_drops_its_lists_without_events() {
    let mut rig = Rig::matching();
    rig.append(&overflow(1, BUFFER, 4096));
    rig.put(&put(8));
    rig.append(&entry(2, BUFFER, 64).with_match_bits(9));
    rig.events(TARGET_EQ);
    assert_eq!(rig.engine.entries_in_use(EntryPool::default()), 3);
    rig.engine.remove_portal(PORTAL);
    assert_eq!(rig.engine.entries_in_use(EntryPool::default()), 0);
    assert_eq!(rig.events(TARGET_EQ), []);
}

/// The traffic class travels with the profile; packets of the high rate type are counted apart.
#[test]
fn high_rate_puts_are_counted() {
    let mut rig = Rig::with_portal(PortalOptions::empty());
    rig.append(&entry(7, BUFFER, 64));
    let profile = CommunicationProfile { vni: VNI, traffic_class: 3, high_rate: true };
    rig.engine.set_profile(RGID, 0, Some(profile));
    rig.put(&put(8));
    assert_eq!(rig.engine.telemetry().high_rate_acks, 1);
}
