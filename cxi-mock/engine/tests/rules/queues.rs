//! 2: command queues.

use std::sync::Arc;

use cxi_engine::PortalOptions;
use cxi_hw::{
    Class, CommandByte, CommandFailure, CqCommand, CqOp, CtOp, DmaFlags, DmaOp, EventType,
    NomatchDma, ReturnCode, SLOT_BYTES, TargetOp, launch_page,
};

use crate::matching;
use crate::rig::*;

/// Commands start behind the status area, and the ring wraps to there.
#[test]
fn rules_2_1_2_6_rings_wrap_behind_the_status() {
    let mut rig = matching();
    // 252 units of 64 bytes before the wrap.
    for round in 0..600_u32 {
        rig.put(&put(round % 9));
        assert_eq!(rig.event(EQ).initiator().mlength, round % 9);
        rig.event(TARGET_EQ);
        let read = u32::from(rig.status(TXQ).rd_ptr);
        assert_eq!(read, 4 + (round + 1) % 252, "{round}");
    }
}

#[test]
fn rule_2_2_a_doorbell_takes_the_low_16_bits() {
    let mut rig = matching();
    let commands = rig.queues.get_mut(&TXQ).unwrap();
    commands.push(&put(3).encode());
    let pointer = commands.write_pointer();
    rig.engine.ring_queue(TXQ, 0xffff_ffff_0000_0000 | pointer);
    rig.engine.run_until_idle();
    assert_eq!(rig.event(EQ).initiator().mlength, 3);
}

#[test]
fn rule_2_2_a_pointer_outside_the_ring_stops_the_queue() {
    for pointer in [0, 3, 256, 0xffff] {
        let mut rig = matching();
        rig.engine.ring_queue(TXQ, pointer);
        let failure = rig.event(EQ);
        assert_eq!(failure.what(), failed(ReturnCode::ADDR_OUT_OF_RANGE));
    }
}

/// Only the first byte of a no-op counts.
#[test]
fn rule_2_3_noops_are_skipped_whatever_is_behind() {
    let mut rig = matching();
    let mut stale = [0xff; 32];
    stale[..8].fill(0);
    let noop = padded(&counter(CtOp::NOOP, 0).encode(), 64);
    let cq_noop = CqCommand { command: CommandByte::new(Class::CQ, 1, CqOp::NOOP.0), lcid: 0 };
    rig.submit(TXQ, &[&stale, &stale, &noop, &cq_noop.encode(), &put(5).encode()]);
    assert_eq!(rig.events(EQ), [ACK]);
    let mut target = [0xff; 64];
    target[..8].fill(0);
    target[32..40].fill(0);
    rig.submit(TGQ, &[&target[..32], &target[32..], &entry(9, BUFFER, 8).encode()]);
    rig.event(TARGET_EQ);
    assert_eq!(rig.events(TARGET_EQ), [LINK]);
}

#[test]
fn rule_2_4_commands_lie_on_boundaries_of_their_size() {
    let mut rig = matching();
    {
        let mut commands = rig.queues[&TXQ].ring.0.lock().unwrap();
        // A command of 64 bytes in the odd half of a unit.
        commands[256 + 32..256 + 96].copy_from_slice(&put(1).encode());
    }
    rig.engine.ring_queue(TXQ, 6);
    rig.engine.run_until_idle();
    let failure = rig.event(EQ);
    assert_eq!(failure.code(), ReturnCode::CMD_ALIGN_ERROR);
    let status = rig.status(TXQ);
    assert_eq!((status.rd_ptr, status.fail_loc_32), (4, true));
}

#[test]
fn rule_2_4_a_command_does_not_reach_beyond_the_write_pointer() {
    let mut rig = matching();
    rig.queues.get_mut(&TXQ).unwrap().push(&idc_put(&[1; 100]));
    rig.engine.ring_queue(TXQ, 5);
    rig.engine.run_until_idle();
    assert_eq!(rig.event(EQ).code(), ReturnCode::CMD_ALIGN_ERROR);
}

/// A fence has nothing to wait for: each command ends before the next one starts.
#[test]
fn rule_2_5_commands_run_in_order() {
    let mut rig = matching();
    let fence = CqCommand { command: CommandByte::new(Class::CQ, 1, CqOp::FENCE.0), lcid: 0 };
    let commands = [put(1).encode(), fence.encode(), put(2).encode(), put(3).encode()];
    rig.submit(TXQ, &commands.each_ref().map(<[u8; 64]>::as_slice));
    let lengths: Vec<_> = (0..3).map(|_| rig.event(EQ).initiator().mlength).collect();
    assert_eq!(lengths, [1, 2, 3]);
}

/// The status area holds what the program wrote until a command has run.
#[test]
fn rule_2_6_the_status_is_not_touched_before_there_is_a_command() {
    let mut rig = Rig::new();
    let before = rig.queues[&TXQ].ring.0.lock().unwrap().clone();
    rig.engine.run_until_idle();
    assert_eq!(*rig.queues[&TXQ].ring.0.lock().unwrap(), before);
}

