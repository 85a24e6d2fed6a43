//! The pool of a site: in the file or the etcd that its settings name.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, io};

use cxi::Errno;
use cxi_job::cluster::{Act, PoolStore, SiteError, keys};
use cxi_site::durable::{self, LockError, Owner, WaitReport};
use cxi_site::fabric::{Http, HttpError, Identity, Patience, is_clear};
use cxi_site::pool::log::{ChangeError, EventLog, FileLog, SharedPool};
use cxi_site::pool::{Event, PoolConfig, PoolError, Timestamp};
use cxi_site::settings::{Settings, SettingsError};
use cxi_site::{ErrorCode, VniPool, input, secret};

use crate::EtcdLog;

/// The pool of VNIs of a site, as its settings `pool.*` and `etcd.*` say.
///
/// A file is opened and locked for each change, so other programs can change it in between, such as
/// while a job waits for VNIs. A pool in etcd stays open from one change to the next.
#[derive(Debug)]
pub struct SitePool {
    backend: Backend,
    wait: Duration,
    opened: Mutex<Option<OpenPool>>,
}

/// A pool to change. One in a file is locked against changes by other programs.
pub type OpenPool = SharedPool<Log>;

type Log = Box<dyn EventLog + Send>;

/// Far longer than a number.
const LONGEST: u64 = 1 << 12;

#[derive(Debug)]
enum Backend {
    File(PathBuf, Option<WaitReport>),
    Etcd(Box<Etcd>),
}

/// Access to etcd: its members, and the user.
#[derive(Debug)]
struct Etcd {
    endpoints: Vec<String>,
    prefix: String,
    user: Option<(String, PathBuf)>,
    allow_clear: bool,
    http: Http,
    timeout: Duration,
    /// The file with this controller's epoch.
    epoch: PathBuf,
}

/// Place of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PoolPlace {
    /// In a file.
    File(PathBuf),
    /// In etcd, in keys that begin with this.
    Etcd(String),
}

impl fmt::Display for PoolPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Etcd(prefix) => write!(f, "{prefix} in etcd"),
        }
    }
}

/// A pool that was configured.
#[derive(Debug)]
#[non_exhaustive]
pub struct Configured {
    /// The pool.
    pub pool: VniPool,
    /// `true` if there was none before.
    pub made: bool,
    /// The logged event; `None` if the pool already had this configuration.
    pub event: Option<Event>,
}

/// Reason for which the pool of a site cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SitePoolError {
    /// A setting is invalid.
    #[error(transparent)]
    Setting(#[from] SettingsError),
    /// The pool is in etcd, and no setting says where that is.
    #[error("pool.store is etcd: expected the setting etcd.endpoints")]
    NoEndpoints,
    /// The password would go over the network in clear.
    #[error(
        "etcd.endpoints: the password of etcd.user would be sent in clear to {0}: expected https://, or \
         the setting etcd.allow-clear-password"
    )]
    ClearPassword(String),
    /// A certificate or a key cannot be used.
    #[error(transparent)]
    Certificate(HttpError),
    /// The file with the password, or with the epoch, cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file with the epoch has no number.
    #[error("{}: expected the number of an epoch", .0.display())]
    Epoch(PathBuf),
    /// The file with the epoch cannot be written: take the lead again.
    #[error("{}: cannot be written: {source}", path.display())]
    Unwritten {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// There is no pool.
    #[error("{0}: there is no pool of VNIs")]
    Missing(PoolPlace),
    /// The pool's file cannot be locked.
    #[error(transparent)]
    Locked(LockError),
    /// The pool refuses a configuration.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The log of the pool cannot be read or written, or contradicts itself.
    #[error("{}", in_log(.0, .1))]
    Log(PoolPlace, ChangeError<Infallible>),
}

/// The log of a file names the file itself.
fn in_log(place: &PoolPlace, error: &ChangeError<Infallible>) -> String {
    match (error, place) {
        (ChangeError::Load(error), PoolPlace::File(_)) => error.0.to_string(),
        (ChangeError::Load(_) | ChangeError::Append(_), _) => error.to_string(),
        _ => format!("{place}: {error}"),
    }
}

impl SitePoolError {
    /// Returns the kind of failure.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Missing(_) => ErrorCode::NotFound,
            Self::Locked(error) if error.is_busy() => ErrorCode::Busy,
            Self::Unwritten { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                ErrorCode::NotPermitted
            }
            Self::Pool(error) => error.code(),
            Self::Log(_, ChangeError::Contended) => ErrorCode::Busy,
            Self::Log(_, ChangeError::Append(_))
            | Self::Log(PoolPlace::Etcd(_), ChangeError::Load(_))
            | Self::Unwritten { .. } => ErrorCode::Failed,
            _ => ErrorCode::BadInput,
        }
    }

    /// The failure as an errno: that of the lock, or else the one that fits its kind.
    #[must_use]
    pub fn errno(&self) -> Errno {
        match self {
            Self::Locked(error) => error.errno(),
            error => error.code().errno(),
        }
    }
}

