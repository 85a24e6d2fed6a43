//! One switch, packet by packet.

use cxi_engine::reduction::{ReduceOp, ReductionEngines, ReductionPacket, ResultCode, Sequence};

fn order(sequence: Sequence) -> ReductionPacket {
    ReductionPacket {
        sequence,
        arm: true,
        ..ReductionPacket::default()
    }
}

fn sum(sender: u32, sequence: u16, value: u64) -> ReductionPacket {
    ReductionPacket {
        sender,
        sequence: Sequence::new(sequence),
        answered: Sequence::new(sequence),
        op: ReduceOp::Sum.number(),
        count: 1,
        payload: [value, 0, 0, 0],
        ..ReductionPacket::default()
    }
}

fn armed(participants: u32, sequence: u16) -> ReductionEngines {
    let mut switch = ReductionEngines::new(1000, participants, 100);
    switch.arm(0, &order(Sequence::new(sequence)), 0);
    switch
}

/// The bytes where they belong: header from bit 0, big-endian words.
#[test]
fn a_packet_has_49_bytes() {
    let packet = ReductionPacket {
        sender: 0x0403_0201,
        sequence: Sequence::new(0x155),
        arm: true,
        op: 0x14,
        count: 0xabcde,
        answered: Sequence::new(0x2aa),
        code: ResultCode::OPERATION_MISMATCH,
        repsum_m: 0x5a,
        repsum_overflow: 2,
        retry: true,
        cookie: 0x677d << 16 | 3 << 13 | 0x1234,
        payload: [0x0102_0304_0506_0708, 1, 2, u64::MAX],
    };
    let bytes = packet.encode();
    let header = 0x155_u128
        | 1 << 10
        | 0x14 << 11
        | 0xabcde << 17
        | 0x2aa << 37
        | 8 << 47
        | 0x5a << 51
        | 2 << 59
        | 1 << 61
        | (0x677d_u128 << 16 | 3 << 13 | 0x1234) << 64;
    assert_eq!(bytes[..5], [0, 1, 2, 3, 4]);
    assert_eq!(bytes[5..17], header.to_be_bytes()[4..]);
    assert_eq!(bytes[17..25], [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(ReductionPacket::decode(&bytes), Some(packet));
    assert_eq!(ReductionPacket::decode(&bytes[1..]), None);
}

#[test]
fn sequence_numbers_come_round() {
    let number = Sequence::new;
    assert_eq!(number(1021).next(), number(0));
    assert!(number(0).is_newer_than(number(1021)) && !number(1021).is_newer_than(number(0)));
    assert!(number(510).is_newer_than(number(0)) && !number(511).is_newer_than(number(0)));
    assert!(!number(7).is_newer_than(number(7)));
}

#[test]
fn an_armed_engine_merges_and_sends_once() {
    let mut switch = armed(3, 5);
    assert_eq!(switch.contribute(0, &sum(1, 5, 10)), None);
    assert_eq!(switch.contribute(0, &sum(2, 5, 20)), None);
    // The one that came twice counts once.
    assert_eq!(switch.contribute(0, &sum(2, 5, 20)), None);
    let merged = switch.contribute(0, &sum(3, 5, 30)).unwrap();
    assert_eq!(
        (merged.sender, merged.count, merged.payload[0]),
        (1000, 3, 60)
    );
    assert_eq!(merged.answered, Sequence::new(5));
    assert_eq!(switch.contribute(0, &sum(1, 5, 10)), None);
    assert_eq!((switch.expire(1000), switch.deadline()), (vec![], None));
}

#[test]
fn what_is_not_armed_passes() {
    let mut switch = armed(2, 5);
    for packet in [sum(1, 4, 10), sum(2, 6, 20)] {
        assert_eq!(switch.contribute(0, &packet), Some(packet));
    }
    let other = sum(1, 5, 10);
    assert_eq!(
        switch.contribute(1, &other),
        Some(other),
        "another reduction id"
    );
    let repsum = ReductionPacket {
        op: 0x30,
        ..sum(1, 5, 10)
    };
    let mut switch = armed(2, 5);
    assert_eq!(
        switch.contribute(0, &repsum),
        Some(repsum),
        "not merged by engines"
    );
}

#[test]
fn an_engine_whose_time_is_over_sends_what_it_has() {
    let mut switch = armed(3, 5);
    switch.arm(7, &order(Sequence::new(9)), 50);
    assert_eq!(switch.contribute(0, &sum(1, 5, 10)), None);
    assert_eq!(switch.contribute(0, &sum(2, 5, 20)), None);
    assert_eq!((switch.deadline(), switch.expire(99)), (Some(100), vec![]));
    let partial = switch.expire(100);
    assert_eq!(partial.len(), 1);
    assert_eq!(
        (partial[0].0, partial[0].1.count, partial[0].1.payload[0]),
        (0, 2, 30)
    );
    // And is open then.
    let late = sum(3, 5, 30);
    assert_eq!(switch.contribute(0, &late), Some(late));
    // One that was not fed sends nothing.
    assert_eq!((switch.deadline(), switch.expire(150)), (Some(150), vec![]));
}

#[test]
fn the_root_arms_and_clears() {
    let mut switch = armed(2, 5);
    assert_eq!(switch.contribute(0, &sum(1, 5, 10)), None);
    // A newer order: what was merged under the old one counts no more.
    switch.arm(0, &order(Sequence::new(6)), 10);
    // An order that comes late or twice, and a result without one.
    switch.arm(0, &order(Sequence::new(5)), 10);
    switch.arm(
        0,
        &ReductionPacket {
            arm: false,
            ..order(Sequence::new(7))
        },
        10,
    );
    assert_eq!(switch.contribute(0, &sum(1, 6, 1)), None);
    switch.arm(0, &order(Sequence::new(6)), 10);
    assert_eq!(switch.contribute(0, &sum(2, 6, 2)).unwrap().payload[0], 3);
    switch.arm(0, &order(Sequence::new(7)), 10);
    switch.arm(0, &order(Sequence::CLEAR), 10);
    assert_eq!(switch.deadline(), None);
    let open = sum(1, 7, 1);
    assert_eq!(switch.contribute(0, &open), Some(open));
}

#[test]
fn what_goes_wrong_is_in_the_code() {
    let mut switch = armed(2, 5);
    assert_eq!(switch.contribute(0, &sum(1, 5, i64::MAX as u64)), None);
    let merged = switch.contribute(0, &sum(2, 5, 1)).unwrap();
    assert_eq!(merged.code, ResultCode::INTEGER_OVERFLOW);
    let mut switch = armed(2, 5);
    assert_eq!(switch.contribute(0, &sum(1, 5, 1)), None);
    let other = ReductionPacket {
        op: ReduceOp::Max.number(),
        ..sum(2, 5, 1)
    };
    assert_eq!(
        switch.contribute(0, &other).unwrap().code,
        ResultCode::OPERATION_MISMATCH
    );
    let mut switch = armed(2, 5);
    assert_eq!(switch.contribute(0, &sum(1, 5, 1)), None);
    let two = ReductionPacket {
        count: 2,
        ..sum(2, 5, 1)
    };
    assert_eq!(
        switch.contribute(0, &two).unwrap().code,
        ResultCode::TOO_MANY
    );
}

#[test]
fn floating_point_says_what_it_lost() {
    let merge = |op: ReduceOp, one: f64, other: f64| {
        let words = |number: f64| [number.to_bits(); 4];
        let (payload, code) = op.merge(words(one), words(other));
        (f64::from_bits(payload[0]), code)
    };
    assert_eq!(
        merge(ReduceOp::FloatSum, 1.0, 2.0),
        (3.0, ResultCode::SUCCESS)
    );
    assert_eq!(
        merge(ReduceOp::FloatSum, 1e100, 1.0),
        (1e100, ResultCode::INEXACT)
    );
    assert_eq!(
        merge(ReduceOp::FloatSum, f64::MAX, f64::MAX),
        (f64::INFINITY, ResultCode::OVERFLOW)
    );
    assert_eq!(
        merge(ReduceOp::FloatMin, 1.0, f64::NAN).1,
        ResultCode::INVALID
    );
    assert_eq!(
        merge(ReduceOp::FloatMax, -1.0, 2.0),
        (2.0, ResultCode::SUCCESS)
    );
    let words =
        |least: f64, at, greatest: f64, there| [least.to_bits(), at, greatest.to_bits(), there];
    let (places, _) = ReduceOp::FloatMinMaxLoc.merge(words(1.0, 4, 5.0, 4), words(1.0, 2, 7.0, 9));
    assert_eq!(places, words(1.0, 2, 7.0, 9));
}

/// Every number that is an operation is that operation's.
#[test]
fn operations_have_numbers() {
    let known: Vec<u8> = (0..=u8::MAX)
        .filter(|number| ReduceOp::from_number(*number).is_some_and(|op| op.number() == *number))
        .collect();
    assert_eq!(
        known,
        [0, 1, 2, 3, 0x10, 0x11, 0x12, 0x14, 0x24, 0x25, 0x26, 0x28]
    );
}
