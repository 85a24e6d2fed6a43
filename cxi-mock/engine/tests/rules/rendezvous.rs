//! 10: rendezvous.

use cxi_engine::{PortalOptions, Settings};
use cxi_hw::{
    DmaFlags, DmaOp, EventType, FullDma, List, MatchId, ReturnCode, TargetCommand, TargetFlags,
};

use crate::rig::*;

const SOURCE: u16 = 2;
const LEN: u32 = 5000;
const EAGER: u32 = 100;
/// Used up without an event.
const ONCE: TargetFlags = TargetFlags::USE_ONCE.union(TargetFlags::EVENT_UNLINK_DISABLE);

/// A portal for messages and one where a NIC gets the rest.
fn rig() -> Rig {
    with(Settings::default())
}

fn with(settings: Settings) -> Rig {
    let mut rig = Rig::with_settings(settings, PortalOptions::IS_MATCHING);
    rig.portal(SOURCE, 255, PortalOptions::IS_MATCHING);
    rig.append(
        &entry(0x99, 0, (1 << 56) - 1)
            .with_portal(SOURCE)
            .with_flags(TargetFlags::OP_GET | TargetFlags::EVENT_LINK_DISABLE)
            .with_ignore_bits((1 << 48) - 1)
            .with_match_bits(0x1234 << 48),
    );
    let data: Vec<u8> = (0..LEN).map(|at| at.to_le_bytes()[0] ^ 0x5a).collect();
    rig.memory.put(BUFFER, &data);
    rig
}

fn rendezvous() -> FullDma {
    message(DmaOp::RENDEZVOUS_PUT, NID, BUFFER, LEN)
        .with_flags(DmaFlags::EVENT_SEND_DISABLE | DmaFlags::USE_OFFSET_FOR_GET)
        .with_offset(BUFFER)
        .with_eager(EAGER)
        .with_rendezvous(0x42)
        .with_match_bits(0x1234 << 48 | 0x77)
}

fn receive(flags: TargetFlags) -> TargetCommand {
    entry(5, BUFFER + 0x10_0000, LEN.into())
        .with_flags(
            TargetFlags::OP_PUT
                | TargetFlags::MANAGE_LOCAL
                | TargetFlags::EVENT_LINK_DISABLE
                | flags,
        )
        .with_ignore_bits(0xff)
        .with_match_bits(0x1234 << 48)
}

fn sent(rig: &Rig) -> Vec<u8> {
    rig.memory.bytes(BUFFER, LEN as usize)
}

fn received(rig: &Rig) -> Vec<u8> {
    rig.memory.bytes(BUFFER + 0x10_0000, LEN as usize)
}

#[test]
fn rule_10_1_little_travels_at_once() {
    let mut rig = rig();
    rig.link(&overflow(1, BUFFER + 0x20_0000, 8192));
    rig.put(&rendezvous());
    let event = rig.event(TARGET_EQ).long();
    assert_eq!((event.mlength, event.rlength), (EAGER, LEN));
    assert!(event.rendezvous);
    rig.put(&rendezvous().with_len(10));
    assert_eq!(rig.event(TARGET_EQ).long().mlength, 10);
}

#[test]
fn rules_10_2_10_5_a_receive_that_was_there() {
    let mut rig = rig();
    rig.append(&receive(TargetFlags::MANAGE_LOCAL | TargetFlags::USE_ONCE));
    rig.put(&rendezvous());
    assert!(received(&rig) == sent(&rig));
    let unlinked = rig.event(TARGET_EQ);
    assert_eq!(unlinked.kind(), EventType::UNLINK);
    let put = rig.event(TARGET_EQ).long();
    assert_eq!(put.event_type, EventType::PUT);
    assert_eq!(put.ptl_list, List::PRIORITY);
    assert!(put.rendezvous && put.auto_unlinked);
    assert_eq!(put.mlength, EAGER);
    assert_eq!(put.rlength, LEN);
    assert_eq!(put.start, BUFFER + 0x10_0000);
    let rest = rig.event(TARGET_EQ).long();
    assert_eq!(rest.event_type, EventType::RENDEZVOUS);
    assert!(rest.get_issued && rest.rendezvous);
    assert_eq!(rest.initiator.0, NID << 12);
    assert_eq!(rest.start, BUFFER + 0x10_0000 + u64::from(EAGER));
    assert_eq!((rest.mlength, rest.rlength), (EAGER, LEN));
    assert_eq!(rest.match_bits, put.match_bits);
    assert_eq!(rest.rendezvous_id, 0x42);
    assert_eq!(rest.remote_offset, BUFFER + u64::from(EAGER));
}

#[test]
fn rule_10_3_the_initiator_gets_ack_and_get() {
    let mut rig = rig();
    rig.append(&receive(ONCE));
    rig.put(&rendezvous());
    let ack = rig.event(EQ).initiator();
    assert_eq!((ack.event_type, ack.return_code), ACK);
    assert_eq!((ack.mlength, ack.rendezvous), (EAGER, true));
    let kinds = rig.kinds(TARGET_EQ);
    let expected = [EventType::PUT, EventType::RENDEZVOUS, EventType::GET, EventType::REPLY];
    assert_eq!(kinds, expected);
}