#[test]
fn rule_2_6_an_empty_queue_has_written_its_pointer_back() {
    let mut rig = matching();
    for _ in 0..5 {
        rig.link(&entry(1, BUFFER, 8));
    }
    // One SETSTATE and six appends.
    assert_eq!(rig.status(TGQ).rd_ptr, 4 + 7);
}

/// The ring's content when the doorbell was stored is what runs, a full round later too.
#[test]
fn rule_2_8_the_last_of_several_doorbells_counts() {
    let mut rig = matching();
    rig.store(TXQ, &[&put(1).encode()]);
    rig.store(TXQ, &[&put(2).encode()]);
    rig.engine.run_until_idle();
    assert_eq!(rig.events(EQ), [ACK; 2]);
}

/// Writes a command to the ring and, a word at a time, to a low-latency window.
fn write_window(rig: &mut Rig, window: usize, command: &[u8]) {
    let queue = rig.queues.get_mut(&TXQ).unwrap();
    queue.push(command);
    let bytes = CommandByte(command[0]).bytes();
    let start = queue.slot - u32::try_from(bytes / SLOT_BYTES).unwrap();
    let part = window + launch_page::window_offset(start) as usize;
    for word in (0..bytes).step_by(8) {
        rig.engine.ring_window(TXQ, part + word);
    }
    rig.engine.run_until_idle();
}

#[test]
fn rule_2_9_low_latency_windows() {
    let mut rig = matching();
    rig.submit(TXQ, &[&c_state(DmaFlags::EVENT_SEND_DISABLE).encode()]);
    write_window(&mut rig, launch_page::WINDOW_64, &idc_message(0, &[1; 20]));
    assert_eq!(rig.event(EQ).initiator().mlength, 20);
    // This command has 128 bytes and starts on a boundary of them.
    let command = idc_message(0, &[2; 80]);
    write_window(&mut rig, launch_page::WINDOW_128_ALIGNED, &command);
    assert_eq!(rig.event(EQ).initiator().mlength, 80);
    // The next one does not, without a unit in between.
    rig.submit(TXQ, &[&put(1).encode()]);
    assert_eq!(rig.event(EQ).initiator().mlength, 1);
    let command = idc_message(0, &[3; 90]);
    write_window(&mut rig, launch_page::WINDOW_128_UNALIGNED, &command);
    assert_eq!(rig.event(EQ).initiator().mlength, 90);
    for nowhere in [8, 1024, 2048 + 8, 4096] {
        rig.engine.ring_window(TXQ, nowhere);
        assert!(!rig.engine.run_until_idle(), "{nowhere}");
    }
}

#[test]
fn rule_2_12_target_commands_have_64_bytes_and_one_class() {
    let good = entry(9, BUFFER, 8);
    for (byte, code) in [
        (CommandByte::new(Class::CQ, 0, TargetOp::APPEND.0), ReturnCode::CMD_INVALID_ARG),
        (CommandByte::new(Class::DMA, 1, TargetOp::APPEND.0), ReturnCode::ILLEGAL_OP),
        (CommandByte::new(Class::CQ, 1, 13), ReturnCode::ILLEGAL_OP),
        (CommandByte::new(Class::CQ, 1, 1), ReturnCode::ILLEGAL_OP),
    ] {
        let mut rig = matching();
        rig.append(&good.with_command(byte));
        assert_eq!(rig.event(EQ).code(), code, "{byte:?}");
    }
}

/// A command that cannot run is reported, and the queue stops.
#[test]
fn rule_2_13_a_failing_command_stops_its_queue() {
    let bad_eq = put(1).with_eq(99);
    let bad_ct = put(1).with_ct(99);
    let bad_op = put(1).with_command(dma(DmaOp::REDUCTION));
    let long = put(1).with_command(CommandByte::new(Class::DMA, 0, DmaOp::PUT.0));
    for (command, code) in [
        (bad_eq, ReturnCode::CMD_INVALID_ARG),
        (bad_ct, ReturnCode::CMD_INVALID_ARG),
        (bad_op, ReturnCode::ILLEGAL_OP),
        (long, ReturnCode::CMD_INVALID_ARG),
    ] {
        let mut rig = matching();
        rig.submit(TXQ, &[&put(1).encode(), &command.encode(), &put(2).encode()]);
        assert_eq!(rig.event(EQ).kind(), EventType::ACK);
        let failure = rig.event(EQ).0;
        let failure = CommandFailure::decode(failure.as_slice().try_into().unwrap());
        assert_eq!(failure.event_type, EventType::COMMAND_FAILURE);
        assert_eq!((failure.cq_id, failure.is_target), (TXQ, false));
        assert_eq!((failure.fail_loc, failure.return_code), (5, code));
        assert_eq!(failure.fail_command, command.command);
        assert_eq!(rig.events(EQ), []);
        let status = rig.status(TXQ);
        assert_eq!((status.rd_ptr, status.return_code), (5, code));
        assert_eq!(status.fail_command, command.command);
        rig.submit(TXQ, &[&put(2).encode()]);
        assert_eq!(rig.events(EQ), []);
    }
}

