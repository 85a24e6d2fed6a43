//! The way from one member to others over the data path.

use std::collections::{BTreeSet, VecDeque};
use std::mem::discriminant;

use super::{Endpoint, Error, Packet};
use crate::{Address, Error as LinkError, Failure as Undelivered, TransmitQueue};

/// The way to the other members.
#[derive(Debug)]
pub(super) struct Wire {
    addresses: Box<[Address]>,
    /// To those that are opened. There is none to others, to whom nothing is sent.
    ways: Box<[Option<Way>]>,
    pub(super) endpoint: Endpoint,
    /// An error of the NIC, after which nothing works.
    broken: Option<LinkError>,
}

/// The way to one member, with a queue of its own: a NIC that cannot deliver a message tries for long,
/// and what follows in the queue may wait. For the same reason, one message is under way at a time.
#[derive(Debug)]
struct Way {
    queue: TransmitQueue,
    is_busy: bool,
    waiting: Waiting,
    /// The reason for which the last message did not arrive.
    undelivered: Option<Undelivered>,
}

/// Messages that wait for the one that is under way: of each kind the last. An earlier one is lost by that,
/// and repeated if it still matters.
#[derive(Debug, Default)]
struct Waiting(VecDeque<Packet>);

impl Waiting {
    fn push(&mut self, packet: Packet) {
        let kind = discriminant(&packet.message);
        self.0.retain(|one| discriminant(&one.message) != kind);
        self.0.push_back(packet);
    }

    fn pop(&mut self) -> Option<Packet> {
        self.0.pop_front()
    }
}

impl Wire {
    /// The way to these members, of which the endpoint is one. Also returns its rank.
    pub(super) fn new(endpoint: Endpoint, members: &[Address]) -> Result<(Self, u32), Error> {
        let own = endpoint.address();
        let mut seen = BTreeSet::new();
        if let Some(twice) = members.iter().find(|address| !seen.insert(**address)) {
            return Err(Error::Twice(*twice));
        }
        let rank = members.iter().zip(0..).find(|(address, _)| **address == own);
        let Some((_, rank)) = rank else { return Err(Error::NoMember(own)) };
        let ways = members.iter().map(|_| None).collect();
        Ok((Self { addresses: members.into(), ways, endpoint, broken: None }, rank))
    }

    /// Opens the way to a member, unless it is open.
    pub(super) fn open(&mut self, to: u32) -> Result<(), LinkError> {
        if let Some(way @ None) = self.ways.get_mut(to as usize) {
            let queue = self.endpoint.queue()?;
            let waiting = Waiting::default();
            *way = Some(Way { queue, is_busy: false, waiting, undelivered: None });
        }
        Ok(())
    }

    /// Returns whether a packet is of whom it says that it is.
    pub(super) fn is_from(&self, packet: &Packet, from: Address) -> bool {
        self.addresses.get(packet.from as usize) == Some(&from)
    }

    /// The reason for which the last message to a member did not arrive.
    pub(super) fn undelivered(&self, rank: u32) -> Option<Undelivered> {
        self.ways.get(rank as usize)?.as_ref()?.undelivered
    }

    /// Returns whether all messages to a member have arrived.
    pub(super) fn has_arrived(&self, rank: u32) -> bool {
        let way = self.ways.get(rank as usize).and_then(Option::as_ref);
        way.is_some_and(|way| !way.is_busy && way.undelivered.is_none())
    }

    /// The first error of the NIC since the last call.
    pub(super) fn check(&mut self) -> Result<(), LinkError> {
        self.broken.take().map_or(Ok(()), Err)
    }

    pub(super) fn send(&mut self, to: u32, packet: Packet) {
        let at = to as usize;
        let way = self.ways.get_mut(at).and_then(Option::as_mut);
        let (Some(address), Some(way)) = (self.addresses.get(at), way) else { return };
        if way.is_busy {
            way.waiting.push(packet);
            return;
        }
        match self.endpoint.send(&mut way.queue, *address, to, &packet) {
            Ok(posted) => way.is_busy = posted,
            Err(error) => {
                self.broken.get_or_insert(error);
            }
        }
    }

    pub(super) fn sent(&mut self, to: u64, result: Result<(), Undelivered>) {
        let Ok(to) = u32::try_from(to) else { return };
        let Some(Some(way)) = self.ways.get_mut(to as usize) else { return };
        way.is_busy = false;
        way.undelivered = result.err();
        if let Some(packet) = way.waiting.pop() {
            self.send(to, packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::Message;

    #[test]
    fn of_each_kind_the_last_message_waits() {
        let packet = |transaction, message| Packet { group: 1, from: 2, transaction, message };
        let mut waiting = Waiting::default();
        for (transaction, message) in
            [(7, Message::Pong), (1, Message::Ping), (1, Message::Ping), (8, Message::Pong)]
        {
            waiting.push(packet(transaction, message));
        }
        assert_eq!(waiting.pop(), Some(packet(1, Message::Ping)));
        assert_eq!(waiting.pop(), Some(packet(8, Message::Pong)));
        assert_eq!(waiting.pop(), None);
    }
}
