//! Where a pool is: in a file, or in etcd.
//!
//! A change is logged before its command prints anything. So a `cxi` killed at any point, or a full
//! disk, loses nothing and does nothing twice.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cxi_job::VniPool;
use cxi_job::durable::{self, Owner};
use cxi_job::fabric::{Http, HttpError, Identity, Patience};
use cxi_job::pool::log::{ChangeError, EventLog, FileLog, SharedPool};
use cxi_job::pool::{PoolConfig, PoolError, Timestamp};
use cxi_job::site::{Act, PoolStore, SiteError};
use cxi_vni_etcd::EtcdLog;

use crate::exit::{Exit, Failure};
use crate::files::{of_lock, read};
use crate::node::this_node;
use crate::settings::{self, Settings, StoreName};

/// Longer than any password, and than an epoch.
const LONGEST: u64 = 1 << 16;

/// Where a pool is.
#[derive(Debug)]
pub(crate) struct Store {
    backend: Backend,
    /// How long to wait for other commands, and for etcd.
    pub(crate) wait: Duration,
    /// The pool in etcd, which stays open from one change to the next.
    opened: Mutex<Option<Pool>>,
}

#[derive(Debug)]
enum Backend {
    File(PathBuf),
    Etcd(Box<Etcd>),
}

/// How to reach etcd, and as whom.
#[derive(Debug)]
struct Etcd {
    endpoints: Vec<String>,
    prefix: String,
    user: Option<(String, PathBuf)>,
    http: Http,
    timeout: Duration,
    /// The file with this controller's epoch.
    epoch: PathBuf,
}

type Log = Box<dyn EventLog>;

/// A pool to change. One in a file is locked against changes by other commands.
pub(crate) type Pool = SharedPool<Log>;

impl Store {
    pub(super) fn file(path: PathBuf, wait: Duration) -> Self {
        Self::of(Backend::File(path), wait)
    }

    fn of(backend: Backend, wait: Duration) -> Self {
        Self {
            backend,
            wait,
            opened: Mutex::default(),
        }
    }

    /// As the settings say.
    pub(super) fn open_settings(settings: &Settings, wait: Duration) -> Result<Self, Failure> {
        if settings.get(&settings::POOL_STORE)? == StoreName::File {
            return Ok(Self::file(settings.get(&settings::POOL_FILE)?, wait));
        }
        let endpoints = settings.get(&settings::ETCD_ENDPOINTS)?;
        if endpoints.is_empty() {
            return Err(Failure::bad_input(
                "pool.store is etcd: expected the setting etcd.endpoints",
            ));
        }
        let both = |one: bool, other: bool, names: &str| {
            if one == other {
                return Ok(());
            }
            Err(Failure::bad_input(format!(
                "expected both {names}, or neither"
            )))
        };
        let user = settings.get(&settings::ETCD_USER)?;
        let password = settings.get(&settings::ETCD_PASSWORD)?;
        let names = "etcd.user and etcd.password-file";
        both(user.is_some(), password.is_some(), names)?;
        let (own, key) = (
            settings.get(&settings::ETCD_IDENTITY)?,
            settings.get(&settings::ETCD_KEY)?,
        );
        let names = "etcd.client-certificate and etcd.client-key";
        both(own.is_some(), key.is_some(), names)?;
        let authorities = settings.get(&settings::ETCD_CERTIFICATE)?;
        let http = match own.zip(key) {
            Some((certificate, key)) => {
                Http::with_identity(&authorities, &Identity { certificate, key })
            }
            None => Http::new(&authorities),
        };
        let http = http.map_err(|error: HttpError| Failure::bad_input(error.to_string()))?;
        let etcd = Etcd {
            endpoints,
            prefix: settings.get(&settings::ETCD_PREFIX)?,
            user: user.zip(password),
            http,
            timeout: settings.get(&settings::ETCD_TIMEOUT)?,
            epoch: settings.get(&settings::POOL_EPOCH)?,
        };
        Ok(Self::of(Backend::Etcd(Box::new(etcd)), wait))
    }

    /// Where it is, for people.
    pub(super) fn name(&self) -> String {
        match &self.backend {
            Backend::File(path) => path.display().to_string(),
            Backend::Etcd(etcd) => format!("{} in etcd", etcd.prefix),
        }
    }

    /// Whether this machine has a pool. Nodes have the controllers' settings, and do not all ask etcd.
    pub(crate) fn is_here(&self) -> bool {
        match &self.backend {
            Backend::File(path) => path.exists(),
            Backend::Etcd(etcd) => etcd.epoch.exists(),
        }
    }

    /// The current pool, for reading.
    pub(crate) fn look(&self) -> Result<VniPool, Failure> {
        let log: Log = match &self.backend {
            Backend::File(path) => Box::new(FileLog::new(path)),
            Backend::Etcd(etcd) => self.log_in(etcd)?,
        };
        Ok(self.existing(log)?.into_pool())
    }

    /// The current pool, to change it.
    pub(crate) fn open(&self) -> Result<Pool, Failure> {
        match &self.backend {
            // A lock file must not be left where there is no pool.
            Backend::File(path) if !path.exists() => Err(self.missing()),
            _ => self.existing(self.log()?),
        }
    }

