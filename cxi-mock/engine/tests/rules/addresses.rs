//! 5: addresses and who sends.

use cxi_engine::{PortalOptions, Settings};
use cxi_hw::{DmaFlags, EventType, FabricAddress, FullDma, MatchId, ReturnCode};

use crate::rig::*;

#[test]
fn rule_5_1_pid_and_index_of_an_address() {
    for (pid, index) in [(0, 0), (3, 31), (510, 255), (77, 228)] {
        let mut rig = Rig::matching();
        rig.engine.unmap_portal(1, 0, 0);
        rig.engine.map_portal(1, pid, index, PORTAL);
        rig.append(&entry(7, BUFFER, 64));
        let (dfa, index_ext) = FabricAddress::unicast(NID, pid.into(), index.into(), 9);
        assert_eq!(
            rig.outcome(&put(1).with_dfa(dfa).with_index(index_ext)),
            ReturnCode::OK,
            "{pid} {index}"
        );
    }
}

#[test]
fn rule_5_2_all_ones_are_wildcards() {
    let mut rig = Rig::matching();
    let sender = MatchId::new(5, NID, 9);
    for (id, matches) in [
        (MatchId::ANY, true),
        (sender, true),
        (MatchId::new(511, NID, 9), true),
        (MatchId::new(5, 0x7f_ffff, 9), true),
        (MatchId::new(5, 0xf_ffff, 9), true),
        (MatchId::new(6, NID, 9), false),
        (MatchId::new(5, NID + 1, 9), false),
        (MatchId::new(6, 0x7f_ffff, 9), false),
    ] {
        rig.append(&entry(7, BUFFER, 64).with_match_id(id));
        assert_eq!(
            rig.outcome(&put(1).with_initiator(sender)) == ReturnCode::OK,
            matches,
            "{id:x?}"
        );
        rig.append(&unlink(cxi_hw::List::PRIORITY, 7));
    }
}

/// A NIC address of all ones is a rank like others where ranks count.
#[test]
fn rule_5_2_ranks() {
    let mut rig = Rig::with_portal(PortalOptions::IS_MATCHING | PortalOptions::USE_LOGICAL);
    rig.append(&entry(7, BUFFER, 64).with_match_id(MatchId::new(511, 0xf_ffff, 9)));
    assert_eq!(
        rig.outcome(&put(1).with_initiator(MatchId::new(5, 3, 9))),
        ReturnCode::ENTRY_NOT_FOUND
    );
    assert_eq!(rig.outcome(&put(1).with_initiator(MatchId::new(5, 0xf_ffff, 9))), ReturnCode::OK);
}

#[test]
fn rule_5_3_the_vni_is_the_queues() {
    let mut rig = Rig::new();
    rig.engine.add_receive_profile(1, 1..=100);
    rig.profile(0, 42);
    rig.portal(PORTAL, 0, PortalOptions::IS_MATCHING);
    rig.link(&entry(7, BUFFER, 64));
    rig.put(&put(1));
    assert_eq!(rig.event(TARGET_EQ).short().vni, 42);
}

#[test]
fn rule_5_4_where_nobody_is() {
    let mut rig = Rig::matching();
    rig.append(&entry(7, BUFFER, 64));
    let to = |nid, pid, index| {
        let (dfa, index_ext) = FabricAddress::unicast(nid, pid, index, 9);
        put(1).with_dfa(dfa).with_index(index_ext)
    };
    for (command, code, at_target) in [
        (to(NID, 1, 0), ReturnCode::PTLTE_NOT_FOUND, true),
        (to(NID, 0, 1), ReturnCode::PTLTE_NOT_FOUND, true),
        (to(NID + 1, 0, 0), ReturnCode::UNDELIVERABLE, false),
    ] {
        rig.put(&command);
        let ack = rig.event(EQ).initiator();
        assert_eq!((ack.event_type, ack.return_code), (EventType::ACK, code));
        assert_eq!(ack.tgt_error, at_target);
    }
    rig.profile(0, VNI + 1);
    assert_eq!(rig.outcome(&to(NID, 0, 0)), ReturnCode::VNI_NOT_FOUND);
    rig.engine.remove_receive_profile(1);
    rig.profile(0, VNI);
    assert_eq!(rig.outcome(&to(NID, 0, 0)), ReturnCode::VNI_NOT_FOUND);
}

/// A PID belongs to a receive profile with all its VNIs, and several may have the same VNI.
#[test]
fn a_portal_is_found_by_vni_then_profile_then_pid() {
    let mut rig = Rig::new();
    rig.engine.add_receive_profile(2, 1..=1);
    rig.portal(PORTAL, 0, PortalOptions::IS_MATCHING);
    rig.append(&entry(7, BUFFER, 64));
    rig.engine.unmap_portal(1, 0, 0);
    rig.engine.map_portal(2, 0, 0, PORTAL);
    assert_eq!(rig.outcome(&put(1)), ReturnCode::OK);
}

#[test]
fn rule_5_5_only_reductions_go_to_multicast_trees() {
    let mut rig = Rig::new();
    let reduction = DmaFlags::RESTRICTED | DmaFlags::REDUCTION;
    let to_tree = |command: FullDma, flags| {
        command.with_dfa(FabricAddress::multicast(7, 3)).with_flags(command.flags | flags)
    };
    for command in [
        to_tree(put(1), DmaFlags::empty()),
        to_tree(put(1), DmaFlags::RESTRICTED),
        to_tree(put(1), DmaFlags::REDUCTION),
        to_tree(get(1), reduction),
        to_tree(put(4096), reduction),
    ] {
        assert_eq!(rig.outcome(&command), ReturnCode::INVALID_DFA_FORMAT);
    }
    // It has left. Whether it arrives is not known.
    rig.put(&to_tree(put(49), reduction));
    let ack = rig.event(EQ).initiator();
    assert_eq!((ack.return_code, ack.mlength), (ReturnCode::OK, 49));
}

/// A NIC that gets another address is found under that one.
#[test]
fn another_nic_address() {
    let mut rig = Rig::matching();
    rig.append(&entry(7, BUFFER, 64));
    let settings = Settings { nid: 0x99, ..*rig.engine.settings() };
    rig.engine.set_settings(settings);
    assert_eq!(rig.outcome(&put(1)), ReturnCode::UNDELIVERABLE);
    assert_eq!(rig.outcome(&message(cxi_hw::DmaOp::PUT, 0x99, BUFFER, 1)), ReturnCode::OK);
}
