//! Command queues and counters: the objects with a doorbell.

use cxi_engine::{CommandQueue, Counter, WriteBack};

use super::pages::CounterPage;
use super::window::{Doorbell, Page};
use super::{DataPath, small};

impl DataPath {
    /// CQ_ALLOC.
    pub(crate) fn add_queue(&self, id: u32, queue: CommandQueue, polled: bool) {
        let mut state = self.state();
        state.engine.add_queue(small(id), queue);
        if polled {
            self.add_polled(&mut state, Doorbell::Queue(id));
        }
    }

    /// CQ_FREE, after polling the doorbell one last time.
    pub(crate) fn remove_queue(&self, id: u32) {
        let mut state = self.state();
        state.engine.remove_queue(small(id));
        state.forget_doorbell(small(id));
        state.polled.remove(&Doorbell::Queue(id));
    }

    /// CT_ALLOC. Without a page, stores to it are trapped; a page may have to be polled.
    pub(crate) fn add_counter(
        &self,
        id: u32,
        rgid: u32,
        write_back: Option<WriteBack>,
        (page, polled): (Option<Page>, bool),
    ) {
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
