//! What a node records of its jobs: a file for each job, which is written before the job gets a
//! service and removed after its last service is gone.
//!
//! A job whose record names a component is running; one whose record names none has ended, and its
//! services are not gone yet; one without a record is clean.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cxi::{Member, VniAccess, VniList};
use serde::{Deserialize, Serialize};

use super::SiteError;
use super::decisions::Decision;
use super::store::{Format, PUBLIC, RecordError, cannot, name_of, names, remove};
use crate::durable::{self, FileLock, LockGuard, Owner};
use crate::{Filter, Grant, IdSet, JobId};

const JOB_RECORD: Format = Format {
    name: "job record",
    format: "cxi job on a node",
    holds: "what a job has on this node",
};

const COLLECTIVES_RECORD: Format = Format {
    name: "reservation",
    format: "cxi job reservation",
    holds: "what a job has at the fabric manager",
};

/// A job's reservation at the fabric manager: what each of its steps sets.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CollectivesRecord {
    /// The variables by name; none for a job that starts without hardware collectives.
    pub variables: BTreeMap<String, String>,
}

impl CollectivesRecord {
    pub(super) fn read(path: &Path) -> Result<Option<Self>, RecordError> {
        COLLECTIVES_RECORD.read(path)
    }

    /// Writes it for this user, or else for the caller, and for no one else: it contains the token of
    /// the session.
    pub(super) fn write(&self, path: &Path, uid: Option<u32>) -> Result<(), RecordError> {
        COLLECTIVES_RECORD.write(path, self, Owner::Set { uid, mode: 0o600 })
    }
}

/// What a job has on a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct JobRecord {
    /// The job; for a heterogeneous one, its leader.
    pub job: JobId,
    /// Who may use its services.
    pub members: Vec<Member>,
    /// `None` for a job that wants none.
    pub vnis: Option<VniAccess>,
    /// The components that run here: the job itself, or those of a heterogeneous job. Empty once it has
    /// ended.
    pub running: BTreeSet<JobId>,
    /// Whether the controller decided it, and says when it has ended.
    pub decided: bool,
    /// Whether rendezvous gets are off while it runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disable_rdzv_get: bool,
    /// What it got, as soon as it has.
    pub grant: Option<Grant>,
}

impl JobRecord {
    /// What a node that has forgotten a job must have had of it.
    pub(super) fn of_decision(decision: &Decision) -> Self {
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

    /// Its VNIs as a set.
    #[must_use]
    pub fn vni_set(&self) -> IdSet {
        self.vnis.iter().flat_map(VniAccess::iter).map(cxi::Vni::get).collect()
    }

    /// The job's services, by what they are: a grant may be missing, and ids are used again.
    pub(super) fn filter(&self) -> Option<Filter> {
        let filter = Filter::vnis(self.vnis?.iter());
        Some(self.members.iter().copied().fold(filter, Filter::and))
    }

    /// Whether it is for the same services of the same users.
    pub(super) fn has_services_of(&self, other: &Self) -> bool {
        self.members == other.members && self.vnis == other.vnis
    }
}

/// The directory of a node's job records.
#[derive(Clone, Debug)]
pub(super) struct JobRecords {
    directory: PathBuf,
    wait: Duration,
}

impl JobRecords {
    pub(super) fn new(directory: PathBuf, wait: Duration) -> Self {
        Self { directory, wait }
    }

    pub(super) fn path(&self, job: &JobId) -> Result<PathBuf, RecordError> {
        Ok(self.directory.join(format!("{}.json", name_of(job)?)))
    }

    pub(super) fn read(&self, job: &JobId) -> Result<Option<JobRecord>, RecordError> {
        JOB_RECORD.read(&self.path(job)?)
    }

    /// All records.
    pub(super) fn all(&self) -> Result<Vec<JobRecord>, RecordError> {
        let mut records = Vec::new();
        for name in names(&self.directory)? {
            if Path::new(&name).extension().is_some_and(|kind| kind == "json") {
                // One that is gone has ended since the directory was read.
                records.extend(JOB_RECORD.read(&self.directory.join(&name))?);
            }
        }
        Ok(records)
    }

    /// Locks the records for a process that changes them.
    pub(super) fn lock(&self) -> Result<LockGuard, SiteError> {
        let guard = FileLock::new(self.directory.join(".lock")).wait(self.wait).acquire()?;
        // Users read their jobs' records, whatever the umask of the process that created the
        // directory.
        fs::set_permissions(&self.directory, fs::Permissions::from_mode(0o755))
            .map_err(cannot(&self.directory, "made readable to users"))?;
        durable::remove_abandoned(&self.directory, OsStr::new("."));
        Ok(guard)
    }

    /// Removes what killed processes left of records that they were writing.
    pub(super) fn remove_unfinished(&self) -> Result<(), SiteError> {
        if self.directory.exists() {
            drop(self.lock()?);
        }
        Ok(())
    }

    pub(super) fn write(&self, record: &JobRecord) -> Result<(), RecordError> {
        JOB_RECORD.write(&self.path(&record.job)?, record, PUBLIC)
    }

    pub(super) fn remove(&self, job: &JobId) -> Result<(), RecordError> {
        remove(&self.reservation_path(job)?)?;
        remove(&self.path(job)?)
    }

    fn reservation_path(&self, job: &JobId) -> Result<PathBuf, RecordError> {
        Ok(self.directory.join(format!("{}.secret", name_of(job)?)))
    }

    pub(super) fn reservation(
        &self,
        job: &JobId,
    ) -> Result<Option<CollectivesRecord>, RecordError> {
        CollectivesRecord::read(&self.reservation_path(job)?)
    }

    /// Keeps a job's reservation for its user, or that it has none.
    pub(super) fn keep_reservation(
        &self,
        job: &JobId,
        uid: Option<u32>,
        reservation: Option<&CollectivesRecord>,
    ) -> Result<(), RecordError> {
        let path = self.reservation_path(job)?;
        match reservation {
            Some(reservation) => reservation.write(&path, uid),
            None => remove(&path),
        }
    }
}
