//! What jobs left behind that have ended.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::time::Duration;

use super::describe;
use super::idset::IdSet;
use super::node::Node;
use super::parallel;
use super::release::{FailedNic, ReleaseOptions, ReleaseReport, overlaps, release_chosen};
use cxi::driver::Quirks;
use cxi::{Device, DeviceId, Service, ServiceId, VniAccess};

/// What is to be cleaned up, and what is not.
///
/// The default service and system services are never touched.
#[derive(Clone)]
pub struct CleanPolicy<'a> {
    pool: IdSet,
    live_vnis: IdSet,
    live_services: BTreeSet<(DeviceId, ServiceId)>,
    live: &'a (dyn Fn() -> io::Result<IdSet> + Sync),
    unfinished: Unfinished,
    dry_run: bool,
}

/// When a service is taken for one that its maker left unfinished.
#[derive(Debug, Clone, Copy)]
enum Unfinished {
    /// After a pause, if the node's lock says that nobody is making it any more.
    Locked,
    After(Duration),
    Never,
}

/// How long an unfinished service may stay so, with a lock.
const PAUSE: Duration = Duration::from_secs(1);

impl<'a> CleanPolicy<'a> {
    /// Services with any VNI of the scheduler's pool, and unfinished ones.
    #[must_use]
    pub fn new(pool: IdSet) -> Self {
        Self {
            pool,
            live_vnis: IdSet::new(),
            live_services: BTreeSet::new(),
            live: &|| Ok(IdSet::new()),
            unfinished: Unfinished::Locked,
            dry_run: false,
        }
    }

    /// Asks for the VNIs of jobs that live, whose services are spared: after services were listed,
    /// and again before each attempt to destroy any.
    ///
    /// A job that starts meanwhile is recorded before it gets a service. Asked for before the
    /// list, as [`keep_vnis`](Self::keep_vnis) takes them, it would be missing. From several
    /// threads.
    #[must_use]
    pub fn live(mut self, live: &'a (dyn Fn() -> io::Result<IdSet> + Sync)) -> Self {
        self.live = live;
        self
    }

    /// Spares services with any of these VNIs: those of jobs that live. For nodes where no job
    /// starts meanwhile; else [`live`](Self::live).
    #[must_use]
    pub fn keep_vnis(mut self, vnis: &IdSet) -> Self {
        self.live_vnis = self.live_vnis.union(vnis);
        self
    }

    /// Spares these services.
    #[must_use]
    pub fn keep_services(
        mut self,
        services: impl IntoIterator<Item = (DeviceId, ServiceId)>,
    ) -> Self {
        self.live_services.extend(services);
        self
    }

    /// Whether services that a killed process left before they had a VNI are cleaned up too:
    /// those that are disabled and neither list a VNI nor have a range, and stay so for this long.
    /// `None`: they are spared.
    ///
    /// Default: after 1 s on a node with a [lock](Node::with_lock), which says that no prolog is
    /// making them. Without a lock they are spared, as a prolog may be slow.
    #[must_use]
    pub fn unfinished(mut self, after: Option<Duration>) -> Self {
        self.unfinished = after.map_or(Unfinished::Never, Unfinished::After);
        self
    }

    fn pause(&self, node: &Node) -> Option<Duration> {
        match self.unfinished {
            Unfinished::After(pause) => Some(pause),
            Unfinished::Locked if node.has_lock() => Some(PAUSE),
            Unfinished::Locked | Unfinished::Never => None,
        }
    }

    fn live_now(&self) -> io::Result<IdSet> {
        Ok((self.live)()?.union(&self.live_vnis))
    }

