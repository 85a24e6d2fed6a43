//! Ten examples, on a root C with edges A (nodes D, E) and B (nodes F, G).

use crate::member::{Additions, Message, State};
use crate::system::{System, Travelling};

const C: usize = 0;
const A: usize = 1;
const B: usize = 2;
const D: usize = 3;
const E: usize = 4;
const F: usize = 5;
const G: usize = 6;

use Message::{Done, Exit, Full, Status};
use State::{Filling, Idle};

fn tree() -> System {
    with(Additions {
        status_counts: true,
    })
}

fn with(additions: Additions) -> System {
    System::new(&[C, C, A, A, B, B], 1, additions)
}

fn enter(system: &mut System, leaves: &[usize]) {
    for leaf in leaves {
        system.enter_all(*leaf);
    }
}

fn all(system: &System) -> Vec<(State, u8)> {
    (C..=G).map(|member| system.state(member)).collect()
}

fn barrier(system: &mut System) {
    enter(system, &[D, E, F, G]);
    system.settle();
}

fn send(system: &mut System, from: usize, to: usize, message: Message, operation: usize) {
    system.travelling.push(Travelling {
        from,
        to,
        message,
        operation,
    });
}

#[test]
fn sequence_1_a_plain_barrier() {
    let mut system = tree();
    barrier(&mut system);
    assert_eq!(all(&system), [(Idle, 1); 7]);
    let kinds = |message: Message| {
        system
            .sent
            .iter()
            .filter(|sent| sent.message == message)
            .count()
    };
    assert_eq!(
        (kinds(Full(0)), kinds(Exit(0)), system.sent.len()),
        (6, 6, 12)
    );
}

#[test]
fn sequence_2_staggered() {
    let mut system = tree();
    enter(&mut system, &[E, F]);
    system.settle();
    assert_eq!(
        [A, B, C].map(|member| system.state(member).0),
        [Filling, Filling, Idle]
    );
    enter(&mut system, &[G]);
    system.settle();
    assert_eq!(
        [A, B, C].map(|member| system.state(member).0),
        [Filling, State::Full, Filling]
    );
    enter(&mut system, &[D]);
    system.settle();
    assert_eq!(all(&system), [(Idle, 1); 7]);
}

#[test]
fn sequence_3_a_full_twice() {
    let mut system = tree();
    enter(&mut system, &[E]);
    send(&mut system, E, A, Full(0), 0);
    system.settle();
    assert_eq!(
        (system.state(A), system.members[A].arrived.len()),
        ((Filling, 0), 1)
    );
    enter(&mut system, &[D]);
    system.settle();
    assert_eq!(system.state(A), (State::Full, 0));
}

#[test]
fn sequence_4_an_exit_twice() {
    let mut system = tree();
    barrier(&mut system);
    send(&mut system, C, A, Exit(0), 0);
    system.settle();
    assert_eq!((all(&system), system.failed()), (vec![(Idle, 1); 7], false));
}

#[test]
fn sequence_5_a_lost_exit() {
    let mut system = tree();
    lost_exit_to_e(&mut system);
    system.ask(E);
    assert_eq!(system.travelling[0].message, Status(0));
    system.deliver(0);
    assert_eq!(system.travelling[0].message, Done(0));
    system.settle();
    assert_eq!(all(&system), [(Idle, 1); 7]);
}

fn lost_exit_to_e(system: &mut System) {
    enter(system, &[D, E, F, G]);
    while !system
        .travelling
        .iter()
        .any(|travelling| travelling.to == E)
    {
        system.deliver(0);
    }
    system.lose(E, Exit(0));
    system.settle();
    assert_eq!(system.state(E), (State::Full, 0));
    assert!(
        (C..=G)
            .filter(|member| *member != E)
            .all(|member| system.state(member) == (Idle, 1))
    );
}

#[test]
fn sequence_6_a_late_child_whose_parent_goes_on() {
    let mut system = tree();
    lost_exit_to_e(&mut system);
    enter(&mut system, &[D]);
    system.settle();
    assert_eq!(system.state(A), (Filling, 1));
    system.ask(E);
    system.settle();
    assert_eq!(
        (system.state(A), system.state(E)),
        ((Filling, 1), (Idle, 1))
    );
    enter(&mut system, &[E]);
    system.settle();
    assert_eq!(system.state(A), (State::Full, 1));
}

/// The first promise that fails: nobody is behind, and nothing moves.
#[test]
fn sequence_7_a_lost_full() {
    let lose_full_of_g = |additions| {
        let mut system = with(additions);
        enter(&mut system, &[D, E, F]);
        system.settle();
        enter(&mut system, &[G]);
        system.lose(B, Full(0));
        system.settle();
        assert_eq!(
            (system.state(B), system.state(C)),
            ((Filling, 0), (Filling, 0))
        );
        // However often it asks.
        for _ in 0..10 {
            system.ask(G);
            system.settle();
        }
        system
    };
    let stuck = lose_full_of_g(Additions {
        status_counts: false,
    });
    assert_eq!((stuck.state(B), stuck.failed()), ((Filling, 0), false));
    let healed = lose_full_of_g(Additions {
        status_counts: true,
    });
    assert_eq!(all(&healed), [(Idle, 1); 7]);
}

#[test]
fn sequence_8_a_lost_exit_to_an_edge() {
    let mut system = tree();
    enter(&mut system, &[D, E, F, G]);
    while !system
        .travelling
        .iter()
        .any(|travelling| travelling.message == Exit(0))
    {
        system.deliver(0);
    }
    system.lose(A, Exit(0));
    system.settle();
    assert_eq!(
        [A, D, E].map(|member| system.state(member)),
        [(State::Full, 0); 3]
    );
    system.ask(A);
    system.settle();
    assert_eq!(all(&system), [(Idle, 1); 7]);
}

/// The second promise that fails: what is late by three looks like ahead by one.
#[test]
fn sequence_9_an_old_duplicate() {
    let late_by = |operations: usize, life: usize| {
        let mut system = tree();
        system.life = life;
        (0..operations).for_each(|_| barrier(&mut system));
        send(&mut system, D, A, Full(0), 0);
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

#[test]
fn sequence_10_a_crash_while_filling() {
    let mut system = tree();
    enter(&mut system, &[D, E, G]);
    system.settle();
    assert_eq!([B, C].map(|member| system.state(member)), [(Filling, 0); 2]);
    for member in [D, E, G] {
        system.ask(member);
        system.settle();
        assert_eq!(system.state(member), (State::Full, 0));
    }
    // Nobody saw an exit: whoever ends the group breaks no promise.
    assert!(
        system
            .sent
            .iter()
            .all(|sent| !matches!(sent.message, Exit(_) | Done(_)))
    );
}
