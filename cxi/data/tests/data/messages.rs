//! Puts, gets, immediate commands and atomics.

use cxi_data::{
    Arrival, Atomic, AtomicOp, Buffer, CompareOp, Dma, Error, Event, EventType, ImmediatePut,
    Message, Nomatch, Operand, Report, ReturnCode,
};

use crate::scene::{Scene, completions, events, word};

#[test]
fn a_put_and_a_get_move_bytes_and_are_reported_on_both_sides() {
    let (mut scene, there, to) = Scene::open();
    let here = Buffer::new(&scene.one.lni, 4096).unwrap();
    here.write(0, b"over there").unwrap();
    let report = |token| Report::event(&scene.one.events, token);
    let put = Dma::put(here.slice(0..10).unwrap(), to);
    let put = put.offset(64).match_bits(0).header_data(5);
    let put = put.report(report(1));
    let get = Dma::get(here.slice(100..110).unwrap(), to);
    let get = get.offset(64).report(report(2));
    let mut batch = scene.one.transmit.batch();
    batch.push(&put).unwrap();
    batch.push(&get).unwrap();
    drop(batch);
    scene.run();
    let mut bytes = [0; 10];
    there.read(64, &mut bytes).unwrap();
    assert_eq!(&bytes, b"over there");
    here.read(100, &mut bytes).unwrap();
    assert_eq!(&bytes, b"over there");
    assert_eq!(completions(&mut scene.one.events), [(1, Ok(10)), (2, Ok(10))]);
    let arrivals: Vec<Arrival> = events(&mut scene.two.events)
        .into_iter()
        .map(|event| match event {
            Event::Arrival(arrival) => arrival,
            other => panic!("{other:?}"),
        })
        .collect();
    let [put, get] = arrivals.as_slice() else { panic!("{arrivals:?}") };
    assert_eq!((put.kind, get.kind), (EventType::PUT, EventType::GET));
    assert_eq!((put.buffer_id, put.header_data, put.length), (7, 5, 10));
    assert_eq!((put.initiator, put.vni), (scene.one.address, 1024));
}

#[test]
fn every_length_of_an_immediate_command_arrives() {
    let (mut scene, there, to) = Scene::open();
    let bytes: Vec<u8> = (1..=225).collect();
    let check = |len: usize, offset: usize, scene: &mut Scene| {
        scene.run();
        let done = [(9, Ok(u32::try_from(len).unwrap()))];
        assert_eq!(completions(&mut scene.one.events), done);
        drop(events(&mut scene.two.events));
        let mut arrived = vec![0; len + 1];
        there.read(offset, &mut arrived).unwrap();
        assert_eq!(arrived[..len], bytes[..len]);
        assert_eq!(arrived[len], 0, "{len}");
        there.write(offset, &[0; 225]).unwrap();
    };
    for len in 0..=224 {
        let report = Report::event(&scene.one.events, 9);
        let put = ImmediatePut::new(&bytes[..len], to).offset(3).report(report);
        if len <= 192 {
            scene.post(&put);
            check(len, 3, &mut scene);
            let message = Message::new(&bytes[..len], to).report(report);
            scene.post(&message);
            check(len, 0, &mut scene);
        } else {
            let refused = scene.one.transmit.post(&put).unwrap_err();
            let why = matches!(refused, Error::TooLong { most: 192, .. });
            assert!(why, "{refused}");
        }
        scene.post(&put.restricted());
        check(len, 3, &mut scene);
    }
    let put = ImmediatePut::new(&bytes, to).restricted();
    let refused = scene.one.transmit.post(&put).unwrap_err();
    assert_eq!(refused.to_string(), "225 bytes: expected at most 224");
}

#[test]
fn a_nomatch_put_reports_failures_only() {
    let (mut scene, there, to) = Scene::open();
    let here = Buffer::new(&scene.one.lni, 4096).unwrap();
    here.write(0, &7_u64.to_le_bytes()).unwrap();
    let slice = here.slice(0..8).unwrap();
    let report = Report::event(&scene.one.events, 1);
    let nowhere = scene.two.address.portal(9);
    scene.post(&Nomatch::put(slice, to).offset(8).report(report));
    scene.post(&Nomatch::put(slice, nowhere).report(report));
    let get = Nomatch::get(here.slice(8..16).unwrap(), to).offset(8);
    scene.post(&get);
    scene.run();
    assert_eq!((word(&there, 8), word(&here, 8)), (7, 7));
    // Such a command has no room for a token.
    let refused = [(0, Err(ReturnCode::PTLTE_NOT_FOUND))];
    assert_eq!(completions(&mut scene.one.events), refused);
}

