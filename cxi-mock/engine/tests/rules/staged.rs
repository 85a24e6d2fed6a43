//! Bytes of a short message and the event about them.

use std::sync::{Arc, Mutex};

use cxi_engine::{ClientMemory, EventBuffer, MemoryFault};
use cxi_hw::ReturnCode;

use crate::rig::*;

const MESSAGE: u64 = 0x200_0000;
const EVENTS: u64 = 0x300_0000;

/// Memory that notes what is stored where; it ends at an address.
#[derive(Debug)]
struct Noted(Arc<Mutex<Vec<Vec<u64>>>>, u64);

impl ClientMemory for Noted {
    fn read(&self, _: u64, _: &mut [u8]) -> Result<(), MemoryFault> {
        Err(MemoryFault)
    }

    fn write(&self, parts: &[(u64, &[u8])]) -> Result<(), MemoryFault> {
        let all: Vec<_> = parts.iter().map(|(va, _)| *va).collect();
        if all.iter().any(|va| *va >= self.1) {
            return Err(MemoryFault);
        }
        self.0.lock().unwrap().push(all);
        Ok(())
    }
}

/// Stores of a message into memory of `to`, whose events go to `events`, and how it ended.
fn stores(to: &Arc<Noted>, events: &Arc<Noted>) -> (Vec<Vec<u64>>, ReturnCode) {
    let mut rig = Rig::matching();
    let buffer = EventBuffer { memory: Arc::clone(events) as _, va: EVENTS, len: 4096 };
    rig.engine.add_event_queue(TARGET_EQ, event_queue(RGID, buffer));
    let region = region(RGID, MESSAGE, 4096, Arc::clone(to) as _);
    rig.engine.add_region(2, region);
    rig.append(&entry(1, MESSAGE, 64));
    to.0.lock().unwrap().clear();
    rig.put(&put(8));
    let stores = std::mem::take(&mut *to.0.lock().unwrap());
    (stores, rig.event(EQ).code())
}

/// The LINK event of the entry took the first block.
const EVENT: [u64; 2] = [EVENTS + 128, EVENTS + 128 + 24];

#[test]
fn rule_9_7_bytes_come_before_their_event() {
    let apart = vec![vec![MESSAGE], EVENT.to_vec()];
    let log = Arc::default();
    let one = Arc::new(Noted(Arc::clone(&log), u64::MAX));
    assert_eq!(stores(&one, &one), (apart.clone(), ReturnCode::OK));
    let two = Arc::new(Noted(log, u64::MAX));
    assert_eq!(stores(&one, &two), (apart, ReturnCode::OK));
}

#[test]
fn rule_15_4_bytes_without_memory_are_an_error_with_an_event() {
    let log = Arc::default();
    let none = Arc::new(Noted(Arc::clone(&log), MESSAGE));
    let there = Arc::new(Noted(log, u64::MAX));
    let error = vec![EVENT.to_vec()];
    assert_eq!(stores(&none, &there), (error, ReturnCode::NO_TRANSLATION));
    // Of one process only the events have none.
    let part = Arc::new(Noted(Arc::default(), EVENTS));
    assert_eq!(stores(&part, &part), (vec![vec![MESSAGE]], ReturnCode::OK));
}
