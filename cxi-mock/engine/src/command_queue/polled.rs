//! Doorbell and low-latency windows of a queue, where stores cannot be counted.
//!
//! A pointer says by itself what was rung. A window does not: a command in it may be an old one, and
//! several stores may have passed since it was last looked at. But each command is in the ring before it
//! is in a window, at the place that follows from its place in the ring. What has run is erased from the
//! ring, so a window that holds what the ring holds was stored to after the program wrote the ring.

use cxi_hw::command_ring::{FIRST_SLOT, UNIT_SLOTS};
use cxi_hw::{CommandByte, SLOT_BYTES, launch_page};

use super::{Kind, Queue};

const UNIT: usize = UNIT_SLOTS as usize * SLOT_BYTES;

/// The high bits of a word that no program has written.
const MARK: u64 = 0x9d_3a51;

/// Each word of a slot that has not been written since its command ran. As a command it would be a no-op,
/// but the no-ops of programs start with a word of 0. Each slot has another `number` each time, so that a
/// command that was erased while a program copied it to a window resembles none that is half written.
#[must_use]
pub fn unwritten(number: u32) -> u64 {
    MARK << 40 | u64::from(number) << 8
}

fn is_unwritten(word: u64) -> bool {
    word >> 40 == MARK && word.to_le_bytes()[0] == 0
}

/// A pointer that is not one of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfRange;

impl Queue {
    /// Takes what was rung since the last call, as a write position.
    pub(super) fn take_rung(&self) -> Option<Result<u32, OutOfRange>> {
        let pointer = self.take_pointer();
        let from = match pointer {
            Some(Err(_)) => return pointer,
            Some(Ok(slot)) => slot,
            None => self.write,
        };
        let Some(end) = self.stored_from(from) else { return pointer };
        // A pointer that was stored before the window is visible by now, and no news. A later one is.
        match self.take_pointer() {
            Some(Ok(slot)) if self.distance(from, slot) <= self.distance(from, end) => {
                Some(Ok(end))
            }
            Some(pointer) => Some(pointer),
            None => Some(Ok(end)),
        }
    }

    fn take_pointer(&self) -> Option<Result<u32, OutOfRange>> {
        self.pages.take_doorbell().map(|value| self.slot(value).ok_or(OutOfRange))
    }

    /// Returns whether windows are to be looked at.
    pub(super) fn polls_windows(&self) -> bool {
        matches!(self.kind, Kind::Transmit { .. }) && self.pages.polls_windows()
    }

    /// The write position after the last command in the ring, from a position on, that was stored to a
    /// window.
    fn stored_from(&self, from: u32) -> Option<u32> {
        if !self.polls_windows() {
            return None;
        }
        let (mut at, mut stored) = (from, None);
        loop {
            let slots = if let Some(units) = self.stored_at(at) {
                stored = Some(self.after(at, units * UNIT_SLOTS));
                units * UNIT_SLOTS
            } else {
                match self.word_at(at)? {
                    word if is_unwritten(word) => return stored,
                    word => Self::size_of(word),
                }
            };
            let next = self.after(at, slots);
            // A whole lap.
            if self.distance(from, next) <= self.distance(from, at) {
                return stored;
            }
            at = next;
        }
    }

    /// Slots of the command that starts with a word.
    fn size_of(word: u64) -> u32 {
        match CommandByte(word.to_le_bytes()[0]) {
            // A no-op.
            CommandByte(0) => 1,
            byte => u32::try_from(byte.slots()).unwrap_or(1),
        }
    }

    /// The number of units from a position on that are in a window, a unit of no-ops in front of them
    /// included.
    fn stored_at(&self, at: u32) -> Option<u32> {
        // Rule 2.16: Where stores are not trapped, a command was stored to a window if the window holds
        // what the ring holds; what has run is erased from the ring.
        use launch_page::{WINDOW_64, WINDOW_128_ALIGNED, WINDOW_128_UNALIGNED};
        if !at.is_multiple_of(UNIT_SLOTS) {
            return None;
        }
        let is_blank = self.word_at(at)?.to_le_bytes()[0] == 0;
        if is_blank {
            // This window is for a command behind a unit of no-ops.
            let start = self.after(at, UNIT_SLOTS);
            let whole = self.holds((WINDOW_128_UNALIGNED, start), 0, (start, 2));
            return whole.then_some(3);
        }
        let odd = !at.is_multiple_of(2 * UNIT_SLOTS);
        if !odd && self.holds((WINDOW_128_ALIGNED, at), 0, (at, 2)) {
            return Some(2);
        }
        // The first half of two units may have been taken for a store to the window for 64 bytes.
        let half = |window| {
            let before = at.saturating_sub(UNIT_SLOTS);
            odd && self.holds((window, before), UNIT, (at, 1))
        };
        let is_stored = self.holds((WINDOW_64, at), 0, (at, 1))
            || half(WINDOW_128_ALIGNED)
            || half(WINDOW_128_UNALIGNED);
        is_stored.then_some(1)
    }

    /// Returns whether the part of a window for a slot holds, from an offset on, the units in the ring
    /// from a slot on.
    fn holds(&self, (window, slot): (usize, u32), offset: usize, (at, units): (u32, u32)) -> bool {
        let len = units as usize * UNIT;
        let (start, end) = (at as usize * SLOT_BYTES, self.slots as usize * SLOT_BYTES);
        let place = window + launch_page::window_offset(slot) as usize + offset;
        if start + len > end || place + len > window + launch_page::WINDOW_BYTES {
            return false;
        }
        let (mut stored, mut written) = ([0; 2 * UNIT], [0; 2 * UNIT]);
        // Most windows differ in their first word.
        for part in [0..8, 8..len] {
            let (stored, written) = (&mut stored[part.clone()], &mut written[part.clone()]);
            // The window first, as the ring was written before it.
            if !self.pages.read_window(place + part.start, stored)
                || self.pages.read(start + part.start, written).is_err()
                || stored != written
            {
                return false;
            }
        }
        stored[0] != 0
    }

    fn word_at(&self, slot: u32) -> Option<u64> {
        let mut word = [0; 8];
        self.pages.read(slot as usize * SLOT_BYTES, &mut word).ok()?;
        Some(u64::from_le_bytes(word))
    }

    /// Erases what has run: what the program writes there next would resemble it while it is written in
    /// part.
    pub(super) fn erase(&mut self, slots: u32) {
        if self.polls_windows() {
            for slot in self.read..(self.read + slots).min(self.slots) {
                self.pages.erase(slot as usize, unwritten(self.erased));
                self.erased = self.erased.wrapping_add(1);
            }
        }
    }

    fn after(&self, slot: u32, slots: u32) -> u32 {
        match slot + slots {
            slot if slot < self.slots => slot,
            _ => FIRST_SLOT,
        }
    }

    /// Slots from a position to another one.
    fn distance(&self, from: u32, to: u32) -> u32 {
        let lap = self.slots - FIRST_SLOT;
        (to + lap - from) % lap
    }
}
