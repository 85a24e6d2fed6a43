//! Atomics with match bits and an operand in memory.

use cxi::lni::LeList;
use cxi_data::{
    Append, AtomicOp, AtomicType, Buffer, CompareOp, DmaAtomic, Error, Report, ReturnCode, SetState,
};

use crate::scene::{LEN, OPEN, Scene, completions, word};

#[test]
fn match_bits_choose_what_changes() {
    let mut scene = Scene::new();
    let there = Buffer::new(&scene.two.lni, LEN).unwrap();
    let two = &mut scene.two;
    two.target.post(&SetState::enable(&two.pte)).unwrap();
    for (tag, range) in [(1, 0..8), (2, 8..16)] {
        let entry = Append::new(&two.pte, LeList::Priority, there.slice(range).unwrap());
        let entry = entry.match_bits(tag).flags(OPEN);
        two.target.post(&entry).unwrap();
    }
    scene.settle();
    let here = Buffer::new(&scene.one.lni, LEN).unwrap();
    here.write(0, &40_u64.to_le_bytes()).unwrap();
    let (operand, into) = (here.slice(0..8).unwrap(), here.slice(64..72).unwrap());
    let to = scene.two.address.portal(0);
    let atomic = |op| DmaAtomic::new(op, AtomicType::UINT64_T, operand, to);
    // What is in the second entry before each, and after it.
    let cases = [
        (atomic(AtomicOp::SUM), 0, 40),
        (atomic(AtomicOp::SUM).fetch(into), 40, 80),
        (atomic(AtomicOp::CSWAP).compare(CompareOp::EQ, 80_u64).fetch(into), 80, 40),
        (atomic(AtomicOp::CSWAP).compare(CompareOp::EQ, 1_u64).fetch(into), 40, 40),
        (atomic(AtomicOp::AXOR).mask(8_u64).fetch(into), 40, 40),
    ];
    for (token, (atomic, before, after)) in (0..).zip(cases) {
        let report = Report::event(&scene.one.events, token);
        let atomic = atomic.match_bits(2).report(report);
        scene.post(&atomic);
        scene.run();
        assert_eq!(completions(&mut scene.one.events), [(token, Ok(8))]);
        assert_eq!((word(&here, 64), word(&there, 8)), (before, after));
    }
    assert_eq!(word(&there, 0), 0);
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let (mut scene, _there, to) = Scene::open();
    let here = Buffer::new(&scene.one.lni, LEN).unwrap();
    let atomic =
        |op, len| DmaAtomic::new(op, AtomicType::UINT64_T, here.slice(0..len).unwrap(), to);
    let sum = atomic(AtomicOp::SUM, 4);
    let report = Report::event(&scene.one.events, 1);
    let transmit = &mut scene.one.transmit;
    transmit.post(&sum.report(report)).unwrap();
    let short = atomic(AtomicOp::SUM, 8).fetch(here.slice(0..4).unwrap());
    for refused in [short, atomic(AtomicOp::CSWAP, 8)] {
        let error = transmit.post(&refused).unwrap_err();
        assert!(matches!(error, Error::Operands(_)), "{error:?}");
    }
    scene.run();
    let wrong = Err(ReturnCode::AMO_LENGTH_ERROR);
    assert_eq!(completions(&mut scene.one.events), [(1, wrong)]);
}
