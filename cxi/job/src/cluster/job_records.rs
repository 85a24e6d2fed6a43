//! Records of a node's jobs: a file for each job, which is written before the job gets a service
//! and removed after its last service is gone.
//!
//! A job whose record names a component is running; one whose record names none has ended, and its
//! services are not gone yet; one without a record is clean.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cxi::{DeviceId, Member, Members, ServiceId, VniAccess, VniList, kernel_file};
use serde::{Deserialize, Serialize};

use super::SiteError;
use super::decisions::Decision;
use super::store::{Format, PUBLIC, RecordError, cannot, name_of, names, remove};
use crate::owners::{Begun, Claim, Intent, Maker, OwnedService};
use crate::{Grant, describe};
use cxi_site::durable::{self, FileLock, LockGuard, Owner};
use cxi_site::pool::Timestamp;
use cxi_site::settings::Settings;
use cxi_site::{ErrorCode, IdSet, JobId};

const JOB_RECORD: Format = Format {
    name: "job record",
    format: "cxi job on a node",
    holds: "what a job has on this node",
};

/// The end of a record's name.
const RECORD: &str = ".json";

/// The name of the file with the time of the last cleanup, which is no job's.
const CLEANED: &str = ".cleaned";

/// The boot of this machine, which no service survives; empty if the kernel does not say.
pub(super) fn boot_id() -> String {
    let id = kernel_file::read(Path::new("/proc/sys/kernel/random/boot_id"));
    id.map(|id| id.trim().to_owned()).unwrap_or_default()
}

const COLLECTIVES_RECORD: Format = Format {
    name: "reservation",
    format: "cxi job reservation",
    holds: "what a job has at the fabric manager",
};

const CLEANUP: Format = Format {
    name: "time of the last cleanup",
    format: "cxi cleanup of a node",
    holds: "when this node was last cleaned up",
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

/// Record of a job on a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct JobRecord {
    /// The job; for a heterogeneous one, its leader.
    pub job: JobId,
    /// Members of its services.
    pub members: Vec<Member>,
    /// `None` for a job that wants none.
    pub vnis: Option<VniAccess>,
    /// The components that run here: the job itself, or those of a heterogeneous job. Empty once it has
    /// ended.
    pub running: BTreeSet<JobId>,
    /// `true` if the controller decided it, and says when it has ended.
    pub decided: bool,
    /// `true` if rendezvous gets are off while it runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disable_rdzv_get: bool,
    /// Services that it got, as soon as it has.
    pub grant: Option<Grant>,
    /// The services that were made for it, by all its components.
    #[serde(default)]
    pub made: Vec<OwnedService>,
    /// While a prolog makes services, what it has begun and not named yet. A killed one leaves it so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub begun: Vec<Begun>,
    /// Size of each component, in words: a repeated prolog asks for the same.
    #[serde(default)]
    pub sizes: BTreeMap<JobId, String>,
    /// The boot in which its services were made; empty where that is not known.
    #[serde(default)]
    pub boot: String,
}

impl JobRecord {
    /// Returns the record that a node that has forgotten a job must have had of it.
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
            made: Vec::new(),
            begun: Vec::new(),
            sizes: BTreeMap::new(),
            boot: boot_id(),
        }
    }

    /// Returns whether its services can still be there.
    pub(crate) fn is_of_this_boot(&self) -> bool {
        self.boot.is_empty() || self.boot == boot_id()
    }

    /// Returns its claim. Services do not survive a boot.
    pub(crate) fn claim(&self, lives: bool) -> Claim {
        let mut services = self.made.clone();
        // A record of an earlier version names them in the grant only.
        if services.is_empty() {
            services = self.grant.as_ref().map(Grant::owned).unwrap_or_default();
        }
        let intent = self.vnis.filter(|_| !self.begun.is_empty()).map(|vnis| Intent {
            members: self.members().ok(),
            vnis,
            begun: self.begun.clone(),
        });
        let maker = Maker::Job { job: self.job.clone(), lives };
        if self.is_of_this_boot() {
            Claim { maker, services, unknown: Vec::new(), intent }
        } else {
            Claim { maker, services: Vec::new(), unknown: Vec::new(), intent: None }
        }
    }

    fn members(&self) -> Result<Members, cxi::InvalidValue> {
        Members::new(self.members.iter().copied())
    }

    /// Returns the purpose of the record and the size of its components, in words.
    pub(crate) fn request(&self, component: &JobId) -> String {
        let members = self.request_members();
        let vnis = self.vnis.map_or_else(|| "no VNI".to_owned(), describe::vnis);
        match self.sizes.get(component) {
            Some(size) => format!("{members}, {vnis}, {size}"),
            None => format!("{members}, {vnis}"),
        }
    }

    /// Its members in words.
    pub(crate) fn request_members(&self) -> String {
        self.members().map(|members| members.to_string()).unwrap_or_default()
    }

    /// Its VNIs as a set.
    #[must_use]
    pub fn vni_set(&self) -> IdSet {
        self.vnis.iter().flat_map(VniAccess::iter).map(cxi::Vni::get).collect()
    }

    /// Names a service that was made for the job.
    pub(super) fn name(&mut self, made: OwnedService) {
        let OwnedService { device, service, .. } = made;
        self.made.retain(|one| (one.device, one.service) != (device, service));
        self.begun.retain(|begun| begun.device != device);
        self.made.push(made);
    }

    /// Returns whether it names a service.
    pub(super) fn names(&self, device: DeviceId, service: ServiceId) -> bool {
        self.made.iter().any(|one| (one.device, one.service) == (device, service))
    }

    /// Returns whether it is for the same services of the same users.
    pub(super) fn has_services_of(&self, other: &Self) -> bool {
        self.members == other.members && self.vnis == other.vnis
    }
}

