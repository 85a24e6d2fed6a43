//! Program's side of its queues.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use cxi_engine::Engine;
use cxi_hw::{
    CommandByte, CqStatus, EqState, EventSize, EventType, InitiatorShort, ReturnCode, StateChange,
    TargetLong, TargetShort, command_ring,
};

use super::memory::{Memory, Ring, Word};

/// Kind and code of an event.
pub type What = (EventType, ReturnCode);

pub const ACK: What = (EventType::ACK, ReturnCode::OK);
pub const REPLY: What = (EventType::REPLY, ReturnCode::OK);
pub const SEND: What = (EventType::SEND, ReturnCode::OK);
pub const PUT: What = (EventType::PUT, ReturnCode::OK);
pub const GET: What = (EventType::GET, ReturnCode::OK);
pub const PUT_OVERFLOW: What = (EventType::PUT_OVERFLOW, ReturnCode::OK);
pub const RENDEZVOUS: What = (EventType::RENDEZVOUS, ReturnCode::OK);
pub const LINK: What = (EventType::LINK, ReturnCode::OK);
pub const UNLINK: What = (EventType::UNLINK, ReturnCode::OK);
pub const SEARCH: What = (EventType::SEARCH, ReturnCode::OK);

pub const fn ack(code: ReturnCode) -> What {
    (EventType::ACK, code)
}

pub const fn link(code: ReturnCode) -> What {
    (EventType::LINK, code)
}

/// A command that stopped its queue.
pub const fn failed(code: ReturnCode) -> What {
    (EventType::COMMAND_FAILURE, code)
}

/// An event as it was in the ring.
#[derive(Clone, PartialEq, Eq)]
pub struct Event(pub Vec<u8>);

impl Event {
    pub fn kind(&self) -> EventType {
        EventType((self.0[14] >> 2) & 31)
    }

    pub fn code(&self) -> ReturnCode {
        ReturnCode(self.0[self.0.len() - 1] & 63)
    }

    pub fn what(&self) -> What {
        (self.kind(), self.code())
    }

    pub fn initiator(&self) -> InitiatorShort {
        InitiatorShort::decode(self.0.as_slice().try_into().unwrap())
    }

    pub fn long(&self) -> TargetLong {
        TargetLong::decode(self.0.as_slice().try_into().unwrap())
    }

    pub fn short(&self) -> TargetShort {
        TargetShort::decode(self.0.as_slice().try_into().unwrap())
    }

    pub fn state(&self) -> StateChange {
        StateChange::decode(self.long().initiator.0)
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {:?} ({})", self.kind(), self.code(), self.0.len())
    }
}

/// A program's side of a command queue.
pub struct Commands {
    pub ring: Ring,
    pub slot: u32,
    count: u32,
}

impl Commands {
    pub fn new(count: u32) -> Self {
        let ring = Ring(Arc::new(Mutex::new(vec![0; count as usize * 64])));
        let status = CqStatus { rd_ptr: 4, return_code: ReturnCode::OK, ..CqStatus::default() };
        ring.0.lock().unwrap()[..8].copy_from_slice(&status.encode());
        Self { ring, slot: command_ring::FIRST_SLOT, count }
    }

    /// Appends a command, with no-ops before it up to a boundary of its size.
    pub fn push(&mut self, command: &[u8]) {
        let bytes = match command[0] {
            0 => 32,
            first => CommandByte(first).bytes(),
        };
        for _ in 0..command_ring::padding(self.slot, u32::try_from(bytes / 32).unwrap()) {
            self.store(&[0; 32], 32);
        }
        self.store(command, bytes);
    }

    fn store(&mut self, command: &[u8], bytes: usize) {
        let at = self.slot as usize * 32;
        let mut ring = self.ring.0.lock().unwrap();
        ring[at..at + bytes].fill(0);
        ring[at..at + command.len()].copy_from_slice(command);
        self.slot += u32::try_from(bytes / 32).unwrap();
        if self.slot >= self.count * 2 {
            self.slot = command_ring::FIRST_SLOT;
        }
    }

    pub fn write_pointer(&mut self) -> u64 {
        if !self.slot.is_multiple_of(2) {
            self.store(&[0; 32], 32);
        }
        u64::from(self.slot / 2)
    }

    pub fn status(&self) -> CqStatus {
        CqStatus::decode(self.ring.0.lock().unwrap()[..8].try_into().unwrap())
    }
}

/// A program's side of an event queue.
pub struct Reader {
    pub memory: Arc<Memory>,
    pub va: u64,
    pub blocks: u64,
    pub read: u64,
    pub word: Word,
    pub state: EqState,
}

impl Reader {
    /// The event at the read pointer, without taking it.
    pub fn peek(&self) -> Option<Event> {
        let block = self.memory.bytes(self.va + self.read * 64, 64);
        let size = EventSize(block[14] & 3).bytes();
        (size > 0).then(|| Event(block[..size].to_vec()))
    }

    /// Takes an event, clears its block and acknowledges it.
    pub fn next(&mut self, engine: &mut Engine, number: u16) -> Option<Event> {
        let event = self.peek()?;
        self.memory.put(self.va + self.read * 64, &[0; 64]);
        self.read += 1;
        if self.read >= self.blocks {
            self.read = 1;
        }
        self.state.rd_ptr = u32::try_from(self.read).unwrap();
        self.store(engine, number);
        Some(event)
    }

    pub fn store(&self, engine: &mut Engine, number: u16) {
        let word = u64::from_le_bytes(self.state.encode());
        self.word.0.store(word, Ordering::Release);
        engine.ring_event_queue(number);
    }
}
