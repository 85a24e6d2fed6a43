//! A member of the tree: the table of transitions.

use std::collections::BTreeSet;

/// Where a member is in its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Idle,
    Filling,
    Full,
    Exiting,
}

/// What travels along an edge, with a transaction id of two bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// From a child: all below it have entered.
    Full(u8),
    /// From a child that waits: where are we?
    Status(u8),
    /// From the parent: all have entered.
    Exit(u8),
    /// From the parent to a child that is behind: that one is over.
    Done(u8),
}

/// What a member sends, and to which child; to its parent if to none.
pub(crate) type Sent = Vec<(Option<usize>, Message)>;

/// A member. Children of a local root are its processes.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) state: State,
    pub(crate) transaction: u8,
    pub(crate) arrived: BTreeSet<usize>,
    pub(crate) failed: bool,
    children: Vec<usize>,
    is_root: bool,
    /// `Status` of the present transaction counts as `Full`, which this model adds to the text.
    status_counts: bool,
}

/// How far the second of two transactions is ahead of the first, of four.
fn ahead(of: u8, other: u8) -> u8 {
    other.wrapping_sub(of) % 4
}

impl Member {
    pub(crate) fn new(children: Vec<usize>, is_root: bool, status_counts: bool) -> Self {
        Self {
            state: State::Idle,
            transaction: 0,
            arrived: BTreeSet::new(),
            failed: false,
            children,
            is_root,
            status_counts,
        }
    }

    /// A child's message of a transaction: it is full, or it waits.
    pub(crate) fn hear_child(&mut self, child: usize, transaction: u8, full: bool) -> Sent {
        match ahead(self.transaction, transaction) {
            0 if full || self.status_counts => self.arrive(child),
            0 => Vec::new(),
            // The child has missed that the last one is over.
            3 => vec![(Some(child), Message::Done(transaction))],
            _ => self.fail(),
        }
    }

    /// The parent's message: a transaction is over.
    pub(crate) fn hear_parent(&mut self, transaction: u8) -> Sent {
        match (ahead(self.transaction, transaction), self.state) {
            (0, State::Full) => self.exit(),
            // Late, or twice.
            (3, _) => Vec::new(),
            _ => self.fail(),
        }
    }

    /// The timer of a member that waits.
    pub(crate) fn ask(&self) -> Sent {
        if self.state == State::Full && !self.is_root && !self.failed {
            vec![(None, Message::Status(self.transaction))]
        } else {
            Vec::new()
        }
    }

    /// A child is full, or a process of a local root enters.
    pub(crate) fn arrive(&mut self, child: usize) -> Sent {
        if !self.arrived.insert(child) {
            return Vec::new();
        }
        if self.state == State::Idle {
            self.go(State::Filling);
        }
        if self.arrived.len() < self.children.len() {
            return Vec::new();
        }
        self.go(State::Full);
        if self.is_root {
            self.exit()
        } else {
            vec![(None, Message::Full(self.transaction))]
        }
    }

    fn exit(&mut self) -> Sent {
        self.go(State::Exiting);
        let over = self.transaction;
        self.transaction = (over + 1) % 4;
        self.arrived.clear();
        self.go(State::Idle);
        let down = |child: &usize| (Some(*child), Message::Exit(over));
        self.children.iter().map(down).collect()
    }

    /// Once failed, always failed.
    fn fail(&mut self) -> Sent {
        self.failed = true;
        Vec::new()
    }

    fn go(&mut self, state: State) {
        let turn = (self.state as u8 + 1) % 4;
        assert_eq!(state as u8, turn, "2: the states come in turn");
        self.state = state;
    }
}
