//! A driver that lies.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cxi_ioctl::{Errno, Mapping, Opcode, Request, Transport};
use cxi_mock::InProcess;

use crate::input::Input;

/// Far more commands than any input makes a library send that knows when to stop.
const MOST_COMMANDS: usize = 20_000;

/// A driver that answers the truth until it is to lie; then its answers are as its script says, and
/// true behind its end.
#[derive(Debug)]
pub(super) struct Liar {
    truth: InProcess,
    script: Mutex<Script>,
}

#[derive(Debug)]
struct Script {
    bytes: Vec<u8>,
    at: usize,
    commands: usize,
    lies: bool,
    /// The lie that goes on, and for how many commands.
    again: (Lie, u8),
}

/// Lie in an answer.
#[derive(Clone, Debug)]
enum Lie {
    /// Nothing.
    None,
    /// Refused with this errno without being done, or after it was done.
    Errno { errno: i32, done: bool },
    /// The response holds other bytes from here on, perhaps behind its end.
    Bytes { at: usize, bytes: Vec<u8> },
    /// The response is this, and nothing was done.
    Made { response: Vec<u8>, list: Vec<u8> },
    /// Nothing is written from here on.
    Short(usize),
    /// There are more entries than there is room for, whatever the room.
    Growing,
    /// The list holds other bytes from here on.
    List { at: usize, bytes: Vec<u8> },
}

impl Lie {
    fn read(input: &mut Input<'_>) -> (Self, u8) {
        let (kind, again) = (input.byte(), input.byte());
        let lie = match kind {
            0..=127 => return (Self::None, kind),
            128..=159 => Self::Errno { errno: input.choose(&ERRNOS), done: again & 1 != 0 },
            160..=167 => Self::Errno {
                errno: i32::from_le_bytes(input.u32().to_le_bytes()),
                done: again & 1 != 0,
            },
            168..=199 => {
                Self::Bytes { at: usize::from(input.byte()) % 128, bytes: input.block().to_vec() }
            }
            200..=223 => {
                Self::Made { response: input.block().to_vec(), list: input.block().to_vec() }
            }
            224..=231 => Self::Short(input.byte().into()),
            232..=239 => Self::Growing,
            _ => Self::List { at: usize::from(input.u16()), bytes: input.block().to_vec() },
        };
        (lie, again / 16)
    }
}

/// Errnos that drivers answer with, and some that none does.
const ERRNOS: [i32; 20] =
    [1, 2, 4, 5, 7, 11, 12, 14, 16, 17, 19, 22, 28, 53, 61, 75, 95, 128, 4242, -22];

impl Liar {
    pub(super) fn new(truth: InProcess, script: &[u8]) -> Self {
        let script = Script {
            bytes: script.to_vec(),
            at: 0,
            commands: 0,
            lies: false,
            again: (Lie::None, 0),
        };
        Self { truth, script: Mutex::new(script) }
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether it lies from now on.
    pub(super) fn lie(&self, lies: bool) {
        self.script().lies = lies;
    }

    fn next(&self, opcode: Opcode) -> Lie {
        let mut script = self.script();
        script.commands += 1;
        assert!(script.commands < MOST_COMMANDS, "{opcode}: no end in sight");
        if !script.lies {
            return Lie::None;
        }
        if script.again.1 > 0 {
            script.again.1 -= 1;
            return script.again.0.clone();
        }
        let rest = script.bytes.get(script.at..).unwrap_or_default();
        if rest.is_empty() {
            return Lie::None;
        }
        let mut input = Input(rest);
        let (lie, again) = Lie::read(&mut input);
        script.at = script.bytes.len() - input.0.len();
        script.again = (lie.clone(), again);
        lie
    }
}

fn put(buffer: &mut [u8], at: usize, bytes: &[u8]) {
    for (place, byte) in buffer.iter_mut().skip(at).zip(bytes) {
        *place = *byte;
    }
}

impl Transport for Liar {
    fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
        match self.next(request.opcode()) {
            Lie::None => self.truth.submit(request),
            Lie::Errno { errno, done } => {
                if done {
                    let _ = self.truth.submit(request);
                }
                Err(Errno::from_raw(errno))
            }
            Lie::Bytes { at, bytes } => {
                let result = self.truth.submit(request.reborrow());
                put(request.response(), at, &bytes);
                result
            }
            Lie::Made { response, list } => {
                put(request.response(), 0, &response);
                put(request.list(), 0, &list);
                Ok(())
            }
            Lie::Short(from) => {
                let before = request.response().to_vec();
                let result = self.truth.submit(request.reborrow());
                put(request.response(), from, before.get(from..).unwrap_or_default());
                result
            }
            Lie::Growing => {
                let result = self.truth.submit(request.reborrow());
                // An entry of a list has at least four bytes.
                let count = u32::try_from(request.list().len() / 4 + 1).unwrap_or(u32::MAX);
                put(request.response(), 0, &count.to_ne_bytes());
                result
            }
            Lie::List { at, bytes } => {
                let result = self.truth.submit(request.reborrow());
                put(request.list(), at, &bytes);
                result
            }
        }
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        self.truth.map(offset, len)
    }
}