    /// Only says what would be destroyed.
    #[must_use]
    pub fn dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }

    fn judge(
        &self,
        device: DeviceId,
        service: &Service,
        live: &IdSet,
        unfinished: bool,
    ) -> Result<Orphaned, Spared> {
        if service.id().is_default() {
            return Err(Spared::Default);
        }
        if service.is_system() {
            return Err(Spared::System);
        }
        if self.live_services.contains(&(device, service.id())) || overlaps(service.vnis(), live) {
            return Err(Spared::Alive);
        }
        if overlaps(service.vnis(), &self.pool) {
            return Ok(Orphaned::InPool);
        }
        if service.is_enabled() || service.vnis() != VniAccess::Unrestricted {
            return Err(Spared::OutsidePool);
        }
        if unfinished {
            Ok(Orphaned::Unfinished)
        } else {
            Err(Spared::Unfinished)
        }
    }
}

impl fmt::Debug for CleanPolicy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CleanPolicy")
            .field("pool", &self.pool)
            .field("live_vnis", &self.live_vnis)
            .field("live_services", &self.live_services)
            .field("unfinished", &self.unfinished)
            .field("dry_run", &self.dry_run)
            .finish_non_exhaustive()
    }
}

/// Why a service is cleaned up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Orphaned {
    /// A VNI of it is in the pool, and no job that lives has it.
    InPool,
    /// It was left before it had a VNI.
    Unfinished,
}

/// Why a service is spared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Spared {
    /// It is the default service.
    Default,
    /// It is a system service.
    System,
    /// A job that lives has it.
    Alive,
    /// No VNI of it is in the pool.
    OutsidePool,
    /// It has no VNI yet, and may be on its way to one.
    Unfinished,
    /// The driver refused its VNI range, and destroying it may make the kernel use memory that it
    /// has freed; see [`Quirks::REFUSED_RANGE`].
    RangeRefused,
}

/// A service, and what is done about it for which reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Judged<W> {
    /// The NIC.
    pub device: DeviceId,
    /// The service.
    pub service: ServiceId,
    /// The service in words: `service 5 (uid 5588, VNI 1024)`.
    pub name: String,
    /// Why.
    pub why: W,
}

/// What a clean-up found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Clean {
    /// What jobs left behind.
    pub orphans: Vec<Judged<Orphaned>>,
    /// Everything else.
    pub spared: Vec<Judged<Spared>>,
    /// What became of the orphans, and the NICs that could not be asked; `None` for a dry run.
    pub release: Option<ReleaseReport>,
}

impl Node {
    /// Destroys the services that jobs left behind: those with VNIs of the scheduler's pool that
    /// no job has which lives.
    ///
    /// Services are listed first; then [who lives](CleanPolicy::live) is asked for; then, for each
    /// service by itself and under the [lock](Node::with_lock), whether it still is the same and
    /// still nobody's.
    ///
    /// Waits for busy ones as a [release](Node::release) does. Takes CAP_SYS_ADMIN, unless it is
    /// a dry run.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use cxi::{Device, DeviceId, Vni};
    /// # use cxi_mock::{Credentials, MockNode, NicConfig};
    /// # let mock = MockNode::with_nics(1, &NicConfig::new())?;
    /// # let file = mock.nics()[0].open()?.transport(Credentials::root());
    /// # let node = cxi_job::Node::from_devices([Device::with_transport(DeviceId::new(0), Arc::new(file))]);
    /// use cxi_job::{CleanPolicy, JobRequest, ReleaseOptions};
    ///
    /// for (uid, vni) in [(1000, 1024), (1001, 1025)] {
    ///     node.allocate(&JobRequest::builder().uid(uid).vni(Vni::new(vni)?).build()?)?;
    /// }
    /// let policy = CleanPolicy::new("1024-65535".parse()?).keep_vnis(&"1025".parse()?);
    /// let clean = node.clean(&policy, &ReleaseOptions::once())?;
    /// assert_eq!(clean.orphans.len(), 1);
    /// assert_eq!(clean.orphans[0].name, "service 2 (uid 1000, VNI 1024)");
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Whose services live cannot be told, or the lock cannot be acquired: nothing was destroyed.
    pub fn clean(
        &self,
        policy: &CleanPolicy<'_>,
        options: &ReleaseOptions<'_>,
    ) -> io::Result<Clean> {
        let (mut orphans, spared, nics) = self.judge(policy)?;
        let unfinished = |judged: &Found<Orphaned>| judged.why == Orphaned::Unfinished;
        if let Some(pause) = policy.pause(self)
            && orphans.iter().any(unfinished)
        {
            // One that another process is just about to finish is not left behind. A prolog that
            // is at work has the lock, however long it takes.
            options.sleep(pause);
            let _held = self.acquire().map_err(io::Error::other)?;
            let (again, _, _) = self.judge(policy)?;
            orphans.retain(|orphan| {
                !unfinished(orphan) || again.iter().any(|other| other.is_same(orphan))
            });
        }
        let release = (!policy.dry_run).then(|| {
            let chosen: Vec<(DeviceId, Service)> = orphans
                .iter()
                .map(|orphan| (orphan.device, orphan.service))
                .collect();
            let live = || policy.live_now();
            ReleaseReport {
                services: release_chosen(self, &chosen, &live, options),
                nics,
            }
        });
        Ok(Clean {
            orphans: orphans.into_iter().map(Found::judged).collect(),
            spared: spared.into_iter().map(Found::judged).collect(),
            release,
        })
    }

