//! A pool on a shared log.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use super::{AppendError, EventLog, LogError, Record};
use crate::pool::{
    Allotment, Changed, PoolConfig, PoolError, ReplayError, ReserveError, Timestamp, VniPool,
    VniRequest,
};
use crate::{JobId, NodeName};

/// Number of times that a change is tried while other writers are faster. Each lost attempt is a
/// change that another writer made, so the writers together always make progress.
const ATTEMPTS: u32 = 100;
/// After so many changes the pool is saved, so that no reader needs many more.
const SAVE_EACH: u64 = 5_000;

/// A pool that follows a log: a change is in the log before its result is returned.
///
/// ```
/// use cxi_site::JobId;
/// use cxi_site::pool::log::{MemoryLog, SharedPool};
/// use cxi_site::pool::{PoolConfig, Timestamp, VniRequest};
///
/// let log = MemoryLog::new();
/// let config = PoolConfig::new("1024-65535".parse()?);
/// let now = Timestamp::from_millis(0);
/// let mut first = SharedPool::open(log.clone(), config.clone(), "one/1", 1, now)?;
/// let job = JobId::new("17")?;
/// let vnis = first.reserve(&job, &VniRequest::vnis(1), now)?;
///
/// // The standby takes over. It has what the first one gave away.
/// let mut second = SharedPool::open(log, config, "two/1", 2, now)?;
/// assert_eq!(second.pool().job(&job).unwrap().vnis, vnis);
/// // The first one wakes up, and gets an error.
/// let late = first.release(&job, &[], now);
/// assert!(late.unwrap_err().is_deposed());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SharedPool<L> {
    log: L,
    pool: VniPool,
    writer: String,
    epoch: u64,
    /// The highest epoch and the latest time in the log.
    seen: (u64, Timestamp),
    /// When a change is given up that others are faster than.
    deadline: Option<Instant>,
}

/// Reason for which a pool was not opened, or a change was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError<E> {
    /// The pool refuses.
    #[error(transparent)]
    Refused(E),
    /// The log cannot be read.
    #[error(transparent)]
    Load(#[from] LogError),
    /// The log contradicts the pool.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The log was not written, or, with [`AppendError::Unknown`], may yet turn out to have been:
    /// the same change again finds out.
    #[error(transparent)]
    Append(AppendError),
    /// Other writers were faster every time.
    #[error("the log of the pool has changed at each attempt")]
    Contended,
}

impl<E> ChangeError<E> {
    /// Returns whether another leader has taken over: this one must not try again.
    #[must_use]
    pub const fn is_deposed(&self) -> bool {
        matches!(self, Self::Append(AppendError::Deposed { .. }))
    }

    /// Returns the refusal of the pool, or else the error of the log.
    ///
    /// # Errors
    /// The error, unless it is a refusal by the pool.
    pub fn into_refusal(self) -> Result<E, ChangeError<Infallible>> {
        match self {
            Self::Refused(error) => Ok(error),
            Self::Load(error) => Err(ChangeError::Load(error)),
            Self::Replay(error) => Err(ChangeError::Replay(error)),
            Self::Append(error) => Err(ChangeError::Append(error)),
            Self::Contended => Err(ChangeError::Contended),
        }
    }
}

impl<L: EventLog> SharedPool<L> {
    /// Opens the pool of a log, or begins one with `config` if the log is empty.
    ///
    /// `writer` is a name that no other writer has, nor this one after a restart. `epoch` is the
    /// number of the leadership, higher than any before it; with 0 for all, there are no leaders.
    /// An epoch that the log does not have yet is logged, so that earlier leaders can no longer
    /// write.
    ///
    /// # Errors
    /// [`ChangeError`]; [`ChangeError::Replay`] also if the configuration is unusable.
    pub fn open(
        mut log: L,
        config: PoolConfig,
        writer: impl Into<String>,
        epoch: u64,
        now: Timestamp,
    ) -> Result<Self, ChangeError<PoolError>> {
        let records = log.load(0)?;
        let first = records.first().and_then(|it| it.event.change.config());
        let config = first.cloned().unwrap_or(config);
        let mut shared = Self::follow(log, &records, config, writer.into(), epoch)?;
        let _ = shared.change(now, |pool, now| {
            if pool.sequence() > 0 && epoch == 0 {
                return Ok(Changed::nothing());
            }
            pool.record_config(now)
        })?;
        Ok(shared)
    }

