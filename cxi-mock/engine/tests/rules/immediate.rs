//! 2.10 and 2.11: immediate commands.

use cxi_hw::{CState, DmaFlags, EventType, ReturnCode};

use crate::matching;
use crate::rig::*;

/// The state of a queue is zero at first and stays as it was set.
#[test]
fn rule_2_10_immediate_commands_take_what_the_state_says() {
    let mut rig = matching();
    rig.submit(TXQ, &[&idc_put(&[1; 8])]);
    // Without a state there is no event queue.
    assert_eq!(rig.events(EQ), []);
    assert_eq!(rig.event(TARGET_EQ).short().initiator.0, 0);
    let state =
        CState { initiator: cxi_hw::MatchId(0x77), ..c_state(DmaFlags::EVENT_SEND_DISABLE) };
    rig.submit(TXQ, &[&state.encode(), &idc_put(&[1; 8]), &idc_put(&[1; 4])]);
    for len in [8, 4] {
        let ack = rig.event(EQ).initiator();
        assert_eq!((ack.user_ptr, ack.mlength), (0xcafe, len));
        assert_eq!(rig.event(TARGET_EQ).short().initiator.0, 0x77);
    }
}

#[test]
fn rule_2_11_immediate_puts_and_messages() {
    let mut rig = matching();
    let state = c_state(DmaFlags::EVENT_SEND_DISABLE);
    let payload: Vec<u8> = (0..192).collect();
    rig.submit(TXQ, &[&state.encode(), &idc_put(&payload[..100])]);
    let event = rig.event(TARGET_EQ).short();
    assert_eq!(event.match_bits, 0);
    assert_eq!(event.header_data, 0);
    assert_eq!(event.length, 100);
    assert_eq!(rig.memory.bytes(BUFFER + 4096, 100), payload[..100]);
    assert_eq!(rig.event(EQ).initiator().user_ptr, 0xcafe);
    rig.link(&entry(8, BUFFER, 4096).with_match_bits(0x55));
    rig.submit(TXQ, &[&idc_message(0x55, &payload)]);
    let event = rig.event(TARGET_EQ).short();
    assert_eq!(event.match_bits, 0x55);
    assert_eq!(event.header_data, 0xdada);
    assert_eq!(event.length, 192);
    assert_eq!(event.buffer_id, 8);
    assert_eq!(rig.memory.bytes(BUFFER, 192), payload);
    assert_eq!(rig.event(EQ).initiator().user_ptr, 0xbeef);
}

#[test]
fn rule_2_11_payload_limits() {
    for (flags, len, fits) in [
        (DmaFlags::empty(), 192, true),
        (DmaFlags::empty(), 193, false),
        (DmaFlags::RESTRICTED, 224, true),
        (DmaFlags::RESTRICTED, 225, false),
    ] {
        let mut rig = matching();
        rig.submit(TXQ, &[&c_state(flags | DmaFlags::EVENT_SEND_DISABLE).encode()]);
        rig.submit(TXQ, &[&idc_put(&vec![1; len])]);
        let kind = if fits { EventType::ACK } else { EventType::COMMAND_FAILURE };
        assert_eq!(rig.event(EQ).kind(), kind, "{flags:?} {len}");
    }
    // A length that is shorter than the head, or longer than the command.
    for length in [15, 200] {
        let mut rig = matching();
        let mut command = idc_put(&[1; 8]);
        command[1] = length;
        rig.submit(TXQ, &[&command]);
        assert_eq!(rig.event(EQ).code(), ReturnCode::CMD_INVALID_ARG);
    }
}
