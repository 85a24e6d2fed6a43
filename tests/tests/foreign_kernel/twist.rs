//! A driver whose answers are not those of the releases that are known.

use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

use cxi_ioctl::{Errno, Mapping, Opcode, Request, Transport};

/// Change of an answer. The command is carried out.
#[derive(Clone, Debug)]
pub(crate) enum Twist {
    /// This many bytes are written: the true ones, then zeros.
    Length(usize),
    /// These bytes of the response have this value.
    Bytes(Range<usize>, u8),
    /// The response starts with these bytes at that offset.
    Patch(usize, Vec<u8>),
    /// The list starts with these bytes at that offset.
    List(usize, Vec<u8>),
}

/// Changes the answers to one command.
#[derive(Debug)]
pub(crate) struct Twisted<T> {
    inner: T,
    plan: Mutex<Option<(Opcode, Twist)>>,
    no_windows: OnceLock<Errno>,
}

impl<T: Transport> Twisted<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self { inner, plan: Mutex::default(), no_windows: OnceLock::new() }
    }

    pub(crate) fn plan(&self, opcode: Opcode, twist: Twist) {
        *self.lock() = Some((opcode, twist));
    }

    pub(crate) fn refuse_windows(&self, errno: Errno) {
        self.no_windows.set(errno).unwrap();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(Opcode, Twist)>> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn twist(&self, opcode: Opcode) -> Option<Twist> {
        let plan = self.lock().clone();
        plan.filter(|(only, _)| *only == opcode).map(|(_, twist)| twist)
    }
}

impl<T: Transport> Transport for Twisted<T> {
    fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
        let Some(twist) = self.twist(request.opcode()) else { return self.inner.submit(request) };
        let before = request.response().to_vec();
        let result = self.inner.submit(request.reborrow());
        let (response, list) = request.buffers();
        match twist {
            Twist::Length(len) => shorten_or_lengthen(&before, response, len),
            Twist::Bytes(bytes, value) => {
                if let Some(bytes) = response.get_mut(bytes) {
                    bytes.fill(value);
                }
            }
            Twist::Patch(at, bytes) => patch(response, at, &bytes),
            Twist::List(at, bytes) => patch(list, at, &bytes),
        }
        result
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        match self.no_windows.get() {
            Some(errno) => Err(*errno),
            None => self.inner.map(offset, len),
        }
    }
}

fn patch(buffer: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = buffer.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// Nothing is written past the buffer here; a kernel would overwrite what follows it.
fn shorten_or_lengthen(before: &[u8], response: &mut [u8], len: usize) {
    let written =
        before.iter().zip(&*response).rposition(|(old, new)| old != new).map_or(0, |last| last + 1);
    let len = len.min(response.len());
    if len < written {
        response[len..].copy_from_slice(&before[len..]);
    } else {
        response[written..len].fill(0);
    }
}
