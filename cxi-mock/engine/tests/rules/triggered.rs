//! 14: triggered commands.

use cxi_engine::{CounterDoorbell, EventFlags};
use cxi_hw::{Class, CommandByte, CtCommand, CtOp, EventType, ReturnCode, TriggeredShort};

use crate::quiet;
use crate::rig::*;

#[test]
fn rule_14_1_failures_count_as_well() {
    let mut rig = quiet();
    rig.submit(TRIGQ, &[&trig_dma(3, &put(1).encode())]);
    rig.ring_counter(CT, CounterDoorbell::AddSuccess, 2);
    assert_eq!(rig.events(EQ), []);
    rig.ring_counter(CT, CounterDoorbell::AddFailure, 1);
    assert_eq!(rig.events(EQ), [ACK]);
    // The threshold has been reached: at once.
    rig.submit(TRIGQ, &[&trig_dma(3, &put(1).encode())]);
    assert_eq!(rig.events(EQ), [ACK]);
}

#[test]
fn rule_14_1_what_is_ready_fires_in_order_of_arrival() {
    let mut rig = quiet();
    for (user_ptr, threshold) in [(1, 9), (2, 5), (3, 20), (4, 7)] {
        rig.submit(TRIGQ, &[&trig_dma(threshold, &put(1).with_user_ptr(user_ptr).encode())]);
    }
    let fired = |rig: &mut Rig, amount| {
        rig.ring_counter(CT, CounterDoorbell::AddSuccess, amount);
        std::iter::from_fn(|| rig.try_event(EQ).map(|event| event.initiator().user_ptr))
            .collect::<Vec<_>>()
    };
    assert_eq!(fired(&mut rig, 4), []);
    assert_eq!(fired(&mut rig, 6), [1, 2, 4]);
    assert_eq!(fired(&mut rig, 10), [3]);
}

#[test]
fn rule_14_2_triggered_commands_of_all_sizes() {
    use cxi_hw::{AtomicOp, AtomicType, DmaOp, NomatchDma};
    let mut rig = quiet();
    let base = put(8);
    let nomatch = NomatchDma {
        command: CommandByte::new(Class::DMA, 0, DmaOp::NOMATCH_PUT.0),
        lac: LAC,
        dfa: base.dfa,
        local_addr: BUFFER,
        request_len: 8,
        ..NomatchDma::default()
    };
    let atomic = atomic(DmaOp::ATOMIC, AtomicOp::SUM, AtomicType::UINT64_T, 8);
    rig.memory.put(BUFFER, &21_u64.to_le_bytes());
    rig.submit(TRIGQ, &[&trig_dma(1, &nomatch.encode()), &trig_dma(2, &atomic.encode())]);
    rig.ring_counter(CT, CounterDoorbell::AddSuccess, 2);
    assert_eq!(rig.memory.word(BUFFER + 4096), 42);
    assert_eq!(rig.engine.commands_in_flight(TRIGQ), 0);
}

#[test]
fn rule_14_3_trig_event() {
    let mut rig = quiet();
    let wb = rig.add_ct(CT);
    let event = trig(CtOp::TRIG_EVENT, 0, 5).with_eq(EQ);
    let quiet = trig(CtOp::TRIG_EVENT, 0, 5);
    rig.submit(TRIGQ, &[&event.encode(), &quiet.encode()]);
    rig.ring_counter(CT, CounterDoorbell::AddSuccess, 6);
    assert_eq!(rig.written_back(wb), Some((6, 0)));
    let event = rig.event(EQ).0;
    let event = TriggeredShort::decode(event.as_slice().try_into().unwrap());
    assert_eq!(event.event_type, EventType::TRIGGERED_OP);
    assert_eq!(event.return_code, ReturnCode::OK);
    assert_eq!((event.threshold, event.ct_handle), (5, CT));
    assert_eq!(rig.events(EQ), []);
}

#[test]
fn rule_14_4_trig_set_and_trig_inc() {
    let mut rig = quiet();
    let wb = rig.add_ct(2);
    let inc = trig(CtOp::TRIG_INC, 2, 1).with_success(3).with_failure(1);
    let set = trig(CtOp::TRIG_SET, 2, 2).with_success(50).with_failure(9).sets_success(true);
    rig.submit(TRIGQ, &[&inc.encode(), &set.encode()]);
    rig.ring_counter(CT, CounterDoorbell::AddSuccess, 1);
    assert_eq!(rig.count(2, wb), (3, 1));
    rig.ring_counter(CT, CounterDoorbell::AddSuccess, 1);
    assert_eq!(rig.count(2, wb), (50, 1));
}

#[test]
fn rule_14_5_waiting_commands_take_entries_of_a_pool() {
    let mut rig = quiet();
    rig.engine.set_triggered_pool(0, up_to(2));
    let command = padded(&trig(CtOp::TRIG_INC, CT, 9).encode(), 64);
    rig.submit(TRIGQ, &[&command, &command]);
    assert_eq!(rig.engine.triggered_in_use(0), 2);
    assert_eq!(rig.events(EQ), vec![]);
    rig.submit(TRIGQ, &[&command]);
    assert_eq!(rig.events(EQ), [failed(ReturnCode::NO_SPACE)]);
    rig.engine.remove_queue(TRIGQ);
    assert_eq!(rig.engine.triggered_in_use(0), 0);
}

