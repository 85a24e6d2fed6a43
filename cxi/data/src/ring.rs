//! The ring of a command queue: where the next command goes, and whether there is room.

use cxi::Mapping;
use cxi_hw::command_ring::{FIRST_SLOT, FIRST_UNIT, UNIT_SLOTS, padding};
use cxi_hw::{CommandByte, CqStatus, ReturnCode, SLOT_BYTES, launch_page};

use crate::{Error, Failure, Result};

const WORD: usize = size_of::<u64>();
/// The read pointer of an unused ring: the first unit with commands.
#[allow(clippy::cast_possible_truncation)]
const FIRST_READ: u16 = FIRST_UNIT as u16;

/// The client's side of a ring. The NIC's is in the status word at its start.
#[derive(Debug)]
pub(crate) struct Ring {
    /// Slots in the ring.
    slots: u32,
    /// Slot of the next command.
    write: u32,
    /// The NIC's position when it was last read.
    read: u32,
    /// The position of the last doorbell.
    rung: u32,
    /// A command without effect, to fill slots before a longer one that starts on a boundary.
    filler: CommandByte,
}

impl Ring {
    /// The ring of an unused queue.
    pub(crate) fn new(commands: &Mapping, units: u32, filler: CommandByte) -> Result<Self> {
        let status =
            CqStatus { rd_ptr: FIRST_READ, return_code: ReturnCode::OK, ..CqStatus::default() };
        commands.write_u64(0, u64::from_le_bytes(status.encode()))?;
        Ok(Self {
            slots: units * UNIT_SLOTS,
            write: FIRST_SLOT,
            read: FIRST_SLOT,
            rung: FIRST_SLOT,
            filler,
        })
    }

    /// Slots that commands may take before the NIC has read more. One unit stays empty, so that a
    /// full ring differs from an empty one.
    fn free(&self) -> u32 {
        let round = self.slots - FIRST_SLOT;
        let used = (self.write + round - self.read) % round;
        (round - UNIT_SLOTS).saturating_sub(used.next_multiple_of(UNIT_SLOTS))
    }

    /// Reads how far the NIC has read.
    fn refresh(&mut self, commands: &Mapping) -> Result<()> {
        let status = CqStatus::decode(&commands.read_u64(0)?.to_le_bytes());
        Failure::check(status.return_code).map_err(Error::Stopped)?;
        let read = u32::from(status.rd_ptr) * UNIT_SLOTS;
        // Any other position is outside the ring.
        if (FIRST_SLOT..self.slots).contains(&read) {
            self.read = read;
        }
        Ok(())
    }

    /// Returns whether the NIC has read everything up to the last doorbell.
    pub(crate) fn is_idle(&mut self, commands: &Mapping) -> Result<bool> {
        self.refresh(commands)?;
        Ok(self.read == self.rung)
    }

    /// Writes a command of whole slots, after as many fillers as its boundary requires.
    pub(crate) fn push(&mut self, commands: &Mapping, command: &[u8]) -> Result<()> {
        let slots = u32::try_from(command.len() / SLOT_BYTES).unwrap_or(u32::MAX);
        let gap = padding(self.write, slots);
        let needed = (gap + slots).next_multiple_of(UNIT_SLOTS);
        if self.free() < needed {
            self.refresh(commands)?;
        }
        let free = self.free();
        if free < needed {
            return Err(Error::Full { needed, free });
        }
        self.fill(commands, gap)?;
        let start = self.write as usize * SLOT_BYTES;
        for (at, word) in (start..).step_by(WORD).zip(command.as_chunks::<WORD>().0) {
            commands.write_u64(at, u64::from_le_bytes(*word))?;
        }
        self.advance(slots);
        Ok(())
    }

    fn fill(&mut self, commands: &Mapping, slots: u32) -> Result<()> {
        // Each filler takes its own length, which is a slot or a unit.
        let step = self.filler.slots();
        for _ in (0..slots).step_by(step) {
            let at = self.write as usize * SLOT_BYTES;
            commands.write_u64(at, self.filler.0.into())?;
            self.advance(u32::try_from(step).unwrap_or(UNIT_SLOTS));
        }
        Ok(())
    }

    fn advance(&mut self, slots: u32) {
        self.write += slots;
        if self.write >= self.slots {
            self.write = FIRST_SLOT;
        }
    }

    /// Rings the doorbell for everything that was written.
    pub(crate) fn ring(&mut self, commands: &Mapping, launch: &Mapping) -> Result<()> {
        self.fill(commands, padding(self.write, UNIT_SLOTS))?;
        if self.rung != self.write {
            let unit = self.write / UNIT_SLOTS;
            launch.ring(launch_page::WRITE_POINTER, unit.into())?;
            self.rung = self.write;
        }
        Ok(())
    }
}
