//! One switch, packet by packet.

use cxi_engine::reduction::ReductionEngines;
use cxi_hw::reduction::{ReduceOp, ReductionPacket, ResultCode, Sequence};

use crate::{contribution, order};

fn armed(participants: u32, sequence: u16) -> ReductionEngines {
    let mut switch = ReductionEngines::new(1000, participants, 100);
    switch.arm(0, &order(Sequence::new(sequence)), 0);
    switch
}

#[test]
fn an_armed_engine_merges_and_sends_once() {
    let mut switch = armed(3, 5);
    assert_eq!(switch.contribute(0, &contribution(1, 5, 10)), None);
    assert_eq!(switch.contribute(0, &contribution(2, 5, 20)), None);
    // The one that came twice counts once.
    assert_eq!(switch.contribute(0, &contribution(2, 5, 20)), None);
    let merged = switch.contribute(0, &contribution(3, 5, 30)).unwrap();
    assert_eq!(merged.sender, 1000);
    assert_eq!(merged.count, 3);
    assert_eq!(merged.payload[0], 60);
    assert_eq!(merged.answered, Sequence::new(5));
    assert_eq!(switch.contribute(0, &contribution(1, 5, 10)), None);
    assert_eq!((switch.expire(1000), switch.deadline()), (vec![], None));
}

#[test]
fn what_is_not_armed_passes() {
    let mut switch = armed(2, 5);
    for packet in [contribution(1, 4, 10), contribution(2, 6, 20)] {
        assert_eq!(switch.contribute(0, &packet), Some(packet));
    }
    let other = contribution(1, 5, 10);
    assert_eq!(switch.contribute(1, &other), Some(other), "another reduction id");
    let repsum = ReductionPacket { op: 0x30, ..contribution(1, 5, 10) };
    let mut switch = armed(2, 5);
    assert_eq!(switch.contribute(0, &repsum), Some(repsum), "not merged by engines");
}

#[test]
fn an_engine_whose_time_is_over_sends_what_it_has() {
    let mut switch = armed(3, 5);
    switch.arm(7, &order(Sequence::new(9)), 50);
    assert_eq!(switch.contribute(0, &contribution(1, 5, 10)), None);
    assert_eq!(switch.contribute(0, &contribution(2, 5, 20)), None);
    assert_eq!((switch.deadline(), switch.expire(99)), (Some(100), vec![]));
    let partial = switch.expire(100);
    assert_eq!(partial.len(), 1);
    assert_eq!(partial[0].0, 0);
    assert_eq!(partial[0].1.count, 2);
    assert_eq!(partial[0].1.payload[0], 30);
    // And is open then.
    let late = contribution(3, 5, 30);
    assert_eq!(switch.contribute(0, &late), Some(late));
    // One that was not fed sends nothing.
    assert_eq!((switch.deadline(), switch.expire(150)), (Some(150), vec![]));
}

#[test]
fn the_root_arms_and_clears() {
    let mut switch = armed(2, 5);
    assert_eq!(switch.contribute(0, &contribution(1, 5, 10)), None);
    // A newer order: what was merged under the old one no longer counts.
    switch.arm(0, &order(Sequence::new(6)), 10);
    // An order that comes late or twice, and a result without one.
    switch.arm(0, &order(Sequence::new(5)), 10);
    switch.arm(0, &ReductionPacket { arm: false, ..order(Sequence::new(7)) }, 10);
    assert_eq!(switch.contribute(0, &contribution(1, 6, 1)), None);
    switch.arm(0, &order(Sequence::new(6)), 10);
    assert_eq!(switch.contribute(0, &contribution(2, 6, 2)).unwrap().payload[0], 3);
    switch.arm(0, &order(Sequence::new(7)), 10);
    switch.arm(0, &order(Sequence::CLEAR), 10);
    assert_eq!(switch.deadline(), None);
    let open = contribution(1, 7, 1);
    assert_eq!(switch.contribute(0, &open), Some(open));
}

#[test]
fn what_goes_wrong_is_in_the_code() {
    let mut switch = armed(2, 5);
    assert_eq!(switch.contribute(0, &contribution(1, 5, i64::MAX as u64)), None);
    let merged = switch.contribute(0, &contribution(2, 5, 1)).unwrap();
    assert_eq!(merged.code, ResultCode::INTEGER_OVERFLOW);
    let mut switch = armed(2, 5);
    assert_eq!(switch.contribute(0, &contribution(1, 5, 1)), None);
    let other = ReductionPacket { op: ReduceOp::Max.number(), ..contribution(2, 5, 1) };
    assert_eq!(switch.contribute(0, &other).unwrap().code, ResultCode::OPERATION_MISMATCH);
    let mut switch = armed(2, 5);
    assert_eq!(switch.contribute(0, &contribution(1, 5, 1)), None);
    let two = ReductionPacket { count: 2, ..contribution(2, 5, 1) };
    assert_eq!(switch.contribute(0, &two).unwrap().code, ResultCode::TOO_MANY);
}
