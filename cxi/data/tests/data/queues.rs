//! Rings that wrap, fill up and stop, and event queues that overflow.

use cxi::lni::LeList;
use cxi_data::{
    Append, Buffer, Dma, Error, Event, EventType, Failure, ImmediatePut, Message, Nomatch, Report,
    ReturnCode, Unlink,
};
use cxi_test_kit::Random;

use crate::scene::{Scene, completions, events, is_full, small_events, stopped, word};

#[test]
fn nothing_moves_before_the_doorbell_and_all_of_a_batch_after_it() {
    let (mut scene, there, to) = Scene::open();
    let mut batch = scene.one.transmit.batch();
    for at in 0..5_u64 {
        let bytes = (at + 1).to_le_bytes();
        batch.push(&ImmediatePut::new(&bytes, to).offset(at * 8)).unwrap();
    }
    std::mem::forget(batch);
    scene.run();
    assert_eq!(word(&there, 0), 0);
    drop(scene.one.transmit.batch());
    scene.run();
    let words: Vec<u64> = (0..6).map(|at| word(&there, at * 8)).collect();
    assert_eq!(words, [1, 2, 3, 4, 5, 0]);
    assert!(scene.one.transmit.is_idle().unwrap());
}

/// Commands of one, two, four and eight slots in an order that is not regular.
#[test]
fn commands_of_all_sizes_arrive_in_order_when_the_ring_wraps() {
    let (mut scene, there, to) = Scene::open();
    let here = Buffer::new(&scene.one.lni, 4096).unwrap();
    let bytes = [5; 192];
    here.write(0, &bytes).unwrap();
    let (mut expected, mut ended) = (Vec::new(), Vec::new());
    let mut random = Random::new(1);
    for token in 0..4000_u64 {
        let report = Report::event(&scene.one.events, token);
        let len = random.below(193);
        let queue = &mut scene.one.transmit;
        let kind = random.below(8);
        let posted = match kind {
            0 | 1 => queue.post(&ImmediatePut::new(&bytes[..len], to).report(report)),
            2 | 3 => queue.post(&Message::new(&bytes[..len], to).report(report)),
            4 => queue.post(&Nomatch::put(here.slice(0..len).unwrap(), to)),
            _ => queue.post(&Dma::put(here.slice(0..len).unwrap(), to).report(report)),
        };
        posted.unwrap();
        // The others do not report success.
        if kind != 4 {
            expected.push((token, Ok(u32::try_from(len).unwrap())));
        }
        if random.below(4) == 0 || token == 3999 {
            scene.settle();
            ended.extend(completions(&mut scene.one.events));
        }
    }
    assert_eq!(ended, expected);
    assert!(scene.one.transmit.is_idle().unwrap());
    assert_eq!(word(&there, 0), u64::from_ne_bytes([5; 8]));
    assert!(scene.one.transmit.is_idle().unwrap());
}

#[test]
fn a_full_queue_takes_nothing_and_goes_on_when_the_nic_has_read() {
    let (mut scene, _there, to) = Scene::open();
    let mut posted = 0_u64;
    for round in 1..=3 {
        let full = loop {
            let report = Report::event(&scene.one.events, posted);
            match scene.one.transmit.post(&Message::new(b"", to).report(report)) {
                Ok(()) => posted += 1,
                Err(error) => break error,
            }
        };
        assert!(is_full(&full), "{full}");
        scene.settle();
        let done = completions(&mut scene.one.events);
        assert!(done.iter().all(|(_, result)| result.is_ok()));
        // 256 units, less those before the first command and the one that stays empty; the state
        // that the messages have in common is one slot, followed by an empty one.
        let first = if round == 1 { 250 } else { 251 };
        assert_eq!(done.len(), first, "round {round}");
        assert_eq!(done.last().unwrap().0, posted - 1);
    }
    let text = Error::Full { needed: 2, free: 0 }.to_string();
    assert!(text.starts_with("the command queue is full: "), "{text}");
}

