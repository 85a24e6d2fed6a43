//! 4: counters.

use cxi_engine::CounterDoorbell::{AddFailure, AddSuccess, ResetFailure, ResetSuccess};
use cxi_hw::{CtCommand, CtOp, CtWriteback};

use crate::rig::*;

fn submit(rig: &mut Rig, command: &CtCommand) {
    rig.submit(TRIGQ, &[&command.encode()]);
}

#[test]
fn rule_4_1_a_write_back_is_one_word() {
    let mut rig = Rig::new();
    let wb = rig.add_ct(CT);
    rig.ring_counter(CT, AddSuccess, 0x1234);
    rig.ring_counter(CT, AddFailure, 5);
    let word = CtWriteback::decode(&rig.memory.word(wb).to_le_bytes());
    assert_eq!(word.ct_success, 0x1234);
    assert_eq!(word.ct_failure, 5);
    assert!(word.ct_writeback);
}

#[test]
fn rule_4_2_what_writes_back() {
    let mut rig = Rig::new();
    let wb = rig.add_ct(CT);
    let written = |rig: &mut Rig, act: &dyn Fn(&mut Rig)| {
        rig.memory.put(wb, &[0; 8]);
        act(rig);
        rig.written_back(wb)
    };
    assert_eq!(written(&mut rig, &|rig| rig.ring_counter(CT, ResetSuccess, 0)), Some((0, 0)));
    assert_eq!(written(&mut rig, &|rig| rig.ring_counter(CT, ResetFailure, 0)), Some((0, 0)));
    assert_eq!(written(&mut rig, &|rig| rig.ring_counter(CT, AddSuccess, 9)), None);
    assert_eq!(written(&mut rig, &|rig| rig.ring_counter(CT, AddFailure, 1)), Some((9, 1)));
    let get = counter(CtOp::GET, CT);
    assert_eq!(written(&mut rig, &|rig| submit(rig, &get)), Some((9, 1)));
    let inc = counter(CtOp::INC, CT).with_success(2);
    assert_eq!(written(&mut rig, &|rig| submit(rig, &inc)), None);
    let failure = counter(CtOp::INC, CT).with_failure(1);
    assert_eq!(written(&mut rig, &|rig| submit(rig, &failure)), Some((11, 2)));
    let set = counter(CtOp::SET, CT).with_success(100).sets_success(true);
    assert_eq!(written(&mut rig, &|rig| submit(rig, &set)), Some((100, 2)));
    let event = counter(CtOp::TRIG_EVENT, 0).with_trig_ct(CT).with_threshold(101);
    assert_eq!(written(&mut rig, &|rig| submit(rig, &event)), Some((100, 2)));
    let set = counter(CtOp::TRIG_SET, CT).with_trig_ct(CT).with_failure(7).sets_failure(true);
    assert_eq!(written(&mut rig, &|rig| submit(rig, &set)), Some((100, 7)));
}

#[test]
fn rule_4_3_doorbells() {
    let mut rig = Rig::new();
    let wb = rig.add_ct(CT);
    for (offset, doorbell) in
        [(0, AddSuccess), (64, AddFailure), (128, ResetSuccess), (192, ResetFailure)]
    {
        assert_eq!(doorbell.offset(), offset);
        assert_eq!(cxi_engine::CounterDoorbell::at(offset), Some(doorbell));
    }
    assert_eq!(cxi_engine::CounterDoorbell::at(8), None);
    rig.ring_counter(CT, AddSuccess, 10);
    rig.ring_counter(CT, AddFailure, 3);
    assert_eq!(rig.count(CT, wb), (10, 3));
    rig.ring_counter(CT, ResetSuccess, 0);
    assert_eq!(rig.count(CT, wb), (0, 3));
    rig.ring_counter(CT, ResetFailure, 0);
    assert_eq!(rig.count(CT, wb), (0, 0));
}

#[test]
fn rule_4_4_each_store_counts() {
    let mut rig = Rig::new();
    let wb = rig.add_ct(CT);
    rig.ring_counter(CT, AddSuccess, 10);
    rig.ring_counter(CT, AddSuccess, 10);
    assert_eq!(rig.count(CT, wb), (20, 0));
}

/// Polled pages are asked in this order.
#[test]
fn rule_4_5_polled_doorbells_reset_before_they_add() {
    use std::sync::Mutex;
    #[derive(Debug)]
    struct Page(Mutex<Vec<cxi_engine::CounterDoorbell>>);
    #[derive(Debug)]
    struct Shared(std::sync::Arc<Page>);
    impl cxi_engine::CounterPages for Shared {
        fn take_doorbell(&self, doorbell: cxi_engine::CounterDoorbell) -> Option<u64> {
            self.0.0.lock().unwrap().push(doorbell);
            Some(4)
        }
    }
    let page = std::sync::Arc::new(Page(Mutex::default()));
    let mut rig = Rig::new();
    let va = rig.add_ct_at(CT, Some(Box::new(Shared(std::sync::Arc::clone(&page)))));
    rig.engine.poll();
    assert_eq!(*page.0.lock().unwrap(), [ResetSuccess, ResetFailure, AddSuccess, AddFailure]);
    assert_eq!(rig.written_back(va), Some((4, 4)));
}

/// A command sees what was stored to a counter before its doorbell.
#[test]
fn rule_4_6_counters_come_before_commands() {
    let mut rig = Rig::new();
    let wb = rig.add_ct(CT);
    rig.engine.ring_counter(CT, AddSuccess, 77);
    assert_eq!(rig.count(CT, wb), (77, 0));
}

#[test]
fn rule_4_7_set_and_inc_and_cancel() {
    let mut rig = Rig::new();
    let wb = rig.add_ct(CT);
    rig.add_ct(2);
    submit(&mut rig, &counter(CtOp::INC, CT).with_success(5).with_failure(6));
    assert_eq!(rig.count(CT, wb), (5, 6));
    submit(&mut rig, &counter(CtOp::SET, CT).with_success(50).with_failure(60).sets_success(true));
    assert_eq!(rig.count(CT, wb), (50, 6));
    submit(&mut rig, &counter(CtOp::SET, CT).with_success(9).with_failure(60).sets_failure(true));
    assert_eq!(rig.count(CT, wb), (50, 60));
    // The counter to cancel is `ct`, not `trig_ct`.
    let waits = counter(CtOp::TRIG_SET, 2).with_trig_ct(CT).with_threshold(1 << 40);
    submit(&mut rig, &waits);
    submit(&mut rig, &counter(CtOp::CANCEL, 2).with_trig_ct(CT));
    assert_eq!(rig.engine.commands_in_flight(TRIGQ), 1);
    submit(&mut rig, &counter(CtOp::CANCEL, CT).with_trig_ct(2));
    assert_eq!(rig.engine.commands_in_flight(TRIGQ), 0);
}

/// Successes wrap, failures saturate: a choice, as the hardware's behavior is unknown.
#[test]
fn rule_4_8_overflow() {
    let mut rig = Rig::new();
    let wb = rig.add_ct(CT);
    rig.ring_counter(CT, AddSuccess, (1 << 48) - 1);
    rig.ring_counter(CT, AddSuccess, 3);
    for _ in 0..3 {
        rig.ring_counter(CT, AddFailure, 100);
    }
    assert_eq!(rig.count(CT, wb), (2, 127));
}