#[test]
fn rule_10_4_the_get_of_the_rest() {
    let mut rig = rig();
    rig.append(&receive(ONCE));
    rig.put(&rendezvous());
    rig.event(TARGET_EQ);
    rig.event(TARGET_EQ);
    let get = rig.event(TARGET_EQ).0;
    let get = cxi_hw::TargetShort::decode(get.as_slice().try_into().unwrap());
    assert_eq!((get.event_type, get.buffer_id), (EventType::GET, 0x99));
    assert_eq!(get.match_bits, 0x1234 << 48 | 0x42);
    assert_eq!(get.length, LEN - EAGER);
    let reply = rig.event(TARGET_EQ).initiator();
    assert_eq!(reply.event_type, EventType::REPLY);
    assert!(reply.rendezvous);
    assert_eq!(reply.mlength, LEN - EAGER);
    let packed = u64::from(NID) | u64::from(PORTAL) << 29 | 0x42 << 40 | 5 << 48;
    assert_eq!(reply.user_ptr, packed);
}

/// A program that offers a message to one other NIC.
#[test]
fn rule_10_4_the_get_comes_from_any_pid_of_the_target() {
    for (nid, code) in [(NID, ReturnCode::OK), (NID + 1, ReturnCode::ENTRY_NOT_FOUND)] {
        let mut rig = Rig::matching();
        rig.portal(SOURCE, 255, PortalOptions::IS_MATCHING);
        rig.append(
            &entry(0x99, 0, (1 << 56) - 1)
                .with_portal(SOURCE)
                .with_flags(TargetFlags::OP_GET | TargetFlags::EVENT_LINK_DISABLE)
                .with_match_id(MatchId::new(511, nid, 9))
                .with_match_bits(0x1234 << 48 | 0x42),
        );
        rig.append(&receive(ONCE));
        rig.put(&rendezvous());
        let events = rig.events(TARGET_EQ);
        assert_eq!(events.last(), Some(&(EventType::REPLY, code)));
    }
}

#[test]
fn rule_9_6_rendezvous_puts_are_reported_where_successes_are_not() {
    for (flag, reported) in
        [(TargetFlags::EVENT_SUCCESS_DISABLE, true), (TargetFlags::EVENT_COMM_DISABLE, false)]
    {
        let mut rig = rig();
        rig.append(&receive(ONCE | flag));
        rig.put(&rendezvous());
        let events = rig.events(TARGET_EQ);
        for kind in [EventType::PUT, EventType::RENDEZVOUS, EventType::REPLY] {
            let found = events.contains(&(kind, ReturnCode::OK));
            assert_eq!(found, reported, "{flag:?} {kind:?}");
        }
        assert!(received(&rig) == sent(&rig));
    }
}

