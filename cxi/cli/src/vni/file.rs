//! The file that keeps a pool: a log of its changes.
//!
//! A change is appended as one line, and on the disk before its command prints anything. So a `cxi`
//! killed at any point, or a full disk, loses nothing and does nothing twice.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use cxi_job::VniPool;
use cxi_job::pool::log::{ChangeError, FileLog, SharedPool};
use cxi_job::pool::{PoolConfig, PoolError, Timestamp};
use cxi_job::site::{Act, PoolStore, SiteError};

use crate::exit::Failure;
use crate::files::of_lock;

/// Where a pool is.
#[derive(Debug)]
pub(crate) struct PoolFile {
    pub(crate) path: PathBuf,
    /// How long to wait for other commands.
    pub(crate) wait: Duration,
}

/// A pool, locked against changes by other commands.
pub(crate) type Pool = SharedPool<FileLog>;

impl PoolFile {
    /// The current pool, for reading.
    pub(crate) fn look(&self) -> Result<VniPool, Failure> {
        let pool = SharedPool::open_existing(FileLog::new(&self.path), "");
        let pool = pool.map_err(|error| self.unopened(error))?;
        Ok(pool.ok_or_else(|| self.missing())?.into_pool())
    }

    /// The current pool, to change it.
    pub(crate) fn open(&self) -> Result<Pool, Failure> {
        // A lock file must not be left where there is no pool.
        if !self.path.exists() {
            return Err(self.missing());
        }
        let pool = SharedPool::open_existing(self.lock()?, "");
        let pool = pool.map_err(|error| self.unopened(error))?;
        pool.ok_or_else(|| self.missing())
    }

    /// The pool, and whether it is new.
    pub(super) fn open_or_new(
        &self,
        config: PoolConfig,
        now: Timestamp,
    ) -> Result<(Pool, bool), Failure> {
        let log = self.lock()?;
        let new = fs::metadata(&self.path).map_or(true, |file| file.len() == 0);
        let pool = SharedPool::open(log, config, "", 0, now);
        Ok((pool.map_err(|error| self.unopened(error))?, new))
    }

    fn lock(&self) -> Result<FileLog, Failure> {
        let log = FileLog::new(&self.path).wait(self.wait);
        log.locked()
            .map_err(|error| of_lock(&self.path, "pool file", &error))
    }

    fn missing(&self) -> Failure {
        Failure::bad_input(format!("{}: there is no pool of VNIs", self.path.display()))
            .hint("Make one, such as: cxi vni configure 1024-65535")
            .hint("--pool FILE or CXI_VNI_POOL names another file.")
    }

    fn unopened(&self, error: ChangeError<PoolError>) -> Failure {
        match error {
            ChangeError::Load(error) => Failure::bad_input(error.0.to_string())
                .hint("The file was left as it is. --pool FILE or CXI_VNI_POOL names another one."),
            ChangeError::Append(error) => error.into(),
            error => Failure::bad_input(format!("{}: {error}", self.path.display())),
        }
    }
}

/// The file is opened for each change: a node that confirms needs no pool, and other commands change
/// it while a job waits for VNIs.
impl PoolStore for PoolFile {
    fn change(&self, act: &mut Act<'_>) -> Result<(), SiteError> {
        let own = |failure: Failure| SiteError::PoolStore(Box::new(failure));
        let mut pool = self.open().map_err(own)?;
        let changed = pool.change(Timestamp::now(), |pool, now| act(pool, now));
        changed.map(drop).map_err(|error| match error {
            ChangeError::Refused(error) => error,
            error => own(error.into()),
        })
    }
}
