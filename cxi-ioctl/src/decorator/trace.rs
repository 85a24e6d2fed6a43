//! Tracing.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};

use crate::command::touched;
use crate::{Errno, Mapping, Opcode, Request, Transport};

/// A command that has been answered, as [`Trace`] shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceEvent<'a> {
    /// The command.
    pub opcode: Opcode,
    /// Its bytes, with zeros where addresses go.
    pub command: &'a [u8],
    /// The response buffer up to the last byte that the driver changed.
    pub response: &'a [u8],
    /// Length of the list buffer in bytes.
    pub list_len: usize,
    /// The driver's answer.
    pub result: Result<(), Errno>,
}

impl fmt::Display for TraceEvent<'_> {
    /// One line: `SVC_DESTROY 8 bytes: EBUSY`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} bytes", self.opcode, self.command.len())?;
        if self.list_len > 0 {
            write!(f, ", list of {} bytes", self.list_len)?;
        }
        match self.result {
            Ok(()) => write!(f, ": ok")?,
            Err(errno) => write!(f, ": {errno}")?,
        }
        if !self.response.is_empty() {
            write!(f, ", response of {} bytes", self.response.len())?;
        }
        Ok(())
    }
}

/// A [`TraceEvent`], owned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceEntry {
    /// The command.
    pub opcode: Opcode,
    /// Its bytes, with zeros where addresses go.
    pub command: Vec<u8>,
    /// The response buffer up to the last byte that the driver changed.
    pub response: Vec<u8>,
    /// Length of the list buffer in bytes.
    pub list_len: usize,
    /// The driver's answer.
    pub result: Result<(), Errno>,
}

impl From<&TraceEvent<'_>> for TraceEntry {
    fn from(event: &TraceEvent<'_>) -> Self {
        Self {
            opcode: event.opcode,
            command: event.command.to_vec(),
            response: event.response.to_vec(),
            list_len: event.list_len,
            result: event.result,
        }
    }
}

type Watcher = dyn Fn(&TraceEvent<'_>) + Send + Sync;

/// Passes every command and its answer to a function, or collects them in a [`TraceLog`].
///
/// ```
/// use cxi_ioctl::abi::service::SvcDestroyCmd;
/// use cxi_ioctl::{CharDev, Opcode, Trace, execute};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // /dev/null takes every command that has no response.
/// let (device, log) = Trace::logging(CharDev::open("/dev/null")?);
/// execute(
///     &device,
///     &SvcDestroyCmd {
///         svc_id: 7,
///         ..SvcDestroyCmd::new()
///     },
/// )?;
/// let entries = log.take();
/// assert_eq!(entries[0].opcode, Opcode::SVC_DESTROY);
/// assert_eq!(entries[0].command[4..], 7_u32.to_ne_bytes());
/// # Ok(())
/// # }
/// ```
pub struct Trace<T> {
    inner: T,
    watcher: Box<Watcher>,
}

impl<T: Transport> Trace<T> {
    /// Calls `watcher` after each command, in the thread that sent it.
    pub fn new(inner: T, watcher: impl Fn(&TraceEvent<'_>) + Send + Sync + 'static) -> Self {
        Self {
            inner,
            watcher: Box::new(watcher),
        }
    }

    /// Collects each command in a log.
    pub fn logging(inner: T) -> (Self, TraceLog) {
        let log = TraceLog::default();
        let keeper = log.clone();
        (Self::new(inner, move |event| keeper.keep(event)), log)
    }

    /// Sends each command to `tracing`, as an event of level DEBUG and target `cxi_ioctl`.
    #[cfg(feature = "tracing")]
    pub fn tracing(inner: T) -> Self {
        Self::new(inner, |event| {
            tracing::debug!(
                target: "cxi_ioctl",
                opcode = %event.opcode,
                command_len = event.command.len(),
                response_len = event.response.len(),
                list_len = event.list_len,
                errno = event.result.err().map_or(0, Errno::raw),
                "{event}"
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
        f.debug_struct("Trace")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

impl<T: Transport> Transport for Trace<T> {
    fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
        let before = request.response().to_vec();
        let result = self.inner.submit(request.reborrow());
        let (opcode, command) = (request.opcode(), request.command());
        let (response, list) = request.buffers();
        let (written, _) = response.split_at(touched(&before, response));
        (self.watcher)(&TraceEvent {
            opcode,
            command,
            response: written,
            list_len: list.len(),
            result,
        });
        result
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        self.inner.map(offset, len)
    }

    fn file(&self) -> Option<BorrowedFd<'_>> {
        self.inner.file()
    }
}

/// What a [`Trace`] has collected. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct TraceLog {
    entries: Arc<Mutex<Vec<TraceEntry>>>,
}

impl TraceLog {
    /// Removes and returns all entries, oldest first.
    #[must_use]
    pub fn take(&self) -> Vec<TraceEntry> {
        std::mem::take(&mut self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The opcodes seen since the last [`TraceLog::take`], oldest first.
    #[must_use]
    pub fn opcodes(&self) -> Vec<Opcode> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().map(|entry| entry.opcode).collect()
    }

    fn keep(&self, event: &TraceEvent<'_>) {
        self.entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(event.into());
    }
}