impl From<SitePoolError> for SiteError {
    fn from(error: SitePoolError) -> Self {
        Self::PoolStore { code: error.code(), errno: error.errno(), source: Box::new(error) }
    }
}

impl SitePool {
    /// The pool where the settings say. Nothing but certificates is read yet.
    ///
    /// # Errors
    ///
    /// [`SitePoolError`]: a setting is invalid or missing, or a certificate cannot be used.
    pub fn of(settings: &Settings) -> Result<Self, SitePoolError> {
        let backend = match settings.get(&keys::POOL_STORE)? {
            keys::StoreName::File => {
                Backend::File(settings.get(&keys::POOL_FILE)?, settings.wait_report())
            }
            keys::StoreName::Etcd => Backend::Etcd(Box::new(Etcd::of(settings)?)),
        };
        Ok(Self { backend, wait: settings.get(&keys::WAIT)?, opened: Mutex::default() })
    }

    /// Returns the place of the pool.
    #[must_use]
    pub fn place(&self) -> PoolPlace {
        match &self.backend {
            Backend::File(path, _) => PoolPlace::File(path.clone()),
            Backend::Etcd(etcd) => PoolPlace::Etcd(etcd.prefix.clone()),
        }
    }

    /// Returns whether this machine has a pool: the file exists, or the machine has led the pool in
    /// etcd. Nodes share the controllers' settings, and must not all ask etcd.
    ///
    /// # Errors
    ///
    /// [`SitePoolError::Unreadable`]: that cannot be found out.
    pub fn is_here(&self) -> Result<bool, SitePoolError> {
        match &self.backend {
            Backend::File(path, _) => exists(path),
            Backend::Etcd(etcd) => exists(&etcd.epoch),
        }
    }

    /// The current pool, for reading.
    ///
    /// # Errors
    ///
    /// [`SitePoolError`], such as [`SitePoolError::Missing`].
    pub fn look(&self) -> Result<VniPool, SitePoolError> {
        let mut log: Log = match &self.backend {
            Backend::File(path, _) => Box::new(FileLog::new(path)),
            Backend::Etcd(etcd) => Box::new(etcd.log(self.wait)?),
        };
        log.within(self.wait);
        Ok(self.existing(log)?.into_pool())
    }

    /// The current pool, to change it.
    ///
    /// # Errors
    ///
    /// [`SitePoolError`], such as [`SitePoolError::Missing`].
    pub fn open(&self) -> Result<OpenPool, SitePoolError> {
        self.open_within(self.wait)
    }

    fn open_within(&self, wait: Duration) -> Result<OpenPool, SitePoolError> {
        match &self.backend {
            // A lock file must not be left where there is no pool.
            Backend::File(path, _) if !exists(path)? => Err(SitePoolError::Missing(self.place())),
            _ => self.existing(self.log(wait)?),
        }
    }

    fn existing(&self, log: Log) -> Result<OpenPool, SitePoolError> {
        let pool = SharedPool::open_existing(log, self.writer(), self.epoch()?);
        let pool = pool.map_err(|error| self.failed(error))?;
        pool.ok_or_else(|| SitePoolError::Missing(self.place()))
    }

    /// Makes the pool, or changes what it consists of.
    ///
    /// # Errors
    ///
    /// [`SitePoolError`]. An unusable configuration leaves no file behind.
    pub fn configure(&self, config: &PoolConfig) -> Result<Configured, SitePoolError> {
        let mut new = VniPool::new(config.clone())?;
        let now = Timestamp::now();
        let mut log = self.log(self.wait)?;
        let made = log.load(0).map_err(|error| self.failed::<PoolError>(error.into()))?.is_empty();
        let (pool, event) = if made {
            let pool = SharedPool::open(log, config.clone(), self.writer(), self.epoch()?, now);
            let pool = pool.map_err(|error| self.failed(error))?;
            (pool, new.record_config(now)?.event)
        } else {
            let mut pool = self.existing(log)?;
            let changed = pool.change(now, |pool, now| pool.reconfigure(config.clone(), now));
            (pool, changed.map_err(|error| self.failed(error))?.event)
        };
        let pool = pool.into_pool();
        Ok(Configured { pool, made, event })
    }

    /// Takes the lead of a pool in etcd for all programs of this machine with the same settings;
    /// those of other machines can no longer change it. Returns the epoch; `None` for a file, which
    /// has one controller.
    ///
    /// # Errors
    ///
    /// [`SitePoolError`].
    pub fn lead(&self) -> Result<Option<u64>, SitePoolError> {
        let Backend::Etcd(etcd) = &self.backend else { return Ok(None) };
        let path = &etcd.epoch;
        let mut pool = self.open()?;
        let epoch = pool.lead(Timestamp::now()).map_err(|error| self.failed(error))?;
        // A pool that was opened earlier would not lead.
        *self.opened() = Some(pool);
        // The epoch is written after the log. A program that is killed in between has an epoch that
        // no longer leads, and takes another one.
        durable::create_dir(durable::directory_of(path))
            .and_then(|()| durable::replace(path, format!("{epoch}\n").as_bytes(), Owner::Kept))
            .map_err(|source| SitePoolError::Unwritten { path: path.clone(), source })?;
        Ok(Some(epoch))
    }

