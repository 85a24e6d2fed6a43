//! The report of `cxi selftest`: everything that was asked and answered.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use cxi::{Device, DeviceId, DriverRelease};
use cxi_ioctl::{Errno, Mapping, Record, Recording, Request, Transport};
use cxi_job::cluster::store::Format;
use serde::{Deserialize, Serialize};

use super::steps::{Step, Steps};

pub(crate) const FORMAT: Format =
    Format { name: "report", format: "cxi selftest", holds: "what NICs answered to cxi selftest" };

/// Answers of a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Tested {
    /// Version of this program.
    cxi: String,
    kernel: String,
    pub(crate) nics: Vec<TestOfNic>,
}

impl Tested {
    pub(crate) fn new(nics: Vec<TestOfNic>) -> Self {
        let kernel = cxi::kernel_file::read(Path::new("/proc/sys/kernel/osrelease"));
        Self {
            cxi: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: kernel.unwrap_or_default().trim().to_owned(),
            nics,
        }
    }

    /// Without what identifies the site.
    pub(crate) fn masked(mut self) -> Self {
        let parts = self.nics.iter_mut();
        let parts = parts.flat_map(|nic| std::iter::once(&mut nic.read).chain(&mut nic.write));
        for part in parts {
            part.recording = std::mem::take(&mut part.recording).masked();
        }
        self
    }
}

/// Answers of a NIC.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TestOfNic {
    pub(crate) device: DeviceId,
    /// Release that the driver behaves like.
    pub(crate) driver: String,
    /// The release of the mock that it was compared with.
    pub(crate) mock: DriverRelease,
    pub(crate) as_root: bool,
    pub(crate) read: Part,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) write: Option<Part>,
}

/// The answers, and the commands behind them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) steps: Vec<Step>,
    pub(crate) recording: Recording,
    /// Times of its commands and mappings.
    microseconds: Vec<u64>,
}

/// A NIC that keeps what it is asked.
pub(crate) struct Watched {
    pub(crate) device: Device,
    record: Arc<Record<Arc<Timed>>>,
    timed: Arc<Timed>,
}

impl Watched {
    pub(crate) fn new(device: &Device) -> Self {
        let timed = Arc::new(Timed {
            inner: Arc::clone(device.transport()),
            microseconds: Mutex::default(),
        });
        let record = Arc::new(Record::new(Arc::clone(&timed)));
        let device = device.behind(Arc::clone(&record));
        Self { device, record, timed }
    }

    /// Everything since the last call.
    pub(crate) fn part(&self, steps: Steps) -> Part {
        Part {
            steps: steps.0,
            recording: self.record.take(),
            microseconds: std::mem::take(&mut self.timed.lock()),
        }
    }
}

/// A transport that measures how long each answer takes.
#[derive(Debug)]
struct Timed {
    inner: Arc<dyn Transport>,
    microseconds: Mutex<Vec<u64>>,
}

impl Timed {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u64>> {
        self.microseconds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn time<T>(&self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        let took = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.lock().push(took);
        result
    }
}

impl Transport for Timed {
    fn submit(&self, request: Request<'_>) -> Result<(), Errno> {
        self.time(|| self.inner.submit(request))
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        self.time(|| self.inner.map(offset, len))
    }

    fn file(&self) -> Option<BorrowedFd<'_>> {
        self.inner.file()
    }
}
