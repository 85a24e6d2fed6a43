//! Costs of a message for the program that sends it.

use allocation_counter::{measure, opt_out};
use cxi::lni::TxqOptions;
use cxi::{TrafficClass, Vni};
use cxi_data::{
    Append, Atomic, AtomicOp, AtomicType, Buffer, Counter, CounterCommand, Dma, DmaAtomic,
    ImmediatePut, Message, Rendezvous, Report, TargetFlags, TransmitQueue,
};

use crate::rendezvous::{ID, Source, WHOLE};
use crate::scene::{OPEN, Scene};

#[test]
fn no_message_allocates() {
    let (mut scene, _there, to) = Scene::open();
    let here = Buffer::new(&scene.one.lni, 4096).unwrap();
    let counter = Counter::new(scene.one.lni.alloc_ct().unwrap()).unwrap();
    let mut seen = 0;
    let allocations = measure(|| {
        for token in 0..1000 {
            let report = Report::event(&scene.one.events, token).counted(&counter);
            here.write(0, &token.to_le_bytes()).unwrap();
            let slice = here.slice(0..8).unwrap();
            let mut batch = scene.one.transmit.batch();
            batch.push(&Dma::put(slice, to).report(report)).unwrap();
            batch.push(&Dma::get(slice, to).report(report)).unwrap();
            batch.push(&Message::new(b"message", to).report(report)).unwrap();
            batch.push(&ImmediatePut::new(b"put", to).report(report)).unwrap();
            let atomic = Atomic::new(AtomicOp::SUM, token, to).fetch(slice);
            batch.push(&atomic.report(report)).unwrap();
            batch.push(&CounterCommand::read(&counter)).unwrap();
            drop(batch);
            // What the mock does is not the program's.
            opt_out(|| scene.run());
            for process in [&mut scene.one, &mut scene.two] {
                seen += process.events.drain().map(Result::unwrap).count();
            }
            assert_eq!(counter.value().success, 5 * (token + 1));
        }
    });
    assert_eq!(seen, 10 * 1000);
    assert_eq!(allocations.count_total, 0);
}

#[test]
fn no_long_message_allocates() {
    let (mut scene, _there, to) = Scene::open();
    let source = Source::new(&mut scene);
    let slice = source.buffer.slice(0..WHOLE).unwrap();
    let operand = source.buffer.slice(0..8).unwrap();
    let mut seen = 0;
    let allocations = measure(|| {
        for _ in 0..100 {
            let one = &mut scene.one;
            let report = Report::event(&one.events, 1);
            let put = Rendezvous::put(slice, to, ID).eager(64).report(report);
            let sum = DmaAtomic::new(AtomicOp::SUM, AtomicType::UINT64_T, operand, to);
            one.transmit.post(&put).unwrap();
            one.transmit.post(&sum.report(report)).unwrap();
            let again = Append::source(&source.pte, slice, ID);
            opt_out(|| scene.run());
            scene.one.target.post(&again).unwrap();
            opt_out(|| scene.run());
            for process in [&mut scene.one, &mut scene.two] {
                seen += process.events.drain().map(Result::unwrap).count();
            }
        }
    });
    // Two ACKs, GET, UNLINK and LINK; PUT, RENDEZVOUS, REPLY and ATOMIC.
    assert_eq!(seen, 9 * 100);
    assert_eq!(allocations.count_total, 0);
}

/// The mock keeps nothing for an operation that waits in a queue, and gives back what it needs for
/// one that is under way.
#[test]
fn ten_thousand_puts_in_flight_take_no_memory() {
    const PUTS: u64 = 10_000;
    let mut scene = Scene::new();
    let _there = scene.exposed(OPEN | TargetFlags::EVENT_SUCCESS_DISABLE);
    let one = &scene.one;
    let here = Buffer::new(&one.lni, 4096).unwrap();
    let counter = Counter::new(one.lni.alloc_ct().unwrap()).unwrap();
    let vni = Vni::new(1024).unwrap();
    let profile = one.lni.alloc_cp(vni, TrafficClass::BestEffort).unwrap();
    let queue = one.lni.alloc_txq(&profile, &TxqOptions::new(1 << 14));
    let mut queue = TransmitQueue::new(queue.unwrap(), &one.info, &one.domain).unwrap();
    let report = Report::event(&one.events, 0).failures_only().counted(&counter);
    let put = Dma::put(here.slice(0..8).unwrap(), scene.two.address.portal(0)).report(report);
    for round in 1..=3 {
        let mut batch = queue.batch();
        for _ in 0..PUTS {
            batch.push(&put).unwrap();
        }
        drop(batch);
        let allocated = measure(|| scene.run());
        queue.post(&CounterCommand::read(&counter)).unwrap();
        scene.run();
        assert_eq!(counter.value().success, round * PUTS);
        assert!(round == 1 || allocated.count_current == 0, "{allocated:?}");
        assert!(round == 1 || allocated.bytes_max < 4096, "{allocated:?}");
    }
}
