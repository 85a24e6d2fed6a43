//! Command queues and counters: what has a doorbell.

use cxi_engine::{Counter, TargetQueue, TransmitQueue, UpdatePolicy, WriteBack};
use cxi_ioctl::abi::queue::CQ_UPDATE_ALWAYS;

use super::pages::{Commands, CounterPage, QueuePages};
use super::window::{Doorbell, Page};
use super::{DataPath, small};

/// A command queue that CQ_ALLOC has made.
#[derive(Debug)]
pub(crate) struct NewQueue {
    pub(crate) id: u32,
    pub(crate) rgid: u32,
    pub(crate) eq: u32,
    pub(crate) count: u32,
    pub(crate) policy: u32,
    /// LCID, whether triggered commands are allowed, and their pool.
    pub(crate) transmit: Option<(u32, bool, u8)>,
    pub(crate) commands: Commands,
    /// The page of the doorbell, if it is polled.
    pub(crate) launch: Option<Page>,
}

impl DataPath {
    /// CQ_ALLOC.
    pub(crate) fn add_queue(&self, new: NewQueue) {
        let polled = new.launch.is_some();
        let NewQueue {
            commands, launch, ..
        } = new;
        let pages = Box::new(QueuePages { commands, launch });
        let policy = if new.policy == CQ_UPDATE_ALWAYS {
            UpdatePolicy::Always
        } else {
            UpdatePolicy::WhenEmpty
        };
        let (number, rgid, eq, count) = (small(new.id), small(new.rgid), small(new.eq), new.count);
        let mut state = self.state();
        if let Some((lcid, triggered, tle_pool)) = new.transmit {
            let queue = TransmitQueue {
                rgid,
                // There are 16; more would find no profile.
                lcid: u8::try_from(lcid).unwrap_or(u8::MAX),
                triggered,
                eq,
                count,
                policy,
                pages,
                tle_pool,
            };
            state.engine.add_transmit_queue(number, queue);
        } else {
            let queue = TargetQueue {
                rgid,
                eq,
                count,
                policy,
                pages,
            };
            state.engine.add_target_queue(number, queue);
        }
        if polled {
            self.add_polled(&mut state, Doorbell::Queue(new.id));
        }
    }

    /// CQ_FREE, after one last look at the doorbell.
    pub(crate) fn remove_queue(&self, id: u32) {
        let mut state = self.state();
        state.engine.remove_queue(small(id));
        state.forget_doorbell(small(id));
        state.polled.remove(&Doorbell::Queue(id));
    }

    /// CT_ALLOC. Without a page, stores to it are trapped.
    pub(crate) fn add_counter(
        &self,
        id: u32,
        rgid: u32,
        write_back: Option<WriteBack>,
        page: Option<Page>,
    ) {
        let polled = page.is_some();
        let counter = Counter {
            rgid: small(rgid),
            write_back,
            page: page.map(|page| Box::new(CounterPage(page)) as _),
        };
        let mut state = self.state();
        state.engine.add_counter(small(id), counter);
        if polled {
            self.add_polled(&mut state, Doorbell::Counter(id));
        }
    }

    /// CT_FREE.
    pub(crate) fn remove_counter(&self, id: u32) {
        let mut state = self.state();
        state.engine.remove_counter(small(id));
        state.polled.remove(&Doorbell::Counter(id));
    }
}