#[test]
fn a_refused_command_stops_its_queue_and_says_why() {
    let mut scene = Scene::new();
    let to = scene.two.address.portal(0);
    // An event queue of another process.
    let report = Report::event(&scene.two.events, 0);
    scene.post(&Message::new(b"", to).report(report));
    scene.run();
    let found = events(&mut scene.one.events);
    let [Event::Stopped(stop)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(stop.failure, Failure(ReturnCode::CMD_INVALID_ARG));
    assert!(!stop.is_target);
    let error = scene.one.transmit.is_idle().unwrap_err();
    assert_eq!(stopped(&error), Some(ReturnCode::CMD_INVALID_ARG));
    let error = loop {
        if let Err(error) = scene.one.transmit.post(&Message::new(b"", to)) {
            break error;
        }
    };
    assert_eq!(
        error.to_string(),
        "the command queue has stopped at a command that the NIC refused: CMD_INVALID_ARG: the \
         command names something that it may not use"
    );
    // A PtlTE of another process.
    scene.one.target.post(&Unlink::new(&scene.two.pte, LeList::Priority, 1)).unwrap();
    scene.run();
    let found = events(&mut scene.one.events);
    assert!(matches!(found[..], [Event::Stopped(it)] if it.is_target), "{found:?}");
}

#[test]
fn lost_events_are_an_error_behind_those_that_are_there() {
    let (mut scene, _there, to) = Scene::open();
    let mut small = small_events(&scene.one, 4096);
    for round in 0..3 {
        for token in 0..100 {
            let put = ImmediatePut::new(b"", to).report(Report::event(&small, token));
            scene.post(&put);
            scene.settle();
        }
        let mut tokens = Vec::new();
        let mut losses = 0;
        for event in small.drain() {
            match event {
                Ok(Event::Completion(completion)) if losses == 0 => tokens.push(completion.token),
                Err(Error::Overflow) => losses += 1,
                other => panic!("{other:?}"),
            }
        }
        // 64 blocks, less the status and one that stays empty.
        assert_eq!((tokens, losses), ((0..62).collect(), 1), "round {round}");
    }
}

#[test]
fn an_event_queue_goes_on_in_a_larger_buffer() {
    let (mut scene, _there, to) = Scene::open();
    let mut small = small_events(&scene.one, 4096);
    for round in 0..2 {
        for token in 0..150 {
            if token == 40 {
                small.resize(4096 * (4 + round)).unwrap();
            }
            let put = ImmediatePut::new(b"", to).report(Report::event(&small, token));
            scene.post(&put);
            scene.settle();
        }
        let tokens: Vec<u64> = completions(&mut small).iter().map(|it| it.0).collect();
        assert_eq!(tokens, (0..150).collect::<Vec<_>>(), "round {round}");
    }
}

#[test]
fn event_queues_wrap() {
    let (mut scene, _there, to) = Scene::open();
    let mut small = small_events(&scene.one, 4096);
    for token in 0..1000 {
        let put = ImmediatePut::new(b"", to).report(Report::event(&small, token));
        scene.post(&put);
        if token % 7 == 0 {
            scene.settle();
            let last = completions(&mut small).last().map(|it| it.0);
            assert_eq!(last, Some(token));
        }
    }
}

#[test]
fn a_disabled_portal_and_a_missing_one_have_codes_of_their_own() {
    let mut scene = Scene::new();
    let report = Report::event(&scene.one.events, 1);
    for (index, code) in [(0, ReturnCode::PT_DISABLED), (1, ReturnCode::PTLTE_NOT_FOUND)] {
        let to = scene.two.address.portal(index);
        scene.post(&Message::new(b"", to).report(report));
        scene.run();
        assert_eq!(completions(&mut scene.one.events), [(1, Err(code))]);
    }
    let nowhere = cxi_data::Address { nid: 0xfff, pid: 1 };
    let put = ImmediatePut::new(b"", nowhere.portal(0)).report(report);
    scene.post(&put);
    scene.run();
    let undeliverable = [(1, Err(ReturnCode::UNDELIVERABLE))];
    assert_eq!(completions(&mut scene.one.events), undeliverable);
}

#[test]
fn a_wait_ends_with_an_event_or_in_time() {
    let mut scene = Scene::new();
    let moment = std::time::Duration::from_millis(5);
    let late = scene.one.events.wait(moment).unwrap_err();
    assert_eq!(late.to_string(), "nothing arrived within 5ms");
    let buffer = Buffer::new(&scene.one.lni, 1).unwrap();
    let append = Append::new(&scene.one.pte, LeList::Overflow, buffer.whole());
    scene.one.target.post(&append).unwrap();
    scene.run();
    let event = scene.one.events.wait(moment).unwrap();
    assert!(matches!(event, Event::Entry(it) if it.kind == EventType::LINK), "{event:?}");
}