/// The directory of a node's job records.
#[derive(Clone, Debug)]
pub(super) struct JobRecords {
    directory: PathBuf,
    lock: FileLock,
}

impl JobRecords {
    pub(super) fn new(directory: PathBuf, wait: Duration, settings: &Settings) -> Self {
        let lock = settings.file_lock(directory.join(".lock")).wait(wait);
        Self { directory, lock }
    }

    pub(super) fn path(&self, job: &JobId) -> Result<PathBuf, RecordError> {
        Ok(self.directory.join(format!("{}{RECORD}", name_of(job)?)))
    }

    /// A job's record. A user other than root reads the copy for the job's user.
    pub(super) fn read(&self, job: &JobId) -> Result<Option<JobRecord>, RecordError> {
        let record = match JOB_RECORD.read::<JobRecord>(&self.path(job)?) {
            Err(error) if error.code() == ErrorCode::NotPermitted => {
                return JOB_RECORD
                    .read(&self.copy_path(job)?)?
                    .map_or(Err(error), |copy| Ok(Some(copy)));
            }
            read => read?,
        };
        if let Some(record) = record.as_ref().filter(|record| record.job != *job) {
            let reason = format!("the record is of job {}: expected one of job {job}", record.job);
            return Err(RecordError::Invalid { path: self.path(job)?, reason });
        }
        Ok(record)
    }

    /// All records that can be used, and why the others cannot: what is wrong with one says nothing of
    /// the others.
    pub(super) fn all(&self) -> Result<(Vec<JobRecord>, Vec<RecordError>), RecordError> {
        let (mut records, mut broken) = (Vec::new(), Vec::new());
        for name in names(&self.directory)? {
            let Some(job) = name.strip_suffix(RECORD).and_then(|job| JobId::new(job).ok()) else {
                continue;
            };
            match self.read(&job) {
                // One that is gone has ended since the directory was read.
                Ok(record) => records.extend(record),
                // Those of other users.
                Err(error) if error.code() == ErrorCode::NotPermitted => {}
                Err(error) => broken.push(error),
            }
        }
        Ok((records, broken))
    }

    /// Puts a record that cannot be used aside, for an administrator, so that its job can go on without
    /// it. Whose services it named is not known any more. Needs the lock.
    pub(super) fn set_aside(error: &RecordError) -> Result<(), RecordError> {
        let RecordError::Invalid { path, .. } = error else { return Ok(()) };
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".broken");
        let aside = path.with_file_name(name);
        durable::may_change()
            .and_then(|()| fs::rename(path, &aside))
            .map_err(cannot(path, "put aside"))
    }

    /// Locks the records for a process that changes them.
    pub(super) fn lock(&self) -> Result<LockGuard, SiteError> {
        let guard = self.lock.acquire()?;
        durable::remove_abandoned(&self.directory, OsStr::new("."));
        Ok(guard)
    }

    /// Removes what killed processes left of records that they were writing.
    pub(super) fn remove_unfinished(&self) -> Result<(), SiteError> {
        let directory = &self.directory;
        if durable::exists(directory).map_err(cannot(directory, "read"))? {
            drop(self.lock()?);
        }
        Ok(())
    }

    /// Notes that a cleanup came to its end.
    pub(super) fn note_cleanup(&self, at: Timestamp) -> Result<(), RecordError> {
        if self.directory.exists() {
            CLEANUP.write(&self.directory.join(CLEANED), &at, PUBLIC)?;
        }
        Ok(())
    }

    /// Time at which the last cleanup came to its end; `None` if there was none since the node started.
    pub(super) fn last_cleanup(&self) -> Result<Option<Timestamp>, RecordError> {
        CLEANUP.read(&self.directory.join(CLEANED))
    }

    /// Writes a record for root, and then a copy for the job's user. Root never reads the copy: its
    /// owner could change it, and name services of others.
    pub(super) fn write(&self, record: &JobRecord) -> Result<(), RecordError> {
        let private = Owner::Set { uid: None, mode: 0o600 };
        JOB_RECORD.write(&self.path(&record.job)?, record, private)?;
        let mut users = record.members.iter().filter_map(|member| match member {
            Member::Uid(uid) => Some(*uid),
            _ => None,
        });
        let copy = match users.next() {
            Some(uid) => Owner::Set { uid: Some(uid), mode: 0o400 },
            // Of a group or a network namespace, whoever is in it.
            None => PUBLIC,
        };
        JOB_RECORD.write(&self.copy_path(&record.job)?, record, copy)
    }

    /// Removes the record last: as long as it is there, this is tried again.
    pub(super) fn remove(&self, job: &JobId) -> Result<(), RecordError> {
        remove(&self.reservation_path(job)?)?;
        remove(&self.copy_path(job)?)?;
        remove(&self.path(job)?)
    }

    fn copy_path(&self, job: &JobId) -> Result<PathBuf, RecordError> {
        Ok(self.directory.join(format!("{}.user", name_of(job)?)))
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
