//! 6: states of portals.

use cxi_engine::{NoTransition, Settings};
use cxi_hw::{EventType, PtlteState, ReturnCode, SetState, StateReason, TargetCommand, TargetOp};

use crate::rig::*;

fn disabled() -> Rig {
    let mut rig = Rig::new();
    rig.portal_disabled(PORTAL, 0, FLOW);
    rig
}

fn hand_over(rig: &mut Rig, portal: u16, drops: u32) -> Result<(), NoTransition> {
    rig.engine.transition_to_software(portal, drops)
}

fn drops(rig: &Rig) -> u32 {
    rig.engine.portal_status(PORTAL).unwrap().drop_count
}

#[test]
fn rule_6_1_every_set_state_is_answered() {
    let mut rig = disabled();
    for state in [
        PtlteState::ENABLED,
        PtlteState::ENABLED,
        PtlteState::DISABLED,
        PtlteState::RESET,
        PtlteState::SOFTWARE_MANAGED,
    ] {
        rig.set_state(PORTAL, state, 0);
        let event = rig.event(TARGET_EQ);
        assert_eq!(event.what(), (EventType::STATE_CHANGE, ReturnCode::OK));
        assert_eq!(event.0.len(), 64);
        let change = event.state();
        assert_eq!((change.state, change.by_nic), (state, false));
        assert_eq!(event.long().ptlte_index, PORTAL);
        assert_eq!(event.long().buffer_id, 0);
    }
    let command =
        SetState { current_addr: 0x1234_5678, ..set_state(PORTAL, PtlteState::ENABLED, 0) };
    rig.submit(TGQ, &[&command.encode()]);
    assert_eq!(rig.event(TARGET_EQ).long().start, 0x1234_5678);
    rig.set_state(PORTAL, PtlteState(5), 0);
    assert_eq!(rig.event(EQ).code(), ReturnCode::CMD_INVALID_ARG);
}

#[test]
fn rule_6_2_changes_by_the_nic_have_a_reason() {
    let mut rig = Rig::with_portal(FLOW);
    rig.put(&put(1));
    let event = rig.event(TARGET_EQ);
    assert_eq!(event.what(), (EventType::STATE_CHANGE, ReturnCode::OK));
    assert_eq!(event.0.len(), 64);
    let change = event.state();
    assert_eq!(change.state, PtlteState::DISABLED);
    assert_eq!(change.reason, StateReason::FC_NO_MATCH);
    assert!(change.by_nic);
}

#[test]
fn rule_6_3_drops_have_to_be_known_to_enable() {
    let mut rig = disabled();
    for _ in 0..3 {
        rig.put(&put(1));
    }
    assert_eq!(drops(&rig), 3);
    rig.set_state(PORTAL, PtlteState::ENABLED, 2);
    let event = rig.event(TARGET_EQ);
    assert_eq!(event.code(), ReturnCode::NO_MATCH);
    assert_eq!(event.state().state, PtlteState::DISABLED);
    rig.set_state(PORTAL, PtlteState::ENABLED, 3);
    let event = rig.event(TARGET_EQ);
    assert_eq!(event.code(), ReturnCode::OK);
    assert_eq!(event.state().state, PtlteState::ENABLED);
    assert_eq!(drops(&rig), 0);
    rig.set_state(PORTAL, PtlteState::DISABLED, 0);
    rig.put(&put(1));
    rig.set_state(PORTAL, PtlteState::SOFTWARE_MANAGED, 0xff_ffff);
    rig.event(TARGET_EQ);
    assert_eq!(rig.event(TARGET_EQ).state().state, PtlteState::SOFTWARE_MANAGED);
}

/// A get of a disabled portal does not count as a message: a choice, as the hardware's behavior is
/// unknown.
#[test]
fn rule_6_3_gets_do_not_count_as_drops() {
    let mut rig = disabled();
    assert_eq!(rig.outcome(&get(1)), ReturnCode::PT_DISABLED);
    assert_eq!(drops(&rig), 0);
}

