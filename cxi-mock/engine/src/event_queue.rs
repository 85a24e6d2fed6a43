//! Event queues: rings of 64-byte blocks in a client's memory, with one event in each block.

use std::sync::Arc;

use cxi_hw::event_ring::{BLOCK_BYTES, FIRST_BLOCK, RESERVED_BLOCKS};
use cxi_hw::{EqState, EqStatus, EqSwitch, EventSize, EventType, ReturnCode};

use crate::dma::{Dmas, Target};
use crate::{ClientMemory, EventBuffer, EventFlags, EventQueue};

// Rule 3.2: Each event has a 64-byte block to itself; NULL events fill the rest of the block.
/// A block of NULL events of 16, 16 and 32 bytes. The part of it behind an event fills the event's
/// block.
const NULLS: [u8; 64] = {
    let mut block = [0; 64];
    block[16 + 14] = EventSize::BYTES_16.0 | EventType::NULL_EVENT.0 << 2;
    block[16 + 15] = ReturnCode::OK.0;
    block[32 + 14] = EventSize::BYTES_32.0 | EventType::NULL_EVENT.0 << 2;
    block[32 + 31] = ReturnCode::OK.0;
    block
};

/// An event queue and where it is.
#[derive(Debug)]
pub(crate) struct Events {
    config: EventQueue,
    alive: Arc<()>,
    blocks: u32,
    write: u32,
    /// Events go to the second buffer, or the fourth and so on.
    buffer_b: bool,
    /// Buffer of events after the EQ_SWITCH that did not fit yet.
    resize: Option<EventBuffer>,
    /// Events were lost, and the client has not acknowledged that.
    dropping: bool,
    drop_sequence: bool,
    /// Thresholds that the fill level has reached: the first is the highest.
    reached: u32,
    /// Time of the status block: how many updates there have been.
    updates: u32,
    /// The register word at the last poll.
    polled: u64,
}

impl Events {
    pub(crate) fn new(config: EventQueue) -> Self {
        Self {
            blocks: blocks(&config.buffer),
            config,
            alive: Arc::default(),
            write: FIRST_BLOCK,
            buffer_b: false,
            resize: None,
            dropping: false,
            drop_sequence: false,
            reached: 0,
            updates: 0,
            polled: 0,
        }
    }

    /// Returns the memory of the events.
    pub(crate) fn memory(&self) -> &Arc<dyn ClientMemory> {
        &self.config.buffer.memory
    }

