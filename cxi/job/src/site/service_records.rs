//! Makers of services that are not of jobs: a file for each service, written after it is made and
//! removed with it.

use std::path::PathBuf;

use cxi::{DeviceId, ServiceId};
use serde::{Deserialize, Serialize};

use super::job_records::boot_id;
use super::keys;
use super::store::{Format, RecordError, names, remove};
use crate::durable::{self, Owner};
use crate::owners::{Claim, Maker, OwnedService};
use crate::settings::{Settings, SettingsError};

const SERVICE_RECORD: Format =
    Format { name: "service record", format: "cxi service on a node", holds: "who made a service" };

/// The end of a record's name.
const RECORD: &str = ".json";

/// Record of a service that is not of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ServiceRecord {
    /// The service, and what it was when it was made.
    pub service: OwnedService,
    /// The maker, in words: `an administrator`.
    pub maker: String,
    /// The boot in which it was made.
    pub boot: String,
}

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

    /// Records who made a service.
    ///
    /// # Errors
    ///
    /// [`RecordError::Io`].
    pub fn add(&self, service: OwnedService, maker: &str) -> Result<(), RecordError> {
        durable::create_dir(&self.directory)
            .map_err(super::store::cannot(&self.directory, "created"))?;
        let path = self.path(service.device, service.service);
        let record = ServiceRecord { service, maker: maker.to_owned(), boot: boot_id() };
        let private = Owner::Set { uid: None, mode: 0o600 };
        SERVICE_RECORD.write(&path, &record, private)
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
        let names = names(&self.directory)?;
        let records = names.iter().filter_map(|name| {
            name.strip_suffix(RECORD)?;
            // A broken one still claims the service that it is called after.
            SERVICE_RECORD.read::<ServiceRecord>(&self.directory.join(name)).ok().flatten()
        });
        Ok(records.filter(|record| record.boot == boot).collect())
    }

    pub(super) fn claims(&self) -> Result<Vec<Claim>, RecordError> {
        let claim = |maker, services, unknown| Claim {
            maker: Maker::Other(maker),
            services,
            unknown,
            intent: None,
        };
        let records = self.all()?.into_iter();
        let mut claims: Vec<Claim> =
            records.map(|record| claim(record.maker, vec![record.service], Vec::new())).collect();
        for name in names(&self.directory)? {
            let Some(named) = name.strip_suffix(RECORD).and_then(service_of) else { continue };
            if let Err(error) = SERVICE_RECORD.read::<ServiceRecord>(&self.directory.join(&name)) {
                let maker = format!("somebody (the record cannot be used: {error})");
                claims.push(claim(maker, Vec::new(), vec![named]));
            }
        }
        Ok(claims)
    }
}

/// The service that a record is called after: `cxi0-2`.
fn service_of(name: &str) -> Option<(DeviceId, ServiceId)> {
    let (device, service) = name.rsplit_once('-')?;
    Some((device.parse().ok()?, ServiceId::new(service.parse().ok()?).ok()?))
}
