//! What holds in any tree, for any order of events; numbers as in the list that the model follows.

use proptest::prelude::*;

use crate::member::{Message, State};
use crate::system::System;

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

/// Checks 1 to 8 and 15.
fn check(system: &System, before: &System) -> Result<(), TestCaseError> {
    let root = &system.members[0];
    // 1, 15: no member has left what a local root has not entered, so a slow process stalls all
    // others, and none is more than one ahead.
    let slowest = system.leaves().into_iter().map(|leaf| {
        let entered = system.members[leaf].state == State::Full;
        system.left[leaf] + usize::from(entered)
    });
    let slowest = slowest.min().unwrap_or_default();
    prop_assert!(
        system.left.iter().all(|left| *left <= slowest),
        "1, 15: {:?}",
        system.left
    );
    for (number, member) in system.members.iter().enumerate() {
        // 2: the states come in turn.
        let turn = [State::Idle, State::Filling, State::Full, State::Exiting]
            .into_iter()
            .cycle();
        prop_assert!(
            member
                .trace
                .iter()
                .copied()
                .eq(turn.take(member.trace.len())),
            "2"
        );
        // 3: the transaction is the number of operations left.
        prop_assert_eq!(
            usize::from(member.transaction),
            system.left[number] % 4,
            "3"
        );
        // 5: the root's transaction, or the one before.
        prop_assert!(
            [root.transaction, (root.transaction + 3) % 4].contains(&member.transaction),
            "5"
        );
        let Some(parent) = system.parents[number] else {
            continue;
        };
        let (ahead, behind) = (system.left[parent], system.left[number]);
        // 4: as the parent, or one behind.
        prop_assert!(ahead == behind || ahead == behind + 1, "4");
        // 6: who counts as arrived is full.
        if system.members[parent].arrived.contains(&number) {
            prop_assert_eq!(
                system.state(number),
                (State::Full, system.members[parent].transaction),
                "6"
            );
        }
        // 8: who is behind was told.
        if ahead > behind {
            let told = system.sent.iter().any(|sent| {
                sent.to == number
                    && sent.operation == behind
                    && matches!(sent.message, Message::Exit(_))
            });
            prop_assert!(told, "8");
        }
    }
    // 7: as the root leaves, all others are full.
    if system.left[0] > before.left[0] {
        let full = (1..before.members.len())
            .all(|member| before.state(member) == (State::Full, before.members[0].transaction));
        prop_assert!(full, "7");
    }
    Ok(())
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
            check(&system, &before)?;
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
        let depth = |mut member: usize| {
            let mut depth = 0;
            while let Some(parent) = system.parents[member] {
                (member, depth) = (parent, depth + 1);
            }
            depth
        };
        let height = (0..system.members.len()).map(depth).max().unwrap();
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
            let below = |mut member: usize| loop {
                if member == victim {
                    break true;
                }
                match system.parents[member] {
                    Some(parent) => member = parent,
                    None => break false,
                }
            };
            let left = |member: usize| usize::from(matches!(lost, Message::Exit(_)) && !below(member));
            let expected: Vec<usize> = (0..system.members.len()).map(left).collect();
            prop_assert_eq!(&system.left, &expected);
            system.ask(victim);
            system.settle();
            prop_assert_eq!(&system.left, &vec![1; system.members.len()]);
        }
    }
}