    fn opened(&self) -> MutexGuard<'_, Option<OpenPool>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To change the pool, within this time.
    fn log(&self, wait: Duration) -> Result<Log, SitePoolError> {
        match &self.backend {
            Backend::File(path, report) => {
                let log = FileLog::new(path).wait(wait).on_wait(*report).locked();
                Ok(Box::new(log.map_err(SitePoolError::Locked)?))
            }
            Backend::Etcd(etcd) => {
                let mut log = etcd.log(wait)?;
                log.within(wait);
                Ok(Box::new(log))
            }
        }
    }

    /// The epoch under which this machine leads; 0 if it never did.
    fn epoch(&self) -> Result<u64, SitePoolError> {
        match &self.backend {
            Backend::Etcd(etcd) if exists(&etcd.epoch)? => {
                let epoch = read(&etcd.epoch)?.trim().parse();
                epoch.map_err(|_| SitePoolError::Epoch(etcd.epoch.clone()))
            }
            _ => Ok(0),
        }
    }

    /// A name that no other process has, by which a lost answer is recognized.
    fn writer(&self) -> String {
        if matches!(self.backend, Backend::File(..)) {
            return String::new();
        }
        let node = nix::unistd::gethostname().unwrap_or_default();
        let now = Timestamp::now().as_millis();
        format!("{}/{}/{now}", node.display(), std::process::id())
    }

    fn failed<E: Into<SitePoolError>>(&self, error: ChangeError<E>) -> SitePoolError {
        let log = |error| SitePoolError::Log(self.place(), error);
        error.into_refusal().map_or_else(log, Into::into)
    }
}

impl PoolStore for SitePool {
    fn change(&self, wait: Duration, act: &mut Act<'_>) -> Result<(), SiteError> {
        let begins = Instant::now();
        let mut opened = self.opened();
        let mut pool = match opened.take() {
            Some(pool) => pool,
            None => self.open_within(wait)?,
        };
        pool.within(wait.saturating_sub(begins.elapsed()));
        let changed = pool.change(Timestamp::now(), |pool, now| act(pool, now));
        if matches!(self.backend, Backend::Etcd(_)) {
            *opened = Some(pool);
        }
        changed.map(drop).map_err(|error| {
            let log = |error| SitePoolError::Log(self.place(), error).into();
            error.into_refusal().unwrap_or_else(log)
        })
    }
}

impl Etcd {
    fn of(settings: &Settings) -> Result<Self, SitePoolError> {
        let endpoints = settings.get(&keys::ETCD_ENDPOINTS)?;
        if endpoints.is_empty() {
            return Err(SitePoolError::NoEndpoints);
        }
        let user = settings.both(&keys::ETCD_USER, &keys::ETCD_PASSWORD)?;
        let allow_clear = settings.get(&keys::ETCD_ALLOW_CLEAR)?;
        if let (Some(_), false) = (&user, allow_clear)
            && let Some(endpoint) = endpoints.iter().find(|endpoint| is_clear(endpoint))
        {
            return Err(SitePoolError::ClearPassword(endpoint.clone()));
        }
        let authorities = settings.get(&keys::ETCD_CERTIFICATE)?;
        let identity = settings.both(&keys::ETCD_IDENTITY, &keys::ETCD_KEY)?;
        let identity = identity.map(|(certificate, key)| Identity { certificate, key });
        Ok(Self {
            endpoints,
            prefix: settings.get(&keys::ETCD_PREFIX)?,
            user,
            allow_clear,
            http: Http::with_identity(&authorities, identity.as_ref())
                .map_err(SitePoolError::Certificate)?,
            timeout: settings.get(&keys::ETCD_TIMEOUT)?,
            epoch: settings.get(&keys::POOL_EPOCH)?,
        })
    }

    fn log(&self, wait: Duration) -> Result<EtcdLog, SitePoolError> {
        let log = EtcdLog::new(self.http.clone(), &self.endpoints, &self.prefix);
        let log =
            log.patience(Patience { attempt: self.timeout, deadline: wait, ..Patience::default() });
        let log = if self.allow_clear { log.allow_clear_password() } else { log };
        let Some((user, path)) = &self.user else { return Ok(log) };
        let password = secret::read(path).map_err(unreadable(path))?;
        Ok(log.user(user, String::from_utf8_lossy(&password).trim_end()))
    }
}

fn read(path: &Path) -> Result<String, SitePoolError> {
    input::read(path, LONGEST).and_then(input::text).map_err(unreadable(path))
}

fn exists(path: &Path) -> Result<bool, SitePoolError> {
    durable::exists(path).map_err(unreadable(path))
}

fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> SitePoolError + '_ {
    |source| SitePoolError::Unreadable { path: path.to_owned(), source }
}
