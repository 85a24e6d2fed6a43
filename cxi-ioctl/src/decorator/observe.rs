//! Tracing and recording.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::recording::{Exchange, Recording};
use crate::command::touched;
use crate::{Errno, Mapping, Request, Transport};

/// Passes every command and mapping, with its answer, to a function.
///
/// ```
/// use cxi_ioctl::abi::service::SvcDestroyCmd;
/// use cxi_ioctl::{CharDev, Trace, execute};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // /dev/null takes every command that has no response.
/// let device = Trace::new(CharDev::open("/dev/null")?, |exchange| {
///     eprintln!("{exchange}"); // SVC_DESTROY 8 bytes: ok
/// });
/// execute(&device, &SvcDestroyCmd::of(7))?;
/// # Ok(())
/// # }
/// ```
pub struct Trace<T> {
    inner: T,
    watcher: Box<dyn Fn(Exchange) + Send + Sync>,
}

impl<T: Transport> Trace<T> {
    /// Calls `watcher` after each answer, in the thread that sent the command.
    pub fn new(inner: T, watcher: impl Fn(Exchange) + Send + Sync + 'static) -> Self {
        Self { inner, watcher: Box::new(watcher) }
    }

    /// Sends each exchange to `tracing`, as an event of level DEBUG and target `cxi_ioctl`.
    #[cfg(feature = "tracing")]
    pub fn tracing(inner: T) -> Self {
        Self::new(inner, |exchange| {
            tracing::debug!(
                target: "cxi_ioctl",
                errno = exchange.result().err().map_or(0, Errno::raw),
                "{exchange}"
            );
        })
    }

    /// The transport inside.
    pub fn inner(&self) -> &T {
        &self.inner
    }
}

impl<T: fmt::Debug> fmt::Debug for Trace<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<T: Transport> Transport for Trace<T> {
    fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
        let before = (request.response().to_vec(), request.list().to_vec());
        let result = self.inner.submit(request.reborrow());
        (self.watcher)(Exchange::Command {
            command: request.command().to_vec(),
            result,
            response: changed(&before.0, request.response()),
            list: changed(&before.1, request.list()),
        });
        result
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        let mapping = self.inner.map(offset, len);
        (self.watcher)(Exchange::Map {
            offset,
            len,
            result: mapping.as_ref().map(drop).map_err(|errno| *errno),
        });
        mapping
    }

    fn file(&self) -> Option<BorrowedFd<'_>> {
        self.inner.file()
    }
}

fn changed(before: &[u8], after: &[u8]) -> Vec<u8> {
    let (changed, _) = after.split_at(touched(before, after));
    changed.to_vec()
}

/// Records everything that goes through it, for tests and for a [`Replay`](crate::Replay).
///
/// Commands that are sent concurrently are recorded in the order of their answers.
///
/// ```
/// use cxi_ioctl::abi::service::SvcDestroyCmd;
/// use cxi_ioctl::{CharDev, Opcode, Record, Replay, execute};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // /dev/null takes every command that has no response.
/// let device = Record::new(CharDev::open("/dev/null")?);
/// execute(&device, &SvcDestroyCmd::of(7))?;
/// assert!(device.recording().opcodes().eq([Opcode::SVC_DESTROY]));
///
/// let replay = Replay::new(device.recording());
/// execute(&replay, &SvcDestroyCmd::of(7))?;
/// replay.finish()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Record<T> {
    trace: Trace<T>,
    recording: Arc<Mutex<Recording>>,
}

impl<T: Transport> Record<T> {
    /// An empty recording.
    pub fn new(inner: T) -> Self {
        let recording = Arc::default();
        let watched = Arc::clone(&recording);
        Self {
            trace: Trace::new(inner, move |exchange| {
                lock(&watched).exchanges.push(exchange);
            }),
            recording,
        }
    }

    /// Removes and returns what has been recorded so far.
    #[must_use]
    pub fn take(&self) -> Recording {
        std::mem::take(&mut lock(&self.recording))
    }

    /// Returns a copy of the recording so far.
    #[must_use]
    pub fn recording(&self) -> Recording {
        lock(&self.recording).clone()
    }

    /// The transport inside.
    pub fn inner(&self) -> &T {
        self.trace.inner()
    }
}

fn lock(recording: &Mutex<Recording>) -> MutexGuard<'_, Recording> {
    recording.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Transport> Transport for Record<T> {
    fn submit(&self, request: Request<'_>) -> Result<(), Errno> {
        self.trace.submit(request)
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        self.trace.map(offset, len)
    }

    fn file(&self) -> Option<BorrowedFd<'_>> {
        self.trace.file()
    }
}
