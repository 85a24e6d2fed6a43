//! Counters, and commands that wait for them.

use std::time::Duration;

use cxi::lni::{LcidChoice, ProfileOptions, TxqOptions};
use cxi::{TrafficClass, Vni};
use cxi_data::{
    Buffer, Counter, CounterCommand, Dma, Event, ImmediatePut, Report, Trigger, TriggeredQueue,
};

use crate::scene::{OPEN, Scene, events, word};

fn counter(scene: &Scene) -> Counter {
    Counter::new(scene.one.lni.alloc_ct().unwrap()).unwrap()
}

/// Successes and failures, as the NIC has them.
fn read(scene: &mut Scene, counter: &Counter) -> (u64, u8) {
    counter.clear();
    scene.post(&CounterCommand::read(counter));
    scene.run();
    let value = counter.wait(Duration::ZERO).unwrap();
    (value.success, value.failure)
}

fn triggered(scene: &Scene) -> TriggeredQueue {
    let one = &scene.one;
    let options = ProfileOptions::new(Vni::new(1024).unwrap(), TrafficClass::BestEffort);
    let options = options.lcid(LcidChoice::Triggered);
    let profile = one.lni.alloc_cp_with(&options).unwrap();
    let options = TxqOptions::new(64).triggered().event_queue(one.events.queue());
    let queue = one.lni.alloc_txq(&profile, &options).unwrap();
    TriggeredQueue::new(queue, &one.info, &one.domain).unwrap()
}

#[test]
fn counters_count_ends_and_bytes_of_operations() {
    let mut scene = Scene::new();
    let _there = scene.exposed(OPEN);
    let (ends, bytes) = (counter(&scene), counter(&scene));
    let (to, nowhere) = (scene.two.address.portal(0), scene.two.address.portal(9));
    let queue = &mut scene.one.transmit;
    for _ in 0..3 {
        let report = Report::none().counted(&ends);
        queue.post(&ImmediatePut::new(b"12345", to).report(report)).unwrap();
        let report = Report::none().counted_in_bytes(&bytes);
        queue.post(&ImmediatePut::new(b"12345", to).report(report)).unwrap();
    }
    let report = Report::none().counted(&ends);
    queue.post(&ImmediatePut::new(b"", nowhere).report(report)).unwrap();
    scene.run();
    assert_eq!(read(&mut scene, &ends), (3, 1));
    assert_eq!(read(&mut scene, &bytes), (15, 0));
}

#[test]
fn counters_are_set_added_to_and_reset() {
    let mut scene = Scene::new();
    let counter = counter(&scene);
    scene.post(&CounterCommand::set(&counter, 7));
    scene.post(&CounterCommand::add(&counter, 3));
    assert_eq!(read(&mut scene, &counter), (10, 0));
    counter.add(5).unwrap();
    assert_eq!(read(&mut scene, &counter), (15, 0));
    counter.reset().unwrap();
    assert_eq!(read(&mut scene, &counter), (0, 0));
    counter.clear();
    assert!(counter.wait(Duration::from_millis(1)).is_err());
}

#[test]
fn triggered_commands_wait_for_their_threshold() {
    let mut scene = Scene::new();
    let there = scene.exposed(OPEN);
    let here = Buffer::new(&scene.one.lni, 4096).unwrap();
    here.write(0, &7_u64.to_le_bytes()).unwrap();
    let mut queue = triggered(&scene);
    let (counter, other) = (counter(&scene), counter(&scene));
    let put = Dma::put(here.slice(0..8).unwrap(), scene.two.address.portal(0));
    let mut batch = queue.batch();
    batch.push(&Trigger::dma(&counter, 2, put)).unwrap();
    batch.push(&Trigger::add(&counter, 2, &other, 40)).unwrap();
    batch.push(&Trigger::write_back(&other, 40)).unwrap();
    batch.push(&Trigger::event(&counter, 3, &scene.one.events)).unwrap();
    drop(batch);
    counter.add(1).unwrap();
    scene.run();
    assert_eq!(word(&there, 0), 0);
    assert!(!other.value().written_back);
    counter.add(1).unwrap();
    scene.run();
    assert_eq!(word(&there, 0), 7);
    assert_eq!(other.wait(Duration::ZERO).unwrap().success, 40);
    assert_eq!(events(&mut scene.one.events), []);
    counter.add(1).unwrap();
    scene.run();
    let found = events(&mut scene.one.events);
    assert!(matches!(found[..], [Event::Triggered { threshold: 3, .. }]), "{found:?}");
}

#[test]
fn triggered_commands_that_are_cancelled_never_run() {
    let mut scene = Scene::new();
    let mut queue = triggered(&scene);
    let (counter, other) = (counter(&scene), counter(&scene));
    for _ in 0..50 {
        // Some of four slots, so that the ring has gaps.
        queue.post(&Trigger::add(&counter, 1, &other, 1)).unwrap();
        let nothing = Buffer::new(&scene.one.lni, 1).unwrap();
        let put = Dma::put(nothing.slice(0..0).unwrap(), scene.two.address.portal(0));
        queue.post(&Trigger::dma(&counter, 1, put)).unwrap();
        queue.post(&CounterCommand::cancel(&counter)).unwrap();
        scene.run();
    }
    counter.add(1).unwrap();
    scene.run();
    assert_eq!(read(&mut scene, &other), (0, 0));
    assert_eq!(read(&mut scene, &counter), (1, 0));
    assert!(queue.is_idle().unwrap());
}
