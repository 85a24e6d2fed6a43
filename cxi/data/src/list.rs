//! Commands for the lists of a PtlTE.

use std::marker::PhantomData;

use cxi::lni::{LeList, Pte};
use cxi_hw::{Class, CommandByte, List, MatchId, PtlteState, TargetCommand, TargetFlags, TargetOp};

use crate::error::in_command;
use crate::kind::Target;
use crate::options::options;
use crate::queue::{Post, Queue};
use crate::{Address, Counter, Result, Slice};

/// A drop count that matches any.
const ANY_DROPS: u32 = 0xff_ffff;

const fn byte(op: TargetOp) -> CommandByte {
    CommandByte::new(Class::CQ, 1, op.0)
}

/// Writes a command for the lists of a PtlTE. A number that the NIC does not know would stop the
/// queue.
fn write(
    queue: &mut Queue<Target>,
    pte: u32,
    from: Option<Address>,
    command: TargetCommand,
) -> Result<()> {
    let from = from.map(|from| from.match_id(queue.pid_bits));
    let command = TargetCommand {
        ptlte_index: in_command("PtlTE", pte)?,
        match_id: from.unwrap_or(MatchId::ANY),
        ..command
    };
    queue.write(&command.encode())
}

/// Appends a list entry: memory that others may put to or get from.
///
/// LINK reports it, unless unexpected messages use the entry up at once.
#[derive(Clone, Copy, Debug)]
#[must_use = "a command does nothing until it is posted"]
pub struct Append<'a> {
    pte: u32,
    memory: PhantomData<Slice<'a>>,
    from: Option<Address>,
    command: TargetCommand,
}

impl<'a> Append<'a> {
    /// An entry at the end of a list. It accepts nothing until [`flags`](Self::flags) are set.
    pub fn new(pte: &Pte, to: LeList, memory: Slice<'a>) -> Self {
        let command = TargetCommand {
            command: byte(TargetOp::APPEND),
            ptl_list: to.into(),
            lac: memory.lac,
            start: memory.iova,
            length: memory.len as u64,
            ..TargetCommand::default()
        };
        Self { pte: pte.id(), memory: PhantomData, from: None, command }
    }

    /// Sets the operations that it accepts and reports: usually at least [`TargetFlags::OP_PUT`].
    pub const fn flags(mut self, flags: TargetFlags) -> Self {
        self.command.flags = self.command.flags.union(flags);
        self
    }

    /// The entry takes one message and then leaves its list, which UNLINK reports.
    pub const fn use_once(self) -> Self {
        self.flags(TargetFlags::USE_ONCE)
    }

    /// A number that its events carry, and by which [`Unlink`] finds it.
    pub const fn buffer_id(mut self, id: u16) -> Self {
        self.command.buffer_id = id;
        self
    }

    /// The entry is managed locally: messages are stored one after the other, until fewer than
    /// `min_free` bytes are left.
    pub const fn managed(mut self, min_free: u32) -> Self {
        self.command.min_free = min_free;
        self.flags(TargetFlags::MANAGE_LOCAL)
    }

    /// Counts messages, successes and failures, in a counter.
    pub fn counted(mut self, counter: &Counter) -> Self {
        self.command.ct = counter.id();
        self.flags(TargetFlags::EVENT_CT_COMM)
    }

    /// Lets appends succeed again after one that failed for lack of list entries.
    pub const fn restart(mut self) -> Self {
        self.command.restart_seq = true;
        self
    }

    options!(selection);
}

impl Post<Target> for Append<'_> {
    fn write(&self, queue: &mut Queue<Target>) -> Result<()> {
        write(queue, self.pte, self.from, self.command)
    }
}

/// Removes a list entry from its list. UNLINK reports this, or that none was found.
#[derive(Clone, Copy, Debug)]
#[must_use = "a command does nothing until it is posted"]
pub struct Unlink {
    pte: u32,
    command: TargetCommand,
}

impl Unlink {
    /// Selects the first entry of a list with this buffer id.
    pub fn new(pte: &Pte, from: LeList, buffer_id: u16) -> Self {
        let command = TargetCommand {
            command: byte(TargetOp::UNLINK),
            ptl_list: from.into(),
            buffer_id,
            ..TargetCommand::default()
        };
        Self { pte: pte.id(), command }
    }
}

impl Post<Target> for Unlink {
    fn write(&self, queue: &mut Queue<Target>) -> Result<()> {
        write(queue, self.pte, None, self.command)
    }
}

/// Searches for unexpected messages.
///
/// Each is reported by a SEARCH event, and a SEARCH with
/// [`ReturnCode::NO_MATCH`](crate::ReturnCode::NO_MATCH) ends the search. Deleted messages are
/// reported by overflow events.
#[derive(Clone, Copy, Debug)]
#[must_use = "a command does nothing until it is posted"]
pub struct Search {
    pte: u32,
    from: Option<Address>,
    command: TargetCommand,
}

impl Search {
    /// Searches for all unexpected messages. Their events have this buffer id.
    pub fn new(pte: &Pte, buffer_id: u16) -> Self {
        let command = TargetCommand {
            command: byte(TargetOp::SEARCH),
            ptl_list: List::UNEXPECTED,
            buffer_id,
            length: (1 << 56) - 1,
            ignore_bits: u64::MAX,
            ..TargetCommand::default()
        };
        Self { pte: pte.id(), from: None, command }
    }

    /// Searches only for the oldest message. If there is one, no other event follows.
    pub const fn first(mut self) -> Self {
        self.command.flags = self.command.flags.union(TargetFlags::USE_ONCE);
        self
    }

    /// Removes the messages that it finds from the list.
    pub const fn delete(mut self) -> Self {
        self.command.command = byte(TargetOp::SEARCH_AND_DELETE);
        self
    }

    options!(selection);
}

impl Post<Target> for Search {
    fn write(&self, queue: &mut Queue<Target>) -> Result<()> {
        write(queue, self.pte, self.from, self.command)
    }
}

/// Changes the state of a PtlTE; STATE_CHANGE reports it.
#[derive(Clone, Copy, Debug)]
#[must_use = "a command does nothing until it is posted"]
pub struct SetState {
    pte: u32,
    command: cxi_hw::SetState,
}

impl SetState {
    /// Enables the PtlTE: messages are accepted.
    pub fn enable(pte: &Pte) -> Self {
        Self::new(pte, PtlteState::ENABLED)
    }

    /// Disables the PtlTE: messages are refused, and counted.
    pub fn disable(pte: &Pte) -> Self {
        Self::new(pte, PtlteState::DISABLED)
    }

    /// Sets any state.
    pub fn new(pte: &Pte, state: PtlteState) -> Self {
        let command = cxi_hw::SetState {
            command: byte(TargetOp::SETSTATE),
            ptlte_state: state,
            drop_count: ANY_DROPS,
            ..cxi_hw::SetState::default()
        };
        Self { pte: pte.id(), command }
    }

    /// Changes the state only if this many messages were dropped. Otherwise, STATE_CHANGE has
    /// [`ReturnCode::NO_MATCH`](crate::ReturnCode::NO_MATCH), and the state stays.
    pub const fn if_dropped(mut self, count: u32) -> Self {
        self.command.drop_count = count;
        self
    }
}

impl Post<Target> for SetState {
    fn write(&self, queue: &mut Queue<Target>) -> Result<()> {
        let command =
            cxi_hw::SetState { ptlte_index: in_command("PtlTE", self.pte)?, ..self.command };
        queue.write(&command.encode())
    }
}
