//! The file that keeps a pool, and its log.
//!
//! A change is made in this order, so that a `cxi` killed at any point, or a full disk, loses
//! nothing and does nothing twice: the new pool is written beside the file, the change is appended
//! to the log, and the new pool replaces the old one. If only the last step is missing, the next
//! command that opens the pool takes the change from the log.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cxi_job::VniPool;
use cxi_job::pool::log::FileLog;
use cxi_job::pool::{Change, Event, ReplayError, Snapshot};

use super::log;
use crate::exit::Failure;
use crate::state_file::{self, StateFile, VNI_POOL};

/// Where a pool is.
#[derive(Debug)]
pub(crate) struct PoolFiles {
    pub(crate) pool: PathBuf,
    pub(crate) log: Option<PathBuf>,
    /// How long to wait for other commands.
    pub(crate) wait: Duration,
}

/// A pool, locked against changes by other commands.
pub(crate) struct Open {
    pub(crate) pool: VniPool,
    file: StateFile,
    log: Option<FileLog>,
}

/// The pool of a file; `None` if there is no file.
fn load(path: &Path) -> Result<Option<VniPool>, Failure> {
    let Some(snapshot) = state_file::load::<Snapshot>(VNI_POOL, path)? else {
        return Ok(None);
    };
    VniPool::restore(snapshot).map(Some).map_err(|error| {
        Failure::bad_input(format!("{}: {error}", path.display()))
            .hint("The file was left as it is.")
    })
}

fn existing(path: &Path) -> Result<VniPool, Failure> {
    load(path)?.ok_or_else(|| {
        Failure::bad_input(format!("{}: there is no pool of VNIs", path.display()))
            .hint("Make one, such as: cxi vni configure 1024-65535")
            .hint("--pool FILE or CXI_VNI_POOL names another file.")
    })
}

/// Applies what a killed command has logged but not saved.
fn catch_up(pool: &mut VniPool, log: Option<&mut FileLog>) -> Result<bool, Failure> {
    let Some(log) = log else { return Ok(false) };
    let events = log::after(log, pool.sequence())?;
    let taken = pool
        .catch_up(&events)
        .map_err(|error| contradicts(&error))?;
    Ok(taken > 0)
}

fn contradicts(error: &ReplayError) -> Failure {
    Failure::bad_input(format!("the log does not continue the pool: {error}"))
        .hint("Is it the log of another pool? --log or CXI_VNI_LOG names it.")
}

/// The current pool, for reading.
pub(crate) fn look(arguments: &PoolFiles) -> Result<VniPool, Failure> {
    let mut pool = existing(&arguments.pool)?;
    let there = arguments.log.as_deref().filter(|log| log.exists());
    let mut log = there.map(log::look).transpose()?;
    catch_up(&mut pool, log.as_mut())?;
    Ok(pool)
}

/// Locks a pool that need not exist.
pub(super) fn lock(arguments: &PoolFiles) -> Result<StateFile, Failure> {
    StateFile::lock(VNI_POOL, &arguments.pool, arguments.wait)
}

impl Open {
    pub(crate) fn existing(arguments: &PoolFiles) -> Result<Self, Failure> {
        // Nothing is left behind where no pool is.
        existing(&arguments.pool)?;
        let file = lock(arguments)?;
        let pool = existing(file.path())?;
        Self::new(arguments, file, pool)
    }

    /// The pool, and whether it is new.
    pub(super) fn or_new(arguments: &PoolFiles, new: VniPool) -> Result<(Self, bool), Failure> {
        let file = lock(arguments)?;
        if let Some(pool) = load(file.path())? {
            return Ok((Self::new(arguments, file, pool)?, false));
        }
        let open = |path| log::open(path, 0);
        let mut log = arguments.log.as_deref().map(open).transpose()?;
        let logged = log
            .as_mut()
            .map_or(Ok(Vec::new()), |log| log::after(log, 0))?;
        if let Some(pool) = never_used(&logged) {
            file.save(&pool.snapshot())?;
            return Ok((Self { pool, file, log }, false));
        }
        if let Some(first) = logged.first() {
            return Err(Failure::bad_input(format!(
                "{}: there is no pool, and the log has changes of one (the first is number {}): a \
                 new pool would assign the VNIs of its jobs again",
                arguments.pool.display(),
                first.sequence
            ))
            .hint("Make the pool from its log: cxi vni replay LOG")
            .hint("For a pool of its own, name another log with --log."));
        }
        let pool = new;
        Ok((Self { pool, file, log }, true))
    }

    fn new(arguments: &PoolFiles, file: StateFile, mut pool: VniPool) -> Result<Self, Failure> {
        let open = |path| log::open(path, pool.sequence());
        let mut log = arguments.log.as_deref().map(open).transpose()?;
        if catch_up(&mut pool, log.as_mut())? {
            file.save(&pool.snapshot())?;
        }
        Ok(Self { pool, file, log })
    }

    /// Logs a change, and saves the pool.
    pub(crate) fn keep(mut self, event: Option<&Event>) -> Result<VniPool, Failure> {
        let Some(event) = event else {
            return Ok(self.pool);
        };
        if let Some(log) = &mut self.log {
            log::append(log, event)?;
        }
        self.file.save(&self.pool.snapshot()).inspect_err(|_| {
            if let Some(log) = &self.log {
                log.undo();
            }
        })?;
        Ok(self.pool)
    }
}

/// A pool whose `configure` was killed between log and pool: no job has ever had VNIs of it.
fn never_used(logged: &[Event]) -> Option<VniPool> {
    let (first, more) = logged.split_first()?;
    match &first.change {
        Change::Reconfigured { config } if more.is_empty() && first.sequence == 1 => {
            VniPool::replay(config.clone(), logged).ok()
        }
        _ => None,
    }
}

/// Replaces a pool by one that was rebuilt from a log.
pub(super) fn replace(file: &StateFile, pool: &VniPool, force: bool) -> Result<(), Failure> {
    // Replaying is the remedy for a pool that cannot be read.
    if let (Ok(Some(there)), false) = (load(file.path()), force)
        && there.sequence() > pool.sequence()
    {
        return Err(Failure::bad_input(format!(
            "{}: the pool has change {}, the log ends with change {}: what came after it would be \
             lost",
            file.path().display(),
            there.sequence(),
            pool.sequence()
        ))
        .hint("--force replaces it all the same."));
    }
    file.save(&pool.snapshot())
}
