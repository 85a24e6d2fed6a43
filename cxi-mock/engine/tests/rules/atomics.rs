//! 13: atomics.

use cxi_hw::{
    AtomicOp, AtomicType, Class, CommandByte, CompareOp, DmaAtomic, DmaFlags, DmaOp, EventType,
    IdcAtomic, IdcHeader, ReturnCode, SmallAtomic, TargetFlags,
};

use crate::rig::*;

const TARGET: u64 = BUFFER + 4096;

fn rig() -> Rig {
    let mut rig = Rig::matching();
    let flags = PUTS_AND_GETS;
    rig.link(&entry(1, TARGET, 64).with_flags(flags));
    rig
}

fn fetching(op: AtomicOp, ty: AtomicType, size: u32) -> DmaAtomic {
    atomic(DmaOp::FETCHING_ATOMIC, op, ty, size)
}

fn submit(rig: &mut Rig, command: &DmaAtomic) -> ReturnCode {
    rig.submit(TXQ, &[&command.encode()]);
    rig.event(EQ).code()
}

/// Returns the new target value, and the value that a fetching atomic returns.
fn apply<const N: usize>(
    (op, compare, ty): (AtomicOp, CompareOp, AtomicType),
    target: [u8; N],
    operand: [u8; N],
    second: [u8; N],
) -> Result<[u8; N], ReturnCode> {
    let mut rig = rig();
    rig.memory.put(TARGET, &target);
    rig.memory.put(OPERAND, &operand);
    let mut words = [0; 16];
    words[..N].copy_from_slice(&second);
    let (low, high) = words.split_at(8);
    let size = u32::try_from(N).unwrap();
    let command = fetching(op, ty, size)
        .with_cswap(compare)
        .with_second(u64::from_le_bytes(low.try_into().unwrap()))
        .with_second_high(u64::from_le_bytes(high.try_into().unwrap()));
    match submit(&mut rig, &command) {
        ReturnCode::OK => {
            assert_eq!(rig.memory.bytes(RESULT, N), target, "the old value");
            Ok(rig.memory.bytes(TARGET, N).try_into().unwrap())
        }
        code => Err(code),
    }
}

macro_rules! checks {
    ($int:ty, $type:expr, $($op:ident($target:expr, $operand:expr, $second:expr) = $result:expr;)*) => {$(
        assert_eq!(
            apply(
                (AtomicOp::$op, CompareOp::EQ, $type),
                (($target) as $int).to_le_bytes(),
                (($operand) as $int).to_le_bytes(),
                (($second) as $int).to_le_bytes(),
            ),
            Ok((($result) as $int).to_le_bytes()),
            stringify!($int $op),
        );
    )*};
}

#[test]
fn rule_13_1_sizes_of_operands() {
    for (ty, size) in (0..).zip([1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, 16]) {
        let ty = AtomicType(ty);
        let mut rig = rig();
        let right = atomic(DmaOp::ATOMIC, AtomicOp::SUM, ty, size);
        assert_eq!(submit(&mut rig, &right), ReturnCode::OK, "{ty}");
        let event = rig.event(TARGET_EQ).short();
        assert_eq!((event.event_type, event.length), (EventType::ATOMIC, size));
        let wrong = atomic(DmaOp::ATOMIC, AtomicOp::SUM, ty, size + 1);
        let code = submit(&mut rig, &wrong);
        assert_eq!(code, ReturnCode::AMO_LENGTH_ERROR, "{ty}");
    }
    let mut rig = rig();
    let none = atomic(DmaOp::ATOMIC, AtomicOp::SUM, AtomicType(13), 8);
    assert_eq!(submit(&mut rig, &none), ReturnCode::AMO_INVAL_OP_ERROR);
}

macro_rules! integers {
    ($($int:ty, $type:expr;)*) => {$(
        checks! { $int, $type,
            MIN(5, 3, 0) = 3; MIN(3, 5, 0) = 3;
            MAX(5, 3, 0) = 5; MAX(3, 5, 0) = 5;
            SUM(<$int>::MAX, 2, 0) = <$int>::MAX.wrapping_add(2);
            LOR(0, 0, 0) = 0; LOR(0, 8, 0) = 1; LAND(4, 0, 0) = 0; LAND(4, 2, 0) = 1;
            LXOR(4, 2, 0) = 0; LXOR(4, 0, 0) = 1;
            BOR(0b1100, 0b1010, 0) = 0b1110; BAND(0b1100, 0b1010, 0) = 0b1000;
            BXOR(0b1100, 0b1010, 0) = 0b0110;
            SWAP(1, 9, 0) = 9; CSWAP(1, 9, 1) = 9; CSWAP(1, 9, 2) = 1;
            AXOR(0b0011, 0b0101, 0b0110) = 0b0101;
        }
    )*};
}