    /// Opens the pool of a log that has one; `None` if the log is empty. Nothing is logged: with an
    /// epoch below that of the latest leader, each change is refused.
    ///
    /// # Errors
    /// [`ChangeError::Load`] or [`ChangeError::Replay`].
    pub fn open_existing(
        mut log: L,
        writer: impl Into<String>,
        epoch: u64,
    ) -> Result<Option<Self>, ChangeError<PoolError>> {
        let records = log.load(0)?;
        let Some(first) = records.first() else { return Ok(None) };
        let Some(config) = first.event.change.config().cloned() else {
            let wrong = "it does not begin with the configuration of a pool";
            return Err(LogError(wrong.into()).into());
        };
        Self::follow(log, &records, config, writer.into(), epoch).map(Some)
    }

    /// A pool with what a log has; `config` is the one before its first record.
    fn follow(
        log: L,
        records: &[Record],
        config: PoolConfig,
        writer: String,
        epoch: u64,
    ) -> Result<Self, ChangeError<PoolError>> {
        let mut shared = Self {
            log,
            pool: VniPool::replay(config, &[])?,
            writer,
            epoch,
            seen: (0, Timestamp::default()),
            deadline: None,
        };
        shared.take_over(records)?;
        Ok(shared)
    }

    /// The pool as it was when the log was read last.
    #[must_use]
    pub const fn pool(&self) -> &VniPool {
        &self.pool
    }

    /// That pool without its log, for reading.
    #[must_use]
    pub fn into_pool(self) -> VniPool {
        self.pool
    }

