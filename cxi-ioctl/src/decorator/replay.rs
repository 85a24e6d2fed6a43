//! Replaying.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::recording::{Exchange, Hex, Recording};
use crate::{Errno, Mapping, Opcode, Request, Transport};

/// Answers from a [`Recording`], without a driver: [`Record`](crate::Record) has an example.
///
/// The same commands must come in the same order. Anything else is EPROTO, and so is every command
/// after that; [`Replay::divergence`] says what was expected and what came. Windows are zeroed
/// memory.
#[derive(Debug)]
pub struct Replay {
    exchanges: Vec<Exchange>,
    ignored: Vec<(Opcode, Range<usize>)>,
    state: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    next: usize,
    divergence: Option<Divergence>,
}

/// The point at which the commands departed from a recording.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("step {step} of the recording: expected {expected}, got {came}")]
#[non_exhaustive]
pub struct Divergence {
    /// Position in the recording, from 1.
    pub step: usize,
    /// Content of the recording there.
    pub expected: String,
    /// Command that came instead.
    pub came: String,
}

impl Replay {
    /// Starts at the beginning of a recording.
    #[must_use]
    pub fn new(recording: Recording) -> Self {
        Self { exchanges: recording.exchanges, ignored: Vec::new(), state: Mutex::default() }
    }

    /// Permits these bytes of a command to differ: addresses of the caller's memory, such as bytes
    /// 24 to 31 of ATU_MAP, are different in each run.
    #[must_use]
    pub fn ignoring(mut self, opcode: Opcode, bytes: Range<usize>) -> Self {
        self.ignored.push((opcode, bytes));
        self
    }

    /// The first departure from the recording.
    #[must_use]
    pub fn divergence(&self) -> Option<Divergence> {
        self.lock().divergence.clone()
    }

    /// Asserts that everything came as recorded, and that nothing is left.
    ///
    /// # Errors
    ///
    /// The first divergence, which includes an unfinished recording.
    pub fn finish(&self) -> Result<(), Divergence> {
        let state = self.lock();
        if let Some(divergence) = &state.divergence {
            return Err(divergence.clone());
        }
        match self.exchanges.get(state.next) {
            None => Ok(()),
            Some(exchange) => Err(Divergence {
                step: state.next + 1,
                expected: describe(exchange),
                came: "nothing more".to_owned(),
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next exchange, if it matches the request.
    fn take(
        &self,
        is_it: impl FnOnce(&Exchange) -> bool,
        came: impl FnOnce() -> String,
    ) -> Result<&Exchange, Errno> {
        let mut state = self.lock();
        if state.divergence.is_some() {
            return Err(Errno::EPROTO);
        }
        let next = self.exchanges.get(state.next);
        if let Some(exchange) = next.filter(|exchange| is_it(exchange)) {
            state.next += 1;
            return Ok(exchange);
        }
        state.divergence = Some(Divergence {
            step: state.next + 1,
            expected: next.map_or_else(|| "nothing more".to_owned(), describe),
            came: came(),
        });
        Err(Errno::EPROTO)
    }

    fn same(&self, opcode: Opcode, recorded: &[u8], command: &[u8]) -> bool {
        recorded.len() == command.len()
            && recorded.iter().zip(command).enumerate().all(|(index, (old, new))| {
                old == new
                    || self
                        .ignored
                        .iter()
                        .any(|(only, bytes)| *only == opcode && bytes.contains(&index))
            })
    }
}

impl Transport for Replay {
    /// As recorded; EPROTO for anything else, including a buffer too small for the recorded answer.
    fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
        let (opcode, sent) = (request.opcode(), request.command());
        let room = (request.response().len(), request.list().len());
        let exchange = self.take(
            |exchange| match exchange {
                Exchange::Command { command, response, list, .. } => {
                    self.same(opcode, command, sent)
                        && response.len() <= room.0
                        && list.len() <= room.1
                }
                Exchange::Map { .. } => false,
            },
            || describe_command(Some(opcode), sent, room),
        )?;
        if let Exchange::Command { response, list, .. } = exchange {
            fill(request.response(), response);
            fill(request.list(), list);
        }
        exchange.result()
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        let exchange = self.take(
            |exchange| {
                matches!(exchange, Exchange::Map { offset: at, len: bytes, .. }
                    if (*at, *bytes) == (offset, len))
            },
            || window(offset, len),
        )?;
        exchange.result()?;
        Mapping::anonymous(len)
    }
}

fn fill(buffer: &mut [u8], bytes: &[u8]) {
    for (to, from) in buffer.iter_mut().zip(bytes) {
        *to = *from;
    }
}

fn window(offset: u64, len: usize) -> String {
    format!("the mapping of {len} bytes at offset {offset:#x}")
}

fn describe(exchange: &Exchange) -> String {
    match exchange {
        Exchange::Command { command, response, list, .. } => {
            describe_command(exchange.opcode(), command, (response.len(), list.len()))
        }
        Exchange::Map { offset, len, .. } => window(*offset, *len),
    }
}

/// A command, with the room for its answer.
fn describe_command(
    opcode: Option<Opcode>,
    command: &[u8],
    (response, list): (usize, usize),
) -> String {
    let name = opcode.map_or_else(|| "a command".to_owned(), |opcode| opcode.to_string());
    let (length, bytes) = (command.len(), Hex(command));
    format!("{name} ({length} bytes: {bytes}; response {response}, list {list} bytes)")
}