#[test]
fn rule_13_2_integers() {
    integers! {
        i8, AtomicType::INT8_T; u8, AtomicType::UINT8_T;
        i16, AtomicType::INT16_T; u16, AtomicType::UINT16_T;
        i32, AtomicType::INT32_T; u32, AtomicType::UINT32_T;
        i64, AtomicType::INT64_T; u64, AtomicType::UINT64_T;
        u128, AtomicType::UINT128_T;
    }
    checks! { i32, AtomicType::INT32_T, MIN(-5, 3, 0) = -5; MAX(-5, 3, 0) = 3; }
    checks! { u32, AtomicType::UINT32_T, MIN(u32::MAX - 4, 3, 0) = 3; }
}

#[test]
fn rule_13_2_real_numbers() {
    checks! { f32, AtomicType::FLOAT_T,
        MIN(-1.5, 2.5, 0.0) = -1.5; MAX(-1.5, 2.5, 0.0) = 2.5; SUM(1.5, 2.25, 0.0) = 3.75;
        LOR(0.0, 2.0, 0.0) = 1.0; LAND(0.0, 2.0, 0.0) = 0.0; LXOR(3.0, 2.0, 0.0) = 0.0;
        SWAP(1.0, 2.0, 0.0) = 2.0; CSWAP(1.0, 2.0, 1.0) = 2.0;
    }
    checks! { f64, AtomicType::DOUBLE_T,
        MIN(-1.5, 2.5, 0.0) = -1.5; MAX(-1.5, 2.5, 0.0) = 2.5; SUM(1.5, 2.25, 0.0) = 3.75;
        LXOR(0.0, 2.0, 0.0) = 1.0; SWAP(1.0, 2.0, 0.0) = 2.0; CSWAP(1.0, 2.0, 1.5) = 1.0;
    }
}

/// The compare value is on the left.
#[test]
fn rule_13_2_comparisons() {
    let swaps = |compare, value: i32, with: i32| {
        let what = (AtomicOp::CSWAP, compare, AtomicType::INT32_T);
        let [value, new, with] = [value, 99, with].map(i32::to_le_bytes);
        let result = apply(what, value, new, with);
        i32::from_le_bytes(result.unwrap()) == 99
    };
    for (compare, less, equal, greater) in [
        (CompareOp::EQ, false, true, false),
        (CompareOp::NE, true, false, true),
        (CompareOp::LE, true, true, false),
        (CompareOp::LT, true, false, false),
        (CompareOp::GE, false, true, true),
        (CompareOp::GT, false, false, true),
    ] {
        let found = [-4, 5, 6].map(|with| swaps(compare, 5, with));
        assert_eq!(found, [less, equal, greater], "{compare}");
    }
}

#[test]
fn rule_13_3_complex_numbers() {
    let pair = |a: f32, b: f32| {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&a.to_le_bytes());
        bytes[4..].copy_from_slice(&b.to_le_bytes());
        bytes
    };
    let run = |op, compare, second| {
        apply((op, compare, AtomicType::FLOAT_COMPLEX_T), pair(1.0, 2.0), pair(0.5, 0.25), second)
    };
    let none = pair(0.0, 0.0);
    let operand = pair(0.5, 0.25);
    for (op, compare, second, result) in [
        (AtomicOp::SUM, CompareOp::EQ, none, pair(1.5, 2.25)),
        (AtomicOp::SWAP, CompareOp::EQ, none, operand),
        (AtomicOp::CSWAP, CompareOp::EQ, pair(1.0, 2.0), operand),
        (AtomicOp::CSWAP, CompareOp::EQ, pair(1.0, 3.0), pair(1.0, 2.0)),
        (AtomicOp::CSWAP, CompareOp::NE, pair(1.0, 3.0), operand),
    ] {
        assert_eq!(run(op, compare, second), Ok(result), "{op} {compare}");
    }
    let invalid = Err(ReturnCode::AMO_INVAL_OP_ERROR);
    let not_complex = [AtomicOp::MIN, AtomicOp::MAX, AtomicOp::LOR, AtomicOp::BOR];
    let unknown = [AtomicOp(3), AtomicOp(15)];
    for op in [&not_complex[..], &[AtomicOp::AXOR], &unknown].concat() {
        assert_eq!(run(op, CompareOp::EQ, none), invalid, "{op}");
    }
    assert_eq!(run(AtomicOp::CSWAP, CompareOp::LE, none), invalid);
    let real = (AtomicOp::BXOR, CompareOp::EQ, AtomicType::DOUBLE_T);
    assert_eq!(apply(real, [0; 8], [0; 8], [0; 8]), invalid);
    let double = (AtomicOp::SUM, CompareOp::EQ, AtomicType::DOUBLE_COMPLEX_T);
    let mut one = [0; 16];
    one[8..].copy_from_slice(&1_f64.to_le_bytes());
    let mut two = [0; 16];
    two[8..].copy_from_slice(&2_f64.to_le_bytes());
    assert_eq!(apply(double, one, one, [0; 16]), Ok(two));
}

