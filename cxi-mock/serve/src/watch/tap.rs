//! The observer of a NIC, and the channel to the thread that watches.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use cxi_mock::serve::{ObservedOperation, Observer};

use super::super::traffic::Traffic;
use super::Wanted;

/// Bytes of the longest event.
const LONGEST: usize = 64;

/// Report of a NIC's activity.
#[derive(Debug)]
pub(super) enum Seen {
    /// An operation has ended, on a device.
    Operation(Instant, Arc<str>, ObservedOperation),
    /// An event, on a device.
    Event(Instant, Arc<str>, SeenEvent),
    /// This many were lost.
    Lost(u64),
    /// Nothing more comes.
    End,
}

/// An event for a queue.
#[derive(Debug)]
pub(super) struct SeenEvent {
    pub(super) queue: u16,
    pub(super) bytes: [u8; LONGEST],
    pub(super) lost: bool,
}

/// Puts what an engine reports into a channel, and never waits.
#[derive(Debug)]
pub(super) struct Tap {
    device: Arc<str>,
    wanted: Wanted,
    channel: Outbox,
    traffic: Traffic,
    lost: u64,
}

impl Tap {
    pub(super) fn new(device: &str, wanted: Wanted, channel: Outbox, traffic: Traffic) -> Self {
        Self { device: device.into(), wanted, channel, traffic, lost: 0 }
    }

    fn send(&mut self, seen: Seen) {
        if self.lost > 0 && self.channel.try_send(Seen::Lost(self.lost)) {
            self.lost = 0;
        }
        if self.lost > 0 || !self.channel.try_send(seen) {
            self.lost += 1;
        }
    }
}

impl Observer for Tap {
    fn now(&mut self) -> Option<Instant> {
        Some(Instant::now())
    }

    fn operation(&mut self, operation: &ObservedOperation) {
        self.traffic.count(operation);
        if self.wanted.operations {
            let device = Arc::clone(&self.device);
            self.send(Seen::Operation(Instant::now(), device, *operation));
        }
    }

    fn event(&mut self, queue: u16, event: &[u8], lost: bool) {
        if self.wanted.events {
            let mut bytes = [0; LONGEST];
            let len = event.len().min(LONGEST);
            bytes[..len].copy_from_slice(&event[..len]);
            let device = Arc::clone(&self.device);
            let event = SeenEvent { queue, bytes, lost };
            self.send(Seen::Event(Instant::now(), device, event));
        }
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        if self.lost > 0 {
            let _ = self.channel.try_send(Seen::Lost(self.lost));
        }
    }
}

/// Number of reports that may wait for the thread. Any more are lost, and counted.
const CAPACITY: usize = 1 << 16;

/// Takes what engines report. Memory is allocated only when a report waits, because most nodes are
/// never watched.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    sender: Sender<Seen>,
    waiting: Arc<AtomicUsize>,
}

/// Reports that have arrived.
#[derive(Debug)]
pub(super) struct Inbox {
    receiver: Receiver<Seen>,
    waiting: Arc<AtomicUsize>,
}

/// Both ends.
pub(super) fn bounded() -> (Outbox, Inbox) {
    let (sender, receiver) = channel();
    let waiting = Arc::<AtomicUsize>::default();
    let outbox = Outbox { sender, waiting: Arc::clone(&waiting) };
    (outbox, Inbox { receiver, waiting })
}

impl Outbox {
    /// Returns whether there was room.
    pub(super) fn try_send(&self, seen: Seen) -> bool {
        let room = self.waiting.fetch_add(1, Ordering::Relaxed) < CAPACITY;
        if !room {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        room && self.sender.send(seen).is_ok()
    }

    /// Ends the channel: no more reports follow.
    pub(super) fn end(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _ = self.sender.send(Seen::End);
    }
}

impl Iterator for Inbox {
    type Item = Seen;

    fn next(&mut self) -> Option<Seen> {
        let seen = self.receiver.recv().ok()?;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_until_something_is_taken() {
        let (outbox, mut inbox) = bounded();
        let sent = (0..=CAPACITY).filter(|_| outbox.try_send(Seen::Lost(1)));
        assert_eq!(sent.count(), CAPACITY);
        assert!(matches!(inbox.next(), Some(Seen::Lost(1))));
        assert!(outbox.try_send(Seen::Lost(2)));
        assert!(!outbox.try_send(Seen::Lost(3)));
        outbox.end();
        drop(outbox);
        assert!(matches!(inbox.last(), Some(Seen::End)));
    }
}
