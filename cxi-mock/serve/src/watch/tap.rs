//! The observer of a NIC.

use std::sync::Arc;
use std::time::Instant;

use cxi_mock::{ObservedOperation, Observer};

use super::Wanted;
use super::channel::Outbox;

/// Bytes of the longest event.
const LONGEST: usize = 64;

/// What a NIC has done.
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
    lost: u64,
}

impl Tap {
    pub(super) fn new(device: &str, wanted: Wanted, channel: Outbox) -> Self {
        Self {
            device: device.into(),
            wanted,
            channel,
            lost: 0,
        }
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
    fn operation(&mut self, operation: &ObservedOperation) {
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
