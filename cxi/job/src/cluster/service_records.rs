//! Makers of services that are not of jobs: a file for each service, written after it is made and
//! removed with it.

use std::fs::File;
use std::path::{Path, PathBuf};

use cxi::{DeviceId, ServiceId};
use serde::{Deserialize, Serialize};

use super::job_records::boot_id;
use super::keys;
use super::store::{Format, RecordError, cannot, names, remove};
use crate::Node;
use crate::owners::{Claim, Maker, OwnedService};
use cxi_site::durable::{self, Owner};
use cxi_site::settings::{Settings, SettingsError};

const SERVICE_RECORD: Format =
    Format { name: "service record", format: "cxi service on a node", holds: "who made a service" };

/// The end of a record's name.
const RECORD: &str = ".json";

/// Record of a service that is not of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ServiceRecord {
    /// The service, and what it was when it was made.
    pub service: OwnedService,
    /// The maker, in words: `an administrator`.
    pub maker: String,
    /// The boot in which it was made.
    pub boot: String,
    /// `true` if its maker holds the lock of this record for as long as it needs the service.
    #[serde(default)]
    pub held: bool,
}

/// A record whose service may go when this is dropped, or the process ends.
#[derive(Debug)]
#[must_use = "the service may go when this is dropped"]
pub struct HeldRecord(#[expect(dead_code, reason = "holds the lock")] File);

/// The directory of a node's service records.
///
/// A recorded service is left by every cleanup: only whoever made it destroys it, or an order that
/// names it.
#[derive(Clone, Debug)]
pub struct ServiceRecords {
    directory: PathBuf,
}

impl ServiceRecords {
    /// The records in a directory.
    #[must_use]
    pub const fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The records of a site's node.
    ///
    /// # Errors
    ///
    /// The setting `node.services` is invalid.
    pub fn of(settings: &Settings) -> Result<Self, SettingsError> {
        Ok(Self::new(settings.get(&keys::NODE_SERVICES)?))
    }

    fn path(&self, device: DeviceId, service: ServiceId) -> PathBuf {
        self.directory.join(format!("{device}-{service}{RECORD}"))
    }

    /// Records who made a service, which stays until it is destroyed by name.
    ///
    /// # Errors
    ///
    /// [`RecordError::Io`].
    pub fn add(&self, service: OwnedService, maker: &str) -> Result<(), RecordError> {
        self.write(service, maker, false).map(drop)
    }

    /// Records who made a service for as long as it holds the record: a cleanup destroys the service of
    /// a process that was killed. To be called under the node's lock, which a cleanup takes, too.
    ///
    /// # Errors
    ///
    /// [`RecordError::Io`].
    pub fn hold(&self, service: OwnedService, maker: &str) -> Result<HeldRecord, RecordError> {
        let path = self.write(service, maker, true)?;
        let file = durable::open_regular(&path).and_then(|file| {
            file.try_lock()?;
            Ok(file)
        });
        Ok(HeldRecord(file.map_err(cannot(&path, "locked"))?))
    }

    fn write(
        &self,
        service: OwnedService,
        maker: &str,
        held: bool,
    ) -> Result<PathBuf, RecordError> {
        durable::create_dir(&self.directory).map_err(cannot(&self.directory, "created"))?;
        let path = self.path(service.device, service.service);
        let record = ServiceRecord { service, maker: maker.to_owned(), boot: boot_id(), held };
        let private = Owner::Set { uid: None, mode: 0o600 };
        SERVICE_RECORD.write(&path, &record, private)?;
        Ok(path)
    }

    /// Follows a change of a service that has a record, which otherwise would be of another service.
    ///
    /// # Errors
    ///
    /// [`RecordError`].
    pub fn follow(&self, changed: OwnedService) -> Result<(), RecordError> {
        let path = self.path(changed.device, changed.service);
        let record: Option<ServiceRecord> = SERVICE_RECORD.read(&path)?;
        match record.filter(|it| it.boot == boot_id() && !it.held && it.service != changed) {
            Some(record) => self.add(changed, &record.maker),
            None => Ok(()),
        }
    }

    /// Forgets a service that is destroyed.
    ///
    /// # Errors
    ///
    /// [`RecordError::Io`].
    pub fn remove(&self, device: DeviceId, service: ServiceId) -> Result<(), RecordError> {
        remove(&self.path(device, service))
    }

    /// All records of this boot that can be used.
    ///
    /// # Errors
    ///
    /// [`RecordError::Io`]: the directory cannot be read.
    pub fn all(&self) -> Result<Vec<ServiceRecord>, RecordError> {
        let boot = boot_id();
        let records = self.read()?.into_iter().filter_map(|found| found.record.ok());
        Ok(records.filter(|record| record.boot == boot).collect())
    }

    /// The records that are called after a service, and what they contain.
    fn read(&self) -> Result<Vec<Found>, RecordError> {
        let names = names(&self.directory)?;
        let found = names.iter().filter_map(|name| {
            let service = service_of(name.strip_suffix(RECORD)?)?;
            let path = self.directory.join(name);
            let record = SERVICE_RECORD.read(&path).transpose()?.map_err(|error| error.to_string());
            Some(Found { service, path, record })
        });
        Ok(found.collect())
    }

    pub(super) fn claims(&self) -> Result<Vec<Claim>, RecordError> {
        let boot = boot_id();
        let claims = self.read()?.into_iter().filter_map(|Found { service, path, record }| {
            let (mut services, mut unknown) = (Vec::new(), Vec::new());
            let maker = match record {
                Ok(record) if record.boot != boot => return None,
                Ok(record) => {
                    services.push(record.service);
                    let ended = record.held && !is_locked(&path);
                    if ended { Maker::Ended(record.maker) } else { Maker::Other(record.maker) }
                }
                // A broken one still claims the service that it is called after.
                Err(error) => {
                    unknown.push(service);
                    Maker::Other(format!("somebody (the record cannot be used: {error})"))
                }
            };
            Some(Claim { maker, services, unknown, intent: None })
        });
        Ok(claims.collect())
    }

    /// Removes the records of services that are gone: of another boot, destroyed by other programs, or by
    /// one that was killed before it removed the record.
    pub(super) fn tidy(&self, node: &Node) -> Result<(), RecordError> {
        // Before the lists: a service that is recorded now was made before that.
        let before = self.read()?;
        if before.is_empty() {
            return Ok(());
        }
        let (services, failed) = node.list_services();
        let (boot, mut now) = (boot_id(), self.read()?);
        // One that was written in the meantime may be of a new service.
        now.retain(|found| before.contains(found));
        for Found { service: (nic, id), path, record } in now {
            let unknown = failed.iter().any(|failed| failed.device == nic);
            let is_there =
                services.iter().any(|(device, service)| device.id() == nic && service.id() == id);
            let of_other_boot = record.is_ok_and(|record| record.boot != boot);
            if of_other_boot || !is_there && !unknown {
                remove(&path)?;
            }
        }
        Ok(())
    }
}

/// Record by the service that it is called after; or the reason why it cannot be used.
#[derive(PartialEq)]
struct Found {
    service: (DeviceId, ServiceId),
    path: PathBuf,
    record: Result<ServiceRecord, String>,
}

/// Returns whether the maker of a service holds its record. If that cannot be found out, it may.
fn is_locked(record: &Path) -> bool {
    let is_free = durable::open_regular(record).is_ok_and(|file| file.try_lock().is_ok());
    !is_free
}

/// The service that a record is called after: `cxi0-2`.
fn service_of(name: &str) -> Option<(DeviceId, ServiceId)> {
    let (device, service) = name.rsplit_once('-')?;
    Some((device.parse().ok()?, ServiceId::new(service.parse().ok()?).ok()?))
}
