//! Watching the data path: how operations ended and which events were written, for the capture
//! file, the trace and `ctl packets`.
//!
//! An engine waits for its observer, so the observer only puts everything into a channel. A thread
//! takes it from there.

mod event;
mod tap;

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use cxi_mock::serve::Runner;
use parking_lot::{Condvar, Mutex};
use serde_json::{Value, json};

use super::capture::Capture;
use super::error::{Doing, ServeError};
use super::packet::Packet;
use super::server::Server;
use super::trace::Timed;
use super::traffic::Traffic;
use tap::{Inbox, Outbox, Seen, Tap, bounded};

/// Packets that are kept for clients that watch.
const KEPT: usize = 4096;
/// The most packets in one answer.
const ANSWERED: usize = 256;
/// Time that an answer waits for the next packet.
const PATIENCE: Duration = Duration::from_millis(500);

/// Wishes of a watcher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wanted {
    operations: bool,
    events: bool,
}

/// Watches all NICs of a node, as far as anything is wanted.
#[derive(Debug)]
pub(crate) struct Watch {
    shared: Arc<Shared>,
    channel: Outbox,
    traffic: Traffic,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    server: Arc<Server>,
    start: Instant,
    capture: Option<Capture>,
    recent: Mutex<Recent>,
    news: Condvar,
}

/// The last packets, while a client watches.
#[derive(Debug, Default)]
struct Recent {
    watchers: usize,
    /// Number of the next packet.
    next: u64,
    kept: VecDeque<Value>,
}

impl Watch {
    /// Watches for a capture file, and for the trace of the server if it has one.
    pub(crate) fn start(
        server: Arc<Server>,
        capture: Option<Capture>,
        traffic: Traffic,
    ) -> Result<Arc<Self>, ServeError> {
        if let Some(capture) = &capture {
            for function in server.physical() {
                capture.nic(function.nic.hardware().nid(), &function.device_name());
            }
        }
        let (channel, seen) = bounded();
        let shared = Arc::new(Shared {
            server,
            start: Instant::now(),
            capture,
            recent: Mutex::default(),
            news: Condvar::new(),
        });
        let works = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || works.run(seen))
            .doing(|| "start to watch".to_owned())?;
        let watch = Arc::new(Self { shared, channel, traffic, thread: Mutex::new(Some(thread)) });
        watch.set_up(Some(watch.shared.wanted(&watch.shared.recent.lock())));
        Ok(watch)
    }

    /// Installs observers in all NICs, or removes them. Traffic is counted in either case.
    fn set_up(&self, wanted: Option<Wanted>) {
        for function in self.shared.server.physical() {
            let tap = wanted.map(|wanted| {
                let (device, traffic) = (function.device_name(), self.traffic.clone());
                Box::new(Tap::new(&device, wanted, self.channel.clone(), traffic)) as _
            });
            Runner::of(&function.nic).set_observer(tap);
        }
    }

    /// Starts watching for a client.
    pub(crate) fn watcher(self: &Arc<Self>) -> Watcher {
        let mut recent = self.shared.recent.lock();
        recent.watchers += 1;
        self.set_up(Some(self.shared.wanted(&recent)));
        Watcher { next: recent.next, watch: Arc::clone(self) }
    }

    /// Waits until everything that was seen is written.
    pub(crate) fn finish(&self) {
        self.set_up(None);
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            self.channel.end();
            let _ = thread.join();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Shared {
    fn wanted(&self, recent: &Recent) -> Wanted {
        Wanted {
            operations: self.capture.is_some() || recent.watchers > 0,
            events: self.server.trace.is_some(),
        }
    }

    fn run(&self, seen: Inbox) {
        for seen in seen {
            match seen {
                Seen::Operation(at, device, operation) => {
                    let packet = Packet::new(&device, &operation, at, &self.server.endpoints);
                    self.keep(at, &packet);
                }
                Seen::Event(at, device, event) => {
                    if let Some(trace) = &self.server.trace {
                        trace.note(at, &event::line(&device, &event));
                    }
                }
                Seen::Lost(count) => {
                    let now = Instant::now();
                    if let Some(capture) = &self.capture {
                        capture.not_seen(now, count);
                    }
                    if let Some(trace) = &self.server.trace {
                        trace.not_seen(now, count);
                    }
                }
                Seen::End => return,
            }
        }
    }

    fn keep(&self, at: Instant, packet: &Packet) {
        if let Some(capture) = &self.capture {
            capture.operation(at, packet);
        }
        let mut recent = self.recent.lock();
        if recent.watchers == 0 {
            return;
        }
        let timed = Timed::new(self.start, at, packet);
        if let Ok(packet) = serde_json::to_value(timed) {
            if recent.kept.len() == KEPT {
                recent.kept.pop_front();
            }
            recent.kept.push_back(packet);
            recent.next += 1;
            self.news.notify_all();
        }
    }
}

/// A client that watches packets. When the last one is gone, none are kept.
#[derive(Debug)]
pub(crate) struct Watcher {
    watch: Arc<Watch>,
    /// The first packet that was not shown.
    next: u64,
}

impl Watcher {
    /// The packets since the last call, and how many earlier ones were forgotten before this client
    /// saw them. Without packets, waits for some time.
    pub(crate) fn news(&mut self) -> Value {
        let shared = &self.watch.shared;
        let mut recent = shared.recent.lock();
        let none = |recent: &mut Recent| recent.next == self.next;
        shared.news.wait_while_for(&mut recent, none, PATIENCE);
        let first = recent.next - recent.kept.len() as u64;
        let from = self.next.max(first);
        let skip = usize::try_from(from - first).unwrap_or(usize::MAX);
        let packets: Vec<_> = recent.kept.iter().skip(skip).take(ANSWERED).cloned().collect();
        let missed = from - self.next;
        self.next = from + packets.len() as u64;
        json!({ "missed": missed, "packets": packets })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let shared = &self.watch.shared;
        let mut recent = shared.recent.lock();
        recent.watchers -= 1;
        if recent.watchers == 0 {
            recent.kept.clear();
        }
        self.watch.set_up(Some(shared.wanted(&recent)));
    }
}
