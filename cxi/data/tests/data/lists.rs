//! List entries: matching, unexpected messages, searches.

use cxi::lni::LeList;
use cxi_data::{
    Append, Arrival, Buffer, Event, EventType, Failure, List, Message, PtlteState, ReturnCode,
    Search, SetState, StateReason, TargetFlags, Unlink,
};

use crate::scene::{OPEN, Scene, events};

fn arrivals(scene: &mut Scene) -> Vec<Arrival> {
    let arrival = |event| match event {
        Event::Arrival(arrival) => Some(arrival),
        _ => None,
    };
    let found = events(&mut scene.two.events);
    found.into_iter().filter_map(arrival).collect()
}

fn send(scene: &mut Scene, bytes: &[u8], tag: u64) {
    let message = Message::new(bytes, scene.two.address.portal(0)).match_bits(tag);
    scene.post(&message.header_data(tag + 100));
    scene.run();
}

/// An overflow list with a buffer that is managed locally.
fn overflow(scene: &mut Scene) -> Buffer {
    let buffer = Buffer::new(&scene.two.lni, 4096).unwrap();
    let entry = Append::new(&scene.two.pte, LeList::Overflow, buffer.whole());
    let entry = entry.ignore(u64::MAX).managed(64).buffer_id(50);
    scene.post_target(&SetState::enable(&scene.two.pte));
    scene.post_target(&entry.flags(TargetFlags::OP_PUT));
    scene.run();
    drop(events(&mut scene.two.events));
    buffer
}

#[test]
fn match_bits_and_initiators_choose_the_entry() {
    let mut scene = Scene::new();
    let buffer = Buffer::new(&scene.two.lni, 4096).unwrap();
    let two = &mut scene.two;
    let entry = |id| {
        let entry = Append::new(&two.pte, LeList::Priority, buffer.whole());
        entry.flags(TargetFlags::OP_PUT).buffer_id(id)
    };
    let (mine, theirs) = (two.address, scene.one.address);
    two.target.post(&SetState::enable(&two.pte)).unwrap();
    let mut batch = two.target.batch();
    batch.push(&entry(1).match_bits(1)).unwrap();
    batch.push(&entry(2).match_bits(0x10).ignore(0xf)).unwrap();
    batch.push(&entry(3).ignore(u64::MAX).from(mine)).unwrap();
    batch.push(&entry(4).ignore(u64::MAX).from(theirs)).unwrap();
    drop(batch);
    scene.run();
    for tag in [1, 0x13, 5] {
        send(&mut scene, b"x", tag);
    }
    let found: Vec<_> = arrivals(&mut scene)
        .iter()
        .map(|it| (it.kind, it.buffer_id, it.match_bits, it.initiator))
        .collect();
    let put = |id, tag| (EventType::PUT, id, tag, theirs);
    assert_eq!(found, [put(1, 1), put(2, 0x13), put(4, 5)]);
}

#[test]
fn unexpected_messages_are_searched_claimed_and_deleted() {
    let mut scene = Scene::new();
    let buffer = overflow(&mut scene);
    for tag in 1..=4 {
        send(&mut scene, &[1; 8], tag);
    }
    let came = arrivals(&mut scene);
    let place = |it: &Arrival| (it.list, it.buffer_id, buffer.position(it.start.unwrap()));
    let found: Vec<_> = came.iter().map(place).collect();
    assert_eq!(found, [0, 8, 16, 24].map(|at| (List::OVERFLOW, 50, Some(at))));

    let two = &mut scene.two;
    let search = |id| Search::new(&two.pte, id);
    for search in [
        search(9),
        search(10).match_bits(3).first(),
        search(11).match_bits(2).first().delete(),
        search(12).match_bits(2).first(),
    ] {
        two.target.post(&search).unwrap();
    }
    scene.run();
    let found: Vec<_> = arrivals(&mut scene)
        .iter()
        .map(|it| (it.kind, it.buffer_id, it.header_data, it.result))
        .collect();
    let (search, deleted) = (EventType::SEARCH, EventType::PUT_OVERFLOW);
    let none = Err(Failure(ReturnCode::NO_MATCH));
    assert_eq!(
        found,
        [
            (search, 9, 101, Ok(())),
            (search, 9, 102, Ok(())),
            (search, 9, 103, Ok(())),
            (search, 9, 104, Ok(())),
            (search, 9, 0, none),
            (search, 10, 103, Ok(())),
            (deleted, 11, 102, Ok(())),
            (search, 12, 0, none),
        ]
    );

    let inbox = Buffer::new(&scene.two.lni, 4096).unwrap();
    let two = &mut scene.two;
    let receive = Append::new(&two.pte, LeList::Priority, inbox.whole()).match_bits(4);
    let once = TargetFlags::OP_PUT | TargetFlags::USE_ONCE;
    two.target.post(&receive.flags(once).buffer_id(77)).unwrap();
    scene.run();
    let found = arrivals(&mut scene);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].kind, found[0].buffer_id), (deleted, 77));
    assert_eq!(buffer.position(found[0].start.unwrap()), Some(24));
    assert!(found[0].unlinked);
}

#[test]
fn entries_are_unlinked_once() {
    let mut scene = Scene::new();
    let _buffer = scene.exposed(OPEN);
    for expected in [Ok(()), Err(Failure(ReturnCode::ENTRY_NOT_FOUND))] {
        let unlink = Unlink::new(&scene.two.pte, LeList::Priority, 7);
        scene.post_target(&unlink);
        scene.run();
        let found = events(&mut scene.two.events);
        let [Event::Entry(change)] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((change.kind, change.buffer_id), (EventType::UNLINK, 7));
        assert_eq!((change.result, change.used_up), (expected, false));
    }
}

#[test]
fn states_change_and_say_who_changed_them() {
    let mut scene = Scene::new();
    let _buffer = scene.exposed(OPEN);
    let state = |event: &Event| match event {
        Event::State(change) => (change.state, change.reason, change.result),
        other => panic!("{other:?}"),
    };
    scene.post_target(&SetState::disable(&scene.two.pte));
    scene.run();
    send(&mut scene, b"", 0);
    let enable = SetState::enable(&scene.two.pte);
    for command in [enable.if_dropped(5), enable.if_dropped(1)] {
        scene.post_target(&command);
    }
    scene.run();
    let found: Vec<_> = events(&mut scene.two.events).iter().map(state).collect();
    assert_eq!(
        found,
        [
            (PtlteState::DISABLED, None, Ok(())),
            (PtlteState::DISABLED, None, Err(Failure(ReturnCode::NO_MATCH))),
            (PtlteState::ENABLED, None, Ok(())),
        ]
    );
    let options = cxi::lni::PtOptions::IS_MATCHING | cxi::lni::PtOptions::EN_FLOWCTRL;
    let two = &mut scene.two;
    let pte = two.lni.alloc_pte(options, Some(two.events.queue())).unwrap();
    let _mapping = pte.map(&two.domain, 3).unwrap();
    two.target.post(&SetState::enable(&pte)).unwrap();
    let message = Message::new(b"", two.address.portal(3));
    scene.run();
    scene.post(&message);
    scene.run();
    let found: Vec<_> = events(&mut scene.two.events).iter().map(state).collect();
    let by_nic = (PtlteState::DISABLED, Some(StateReason::FC_NO_MATCH), Ok(()));
    assert_eq!(found, [(PtlteState::ENABLED, None, Ok(())), by_nic]);
}
