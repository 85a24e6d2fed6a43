//! From engines to the thread that watches.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use super::tap::Seen;

/// What may wait for the thread. Everything beyond that is lost, and counted.
const CAPACITY: usize = 1 << 16;

/// Takes what engines report. Memory is taken when something waits, as most nodes are never watched.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    sender: Sender<Seen>,
    waiting: Arc<AtomicUsize>,
}

/// What has been reported.
#[derive(Debug)]
pub(super) struct Inbox {
    receiver: Receiver<Seen>,
    waiting: Arc<AtomicUsize>,
}

/// Both ends.
pub(super) fn bounded() -> (Outbox, Inbox) {
    let (sender, receiver) = channel();
    let waiting = Arc::<AtomicUsize>::default();
    let outbox = Outbox {
        sender,
        waiting: Arc::clone(&waiting),
    };
    (outbox, Inbox { receiver, waiting })
}

impl Outbox {
    /// Says whether there was room.
    pub(super) fn try_send(&self, seen: Seen) -> bool {
        let room = self.waiting.fetch_add(1, Ordering::Relaxed) < CAPACITY;
        if !room {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        room && self.sender.send(seen).is_ok()
    }

    /// Nothing more comes.
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
