//! Recording.

use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::recording::{Exchange, Recording};
use crate::command::touched;
use crate::{Errno, Mapping, Request, Transport};

/// Records everything that goes through it, for a [`Replay`](crate::Replay).
///
/// Commands that are sent concurrently are recorded in the order of their answers.
///
/// ```
/// use cxi_ioctl::abi::service::SvcDestroyCmd;
/// use cxi_ioctl::{CharDev, Record, Replay, execute};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // /dev/null takes every command that has no response.
/// let device = Record::new(CharDev::open("/dev/null")?);
/// let destroy = SvcDestroyCmd {
///     svc_id: 7,
///     ..SvcDestroyCmd::new()
/// };
/// execute(&device, &destroy)?;
///
/// let replay = Replay::new(device.recording());
/// execute(&replay, &destroy)?;
/// replay.finish()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Record<T> {
    inner: T,
    recording: Mutex<Recording>,
}

impl<T: Transport> Record<T> {
    /// An empty recording.
    pub fn new(inner: T) -> Self {
        Self {
            inner,
            recording: Mutex::default(),
        }
    }

    /// What has been recorded so far.
    #[must_use]
    pub fn recording(&self) -> Recording {
        self.lock().clone()
    }

    /// The transport inside.
    pub fn inner(&self) -> &T {
        &self.inner
    }

    fn lock(&self) -> MutexGuard<'_, Recording> {
        self.recording
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Transport> Transport for Record<T> {
    fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
        let response_before = request.response().to_vec();
        let list_before = request.list().to_vec();
        let result = self.inner.submit(request.reborrow());
        self.lock().exchanges.push(Exchange::Command {
            command: request.command().to_vec(),
            result,
            response: changed(&response_before, request.response()),
            list: changed(&list_before, request.list()),
        });
        result
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        let mapping = self.inner.map(offset, len);
        self.lock().exchanges.push(Exchange::Map {
            offset,
            len,
            result: mapping.as_ref().map(|_| ()).map_err(|errno| *errno),
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
