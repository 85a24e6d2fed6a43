//! Event queues and counters.

use std::sync::Arc;

use cxi_engine::{
    ClientMemory, Counter, EventBuffer, EventFlags, EventQueue, Thresholds, WriteBack,
};
use cxi_ioctl::abi::queue::EqAttr;

use super::pages::{CounterPage, EventPage};
use super::window::{Doorbell, Page};
use super::{DataPath, small};

/// An event queue that EQ_ALLOC has made.
#[derive(Debug)]
pub(crate) struct NewEvents<'a> {
    pub(crate) id: u32,
    pub(crate) rgid: u32,
    pub(crate) attr: &'a EqAttr,
    /// Wait objects of events and of the status, as [`DataPath::take_wakes`] gives them.
    pub(crate) waits: [Option<u64>; 2],
    pub(crate) memory: Arc<dyn ClientMemory>,
    pub(crate) page: Page,
}

fn write_back(memory: &Arc<dyn ClientMemory>, va: u64) -> Option<WriteBack> {
    (va != 0).then(|| WriteBack {
        memory: Arc::clone(memory),
        va,
    })
}

impl DataPath {
    /// EQ_ALLOC.
    pub(crate) fn add_event_queue(&self, new: NewEvents<'_>) {
        let attr = new.attr;
        let queue = EventQueue {
            rgid: small(new.rgid),
            buffer: EventBuffer {
                memory: new.memory,
                va: attr.queue,
                len: attr.queue_len,
            },
            flags: EventFlags::from_bits_truncate(attr.flags),
            thresholds: Thresholds {
                base: attr.status_thresh_base,
                delta: attr.status_thresh_delta,
                count: attr.status_thresh_count,
            },
            reserved: attr.reserved_slots,
            event_wait: new.waits[0],
            status_wait: new.waits[1],
            page: Box::new(EventPage(new.page)),
        };
        self.state().engine.add_event_queue(small(new.id), queue);
    }

    /// EQ_FREE.
    pub(crate) fn remove_event_queue(&self, id: u32) {
        self.state().engine.remove_event_queue(small(id));
    }

    /// EQ_RESIZE. What was rung before comes into the old buffer.
    pub(crate) fn resize_event_queue(
        &self,
        id: u32,
        memory: &Arc<dyn ClientMemory>,
        va: u64,
        len: u64,
    ) {
        let buffer = EventBuffer {
            memory: Arc::clone(memory),
            va,
            len,
        };
        self.state().engine.resize_event_queue(small(id), buffer);
    }

    /// EQ_ADJUST_RESERVED_FC.
    pub(crate) fn set_reserved_slots(&self, id: u32, reserved: u64) {
        let reserved = u32::try_from(reserved).unwrap_or(u32::MAX);
        self.state().engine.set_reserved_slots(small(id), reserved);
    }

    /// CT_ALLOC; a write-back at address 0 is none. Without a page, stores to it are trapped.
    pub(crate) fn add_counter(
        &self,
        (id, rgid): (u32, u32),
        memory: &Arc<dyn ClientMemory>,
        va: u64,
        page: Option<Page>,
    ) {
        let polled = page.is_some();
        let counter = Counter {
            rgid: small(rgid),
            write_back: write_back(memory, va),
            page: page.map(|page| Box::new(CounterPage(page)) as _),
        };
        let mut state = self.state();
        state.engine.add_counter(small(id), counter);
        if polled {
            self.add_polled(&mut state, Doorbell::Counter(id));
        }
    }

    /// CT_WB_UPDATE.
    pub(crate) fn set_write_back(&self, id: u32, memory: &Arc<dyn ClientMemory>, va: u64) {
        let to = write_back(memory, va);
        self.state().engine.set_write_back(small(id), to);
    }

    /// CT_FREE.
    pub(crate) fn remove_counter(&self, id: u32) {
        let mut state = self.state();
        state.engine.remove_counter(small(id));
        state.polled.remove(&Doorbell::Counter(id));
    }
}
