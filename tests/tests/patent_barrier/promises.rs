//! The two promises that fail, on a root C with edges A (nodes D, E) and B (nodes F, G). Everything
//! else that the text shows by example is a property.

use crate::member::{Message, State};
use crate::system::{System, Travelling};

const C: usize = 0;
const A: usize = 1;
const B: usize = 2;
const D: usize = 3;
const E: usize = 4;
const F: usize = 5;
const G: usize = 6;

fn tree(status_counts: bool) -> System {
    System::new(&[C, C, A, A, B, B], 1, status_counts)
}

fn enter(system: &mut System, leaves: &[usize]) {
    for leaf in leaves {
        system.enter_all(*leaf);
    }
}

/// No child is behind, and nothing moves.
#[test]
fn a_lost_full_stops_all_unless_a_status_counts() {
    for status_counts in [false, true] {
        let mut system = tree(status_counts);
        enter(&mut system, &[D, E, F]);
        system.settle();
        enter(&mut system, &[G]);
        system.lose(B, Message::Full(0));
        system.settle();
        let filling = (State::Filling, 0);
        assert_eq!([B, C].map(|member| system.state(member)), [filling; 2]);
        // However often it asks.
        for _ in 0..10 {
            system.ask(G);
            system.settle();
        }
        let moved = (C..=G).all(|member| system.state(member) == (State::Idle, 1));
        assert_eq!(moved, status_counts);
        assert_eq!(system.state(B) == filling, !status_counts);
        assert!(!system.failed());
    }
}

/// What is late by three looks like ahead by one.
#[test]
fn two_bits_do_not_tell_old_from_new_for_ever() {
    let late_by = |operations: usize, life: usize| {
        let mut system = tree(true);
        system.life = life;
        for _ in 0..operations {
            enter(&mut system, &[D, E, F, G]);
            system.settle();
        }
        system.travelling.push(Travelling {
            from: D,
            to: A,
            message: Message::Full(0),
            operation: 0,
        });
        system.settle();
        (system.failed(), system.members[A].arrived.len())
    };
    let for_ever = usize::MAX / 2;
    // It is known by one; by two and three it fails although nothing is wrong; by four it is believed.
    assert_eq!(late_by(1, for_ever), (false, 0));
    assert_eq!(late_by(2, for_ever), (true, 0));
    assert_eq!(late_by(3, for_ever), (true, 0));
    assert_eq!(late_by(4, for_ever), (false, 1));
    // With an end to the life of messages all of it is harmless.
    assert!((1..9).all(|operations| late_by(operations, 2) == (false, 0)));
}
