//! Messages of which the NIC of the target gets the rest.

use cxi::lni::{LeList, PtOptions, Pte, PteMapping};
use cxi_data::{
    Append, Buffer, Error, Event, EventType, List, Rendezvous, Report, ReturnCode, SetState, Slice,
    TargetFlags,
};

use crate::scene::{LEN, Scene, completions, events};

pub(crate) const ID: u8 = 7;
const TAG: u64 = 0xaaaa_0000_0000_0005;
const EAGER: u32 = 100;
/// Bytes of the message.
pub(crate) const WHOLE: usize = 20_000;
static BYTES: [u8; WHOLE] = {
    let mut bytes = [1; WHOLE];
    bytes[EAGER as usize] = 2;
    bytes[WHOLE - 1] = 3;
    bytes
};

/// Address of the message's bytes in the first process.
pub(crate) struct Source {
    pub(crate) pte: Pte,
    _mapping: PteMapping,
    pub(crate) buffer: Buffer,
}

impl Source {
    pub(crate) fn new(scene: &mut Scene) -> Self {
        let one = &mut scene.one;
        let queue = Some(one.events.queue());
        let pte = one.lni.alloc_pte(PtOptions::IS_MATCHING, queue).unwrap();
        let mapping = pte.map(&one.domain, one.info.rdzv_get_idx).unwrap();
        let buffer = Buffer::new(&one.lni, LEN).unwrap();
        buffer.write(0, &BYTES).unwrap();
        one.target.post(&SetState::enable(&pte)).unwrap();
        let entry = Append::source(&pte, buffer.slice(0..WHOLE).unwrap(), ID);
        one.target.post(&entry.buffer_id(70)).unwrap();
        scene.run();
        assert_eq!(events(&mut scene.one.events).len(), 2);
        Self { pte, _mapping: mapping, buffer }
    }

    /// Sends the message.
    fn send(&self, scene: &mut Scene) {
        let bytes = self.buffer.slice(0..WHOLE).unwrap();
        let put = Rendezvous::put(bytes, scene.two.address.portal(0), ID);
        let put = put.eager(EAGER).match_bits(TAG).header_data(9);
        let report = Report::event(&scene.one.events, 1);
        scene.post(&put.report(report));
        scene.run();
    }
}

/// An entry of the second process that takes the message.
fn receive(scene: &mut Scene, list: LeList, into: Slice<'_>) {
    let two = &mut scene.two;
    let entry = Append::new(&two.pte, list, into).match_bits(TAG);
    let flags = TargetFlags::OP_PUT | TargetFlags::USE_ONCE | TargetFlags::EVENT_UNLINK_DISABLE;
    let entry = entry.flags(flags | TargetFlags::EVENT_LINK_DISABLE);
    two.target.post(&SetState::enable(&two.pte)).unwrap();
    two.target.post(&entry.buffer_id(20)).unwrap();
    scene.run();
    let heard = events(&mut scene.two.events);
    assert!(matches!(heard[0], Event::State(_)), "{heard:?}");
}

/// Returns the events of the second process: the first bytes, the rest, and the end.
fn heard(scene: &mut Scene, kind: EventType, list: List) -> [Event; 3] {
    let heard: [Event; 3] = events(&mut scene.two.events).try_into().unwrap();
    let Event::Arrival(first) = heard[0] else { panic!("{heard:?}") };
    assert_eq!((first.kind, first.list, first.buffer_id), (kind, list, 20));
    let lengths = (first.length, first.requested);
    assert_eq!(lengths, (EAGER, Some(20_000)));
    assert_eq!((first.rendezvous, first.header_data), (Some(ID), 9));
    heard
}

