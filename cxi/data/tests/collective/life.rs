//! Single members, message by message.

use std::num::NonZeroU32;
use std::time::Duration;

use cxi_data::collective::{
    Cause, Combine, Failure, Member, Message, Operation, Packet, Refused, State, Timing, Tree,
};

const NOW: Duration = Duration::ZERO;

fn tree(size: u32) -> Tree {
    Tree::new(NonZeroU32::new(size).unwrap(), NonZeroU32::new(2).unwrap())
}

fn member(rank: u32) -> Member {
    Member::new(1, tree(3), rank, Timing::default())
}

const fn packet(from: u32, transaction: u32, message: Message) -> Packet {
    Packet { group: 1, from, transaction, message }
}

const READY: Message = Message::Ready(Operation::Barrier, [0; 8]);
const RELEASE: Message = Message::Release([0; 8]);

/// Gives a member a message, and returns its answers.
fn hear(member: &mut Member, packet: Packet) -> Vec<(u32, Message)> {
    let mut outbox = vec![];
    member.receive(NOW, &packet, &mut |to, packet: Packet| outbox.push((to, packet.message)));
    outbox
}

fn enter(member: &mut Member, operation: Operation) -> Vec<(u32, Message)> {
    let mut outbox = vec![];
    let mut send = |to, packet: Packet| outbox.push((to, packet.message));
    member.enter(NOW, operation, [0; 8], &mut send).unwrap();
    outbox
}

#[test]
fn every_member_but_the_root_has_one_parent() {
    for (size, width) in [(1, 1), (2, 1), (7, 2), (100, 3), (1000, 16)] {
        let tree = Tree::new(NonZeroU32::new(size).unwrap(), NonZeroU32::new(width).unwrap());
        let mut parents = vec![0; size as usize];
        for rank in 0..size {
            for child in tree.children(rank) {
                assert_eq!(tree.parent(child), Some(rank));
                parents[child as usize] += 1;
            }
        }
        assert_eq!(tree.parent(0), None);
        assert!(parents[0] == 0 && parents[1..].iter().all(|parents| *parents == 1));
    }
}

#[test]
fn a_root_passes_through_all_states() {
    let mut root = member(0);
    assert_eq!(root.state(), State::Idle);
    hear(&mut root, packet(1, 0, READY));
    assert_eq!(root.state(), State::Filling);
    enter(&mut root, Operation::Barrier);
    assert_eq!(root.outcome(), None);
    let released = hear(&mut root, packet(2, 0, READY));
    assert_eq!(released, [(1, RELEASE), (2, RELEASE)]);
    assert_eq!((root.state(), root.outcome()), (State::Exiting, Some(Ok([0; 8]))));
    hear(&mut root, packet(1, 0, Message::Released));
    assert_eq!(root.state(), State::Exiting);
    // Who has entered the next operation has left this one.
    hear(&mut root, packet(2, 1, READY));
    assert_eq!((root.state(), root.completed()), (State::Filling, 1));
}

#[test]
fn a_message_of_another_group_or_no_neighbor_changes_nothing() {
    let mut root = member(0);
    assert_eq!(hear(&mut root, Packet { group: 2, ..packet(1, 0, READY) }), []);
    assert_eq!(hear(&mut root, packet(3, 0, READY)), []);
    assert_eq!(hear(&mut root, packet(0, 0, READY)), []);
    assert_eq!((root.state(), root.counts().foreign), (State::Idle, 3));
}

#[test]
fn a_message_of_the_last_operation_is_answered_again_and_an_older_one_dropped() {
    let mut leaf = member(1);
    for transaction in 0..3 {
        assert_eq!(enter(&mut leaf, Operation::Barrier), [(0, READY)]);
        let answer = hear(&mut leaf, packet(0, transaction, RELEASE));
        assert_eq!(answer, [(0, Message::Released)]);
        assert!(leaf.outcome().unwrap().is_ok());
    }
    assert_eq!(hear(&mut leaf, packet(0, 2, RELEASE)), [(0, Message::Released)]);
    assert_eq!(hear(&mut leaf, packet(0, 1, RELEASE)), []);
    assert_eq!((leaf.failure(), leaf.counts().repeated), (None, 2));
}

#[test]
fn a_message_from_further_than_possible_is_a_failure() {
    let mut root = member(0);
    let failure = Failure { rank: 1, cause: Cause::OutOfStep };
    let told = hear(&mut root, packet(1, 1, READY));
    assert_eq!(told, [(1, Message::Failed(failure)), (2, Message::Failed(failure))]);
    assert_eq!(root.failure(), Some(failure));
}

#[test]
fn a_process_that_joins_late_is_refused() {
    let mut late = member(1);
    enter(&mut late, Operation::Barrier);
    hear(&mut late, packet(0, 5, Message::Ask));
    let failure = Failure { rank: 1, cause: Cause::OutOfStep };
    assert_eq!(late.outcome(), Some(Err(failure)));
    let refused = late.enter(NOW, Operation::Barrier, [0; 8], &mut |_, _| {});
    assert_eq!(refused, Err(Refused::Failed(failure)));
}

#[test]
fn who_enters_another_operation_is_named() {
    let mut root = member(0);
    enter(&mut root, Operation::Barrier);
    hear(&mut root, packet(1, 0, READY));
    let other = Message::Ready(Operation::Allreduce(Combine::Sum), [0; 8]);
    hear(&mut root, packet(2, 0, other));
    hear(&mut root, packet(1, 0, READY));
    let failure = Failure { rank: 2, cause: Cause::OtherOperation };
    assert_eq!(root.outcome(), Some(Err(failure)));
}

#[test]
fn a_failure_is_passed_on_once_and_told_to_who_asks() {
    let failure = Failure { rank: 9, cause: Cause::Silent };
    let failed = Message::Failed(failure);
    let mut root = member(0);
    assert_eq!(hear(&mut root, packet(1, 0, failed)), [(2, failed)]);
    assert_eq!(hear(&mut root, packet(2, 0, failed)), []);
    assert_eq!(hear(&mut root, packet(2, 0, READY)), [(2, failed)]);
}

#[test]
fn an_operation_begins_when_the_last_one_has_ended() {
    let mut leaf = member(1);
    enter(&mut leaf, Operation::Barrier);
    let busy = |member: &mut Member| member.enter(NOW, Operation::Barrier, [0; 8], &mut |_, _| {});
    assert_eq!(busy(&mut leaf), Err(Refused::Busy));
    hear(&mut leaf, packet(0, 0, RELEASE));
    assert_eq!(busy(&mut leaf), Err(Refused::Busy));
    assert!(leaf.outcome().is_some());
    assert_eq!(busy(&mut leaf), Ok(()));
}
