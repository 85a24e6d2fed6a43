//! What runs on a node: one file for each job, which is written before the job gets a service and
//! removed after its last one is gone.
//!
//! A job whose record names a component is running; one whose record names none has ended, and
//! its services are not gone yet; one without a record is clean.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cxi::{Member, VniAccess, VniList};
use cxi_job::durable::{FileLock, LockGuard};
use cxi_job::{Filter, Grant, IdSet, JobId};
use serde::{Deserialize, Serialize};

use super::controller::Decision;
use super::{Readers, Reservation, cannot, name_of, names, read, remove, write};
use crate::exit::{Exit, Failure};
use crate::state_file::NODE_RECORD;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodeRecord {
    pub(crate) job: JobId,
    pub(crate) members: Vec<Member>,
    /// `None` for a job that wants none.
    pub(crate) vnis: Option<VniAccess>,
    /// The job itself, or components of a heterogeneous job.
    pub(crate) running: BTreeSet<JobId>,
    /// Whether the controller decided it, and says when it has ended.
    pub(crate) decided: bool,
    /// Whether rendezvous gets are off as long as it runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) disable_rdzv_get: bool,
    /// What it got, once it has.
    pub(crate) grant: Option<Grant>,
}

impl NodeRecord {
    /// What a node that has forgotten a job must have had of it.
    pub(crate) fn of_decision(decision: &Decision) -> Self {
        let list = VniList::new(decision.vnis.iter().copied()).ok();
        Self {
            job: decision.job.clone(),
            members: vec![Member::Uid(decision.uid)],
            vnis: list.filter(|list| !list.is_empty()).map(VniAccess::List),
            running: BTreeSet::new(),
            decided: true,
            disable_rdzv_get: decision.network.disable_rdzv_get,
            grant: None,
        }
    }

    pub(crate) fn vnis(&self) -> IdSet {
        let vnis = self.vnis.iter().flat_map(VniAccess::iter);
        vnis.map(cxi::Vni::get).collect()
    }

    /// The job's services, by what they are: a grant may be missing, and ids are used again.
    pub(crate) fn filter(&self) -> Option<Filter> {
        let vnis = self.vnis?;
        let filter = Filter::vnis(vnis.iter());
        Some(
            self.members
                .iter()
                .fold(filter, |filter, member| filter.and(*member)),
        )
    }

    /// The same services for the same users.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.members == other.members && self.vnis == other.vnis
    }
}

/// The directory of them.
#[derive(Clone, Debug)]
pub(crate) struct NodeRecords {
    directory: PathBuf,
    wait: Duration,
}

impl NodeRecords {
    pub(crate) fn new(directory: PathBuf, wait: Duration) -> Self {
        Self { directory, wait }
    }

    pub(crate) fn path(&self, job: &JobId) -> Result<PathBuf, Failure> {
        Ok(self.directory.join(format!("{}.json", name_of(job)?)))
    }

    pub(crate) fn read(&self, job: &JobId) -> Result<Option<NodeRecord>, Failure> {
        read(NODE_RECORD, &self.path(job)?)
    }

    /// All of them.
    pub(crate) fn all(&self) -> Result<Vec<NodeRecord>, Failure> {
        let mut records = Vec::new();
        for name in names(&self.directory)? {
            if Path::new(&name)
                .extension()
                .is_some_and(|kind| kind == "json")
            {
                // One that is gone has ended since the directory was read.
                records.extend(read(NODE_RECORD, &self.directory.join(&name))?);
            }
        }
        Ok(records)
    }

    /// For who changes them.
    pub(crate) fn lock(&self) -> Result<LockGuard, Failure> {
        let lock = FileLock::new(self.directory.join(".lock")).wait(self.wait);
        let guard = lock.acquire().map_err(|error| {
            let exit = if error.is_busy() {
                Exit::Busy
            } else {
                Exit::Failed
            };
            Failure::new(exit, error.to_string())
        })?;
        // Users read their jobs' records, whatever the umask of who made the directory.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&self.directory, mode)
            .map_err(|error| cannot(&self.directory, "be opened to users", &error))?;
        Ok(guard)
    }

    pub(crate) fn write(&self, record: &NodeRecord) -> Result<(), Failure> {
        write(NODE_RECORD, &self.path(&record.job)?, record, Readers::All)
    }

    pub(crate) fn remove(&self, job: &JobId) -> Result<(), Failure> {
        remove(&self.reservation_path(job)?)?;
        remove(&self.path(job)?)
    }

    fn reservation_path(&self, job: &JobId) -> Result<PathBuf, Failure> {
        Ok(self.directory.join(format!("{}.secret", name_of(job)?)))
    }

    pub(crate) fn reservation(&self, job: &JobId) -> Result<Option<Reservation>, Failure> {
        Reservation::read(&self.reservation_path(job)?)
    }

    /// Keeps a job's reservation for its user, or that it has none.
    pub(crate) fn keep_reservation(
        &self,
        job: &JobId,
        uid: Option<u32>,
        reservation: Option<&Reservation>,
    ) -> Result<(), Failure> {
        let path = self.reservation_path(job)?;
        match reservation {
            Some(reservation) => reservation.write(&path, uid),
            None => remove(&path),
        }
    }
}