#[test]
fn rule_6_4_the_first_drop_counts_from_cassini_2_on() {
    for counts in [false, true] {
        let settings = Settings { counts_first_drop: counts, ..Settings::default() };
        let mut rig = Rig::with_settings(settings, FLOW);
        rig.put(&put(1));
        assert_eq!(drops(&rig), u32::from(counts));
        rig.put(&put(1));
        assert_eq!(drops(&rig), 1 + u32::from(counts));
        rig.set_state(PORTAL, PtlteState::ENABLED, 1 + u32::from(counts));
        // With lists that software manages, counting starts at 0.
        rig.set_state(PORTAL, PtlteState::DISABLED, 0);
        assert_eq!(drops(&rig), 0);
    }
}

#[test]
fn rule_6_5_the_transition_to_software() {
    let mut rig = Rig::with_portal(FLOW);
    assert_eq!(hand_over(&mut rig, PORTAL, 0), Err(NoTransition::NotDisabled));
    assert_eq!(hand_over(&mut rig, 99, 0), Err(NoTransition::NotDisabled));
    rig.set_state(PORTAL, PtlteState::DISABLED, 0);
    rig.put(&put(1));
    rig.events(TARGET_EQ);
    assert_eq!(hand_over(&mut rig, PORTAL, 0), Err(NoTransition::Drops));
    assert_eq!(hand_over(&mut rig, PORTAL, 1), Ok(()));
    assert_eq!(hand_over(&mut rig, PORTAL, 77), Ok(()));
    let status = rig.engine.portal_status(PORTAL).unwrap();
    assert_eq!(status.state, PtlteState::SOFTWARE_MANAGED.0);
    assert_eq!(status.drop_count, 0);
    assert_eq!(rig.events(TARGET_EQ), []);
}

#[test]
fn rule_6_6_a_disabled_portal_keeps_its_lists() {
    let mut rig = Rig::with_portal(FLOW);
    rig.append(&overflow(1, BUFFER, 4096));
    rig.put(&put(4).with_match_bits(5));
    rig.set_state(PORTAL, PtlteState::DISABLED, 0);
    rig.events(TARGET_EQ);
    rig.append(&search(TargetOp::SEARCH, 3, 5));
    assert_eq!(rig.events(TARGET_EQ)[0], SEARCH);
    rig.append(&entry(2, BUFFER + 8192, 64).with_match_bits(5));
    assert_eq!(rig.events(TARGET_EQ), [PUT_OVERFLOW, LINK]);
    rig.append(&unlink(cxi_hw::List::PRIORITY, 2));
    assert_eq!(rig.events(TARGET_EQ), [UNLINK]);
    rig.set_state(PORTAL, PtlteState::ENABLED, 0xff_ffff);
    rig.put(&put(4));
    rig.event(TARGET_EQ);
    assert_eq!(rig.event(TARGET_EQ).long().buffer_id, 1);
}

#[test]
fn rule_6_7_status_has_every_unexpected_message() {
    let mut rig = Rig::with_portal(FLOW);
    rig.append(&overflow(1, BUFFER + 0x1000, 4096));
    rig.put(&put(4));
    let rendezvous =
        message(cxi_hw::DmaOp::RENDEZVOUS_PUT, NID, BUFFER, 100).with_offset(0xabc0).with_eager(8);
    rig.put(&rendezvous);
    rig.put(&put(4));
    let status = rig.engine.portal_status(PORTAL).unwrap();
    assert_eq!(status.unexpected, [BUFFER + 0x1000, 0xabc0, BUFFER + 0x1000 + 12]);
    // The buffer and three messages.
    assert_eq!(status.les_allocated, 4);
    assert_eq!(rig.engine.portal_status(77), None);
}

/// Commands reach only portals of their own RGID.
#[test]
fn portals_of_others_are_out_of_reach() {
    let mut rig = Rig::with_portal(FLOW);
    rig.rgid = RGID + 1;
    rig.add_target(1030);
    let append: TargetCommand = entry(1, BUFFER, 8);
    rig.submit(1030, &[&append.encode()]);
    rig.rgid = RGID;
    assert_eq!(rig.status(1030).return_code, ReturnCode::CMD_INVALID_ARG);
    assert_eq!(rig.events(TARGET_EQ), []);
}
