//! Packets of reductions, and what is computed with them.

use cxi_hw::FabricAddress;
use cxi_hw::reduction::{ReduceOp, ReductionPacket, ResultCode, Sequence};

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
fn floating_point_says_what_it_lost() {
    let merge = |op: ReduceOp, one: f64, other: f64| {
        let words = |number: f64| [number.to_bits(); 4];
        let (payload, code) = op.merge(words(one), words(other));
        (f64::from_bits(payload[0]), code)
    };
    assert_eq!(merge(ReduceOp::FloatSum, 1.0, 2.0), (3.0, ResultCode::SUCCESS));
    assert_eq!(merge(ReduceOp::FloatSum, 1e100, 1.0), (1e100, ResultCode::INEXACT));
    assert_eq!(
        merge(ReduceOp::FloatSum, f64::MAX, f64::MAX),
        (f64::INFINITY, ResultCode::OVERFLOW)
    );
    assert_eq!(merge(ReduceOp::FloatMin, 1.0, f64::NAN).1, ResultCode::INVALID);
    assert_eq!(merge(ReduceOp::FloatMax, -1.0, 2.0), (2.0, ResultCode::SUCCESS));
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
    assert_eq!(known, [0, 1, 2, 3, 0x10, 0x11, 0x12, 0x14, 0x24, 0x25, 0x26, 0x28]);
}

#[test]
fn addresses_of_trees() {
    let address = FabricAddress::multicast(0x1234, 5);
    assert_eq!(address.0, 0x1ff << 23 | 5 << 18 | 0x1234 << 3 | 7);
    assert!(address.is_multicast());
    assert_eq!((address.multicast_id(), address.reduction()), (0x1234, 5));
    // Neither reaches into the other's bits.
    assert_eq!(FabricAddress::multicast(u16::MAX, 9).multicast_id(), 0x1fff);
    assert_eq!(FabricAddress::multicast(u16::MAX, 9).reduction(), 1);
}