#[test]
fn atomics_change_what_is_there_and_fetch_what_was() {
    let (mut scene, there, to) = Scene::open();
    let here = Buffer::new(&scene.one.lni, 4096).unwrap();
    let report = Report::event(&scene.one.events, 1);
    there.write(0, &40_u64.to_le_bytes()).unwrap();
    let into = here.slice(0..8).unwrap();
    let swap = |new: u64| Atomic::new(AtomicOp::CSWAP, new, to).fetch(into);
    let masked = Atomic::new(AtomicOp::AXOR, 0xff_u64, to).mask(0xf0_u64);
    let cases: [(Atomic<'_>, u64, u64); 5] = [
        (Atomic::new(AtomicOp::SUM, 2_u64, to), 0, 42),
        (Atomic::new(AtomicOp::SUM, 1_u64, to).fetch(into), 42, 43),
        (swap(5).compare(CompareOp::EQ, 43_u64), 43, 5),
        (swap(9).compare(CompareOp::EQ, 43_u64), 5, 5),
        (masked.fetch(into), 5, 0xf5),
    ];
    for (atomic, fetched, left) in cases {
        scene.post(&atomic.report(report));
        scene.run();
        assert_eq!(completions(&mut scene.one.events), [(1, Ok(8))]);
        let words = (word(&here, 0), word(&there, 0));
        assert_eq!(words, (fetched, left), "{atomic:?}");
    }
    there.write(8, &1.5_f64.to_le_bytes()).unwrap();
    let sum = Atomic::new(AtomicOp::SUM, 2.25_f64, to).offset(8);
    scene.post(&sum);
    there.write(16, &5_u128.to_le_bytes()).unwrap();
    let swap =
        Atomic::new(AtomicOp::CSWAP, 1_u128 << 100, to).compare(CompareOp::EQ, 5_u128).offset(16);
    scene.post(&swap);
    scene.run();
    assert_eq!(word(&there, 8), 3.75_f64.to_bits());
    assert_eq!((word(&there, 16), word(&there, 24)), (0, 1 << 36));
}

#[test]
fn atomics_that_cannot_be_are_refused() {
    let (mut scene, _there, to) = Scene::open();
    let here = Buffer::new(&scene.one.lni, 4096).unwrap();
    let report = Report::event(&scene.one.events, 1);
    let misaligned = Atomic::new(AtomicOp::SUM, 1_u64, to).offset(4);
    let no_operation = Atomic::new(AtomicOp::BOR, 1.0_f32, to);
    for (atomic, code) in
        [(misaligned, ReturnCode::AMO_ALIGN_ERROR), (no_operation, ReturnCode::AMO_INVAL_OP_ERROR)]
    {
        scene.post(&atomic.report(report));
        scene.run();
        assert_eq!(completions(&mut scene.one.events), [(1, Err(code))]);
    }
    let short = Atomic::new(AtomicOp::SUM, 1_u64, to).fetch(here.slice(0..4).unwrap());
    let missing = Atomic::new(AtomicOp::CSWAP, 1_u64, to);
    for atomic in [short, missing] {
        let refused = scene.one.transmit.post(&atomic).unwrap_err();
        assert!(matches!(refused, Error::Operands(_)), "{refused}");
    }
    assert_eq!(Operand::from(1_u128).size(), 16);
}

#[test]
fn a_buffer_that_is_dropped_is_not_read_any_more() {
    let (mut scene, there, to) = Scene::open();
    let here = Buffer::new(&scene.one.lni, 4096).unwrap();
    here.write(0, &7_u64.to_le_bytes()).unwrap();
    let put = Dma::put(here.slice(0..8).unwrap(), to);
    let put = put.report(Report::event(&scene.one.events, 1));
    scene.post(&put);
    drop(here);
    scene.run();
    let refused = [(1, Err(ReturnCode::NO_TRANSLATION))];
    assert_eq!(completions(&mut scene.one.events), refused);
    assert_eq!(word(&there, 0), 0);
    // The same at the target.
    drop(there);
    let put = ImmediatePut::new(b"late", to);
    let put = put.report(Report::event(&scene.one.events, 2));
    scene.post(&put);
    scene.run();
    let refused = [(2, Err(ReturnCode::NO_TRANSLATION))];
    assert_eq!(completions(&mut scene.one.events), refused);
}

#[test]
fn ranges_that_are_not_in_a_buffer_are_refused() {
    let scene = Scene::new();
    let buffer = Buffer::new(&scene.one.lni, 1).unwrap();
    assert_eq!(buffer.len(), 4096);
    #[allow(clippy::reversed_empty_ranges)]
    for range in [0..4097, 4097..4097, 2..1] {
        assert!(buffer.slice(range.clone()).is_err(), "{range:?}");
    }
    assert_eq!(buffer.slice(4096..4096).unwrap().len(), 0);
    let refused = buffer.write(4090, &[0; 7]).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "bytes 4090 to 4097: expected a range within the 4096 bytes of the buffer"
    );
    assert!(buffer.read(usize::MAX, &mut [0]).is_err());
    assert_eq!(buffer.position(0), None);
    buffer.close().unwrap();
}