    fn judge(&self, policy: &CleanPolicy<'_>) -> io::Result<Judgement> {
        let nics: Vec<&Device> = self.manageable().map(|(_, device)| device).collect();
        let lists = parallel::each(&nics, |device| device.services().list());
        // After the lists: a job that is not among them yet has no service in them either.
        let live = policy.live_now()?;
        let unfinished = policy.pause(self).is_some();
        let (mut orphans, mut spared) = (Vec::new(), Vec::new());
        let mut failed = self.unopened();
        for (nic, list) in nics.into_iter().zip(lists) {
            let device = nic.id();
            match list {
                Ok(list) => {
                    for service in list {
                        match policy
                            .judge(device, &service, &live, unfinished)
                            .and_then(|why| safe(nic, &service, why))
                        {
                            Ok(why) => orphans.push(Found {
                                device,
                                service,
                                why,
                            }),
                            Err(why) => spared.push(Found {
                                device,
                                service,
                                why,
                            }),
                        }
                    }
                }
                Err(error) => failed.push(FailedNic {
                    device,
                    reason: error.to_string(),
                }),
            }
        }
        failed.sort_by_key(|nic| nic.device);
        Ok((orphans, spared, failed))
    }
}

/// Spares what destroying may do harm.
fn safe(nic: &Device, service: &Service, why: Orphaned) -> Result<Orphaned, Spared> {
    let lost = || nic.services().has_lost_range(service.id());
    if why == Orphaned::Unfinished
        && !nic.allows_quirks(Quirks::REFUSED_RANGE)
        && lost().is_ok_and(|lost| lost)
    {
        return Err(Spared::RangeRefused);
    }
    Ok(why)
}

type Judgement = (Vec<Found<Orphaned>>, Vec<Found<Spared>>, Vec<FailedNic>);

struct Found<W> {
    device: DeviceId,
    service: Service,
    why: W,
}

impl<W> Found<W> {
    fn is_same(&self, other: &Self) -> bool {
        self.device == other.device && self.service == other.service
    }

    fn judged(self) -> Judged<W> {
        Judged {
            device: self.device,
            service: self.service.id(),
            name: describe::service(&self.service),
            why: self.why,
        }
    }
}

impl fmt::Display for Orphaned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InPool => "its VNI is in the pool, and no live job has it",
            Self::Unfinished => "it was left before it had a VNI",
        })
    }
}

impl fmt::Display for Spared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "it is the default service",
            Self::System => "it is a system service",
            Self::Alive => "a live job has it",
            Self::OutsidePool => "it has no VNI of the pool",
            Self::Unfinished => "it has no VNI yet, and may be on its way to one",
            Self::RangeRefused => {
                "the driver refused its VNI range, and destroying it may make the kernel use memory \
                 that it has freed: destroy it by hand if another service was in the way, or leave \
                 it until the driver is loaded again"
            }
        })
    }
}

impl<W: fmt::Display> fmt::Display for Judged<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.device, self.name, self.why)
    }
}