/// Triggered commands are for queues that were made for them, on counters that exist.
#[test]
fn triggered_commands_elsewhere_are_refused() {
    let mut rig = quiet();
    rig.submit(TXQ, &[&trig_dma(1, &put(1).encode())]);
    assert_eq!(rig.event(EQ).code(), ReturnCode::ILLEGAL_OP);
    let nowhere = trig(CtOp::TRIG_INC, CT, 1).with_trig_ct(77);
    rig.submit(TRIGQ, &[&nowhere.encode()]);
    assert_eq!(rig.event(EQ).code(), ReturnCode::CMD_INVALID_ARG);
}

/// A counter or an event queue that a command names must be of the queue's own RGID.
#[test]
fn what_belongs_to_others_is_refused() {
    const FOREIGN: u16 = 9;
    let plain = [CtOp::SET, CtOp::GET, CtOp::INC, CtOp::CANCEL];
    let plain = plain.map(|op| counter(op, FOREIGN));
    let acts = [CtOp::TRIG_SET, CtOp::TRIG_INC].map(|op| trig(op, FOREIGN, 0));
    let all = [CtOp::TRIG_SET, CtOp::TRIG_INC, CtOp::TRIG_EVENT];
    let waits = all.map(|op| trig(op, CT, 0).with_trig_ct(FOREIGN));
    let posts = trig(CtOp::TRIG_EVENT, 0, 0).with_eq(FOREIGN);
    let dma = CtCommand {
        trig_ct: FOREIGN,
        command: CommandByte::new(Class::CT, 2, CtOp::TRIG_DMA.0),
        ..CtCommand::default()
    };
    let commands = plain.into_iter().chain(acts).chain(waits);
    for command in commands.chain([posts, dma]) {
        let mut rig = quiet();
        rig.rgid = RGID + 1;
        let wb = rig.add_ct(FOREIGN);
        rig.add_eq(FOREIGN, 8, EventFlags::empty());
        rig.rgid = RGID;
        let command = command.with_failure(1).sets_failure(true);
        rig.submit(TRIGQ, &[&command.encode()]);
        let refused = [failed(ReturnCode::CMD_INVALID_ARG)];
        assert_eq!(rig.events(EQ), refused, "{command:?}");
        assert_eq!(rig.written_back(wb), None, "{command:?}");
        assert_eq!(rig.events(FOREIGN), [], "{command:?}");
        assert_eq!(rig.engine.triggered_in_use(0), 0, "{command:?}");
    }
}

/// An object that a command names may be another's by the time it runs, and is left alone then.
#[test]
fn what_belongs_to_others_by_then_is_left_alone() {
    const REMADE: u16 = 9;
    let acts = [CtOp::TRIG_SET, CtOp::TRIG_INC].map(|op| trig(op, REMADE, 5));
    let posts = trig(CtOp::TRIG_EVENT, 0, 5).with_eq(REMADE);
    let writes_back = trig(CtOp::TRIG_EVENT, 0, 5).with_trig_ct(REMADE);
    for command in acts.into_iter().chain([posts, writes_back]) {
        let mut rig = quiet();
        rig.add_ct(REMADE);
        rig.add_eq(REMADE, 8, EventFlags::empty());
        let command = command.with_failure(1).sets_failure(true);
        rig.submit(TRIGQ, &[&command.encode()]);
        for ct in [CT, REMADE] {
            rig.engine.ring_counter(ct, CounterDoorbell::AddSuccess, 5);
        }
        rig.rgid = RGID + 1;
        let wb = rig.add_ct(REMADE);
        rig.add_eq(REMADE, 8, EventFlags::empty());
        rig.engine.run_until_idle();
        assert_eq!(rig.written_back(wb), None, "{command:?}");
        assert_eq!(rig.events(REMADE), [], "{command:?}");
        assert_eq!(rig.engine.commands_in_flight(TRIGQ), 0, "{command:?}");
    }
}

/// A command that was due when its queue was freed does not run, even if another queue has the
/// number by then.
#[test]
fn a_freed_queue_forgets_what_was_due() {
    let mut rig = quiet();
    let wb = rig.add_ct(2);
    let increment = |threshold| trig(CtOp::TRIG_INC, 2, threshold).with_success(1).encode();
    rig.submit(TRIGQ, &[&increment(5)]);
    rig.engine.ring_counter(CT, CounterDoorbell::AddSuccess, 5);
    rig.add_tx(TRIGQ, true);
    rig.submit(TRIGQ, &[&increment(9)]);
    assert_eq!(rig.count(2, wb), (0, 0));
    assert_eq!(rig.engine.commands_in_flight(TRIGQ), 1);
    assert_eq!(rig.engine.triggered_in_use(0), 1);
}

/// Freeing a counter drops what waited for it.
#[test]
fn a_freed_counter_forgets_what_waited() {
    let mut rig = quiet();
    rig.submit(TRIGQ, &[&trig_dma(5, &put(1).encode())]);
    rig.engine.remove_counter(CT);
    assert_eq!(rig.engine.commands_in_flight(TRIGQ), 0);
    assert_eq!(rig.engine.triggered_in_use(0), 0);
}
