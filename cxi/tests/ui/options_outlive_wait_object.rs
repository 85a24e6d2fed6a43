//! Options that name a wait object cannot be used when the wait object is gone.

use cxi::Lni;
use cxi::lni::{EventQueue, EventQueueOptions};

fn events(lni: &Lni) -> cxi::Result<EventQueue> {
    let options;
    {
        let wait = lni.alloc_wait()?;
        options = EventQueueOptions::new(4096).event_wait(&wait);
    }
    lni.alloc_eq(&options)
}

fn main() {}