#[test]
fn rule_2_13_target_queues_are_counted_on_their_own() {
    let mut rig = matching();
    rig.append(&entry(9, BUFFER, 8).with_portal(77));
    let failure = rig.event(EQ).0;
    let failure = CommandFailure::decode(failure.as_slice().try_into().unwrap());
    assert_eq!((failure.cq_id, failure.is_target), (0, true));
}

#[test]
fn rule_2_14_pending_triggered_commands_are_in_flight() {
    let mut rig = matching();
    let mut command = counter(CtOp::TRIG_SET, CT);
    command.trig_ct = CT;
    command.threshold = 2;
    let bytes = padded(&command.encode(), 64);
    rig.submit(TRIGQ, &[&bytes, &bytes]);
    assert_eq!(rig.engine.commands_in_flight(TRIGQ), 2);
    rig.submit(TXQ, &[&counter(CtOp::CANCEL, CT).encode()]);
    assert_eq!(rig.engine.commands_in_flight(TRIGQ), 0);
}

/// The ring is wherever the front end says, and may be unmapped.
#[test]
fn rule_2_15_a_ring_in_memory_of_the_program() {
    #[derive(Debug)]
    struct InMemory(Arc<dyn cxi_engine::ClientMemory>, u64);
    impl cxi_engine::CommandPages for InMemory {
        fn ring(&self) -> Option<(&Arc<dyn cxi_engine::ClientMemory>, u64)> {
            Some((&self.0, self.1))
        }
        fn read(&self, _: usize, _: &mut [u8]) -> Result<(), cxi_engine::MemoryFault> {
            Err(cxi_engine::MemoryFault)
        }
        fn write_status(&self, _: u64) {
            panic!("the ring is in memory of the program");
        }
    }
    let mut rig = matching();
    let va = rig.private(256 * 64);
    let pages = InMemory(Arc::clone(&rig.memory) as _, va);
    rig.add_tx_at(9, false, pages);
    rig.memory.put(va + 256, &put(6).encode());
    rig.engine.ring_queue(9, 5);
    rig.engine.run_until_idle();
    assert_eq!(rig.event(EQ).initiator().mlength, 6);
    assert_eq!(rig.memory.word(va) & 0xffff, 5);
    rig.memory.unmap(va);
    rig.engine.ring_queue(9, 6);
    rig.engine.run_until_idle();
    assert_eq!(rig.event(EQ).code(), ReturnCode::PCIE_UNSUCCESS_CMPL);
}

/// Commands without match bits report failures alone, and count.
#[test]
fn rule_9_1_nomatch_commands() {
    let mut rig = Rig::new();
    let wb = rig.add_ct(CT);
    rig.portal(PORTAL, 0, PortalOptions::empty());
    rig.append(&entry(7, BUFFER + 4096, 64).with_flags(PUTS_AND_GETS));
    rig.events(TARGET_EQ);
    let base = put(16);
    let loud = DmaFlags::EVENT_CT_ACK | DmaFlags::EVENT_CT_REPLY | DmaFlags::EVENT_SEND_DISABLE;
    let nomatch = |op: DmaOp, len| NomatchDma {
        command: CommandByte::new(Class::DMA, 0, op.0),
        index_ext: base.index_ext,
        lac: LAC,
        flags: loud | DmaFlags::EVENT_SUCCESS_DISABLE,
        dfa: base.dfa,
        local_addr: BUFFER,
        request_len: len,
        ct: CT,
        eq: EQ,
        ..NomatchDma::default()
    };
    rig.memory.put(BUFFER, &[7; 16]);
    rig.submit(TXQ, &[&nomatch(DmaOp::NOMATCH_PUT, 16).encode()]);
    assert_eq!(rig.memory.bytes(BUFFER + 4096, 16), [7; 16]);
    rig.memory.put(BUFFER + 4096, &[9; 16]);
    rig.submit(TXQ, &[&nomatch(DmaOp::NOMATCH_GET, 16).encode()]);
    assert_eq!(rig.memory.bytes(BUFFER, 16), [9; 16]);
    assert_eq!(rig.count(CT, wb), (2, 0));
    assert_eq!(rig.events(EQ), []);
    rig.submit(TXQ, &[&nomatch(DmaOp::NOMATCH_PUT, 100).encode()]);
    assert_eq!(rig.events(EQ), [ack(ReturnCode::OP_VIOLATION)]);
    assert_eq!(rig.count(CT, wb), (2, 1));
    // Without the flag a success is an event, as for other commands.
    let get = NomatchDma { flags: loud, ..nomatch(DmaOp::NOMATCH_GET, 16) };
    rig.submit(TXQ, &[&get.encode()]);
    assert_eq!(rig.events(EQ), [REPLY]);
    // Restricted: the target gets no event.
    assert_eq!(rig.events(TARGET_EQ), []);
}