    /// Sets how long all changes from now on may take together: waiting for the log, and for other
    /// writers.
    pub fn within(&mut self, time: Duration) {
        self.deadline = Instant::now().checked_add(time);
        self.log.within(time);
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Reads what others have appended.
    ///
    /// # Errors
    /// [`ChangeError::Load`] or [`ChangeError::Replay`].
    pub fn catch_up<E>(&mut self) -> Result<(), ChangeError<E>> {
        let records = self.log.load(self.pool.sequence())?;
        Ok(self.take_over(&records)?)
    }

    /// Makes a change: `act` gets the pool as it is, and the time, and changes it. It is called again
    /// if others were faster. The event of what this returns is in the log.
    ///
    /// The time is never earlier than that of an event in the log, even if the clock of this machine is
    /// behind: no VNI rests for less time than configured.
    ///
    /// # Errors
    /// [`ChangeError`]. Nothing has changed, except perhaps with [`AppendError::Unknown`].
    pub fn change<T, E>(
        &mut self,
        now: Timestamp,
        mut act: impl FnMut(&mut VniPool, Timestamp) -> Result<Changed<T>, E>,
    ) -> Result<Changed<T>, ChangeError<E>> {
        for _ in 0..ATTEMPTS {
            self.catch_up()?;
            if self.seen.0 > self.epoch {
                let epoch = self.seen.0;
                return Err(ChangeError::Append(AppendError::Deposed { epoch }));
            }
            if let Some(changed) = self.attempt(now, &mut act)? {
                return Ok(changed);
            }
            if self.is_late() {
                break;
            }
        }
        Err(ChangeError::Contended)
    }

    /// Takes the lead: the next epoch is this pool's, and earlier leaders can no longer write. Returns
    /// that epoch, for further processes of the same leader.
    ///
    /// # Errors
    /// [`ChangeError`]. Nothing has changed, except perhaps with [`AppendError::Unknown`].
    pub fn lead(&mut self, now: Timestamp) -> Result<u64, ChangeError<PoolError>> {
        for _ in 0..ATTEMPTS {
            self.catch_up()?;
            // Not before: two that take the lead at the same time must not get the same epoch.
            self.epoch = self.seen.0.saturating_add(1);
            let mut record = |pool: &mut VniPool, now| pool.record_config(now);
            if self.attempt(now, &mut record)?.is_some() {
                return Ok(self.epoch);
            }
        }
        Err(ChangeError::Contended)
    }

    /// Makes a change of the log as it was when it was read; `None` if it has moved since.
    fn attempt<T, E>(
        &mut self,
        now: Timestamp,
        act: &mut impl FnMut(&mut VniPool, Timestamp) -> Result<Changed<T>, E>,
    ) -> Result<Option<Changed<T>>, ChangeError<E>> {
        let mut next = self.pool.clone();
        let Changed { result, event } =
            act(&mut next, now.max(self.seen.1)).map_err(ChangeError::Refused)?;
        let Some(event) = event else { return Ok(Some(Changed { result, event })) };
        let record = Record { epoch: self.epoch, writer: self.writer.clone(), event };
        match self.append(&record) {
            Ok(()) => {}
            Err(AppendError::Moved) => return Ok(None),
            Err(error) => return Err(ChangeError::Append(error)),
        }
        let event = record.event;
        self.seen = (self.epoch, event.at.max(self.seen.1));
        self.pool = next;
        if self.pool.sequence().is_multiple_of(SAVE_EACH) {
            // If that fails, the log is longer until the next time.
            let _ = self.save(now);
        }
        let event = Some(event);
        Ok(Some(Changed { result, event }))
    }

    /// Reserves VNIs for a job; see [`VniPool::reserve`].
    ///
    /// # Errors
    /// [`ChangeError`].
    pub fn reserve(
        &mut self,
        job: &JobId,
        request: &VniRequest,
        now: Timestamp,
    ) -> Result<Allotment, ChangeError<ReserveError>> {
        Ok(self.change(now, |pool, now| pool.reserve(job, request, now))?.result)
    }

    /// Frees the VNIs of a job that did not start; see [`VniPool::cancel`].
    ///
    /// # Errors
    /// [`ChangeError`].
    pub fn cancel(&mut self, job: &JobId, now: Timestamp) -> Result<(), ChangeError<PoolError>> {
        self.change(now, |pool, now| pool.cancel(job, now)).map(drop)
    }

    /// Ends a job's use of its VNIs; see [`VniPool::release`].
    ///
    /// # Errors
    /// [`ChangeError`].
    pub fn release(
        &mut self,
        job: &JobId,
        nodes: &[NodeName],
        now: Timestamp,
    ) -> Result<(), ChangeError<PoolError>> {
        self.change(now, |pool, now| pool.release(job, nodes, now)).map(drop)
    }

    /// Records that a node has destroyed all of the job's services; see [`VniPool::confirm`].
    ///
    /// # Errors
    /// [`ChangeError`].
    pub fn confirm(
        &mut self,
        job: &JobId,
        node: &NodeName,
        now: Timestamp,
    ) -> Result<(), ChangeError<PoolError>> {
        self.change(now, |pool, now| pool.confirm(job, node, now)).map(drop)
    }

    /// Lets the log begin with the pool as it is. This happens automatically every 5,000 changes.
    ///
    /// # Errors
    /// As [`SharedPool::change`]; with [`AppendError::Failed`], the pool may be too large for the store.
    pub fn save(&mut self, now: Timestamp) -> Result<(), ChangeError<PoolError>> {
        self.change(now, VniPool::save).map(drop)
    }

    /// Appends a record. If the answer is lost, reads the log: it has the record, or another one with
    /// its number, or neither, in which case the record is sent again, as the log accepts only one with
    /// that number. If the log begins after that number by now, the outcome cannot be known.
    fn append(&mut self, record: &Record) -> Result<(), AppendError> {
        let mut outcome = self.log.append(record);
        let mut unknown = false;
        for _ in 0..4 {
            match &outcome {
                Err(AppendError::Unknown(_)) => unknown = true,
                // The request before this one may have arrived late.
                Err(AppendError::Moved) if unknown => {}
                _ => break,
            }
            let Ok(found) = self.log.load(record.event.sequence - 1) else { break };
            outcome = match found.first() {
                Some(first) if first == record => Ok(()),
                Some(first) if first.event.sequence == record.event.sequence => {
                    Err(AppendError::Moved)
                }
                Some(_) => {
                    return Err(AppendError::Unknown("the log now begins behind it".into()));
                }
                None => self.log.append(record),
            };
        }
        outcome
    }

    fn take_over(&mut self, records: &[Record]) -> Result<(), ReplayError> {
        self.pool.catch_up(records.iter().map(|it| &it.event))?;
        for record in records {
            let (epoch, at) = self.seen;
            self.seen = (epoch.max(record.epoch), at.max(record.event.at));
        }
        Ok(())
    }
}