#[test]
fn rule_13_4_a_result_that_cannot_be_stored_is_an_error() {
    let mut rig = rig();
    let wb = rig.add_ct(CT);
    let flags = DmaFlags::EVENT_SUCCESS_DISABLE | DmaFlags::EVENT_CT_REPLY;
    let base = fetching(AtomicOp::SUM, AtomicType::UINT64_T, 8);
    let command = base.with_flags(flags).with_ct(CT).with_write_addr(0x10);
    assert_eq!(submit(&mut rig, &command), ReturnCode::NO_TRANSLATION);
    assert_eq!(rig.count(CT, wb), (0, 1));
    // An operation that fails at the target stores no value.
    let misaligned = base.with_offset(1);
    rig.memory.put(RESULT, &[0xee; 8]);
    assert_eq!(submit(&mut rig, &misaligned), ReturnCode::AMO_ALIGN_ERROR);
    assert_eq!(rig.memory.bytes(RESULT, 8), [0xee; 8]);
}

#[test]
fn rule_13_5_the_first_operand_is_in_memory() {
    let mut rig = rig();
    rig.memory.put(OPERAND, &7_u64.to_le_bytes());
    rig.memory.put(TARGET + 8, &100_u64.to_le_bytes());
    let base = atomic(DmaOp::ATOMIC, AtomicOp::SUM, AtomicType::UINT64_T, 8);
    assert_eq!(submit(&mut rig, &base.with_offset(8)), ReturnCode::OK);
    assert_eq!(rig.memory.word(TARGET + 8), 107);
    let missing = base.with_read_addr(0x10);
    assert_eq!(submit(&mut rig, &missing), ReturnCode::NO_TRANSLATION);
}

/// An atomic read is a sum with 0, an atomic write a swap if not equal.
#[test]
fn rule_13_6_reads_and_writes() {
    let read = (AtomicOp::SUM, CompareOp::EQ, AtomicType::UINT32_T);
    assert_eq!(apply(read, [1, 2, 3, 4], [0; 4], [0; 4]), Ok([1, 2, 3, 4]));
    let write = (AtomicOp::CSWAP, CompareOp::NE, AtomicType::UINT32_T);
    assert_eq!(apply(write, [1, 2, 3, 4], [9; 4], [9; 4]), Ok([9; 4]));
}

#[test]
fn rule_13_7_events_and_alignment() {
    let mut rig = rig();
    rig.add_eq(TARGET_EQ, 64, cxi_engine::EventFlags::TARGET_LONG);
    let fetching = fetching(AtomicOp::BXOR, AtomicType::UINT16_T, 2);
    assert_eq!(submit(&mut rig, &fetching), ReturnCode::OK);
    let event = rig.event(TARGET_EQ).long();
    assert_eq!(event.event_type, EventType::FETCH_ATOMIC);
    assert_eq!(event.atomic_op, AtomicOp::BXOR);
    assert_eq!(event.atomic_type, AtomicType::UINT16_T);
    let crooked = fetching.with_offset(3);
    assert_eq!(submit(&mut rig, &crooked), ReturnCode::AMO_ALIGN_ERROR);
}

#[test]
fn rule_7_12_fetching_atomics_read_and_write() {
    for (flags, plain, fetching) in [
        (TargetFlags::OP_PUT, true, false),
        (TargetFlags::OP_GET, false, false),
        (PUTS_AND_GETS, true, true),
    ] {
        let mut rig = Rig::matching();
        rig.append(&entry(1, TARGET, 64).with_flags(flags));
        for (op, allowed) in [(DmaOp::ATOMIC, plain), (DmaOp::FETCHING_ATOMIC, fetching)] {
            let code = submit(&mut rig, &atomic(op, AtomicOp::SUM, AtomicType::UINT8_T, 1));
            assert_eq!(code == ReturnCode::OK, allowed, "{flags:?} {op}");
        }
    }
}

#[test]
fn rule_2_11_immediate_atomics() {
    let mut rig = rig();
    rig.memory.put(TARGET, &40_u32.to_le_bytes());
    let (dfa, _) = cxi_hw::FabricAddress::unicast(NID, 0, 0, 9);
    let head = IdcHeader { dfa, ..IdcHeader::default() };
    let operands =
        SmallAtomic { amo_op: AtomicOp::SUM, amo_type: AtomicType::INT32_T, op1_word1: 2 };
    let small = immediate(DmaOp::ATOMIC, &head.encode(), &operands.encode());
    let large = IdcAtomic {
        command: CommandByte::new(Class::IDC, 1, DmaOp::FETCHING_ATOMIC.0),
        length: 64,
        dfa,
        local_addr: RESULT,
        atomic_op: AtomicOp::CSWAP,
        atomic_type: AtomicType::INT32_T,
        cswap_op: CompareOp::EQ,
        op1_word1: 7,
        op2_word1: 42,
        ..IdcAtomic::default()
    };
    let state = c_state(DmaFlags::EVENT_SEND_DISABLE).encode();
    rig.submit(TXQ, &[&state, &small, &large.encode()]);
    assert_eq!(rig.events(EQ), [ACK, REPLY]);
    assert_eq!(rig.memory.bytes(RESULT, 4), 42_u32.to_le_bytes());
    assert_eq!(rig.memory.bytes(TARGET, 4), 7_u32.to_le_bytes());
}
