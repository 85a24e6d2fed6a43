//! 3.11: another buffer for an event queue.

use cxi_engine::EventFlags;
use cxi_hw::{EqState, EventType};

use crate::quiet;
use crate::rig::*;

#[test]
fn rule_3_11_a_resize_switches_buffers() {
    let mut rig = quiet();
    rig.put(&put(1).with_user_ptr(1));
    let va = rig.resize(EQ, 128);
    rig.put(&put(1).with_user_ptr(2));
    assert_eq!(rig.event(EQ).initiator().user_ptr, 1);
    let switch = rig.event(EQ);
    assert_eq!((switch.kind(), switch.0.len()), (EventType::EQ_SWITCH, 16));
    assert_eq!(rig.try_event(EQ), None);
    let reader = rig.readers.get_mut(&EQ).unwrap();
    (reader.va, reader.blocks, reader.read) = (va, 128, 1);
    reader.state = EqState { rd_ptr: 1, reading_buffer_b: true, ..EqState::default() };
    assert_eq!(rig.event(EQ).initiator().user_ptr, 2);
    // 126 of them fit.
    for user_ptr in 0..126 {
        rig.put(&put(1).with_user_ptr(user_ptr));
    }
    assert_eq!(rig.events(EQ).len(), 126);
}

/// Read pointers that were stored for the old buffer do not count for the new one.
#[test]
fn rule_3_11_the_new_buffer_is_unread_until_the_client_says_so() {
    let mut rig = quiet();
    rig.add_eq(5, 64, EventFlags::empty());
    for _ in 0..40 {
        rig.put(&put(1).with_eq(5));
        rig.event(5);
    }
    let va = rig.resize(5, 64);
    for user_ptr in 0..63 {
        rig.put(&put(1).with_eq(5).with_user_ptr(user_ptr));
    }
    assert!(rig.memory.bytes(va + 62 * 64, 64)[14] != 0);
    assert_eq!(rig.memory.bytes(va + 63 * 64, 64), [0; 64]);
}

#[test]
fn rule_3_11_the_switch_waits_for_room() {
    let mut rig = quiet();
    rig.add_eq(5, 64, EventFlags::empty());
    for _ in 0..62 {
        rig.put(&put(1).with_eq(5));
    }
    let _va = rig.resize(5, 64);
    assert_eq!(rig.event(5).kind(), EventType::ACK);
    let kinds = rig.kinds(5);
    assert_eq!(kinds.last(), Some(&EventType::EQ_SWITCH));
}