    fn target(&self) -> Target<'_> {
        Target { memory: self.memory(), rgid: self.config.rgid, alive: &self.alive }
    }

    pub(crate) fn is_owned_by(&self, rgid: u16) -> bool {
        self.config.rgid == rgid
    }

    pub(crate) fn has(&self, flag: EventFlags) -> bool {
        self.config.flags.contains(flag)
    }

    pub(crate) fn set_reserved(&mut self, reserved: u32) {
        self.config.reserved = reserved;
    }

    /// Checks whether the client has stored the register word.
    pub(crate) fn polled(&mut self, dmas: &mut Dmas) {
        let state = self.config.page.state();
        if std::mem::replace(&mut self.polled, state) != state {
            self.rung(dmas);
        }
    }

    /// Returns whether a store of the register word will wake the client.
    pub(crate) fn awaits_unmask(&self) -> bool {
        self.config.event_wait.is_some() && {
            let state = self.state();
            state.event_int_disable && self.used(state) > 0
        }
    }

    fn state(&self) -> EqState {
        // Rule 3.5: The register word is read at each use; its latest value counts.
        EqState::decode(&self.config.page.state().to_le_bytes())
    }

    /// Blocks that can hold an event: all but the status and one that stays empty.
    ///
    /// The empty one tells a full ring from an empty one, as both pointers may be equal.
    fn capacity(&self) -> u32 {
        self.blocks.saturating_sub(RESERVED_BLOCKS)
    }

    /// Blocks that the client has not acknowledged.
    fn used(&self, state: EqState) -> u32 {
        let round = self.blocks.saturating_sub(FIRST_BLOCK).max(1);
        // Rule 3.4: A block is reused only after the client has acknowledged it; a read pointer of
        // 0 means the first block.
        let read = if state.reading_buffer_b == self.buffer_b {
            state.rd_ptr.max(FIRST_BLOCK)
        } else {
            FIRST_BLOCK
        };
        (self.write + round - FIRST_BLOCK - (read - FIRST_BLOCK) % round) % round
    }

    fn free(&self, state: EqState) -> u32 {
        self.capacity().saturating_sub(self.used(state))
    }

    /// Returns whether there is room for a message whose PtlTE may not use the reserved blocks.
    pub(crate) fn has_room(&self) -> bool {
        // Rule 3.9: A PtlTE with flow control takes a message only if more blocks are free than are
        // reserved.
        self.free(self.state()) > self.config.reserved
    }

    /// Returns whether anything fits.
    pub(crate) fn is_full(&self) -> bool {
        self.free(self.state()) == 0
    }

    /// Writes an event of 16, 32 or 64 bytes; records that it is lost if there is no room. Returns
    /// whether there was.
    pub(crate) fn post(&mut self, event: &[u8], dmas: &mut Dmas) -> bool {
        self.switch(dmas);
        let state = self.state();
        self.note_acknowledged(state);
        // An event that must not wait in its lane is lost too, rather than missing in the ring.
        if self.free(state) == 0 || !dmas.has_room(self.memory()) {
            self.lose(dmas);
            return false;
        }
        self.store(event, dmas);
        self.wake(state, dmas);
        self.check_thresholds(state, dmas);
        true
    }

    fn wake(&self, state: EqState, dmas: &mut Dmas) {
        // Rule 3.12: An event wakes the client unless the interrupt is masked; unmasking it while
        // there are events wakes the client too.
        if let Some(wait) = self.config.event_wait
            && !state.event_int_disable
        {
            dmas.wake(&self.config.buffer.memory, wait);
        }
    }

    /// Stores the whole block except for the last word of the event, and then that word.
    fn store(&mut self, event: &[u8], dmas: &mut Dmas) {
        // The driver accepts a buffer that wraps around.
        let va = self.config.buffer.va.wrapping_add(u64::from(self.write) * BLOCK_BYTES);
        let (body, last) = event.split_at(event.len() - 8);
        // Rule 3.3: The word with the size and the code, which makes the event visible, is stored
        // last.
        let mut block = NULLS;
        block[..body.len()].copy_from_slice(body);
        block[body.len()..event.len()].fill(0);
        let parts = [(va, &block[..]), (va.wrapping_add(body.len() as u64), last)];
        dmas.store(self.target(), &parts);
        // Rule 3.6: Events are stored in the order in which they happened.
        self.write += 1;
        if self.write >= self.blocks {
            // Rule 3.1: Events start after the status block, and the ring wraps to there.
            self.write = FIRST_BLOCK;
        }
    }

    fn lose(&mut self, dmas: &mut Dmas) {
        // Rule 3.10: The engine never waits for room: an event for a full queue is lost, and the
        // status reports that once until the client acknowledges it.
        if self.dropping {
            return;
        }
        self.dropping = true;
        self.drop_sequence = !self.drop_sequence;
        if !self.has(EventFlags::DROP_STATUS_DISABLE) {
            self.write_status(None, dmas);
        }
    }

    /// Notices whether the client has acknowledged lost events.
    fn note_acknowledged(&mut self, state: EqState) {
        if self.dropping && state.event_drop_seq_no == self.drop_sequence {
            self.dropping = false;
        }
    }

    /// Handles a store of the register word by the client.
    pub(crate) fn rung(&mut self, dmas: &mut Dmas) {
        let state = self.state();
        self.note_acknowledged(state);
        self.switch(dmas);
        self.check_thresholds(state, dmas);
        // Events may have come while the interrupt was masked.
        if self.used(state) > 0 {
            self.wake(state, dmas);
        }
    }

    fn check_thresholds(&mut self, state: EqState, dmas: &mut Dmas) {
        let thresholds = self.config.thresholds;
        if thresholds.count == 0 {
            return;
        }
        let used = u64::from(self.used(state)) * 100;
        let slots = u64::from(self.capacity());
        let is_reached = |n: &u32| {
            let percent = thresholds.base.saturating_sub(thresholds.delta * n);
            used >= slots * u64::from(percent)
        };
        let highest = (0..thresholds.count).find(is_reached);
        let reached = highest.map_or(0, |n| thresholds.count - n);
        // Rule 3.8: The status block is written when the fill level rises to a threshold.
        if reached > self.reached {
            self.write_status(highest, dmas);
        }
        self.reached = reached;
    }

    /// Writes the status block from front to back: the first copy of the time, the fields, the
    /// second copy.
    fn write_status(&mut self, threshold: Option<u32>, dmas: &mut Dmas) {
        let state = self.state();
        self.updates = (self.updates + 1) % (1 << 30);
        let status = EqStatus {
            timestamp_ns_cpy: self.updates,
            thld_sts: threshold.is_some(),
            thld_id: threshold.unwrap_or(0).to_le_bytes()[0],
            unackd_dropped_event: self.dropping,
            event_drop_seq_no: self.drop_sequence,
            event_slots_free: self.free(state),
            event_slots_rsrvd: self.config.reserved,
            wr_ptr: self.write,
            using_buffer_b: self.buffer_b,
            timestamp_ns: self.updates,
            ..EqStatus::default()
        };
        let bytes = status.encode();
        let va = self.config.buffer.va;
        // The second copy of the time is in the last two words.
        let (fields, last) = bytes.split_at(48);
        dmas.store(self.target(), &[(va, fields), (va.wrapping_add(48), last)]);
        if let Some(wait) = self.config.status_wait
            && !state.eq_sts_int_disable
        {
            dmas.wake(&self.config.buffer.memory, wait);
        }
    }

    /// Moves the queue to another buffer after an EQ_SWITCH.
    pub(crate) fn resize(&mut self, buffer: EventBuffer, dmas: &mut Dmas) {
        self.resize = Some(buffer);
        self.switch(dmas);
    }

    fn switch(&mut self, dmas: &mut Dmas) {
        if self.resize.is_none() {
            return;
        }
        let state = self.state();
        if self.free(state) == 0 || !dmas.has_room(self.memory()) {
            return;
        }
        let Some(buffer) = self.resize.take() else { return };
        let event = EqSwitch {
            event_size: EventSize::BYTES_16,
            event_type: EventType::EQ_SWITCH,
            return_code: ReturnCode::OK,
        };
        // Rule 3.11: After a resize, EQ_SWITCH is the last event in the old buffer, as soon as
        // there is room for it; the new buffer starts empty at its first block.
        self.store(&event.encode(), dmas);
        self.wake(state, dmas);
        self.blocks = blocks(&buffer);
        self.config.buffer = buffer;
        self.write = FIRST_BLOCK;
        self.buffer_b = !self.buffer_b;
        self.reached = 0;
    }
}

fn blocks(buffer: &EventBuffer) -> u32 {
    u32::try_from(buffer.len / BLOCK_BYTES).unwrap_or(u32::MAX)
}
