//! The controller of a site, and its pool of VNIs in a file.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use cxi_ioctl::Errno;
use cxi_job::IdSet;
use cxi_job::pool::log::{ChangeError, FileLog, SharedPool};
use cxi_job::pool::{PoolConfig, PoolError, Timestamp};
use cxi_job::settings::Settings;
use cxi_job::site::{Act, Controller, ManagerOptions, PoolStore, Site, SiteError, keys};
use serde::Serialize;

use crate::failure::{Failure, Result};

/// The site of a file of settings; without one, of the usual file.
pub(crate) fn site(settings: Option<&Path>) -> Result<Site> {
    let settings = Settings::load(settings);
    let settings = settings.map_err(|error| Failure::invalid("settings", &error))?;
    Ok(Site::open(settings)?)
}

/// The controller, with the fabric manager if the site wants hardware collectives.
pub(crate) fn open(site: &Site) -> Result<Controller<'_>> {
    let controller = site.controller(PoolFile::of(site)?)?;
    let settings = site.settings();
    if settings
        .get(&keys::COLLECTIVES_TREES)
        .map_err(SiteError::from)?
        == 0
    {
        return Ok(controller);
    }
    let options = ManagerOptions::of(settings).map_err(SiteError::from)?;
    Ok(controller.fabric_manager(options.open()))
}

/// The file is opened and locked for each change: other programs change it too, also while a job
/// waits for VNIs.
#[derive(Debug)]
pub(crate) struct PoolFile {
    path: PathBuf,
    wait: Duration,
}

/// How many VNIs there are, as JSON.
#[derive(Serialize)]
pub(crate) struct Counts {
    total: usize,
    free: usize,
    reserved: usize,
    draining: usize,
    resting: usize,
}

impl PoolFile {
    pub(crate) fn of(site: &Site) -> Result<Self> {
        let settings = site.settings();
        let store = settings.get(&keys::POOL_STORE).map_err(SiteError::from)?;
        if store != keys::StoreName::File {
            let why = "pool.store: this library changes pools in files only";
            return Err(Failure::new(Errno::EOPNOTSUPP, why));
        }
        Ok(Self {
            path: settings.get(&keys::POOL_FILE).map_err(SiteError::from)?,
            wait: settings.get(&keys::WAIT).map_err(SiteError::from)?,
        })
    }

    /// Makes the pool, or changes what it consists of.
    pub(crate) fn configure(&self, vnis: IdSet, rest: Duration) -> Result<()> {
        let config = PoolConfig::new(vnis).rest(rest);
        let (log, now) = (self.lock()?, Timestamp::now());
        let mut pool = SharedPool::open(log, config.clone(), "", 0, now)?;
        let changed = pool.change(now, |pool, now| pool.reconfigure(config.clone(), now));
        Ok(changed.map(drop)?)
    }

    pub(crate) fn counts(&self) -> Result<Counts> {
        let pool = SharedPool::open_existing(FileLog::new(&self.path), "", 0)?;
        let pool = pool.ok_or_else(|| Failure::new(Errno::ENOENT, self.missing()))?;
        let metrics = pool.pool().metrics(Timestamp::now());
        Ok(Counts {
            total: metrics.total,
            free: metrics.free,
            reserved: metrics.reserved,
            draining: metrics.draining,
            resting: metrics.resting,
        })
    }

    fn lock(&self) -> std::result::Result<FileLog, SiteError> {
        Ok(FileLog::new(&self.path).wait(self.wait).locked()?)
    }

    fn missing(&self) -> String {
        format!("{}: there is no pool of VNIs", self.path.display())
    }
}

impl PoolStore for PoolFile {
    fn change(&self, act: &mut Act<'_>) -> std::result::Result<(), SiteError> {
        let pool = SharedPool::open_existing(self.lock()?, "", 0);
        let pool = pool.map_err(|error| SiteError::PoolStore(error.into()))?;
        let pool = pool.ok_or_else(|| SiteError::PoolStore(self.missing().into()))?;
        Mutex::new(pool).change(act)
    }
}

impl From<ChangeError<PoolError>> for Failure {
    fn from(error: ChangeError<PoolError>) -> Self {
        let errno = match error {
            ChangeError::Refused(_) => Errno::EINVAL,
            _ => Errno::EIO,
        };
        Self::new(errno, error.to_string())
    }
}