/// The rest is as long as the buffer has room, and may be nothing.
#[test]
fn rule_10_4_short_buffers() {
    for room in [3000, 100, 50] {
        let mut rig = rig();
        let flags =
            TargetFlags::USE_ONCE | TargetFlags::MANAGE_LOCAL | TargetFlags::EVENT_UNLINK_DISABLE;
        rig.append(&receive(flags).with_length(room));
        rig.put(&rendezvous());
        let kinds = rig.events(TARGET_EQ);
        assert_eq!(kinds.len(), 4, "{kinds:?}");
        let room = usize::try_from(room).unwrap();
        assert!(received(&rig)[..room] == sent(&rig)[..room]);
        assert!(received(&rig)[room..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn rule_10_4_a_get_that_finds_nothing_fails() {
    let mut rig = rig();
    rig.append(&unlink(List::PRIORITY, 0x99).with_portal(SOURCE));
    rig.event(TARGET_EQ);
    rig.append(&receive(ONCE));
    rig.put(&rendezvous());
    let events = rig.events(TARGET_EQ);
    assert_eq!(events.last(), Some(&(EventType::REPLY, ReturnCode::ENTRY_NOT_FOUND)));
}

/// The offset of such a put is the source's, so that an entry that is not managed locally takes it
/// from its start: a choice, as the hardware's behavior is unknown.
#[test]
fn rule_10_1_the_offset_is_the_sources() {
    let mut rig = rig();
    let flags = TargetFlags::OP_PUT | TargetFlags::USE_ONCE;
    rig.append(&receive(TargetFlags::empty()).with_flags(flags));
    rig.put(&rendezvous());
    assert!(received(&rig) == sent(&rig));
    rig.append(&overflow(1, BUFFER + 0x20_0000, 8192));
    rig.put(&rendezvous());
    rig.append(&receive(TargetFlags::empty()).with_flags(flags));
    let kinds = rig.events(TARGET_EQ);
    assert!(kinds.contains(&PUT_OVERFLOW));
    assert_eq!(kinds.last(), Some(&REPLY));
}

/// The counter of the entry counts the put and the get of the rest, or the bytes of both.
#[test]
fn rule_10_10_a_rendezvous_counts_twice() {
    for (flag, count) in [(TargetFlags::empty(), 2), (TargetFlags::EVENT_CT_BYTES, LEN.into())] {
        let mut rig = rig();
        let wb = rig.add_ct(CT);
        rig.append(&receive(ONCE | TargetFlags::EVENT_CT_COMM | flag).with_ct(CT));
        rig.put(&rendezvous());
        assert_eq!(rig.count(CT, wb), (count, 0));
    }
}

#[test]
fn rule_10_6_a_receive_that_comes_later() {
    let mut rig = rig();
    rig.append(&overflow(1, BUFFER + 0x20_0000, 8192));
    rig.put(&rendezvous());
    rig.events(TARGET_EQ);
    rig.append(&receive(TargetFlags::USE_ONCE));
    let claimed = rig.event(TARGET_EQ).long();
    assert_eq!(claimed.event_type, EventType::PUT_OVERFLOW);
    assert_eq!((claimed.rendezvous_id, claimed.rendezvous), (0x42, true));
    let rest = rig.event(TARGET_EQ).long();
    assert_eq!(rest.event_type, EventType::RENDEZVOUS);
    assert_eq!(rest.buffer_id, 5);
    assert_eq!(rig.event(TARGET_EQ).kind(), EventType::GET);
    assert_eq!(rig.event(TARGET_EQ).kind(), EventType::REPLY);
    // Software copies the beginning.
    let from = EAGER as usize;
    assert!(received(&rig)[from..] == sent(&rig)[from..]);
    assert!(received(&rig)[..from].iter().all(|byte| *byte == 0));
}

#[test]
fn rule_10_7_software_gets_the_rest_if_the_nic_must_not() {
    let mut rig = with(Settings { rendezvous_gets: false, ..Settings::default() });
    rig.append(&receive(ONCE));
    rig.put(&rendezvous());
    rig.event(TARGET_EQ);
    let rest = rig.event(TARGET_EQ).long();
    assert_eq!(rest.event_type, EventType::RENDEZVOUS);
    assert!(!rest.get_issued);
    assert_eq!(rest.match_bits, 0x1234 << 48 | 0x42);
    assert_eq!(rig.events(TARGET_EQ), []);
}

#[test]
fn rule_10_8_the_source_of_a_deleted_message_is_in_the_status() {
    let mut rig = rig();
    rig.append(&overflow(1, BUFFER + 0x20_0000, 8192));
    rig.put(&rendezvous());
    assert_eq!(rig.engine.portal_status(PORTAL).unwrap().unexpected, [BUFFER]);
}

#[test]
fn rule_10_9_a_rendezvous_of_plain_puts() {
    let mut rig = rig();
    let flags = TargetFlags::OP_PUT | TargetFlags::MANAGE_LOCAL;
    rig.link(&overflow(1, BUFFER + 0x20_0000, 1).with_flags(flags));
    rig.put(&put(2048));
    let event = rig.event(TARGET_EQ).long();
    assert_eq!(event.mlength, 1);
    assert_eq!(event.rlength, 2048);
    assert_eq!(event.return_code, ReturnCode::OK);
    let flags = TargetFlags::OP_PUT | TargetFlags::USE_ONCE;
    rig.append(&entry(5, BUFFER + 4096, 2048).with_flags(flags));
    let event = rig.event(TARGET_EQ).long();
    assert_eq!(event.event_type, EventType::PUT_OVERFLOW);
    assert_eq!(event.mlength, 1);
    assert_eq!(event.rlength, 2048);
}

/// The rest of a message whose first bytes had nowhere to go stays where it is.
#[test]
fn a_put_that_fails_starts_no_get() {
    let mut rig = rig();
    rig.append(&receive(ONCE));
    rig.engine.remove_region(1);
    rig.region_with(2, BUFFER, 0x10_0000, true, true);
    rig.put(&rendezvous());
    assert_eq!(rig.events(EQ), [ack(ReturnCode::NO_TRANSLATION)]);
    let put = (EventType::PUT, ReturnCode::NO_TRANSLATION);
    assert_eq!(rig.events(TARGET_EQ), [put]);
    assert_eq!(rig.engine.telemetry().elements[0].offloaded, 0);
}

/// When the get of a freed PtlTE ends, this is not reported to the one that has its number now.
#[test]
fn a_freed_portal_hears_nothing_of_its_get() {
    let mut rig = rig();
    let wb = rig.add_ct(CT);
    rig.append(&receive(TargetFlags::EVENT_CT_COMM).with_ct(CT));
    rig.store(TXQ, &[&rendezvous().encode()]);
    while rig.engine.telemetry().elements[0].offloaded == 0 {
        assert!(rig.engine.step());
    }
    rig.portal_disabled(PORTAL, 0, PortalOptions::IS_MATCHING);
    rig.engine.run_until_idle();
    let kinds = rig.kinds(TARGET_EQ);
    assert_eq!(kinds, [EventType::PUT, EventType::RENDEZVOUS, EventType::GET]);
    assert_eq!(rig.count(CT, wb), (1, 0));
}
