//! What holds in any tree, for any order of events; numbers as in the list that the model follows.

use proptest::prelude::*;

use crate::member::{Message, State};
use crate::system::{System, Travelling};

const OPERATIONS: usize = 9;

/// Trees of up to seven members and their processes, and what happens to messages.
fn case() -> impl Strategy<Value = (Vec<usize>, usize, Vec<(u8, u16)>)> {
    (1..7_usize, 1..3_usize).prop_flat_map(|(members, processes)| {
        let parents: Vec<_> = (0..members).map(|member| 0..=member).collect();
        let events = prop::collection::vec((any::<u8>(), any::<u16>()), 0..600);
        (parents, Just(processes), events)
    })
}

fn enter_some(system: &mut System, which: usize) {
    let leaves = system.leaves();
    let leaf = leaves[which % leaves.len()];
    if system.left[leaf] < OPERATIONS {
        system.enter(leaf, which / leaves.len() % 2);
    }
}

fn happen(system: &mut System, event: u8, which: u16) {
    let which = usize::from(which);
    let count = system.travelling.len();
    match event {
        0..100 => enter_some(system, which),
        100..120 => system.ask(which % system.members.len()),
        120..140 if count > 0 => {
            system.travelling.remove(which % count);
        }
        140..160 if count > 0 => {
            let copy = system.travelling[which % count];
            system.travelling.push(copy);
        }
        _ if count > 0 => system.deliver(which % count),
        _ => {}
    }
}

/// All processes enter, nothing is lost any more, timers run: to the end of all operations.
fn finish(system: &mut System) {
    for _ in 0..OPERATIONS * 40 {
        for leaf in system.leaves() {
            if system.left[leaf] < OPERATIONS {
                system.enter(leaf, 0);
                system.enter(leaf, 1);
            }
        }
        system.settle();
        (0..system.members.len()).for_each(|member| system.ask(member));
        system.settle();
    }
}

/// Checks 1, 3 to 8 and 15; members check 2 themselves.
fn check(system: &System, before: &System) {
    // No member has left what a local root has not entered, so a slow process stalls all others, and
    // none is more than one ahead.
    let entered = |leaf: usize| {
        let full = system.members[leaf].state == State::Full;
        system.left[leaf] + usize::from(full)
    };
    let slowest = system.leaves().into_iter().map(entered).min().unwrap();
    let left = &system.left;
    assert!(left.iter().all(|left| *left <= slowest), "1, 15: {left:?}");
    for (number, member) in system.members.iter().enumerate() {
        let transaction = usize::from(member.transaction);
        assert_eq!(transaction, left[number] % 4, "3: counts the operations");
        let late = system.members[0]
            .transaction
            .wrapping_sub(member.transaction)
            % 4;
        assert!(late < 2, "5: the root's transaction, or the one before");
        let Some(parent) = system.parents[number] else {
            continue;
        };
        let behind = left[parent].checked_sub(left[number]);
        assert!(
            behind.is_some_and(|it| it < 2),
            "4: as the parent, or one behind"
        );
        let parent = &system.members[parent];
        if parent.arrived.contains(&number) {
            let full = (State::Full, parent.transaction);
            assert_eq!(system.state(number), full, "6: who has arrived is full");
        }
        let told = |sent: &Travelling| {
            let exit = matches!(sent.message, Message::Exit(_));
            exit && (sent.to, sent.operation) == (number, left[number])
        };
        let knows = behind == Some(0) || system.sent.iter().any(told);
        assert!(knows, "8: who is behind was told");
    }
    if left[0] > before.left[0] {
        let full = (State::Full, before.members[0].transaction);
        let all = (1..left.len()).all(|member| before.state(member) == full);
        assert!(all, "7: as the root leaves, all others are full");
    }
}

/// The members from one up to the root.
fn up(system: &System, member: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(member), |member| system.parents[*member])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// 1 to 10, 12, 15: whatever is lost, repeated and reordered, at any moment and to the end.
    #[test]
    fn every_history_is_safe_and_ends((parents, processes, events) in case()) {
        let mut system = System::new(&parents, processes, true);
        for (event, which) in events {
            let before = system.clone();
            happen(&mut system, event, which);
            check(&system, &before);
        }
        finish(&mut system);
        prop_assert!(!system.failed());
        prop_assert_eq!(&system.left, &vec![OPERATIONS; system.members.len()]);
        prop_assert!(system.members.iter().all(|member| member.state == State::Idle));
    }

    /// 13: without loss one `Full` and one `Exit` for each edge, in twice the height of rounds.
    #[test]
    fn a_barrier_costs_what_it_must((parents, processes, _) in case()) {
        let mut system = System::new(&parents, processes, true);
        system.leaves().into_iter().for_each(|leaf| system.enter_all(leaf));
        let depths = (0..system.members.len()).map(|member| up(&system, member).count() - 1);
        let height = depths.max().unwrap();
        let mut rounds = 0;
        while !system.travelling.is_empty() {
            rounds += 1;
            (0..system.travelling.len()).for_each(|_| system.deliver(0));
        }
        prop_assert_eq!(rounds, 2 * height);
        let of = |message| system.sent.iter().filter(|sent| sent.message == message).count();
        prop_assert_eq!((of(Message::Full(0)), of(Message::Exit(0)), system.sent.len()), (parents.len(), parents.len(), 2 * parents.len()));
    }

    /// 14: without timers one lost `Exit` stalls one child, until it asks; one lost `Full` stalls all.
    #[test]
    fn one_loss_without_timers((parents, processes, _) in case(), which in any::<u16>()) {
        let victim = 1 + usize::from(which) % parents.len();
        for lost in [Message::Exit(0), Message::Full(0)] {
            let mut system = System::new(&parents, processes, true);
            system.leaves().into_iter().for_each(|leaf| system.enter_all(leaf));
            while !system.travelling.is_empty() {
                let travelling = system.travelling[0];
                let end = if matches!(lost, Message::Exit(_)) { travelling.to } else { travelling.from };
                if travelling.message == lost && end == victim {
                    system.travelling.remove(0);
                } else {
                    system.deliver(0);
                }
            }
            let below = |member: usize| up(&system, member).any(|it| it == victim);
            let left = |member: usize| usize::from(matches!(lost, Message::Exit(_)) && !below(member));
            let expected: Vec<usize> = (0..system.members.len()).map(left).collect();
            prop_assert_eq!(&system.left, &expected);
            system.ask(victim);
            system.settle();
            prop_assert_eq!(&system.left, &vec![1; system.members.len()]);
        }
    }
}