    fn existing(&self, log: Log) -> Result<Pool, Failure> {
        let pool = SharedPool::open_existing(log, self.writer(), self.epoch()?);
        let pool = pool.map_err(|error| self.unopened(error))?;
        pool.ok_or_else(|| self.missing())
    }

    /// The pool, and whether it is new.
    pub(super) fn open_or_new(
        &self,
        config: PoolConfig,
        now: Timestamp,
    ) -> Result<(Pool, bool), Failure> {
        let mut log = self.log()?;
        let new = match &self.backend {
            Backend::File(path) => fs::metadata(path).map_or(true, |file| file.len() == 0),
            Backend::Etcd(_) => log
                .load(0)
                .map_err(|error| self.unopened(error.into()))?
                .is_empty(),
        };
        if !new {
            return Ok((self.existing(log)?, false));
        }
        let pool = SharedPool::open(log, config, self.writer(), self.epoch()?, now);
        Ok((pool.map_err(|error| self.unopened(error))?, true))
    }

    /// Takes the lead of a pool in etcd; returns the epoch. `None` for a file, which has one controller.
    pub(super) fn lead(&self) -> Result<Option<u64>, Failure> {
        let Backend::Etcd(etcd) = &self.backend else {
            return Ok(None);
        };
        let epoch = self.open()?.lead(Timestamp::now())?;
        // After the log: who is killed in between has an epoch that leads no more, and takes another one.
        durable::create_dir(durable::directory_of(&etcd.epoch))
            .and_then(|()| {
                durable::replace(&etcd.epoch, format!("{epoch}\n").as_bytes(), Owner::Kept)
            })
            .map_err(|error| Failure::unwritten(&etcd.epoch, &error))?;
        Ok(Some(epoch))
    }

    /// To change the pool.
    fn log(&self) -> Result<Log, Failure> {
        match &self.backend {
            Backend::File(path) => {
                let log = FileLog::new(path).wait(self.wait);
                let log = log.locked();
                Ok(Box::new(
                    log.map_err(|error| of_lock(path, "pool file", &error))?,
                ))
            }
            Backend::Etcd(etcd) => self.log_in(etcd),
        }
    }

    fn log_in(&self, etcd: &Etcd) -> Result<Log, Failure> {
        let log = EtcdLog::new(etcd.http.clone(), &etcd.endpoints, &etcd.prefix);
        let log = log.patience(Patience {
            attempt: etcd.timeout,
            deadline: self.wait,
            ..Patience::default()
        });
        let Some((user, password)) = &etcd.user else {
            return Ok(Box::new(log));
        };
        Ok(Box::new(
            log.user(user, read(password, LONGEST)?.text.trim_end()),
        ))
    }

    /// The epoch under which this controller leads; 0 if it never did.
    fn epoch(&self) -> Result<u64, Failure> {
        let path = match &self.backend {
            Backend::Etcd(etcd) if etcd.epoch.exists() => &etcd.epoch,
            _ => return Ok(0),
        };
        let number = read(path, LONGEST)?.text.trim().parse();
        number.map_err(|_| {
            Failure::bad_input(format!(
                "{}: expected the number of an epoch",
                path.display()
            ))
        })
    }

    /// A name that no other process has: this is how a lost answer is recognized.
    fn writer(&self) -> String {
        if matches!(self.backend, Backend::File(_)) {
            return String::new();
        }
        let node = this_node().map_or_else(|_| String::new(), |name| name.to_string());
        let now = Timestamp::now().as_millis();
        format!("{node}/{}/{now}", std::process::id())
    }

    fn missing(&self) -> Failure {
        let failure = Failure::bad_input(format!("{}: there is no pool of VNIs", self.name()))
            .hint("Make one, such as: cxi vni configure 1024-65535");
        match self.backend {
            Backend::File(_) => failure.hint("--pool FILE or CXI_VNI_POOL names another file."),
            Backend::Etcd(_) => failure,
        }
    }

    fn unopened(&self, error: ChangeError<PoolError>) -> Failure {
        match (error, &self.backend) {
            (ChangeError::Load(error), Backend::File(_)) => Failure::bad_input(error.0.to_string())
                .hint("The file was left as it is. --pool FILE or CXI_VNI_POOL names another one."),
            (ChangeError::Load(error), Backend::Etcd(_)) => {
                Failure::new(Exit::Failed, error.to_string())
            }
            (ChangeError::Append(error), _) => error.into(),
            (error, _) => Failure::bad_input(format!("{}: {error}", self.name())),
        }
    }
}

/// A file is opened for each change: a node that confirms needs no pool, and other commands change it
/// while a job waits for VNIs.
impl PoolStore for Store {
    fn change(&self, act: &mut Act<'_>) -> Result<(), SiteError> {
        let own = |failure: Failure| SiteError::PoolStore(Box::new(failure));
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pool = match opened.take() {
            Some(pool) => pool,
            None => self.open().map_err(own)?,
        };
        let changed = pool.change(Timestamp::now(), |pool, now| act(pool, now));
        if matches!(self.backend, Backend::Etcd(_)) {
            *opened = Some(pool);
        }
        changed.map(drop).map_err(|error| match error {
            ChangeError::Refused(error) => error,
            error => own(error.into()),
        })
    }
}