fn content(buffer: &Buffer) -> Vec<u8> {
    let mut bytes = vec![0; WHOLE];
    buffer.read(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn the_nic_gets_the_rest_of_an_expected_message() {
    let mut scene = Scene::new();
    let source = Source::new(&mut scene);
    let inbox = Buffer::new(&scene.two.lni, LEN).unwrap();
    receive(&mut scene, LeList::Priority, inbox.whole());
    source.send(&mut scene);
    let [_, rest, end] = heard(&mut scene, EventType::PUT, List::PRIORITY);
    let Event::Rest(rest) = rest else { panic!("{rest:?}") };
    assert!(rest.is_coming);
    assert_eq!((rest.source, rest.id), (scene.one.address, ID));
    assert_eq!((rest.received, rest.requested), (EAGER, 20_000));
    assert_eq!(inbox.position(rest.start), Some(EAGER as usize));
    let Event::Received(end) = end else { panic!("{end:?}") };
    assert_eq!((end.source, end.id), (scene.one.address, ID));
    assert_eq!((end.length, end.buffer_id), (20_000 - EAGER, 20));
    assert_eq!(end.pte, u16::try_from(scene.two.pte.id()).unwrap());
    assert_eq!(end.result, Ok(()));
    assert!(content(&inbox) == BYTES);

    // The source has an ACK, and its entry is used up by a get.
    let kinds = events(&mut scene.one.events).into_iter().map(|event| match event {
        Event::Completion(it) => (it.kind, it.result),
        Event::Arrival(it) => (it.kind, it.result),
        Event::Entry(it) => (it.kind, it.result),
        other => panic!("{other:?}"),
    });
    let mut kinds: Vec<_> = kinds.collect();
    kinds.sort_by_key(|(kind, _)| kind.0);
    let expected = [EventType::GET, EventType::ACK, EventType::UNLINK];
    assert_eq!(kinds, expected.map(|kind| (kind, Ok(()))));
}

#[test]
fn an_unexpected_message_waits_where_it_is() {
    let mut scene = Scene::new();
    let source = Source::new(&mut scene);
    let overflow = Buffer::new(&scene.two.lni, 4096).unwrap();
    receive(&mut scene, LeList::Overflow, overflow.whole());
    source.send(&mut scene);
    let [Event::Arrival(early)] = events(&mut scene.two.events)[..] else { panic!("one arrival") };
    assert_eq!((early.list, early.rendezvous), (List::OVERFLOW, Some(ID)));

    let inbox = Buffer::new(&scene.two.lni, LEN).unwrap();
    let entry = Append::new(&scene.two.pte, LeList::Priority, inbox.whole());
    let flags = TargetFlags::OP_PUT | TargetFlags::USE_ONCE;
    let entry = entry.match_bits(TAG).buffer_id(20).flags(flags);
    scene.post_target(&entry);
    scene.run();
    let [first, _, end] = heard(&mut scene, EventType::PUT_OVERFLOW, List::PRIORITY);
    assert!(matches!(end, Event::Received(end) if end.result == Ok(())));
    // The first bytes are still in the other buffer.
    let Event::Arrival(first) = first else { panic!("{first:?}") };
    let at = overflow.position(first.start.unwrap()).unwrap();
    let mut eager = [0; EAGER as usize];
    overflow.read(at, &mut eager).unwrap();
    inbox.write(0, &eager).unwrap();
    assert!(content(&inbox) == BYTES);
}

#[test]
fn a_program_gets_the_rest_where_the_nic_does_not() {
    let mut scene = Scene::new();
    scene.nic().hardware().set_rdzv_get_en(false);
    let source = Source::new(&mut scene);
    let inbox = Buffer::new(&scene.two.lni, LEN).unwrap();
    receive(&mut scene, LeList::Priority, inbox.whole());
    source.send(&mut scene);
    let found = events(&mut scene.two.events);
    let [Event::Arrival(_), Event::Rest(rest)] = found[..] else { panic!("{found:?}") };
    assert!(!rest.is_coming);
    let two = &mut scene.two;
    let into = inbox.slice(EAGER as usize..WHOLE).unwrap();
    let get = rest.get(into, &two.info).report(Report::event(&two.events, 5));
    two.transmit.post(&get).unwrap();
    scene.run();
    assert_eq!(completions(&mut scene.two.events), [(5, Ok(20_000 - EAGER))]);
    assert!(content(&inbox) == BYTES);
}

#[test]
fn a_source_that_is_gone_is_an_error_at_the_target() {
    let mut scene = Scene::new();
    let source = Source::new(&mut scene);
    let overflow = Buffer::new(&scene.two.lni, 4096).unwrap();
    receive(&mut scene, LeList::Overflow, overflow.whole());
    source.send(&mut scene);
    assert_eq!(events(&mut scene.two.events).len(), 1);
    let Source { pte: _pte, buffer, _mapping } = source;
    drop(buffer);
    let inbox = Buffer::new(&scene.two.lni, LEN).unwrap();
    let entry = Append::new(&scene.two.pte, LeList::Priority, inbox.whole());
    let entry = entry.match_bits(TAG).flags(TargetFlags::OP_PUT);
    scene.post_target(&entry);
    scene.run();
    let found = events(&mut scene.two.events);
    let end = found.iter().find_map(|event| match event {
        Event::Received(end) => Some(end.result.unwrap_err().0),
        _ => None,
    });
    assert_eq!(end, Some(ReturnCode::NO_TRANSLATION), "{found:?}");
}

#[test]
fn more_than_a_command_can_say_is_refused() {
    let (mut scene, _exposed, to) = Scene::open();
    let buffer = Buffer::new(&scene.one.lni, LEN).unwrap();
    let put = Rendezvous::put(buffer.whole(), to, ID).eager(1 << 20);
    let refused = scene.one.transmit.post(&put);
    let error = refused.unwrap_err();
    assert!(matches!(error, Error::TooLong { most: 0xf_ffff, .. }), "{error:?}");
}
