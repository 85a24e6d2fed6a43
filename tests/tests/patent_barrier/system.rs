//! A tree of members, and what travels between them.

use crate::member::{Member, Message, Sent, State};

/// A message on its way, with what no member sees: the operation that it is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Travelling {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) message: Message,
    pub(crate) operation: usize,
}

/// A tree with member 0 as its root; leaves are local roots with processes.
#[derive(Clone, Debug)]
pub(crate) struct System {
    pub(crate) members: Vec<Member>,
    pub(crate) parents: Vec<Option<usize>>,
    pub(crate) travelling: Vec<Travelling>,
    /// Everything that was ever sent.
    pub(crate) sent: Vec<Travelling>,
    /// Operations that each member has left.
    pub(crate) left: Vec<usize>,
    processes: usize,
    /// What is late by so many operations is dropped: messages do not live for ever.
    pub(crate) life: usize,
}

impl System {
    /// A tree by the parents of members 1, 2 and so on; each leaf has so many processes.
    pub(crate) fn new(parents: &[usize], processes: usize, status_counts: bool) -> Self {
        let count = parents.len() + 1;
        let parents: Vec<Option<usize>> = [None]
            .into_iter()
            .chain(parents.iter().copied().map(Some))
            .collect();
        let member = |number: usize| {
            let children = (0..count).filter(|child| parents[*child] == Some(number));
            let mut children: Vec<usize> = children.collect();
            if children.is_empty() {
                children = (0..processes).collect();
            }
            Member::new(children, number == 0, status_counts)
        };
        Self {
            members: (0..count).map(member).collect(),
            travelling: Vec::new(),
            sent: Vec::new(),
            left: vec![0; count],
            parents,
            processes,
            life: 2,
        }
    }

    pub(crate) fn is_leaf(&self, member: usize) -> bool {
        self.parents.iter().all(|parent| *parent != Some(member))
    }

    pub(crate) fn leaves(&self) -> Vec<usize> {
        (0..self.members.len())
            .filter(|member| self.is_leaf(*member))
            .collect()
    }

    pub(crate) fn state(&self, member: usize) -> (State, u8) {
        (self.members[member].state, self.members[member].transaction)
    }

    /// Whether a member has failed.
    pub(crate) fn failed(&self) -> bool {
        self.members.iter().any(|member| member.failed)
    }

    /// A process enters, unless it waits already.
    pub(crate) fn enter(&mut self, leaf: usize, process: usize) {
        let waits = self.members[leaf].arrived.contains(&process);
        if !waits && self.members[leaf].state != State::Full {
            self.act(leaf, |member| member.arrive(process));
        }
    }

    /// All processes of a leaf enter.
    pub(crate) fn enter_all(&mut self, leaf: usize) {
        (0..self.processes).for_each(|process| self.enter(leaf, process));
    }

    /// A member's timer.
    pub(crate) fn ask(&mut self, member: usize) {
        self.act(member, |member| member.ask());
    }

    /// Delivers a message that travels.
    pub(crate) fn deliver(&mut self, which: usize) {
        let travelling = self.travelling.remove(which);
        if self.left[travelling.to] >= travelling.operation + self.life {
            return;
        }
        self.act(travelling.to, |member| match travelling.message {
            Message::Exit(it) | Message::Done(it) => member.hear_parent(it),
            Message::Full(it) => member.hear_child(travelling.from, it, true),
            Message::Status(it) => member.hear_child(travelling.from, it, false),
        });
    }

    /// Delivers all that travels, and what that brings about.
    pub(crate) fn settle(&mut self) {
        while !self.travelling.is_empty() {
            self.deliver(0);
        }
    }

    /// The messages that travel to a member.
    pub(crate) fn lose(&mut self, to: usize, message: Message) {
        let before = self.travelling.len();
        self.travelling
            .retain(|travelling| travelling.to != to || travelling.message != message);
        assert_eq!(self.travelling.len() + 1, before, "there is one to lose");
    }

    fn act(&mut self, number: usize, act: impl FnOnce(&mut Member) -> Sent) {
        let member = &mut self.members[number];
        let (transaction, operation) = (member.transaction, self.left[number]);
        let sent = act(member);
        self.left[number] += usize::from(member.transaction != transaction);
        for (child, message) in sent {
            // Processes are told at once.
            let child = child.filter(|_| !self.is_leaf(number));
            let parent = self.parents[number];
            let upward = matches!(message, Message::Full(_) | Message::Status(_));
            let Some(to) = (if upward { parent } else { child }) else {
                continue;
            };
            // An answer to a child that is behind is of the child's operation.
            let late = usize::from(matches!(message, Message::Done(_)));
            let travelling = Travelling {
                from: number,
                to,
                message,
                operation: operation.saturating_sub(late),
            };
            self.travelling.push(travelling);
            self.sent.push(travelling);
        }
    }
}
