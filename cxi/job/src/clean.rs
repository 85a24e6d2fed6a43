//! Destroying what ended jobs left behind.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use std::{fmt, fs, io};

use cxi::driver::Quirks;
use cxi::{Device, DeviceId, Service, ServiceId, VniAccess, kernel_file};

use crate::describe;
use crate::node::Node;
use crate::owners::{Maker, Owners};
use crate::release::{FailedNic, ReleaseOptions, ReleaseReport, overlaps, release_chosen};
use cxi_site::{IdSet, durable};

impl Node {
    /// Destroys the services that jobs left behind, as the policy says.
    ///
    /// A service that no record names is foreign, and destroyed only by a policy that
    /// [takes foreign ones](CleanPolicy::foreign): those with a VNI of the scheduler's pool that no live
    /// job has. [`ComputeNode::clean`](crate::cluster::ComputeNode::clean) knows the records.
    ///
    /// Services are listed first, and the [live jobs](CleanPolicy::live) after them. Then each
    /// service is checked again under the [lock](Node::with_lock): it is destroyed only if it is
    /// unchanged and the verdict still holds.
    ///
    /// Waits for busy services as [`Node::release`] does. Needs CAP_SYS_ADMIN, except for a dry
    /// run.
    ///
    /// ```
    /// # use cxi::{Device, Vni};
    /// # use cxi_mock::{MockNode, NicConfig};
    /// # let mock = MockNode::with_nics(1, &NicConfig::new())?;
    /// # let node = cxi_job::Node::from_devices([Device::cxi0(mock.nics()[0].root()?)]);
    /// use cxi_job::{CleanPolicy, JobRequest, ReleaseOptions};
    ///
    /// for (uid, vni) in [(1000, 1024), (1001, 1025)] {
    ///     node.allocate(&JobRequest::builder().uid(uid).vni(Vni::new(vni)?).build()?)?;
    /// }
    /// let live = || Ok([1025].into_iter().collect());
    /// let policy = CleanPolicy::new("1024-65535".parse()?).live(&live);
    /// // Nothing says who made these services: without an order they stay.
    /// assert_eq!(node.clean(&policy, &ReleaseOptions::once())?.orphans.len(), 0);
    /// let policy = policy.foreign(true);
    /// let clean = node.clean(&policy, &ReleaseOptions::once())?;
    /// assert_eq!(clean.orphans.len(), 1);
    /// assert_eq!(clean.orphans[0].name, "service 2 (uid 1000, VNI 1024)");
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The live jobs cannot be determined, or the lock cannot be acquired: nothing was destroyed.
    pub fn clean(
        &self,
        policy: &CleanPolicy<'_>,
        options: &ReleaseOptions<'_>,
    ) -> io::Result<CleanReport> {
        let (mut orphans, kept, nics) = self.judge(policy)?;
        let unfinished = |found: &Found<OrphanReason>| found.reason == OrphanReason::Unfinished;
        if let Some(pause) = policy.pause(self)
            && orphans.iter().any(unfinished)
        {
            // A service that another process is about to finish is not an orphan. A running prolog
            // holds the lock, however long it takes.
            options.clock.sleep(pause);
            let _held = self.acquire().map_err(io::Error::other)?;
            let (again, _, _) = self.judge(policy)?;
            orphans.retain(|orphan| {
                // Any change since, such as a VNI, shows that another process is at work.
                let unchanged =
                    |now: &Found<_>| now.device == orphan.device && now.service == orphan.service;
                !unfinished(orphan) || again.iter().any(unchanged)
            });
        }
        let release = (!policy.dry_run).then(|| {
            let chosen: Vec<(DeviceId, Service)> =
                orphans.iter().map(|orphan| (orphan.device, orphan.service)).collect();
            let kept = |device: &Device| policy.kept(device);
            let services = release_chosen(self, &chosen, &kept, options);
            ReleaseReport { services, nics, shared: false }
        });
        Ok(CleanReport {
            orphans: orphans.into_iter().map(Found::verdict).collect(),
            kept: kept.into_iter().map(Found::verdict).collect(),
            release,
        })
    }

    fn judge(&self, policy: &CleanPolicy<'_>) -> io::Result<Judgement> {
        let (services, failed) = self.list_services();
        let unfinished = policy.pause(self).is_some();
        let listed: Vec<_> = services.iter().map(|(nic, service)| (nic.id(), *service)).collect();
        // After the lists: a job that is not yet live has no service in them either.
        let verdicts = policy.judge_all(&listed, unfinished)?;
        let (mut orphans, mut kept) = (Vec::new(), Vec::new());
        for ((nic, service), verdict) in services.into_iter().zip(verdicts) {
            match verdict.and_then(|reason| safe(nic, &service, reason)) {
                Ok(reason) => orphans.push(Found::new(nic, service, reason)),
                Err(reason) => kept.push(Found::new(nic, service, reason)),
            }
        }
        Ok((orphans, kept, failed))
    }
}

/// Keeps a service whose destruction may do harm.
fn safe(nic: &Device, service: &Service, reason: OrphanReason) -> Result<OrphanReason, KeepReason> {
    let lost = || nic.services().has_lost_range(service.id());
    if reason == OrphanReason::Unfinished
        && !nic.allows_quirks(Quirks::REFUSED_RANGE)
        && lost().is_ok_and(|lost| lost)
    {
        return Err(KeepReason::RangeRefused);
    }
    Ok(reason)
}

type Judgement = (Vec<Found<OrphanReason>>, Vec<Found<KeepReason>>, Vec<FailedNic>);

struct Found<R> {
    device: DeviceId,
    service: Service,
    reason: R,
}

impl<R> Found<R> {
    fn new(nic: &Device, service: Service, reason: R) -> Self {
        Self { device: nic.id(), service, reason }
    }

    fn verdict(self) -> Verdict<R> {
        Verdict {
            device: self.device,
            service: self.service.id(),
            name: describe::service(&self.service),
            reason: self.reason,
        }
    }
}

/// Policy of a cleanup: services to destroy, and services to keep.
///
/// The default service and system services are always kept.
#[derive(Clone)]
pub struct CleanPolicy<'a> {
    pool: IdSet,
    live: &'a (dyn Fn() -> io::Result<IdSet> + Sync),
    owners: &'a (dyn Fn() -> io::Result<Owners> + Sync),
    foreign: bool,
    unfinished: Unfinished,
    dry_run: bool,
}

/// When a service counts as abandoned half-made.
#[derive(Debug, Clone, Copy)]
enum Unfinished {
    /// After a pause, if the node's lock shows that no process is still making it.
    Locked,
    After(Duration),
    Never,
}

/// Longest time that a service may stay unfinished on a node with a lock.
const PAUSE: Duration = Duration::from_secs(1);

impl<'a> CleanPolicy<'a> {
    /// Cleans up nothing but what records of ended jobs name; says which services with a VNI of the
    /// scheduler's pool, and which unfinished ones, are foreign.
    #[must_use]
    pub fn new(pool: IdSet) -> Self {
        Self {
            pool,
            live: &|| Ok(IdSet::new()),
            owners: &|| Ok(Owners::default()),
            foreign: false,
            unfinished: Unfinished::Locked,
            dry_run: false,
        }
    }

    /// Sets what records say of the makers of services. It is called as [`live`](Self::live) is.
    pub(crate) fn owners(mut self, owners: &'a (dyn Fn() -> io::Result<Owners> + Sync)) -> Self {
        self.owners = owners;
        self
    }

    /// Sets whether foreign services with a VNI of the pool, and unfinished ones, are destroyed too: of
    /// a scheduler that has crashed, or was replaced.
    #[must_use]
    pub fn foreign(mut self, foreign: bool) -> Self {
        self.foreign = foreign;
        self
    }

    /// Sets the function that returns the VNIs of live jobs, whose services are kept. It is called
    /// after the services are listed, and again before each attempt to destroy any, possibly from
    /// several threads.
    ///
    /// A job that starts in the meantime is recorded before it gets a service, so this function finds
    /// it. A set that was read earlier would not have it.
    #[must_use]
    pub fn live(mut self, live: &'a (dyn Fn() -> io::Result<IdSet> + Sync)) -> Self {
        self.live = live;
        self
    }

    /// Sets whether services that a killed process left before they had a VNI are cleaned up too:
    /// those that are disabled, list no VNI, have no range, and stay so for this long. `None`
    /// keeps them.
    ///
    /// The default is 1 s on a node with a [lock](Node::with_lock), which shows that no prolog is
    /// making them. Without a lock they are kept, because a prolog may be slow.
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

    /// Sets whether to report only what would be destroyed.
    #[must_use]
    pub fn dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }

    /// The services of a NIC that are to be kept now.
    fn kept(&self, device: &Device) -> io::Result<BTreeSet<ServiceId>> {
        let services = device.services().list().map_err(io::Error::from)?;
        let listed: Vec<_> = services.iter().map(|service| (device.id(), *service)).collect();
        let verdicts = self.judge_all(&listed, true)?;
        let verdicts = listed.iter().zip(verdicts);
        Ok(verdicts.filter(|(_, verdict)| verdict.is_err()).map(|((_, it), _)| it.id()).collect())
    }

    /// The verdict on each of these services, which are all that their NICs have.
    fn judge_all(
        &self,
        services: &[(DeviceId, Service)],
        unfinished: bool,
    ) -> io::Result<Vec<Result<OrphanReason, KeepReason>>> {
        let (live, owners) = ((self.live)()?, (self.owners)()?);
        let makers = owners.of(services);
        let judged = services.iter().zip(makers);
        Ok(judged
            .map(|((_, service), maker)| self.judge(service, maker, &live, unfinished))
            .collect())
    }

    fn judge(
        &self,
        service: &Service,
        maker: Option<&Maker>,
        live: &IdSet,
        unfinished: bool,
    ) -> Result<OrphanReason, KeepReason> {
        if service.id().is_default() {
            return Err(KeepReason::Default);
        }
        if service.is_system() {
            return Err(KeepReason::System);
        }
        match maker {
            Some(Maker::Job { lives: true, .. }) => return Err(KeepReason::Live),
            Some(Maker::Job { lives: false, .. } | Maker::Ended(_)) => {
                return Ok(OrphanReason::Ended);
            }
            Some(Maker::Other(_)) => return Err(KeepReason::Recorded),
            None if overlaps(service.vnis(), live) => return Err(KeepReason::Live),
            None => {}
        }
        let reason = if overlaps(service.vnis(), &self.pool) {
            OrphanReason::InPool
        } else if service.is_enabled() || service.vnis() != VniAccess::Unrestricted {
            return Err(KeepReason::OutsidePool);
        } else if unfinished {
            OrphanReason::Unfinished
        } else {
            return Err(KeepReason::Unfinished);
        };
        if self.foreign { Ok(reason) } else { Err(KeepReason::Foreign) }
    }
}

impl fmt::Debug for CleanPolicy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CleanPolicy")
            .field("pool", &self.pool)
            .field("unfinished", &self.unfinished)
            .field("dry_run", &self.dry_run)
            .finish_non_exhaustive()
    }
}

/// Findings and results of a cleanup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CleanReport {
    /// The services that jobs left behind.
    pub orphans: Vec<Verdict<OrphanReason>>,
    /// All other services.
    pub kept: Vec<Verdict<KeepReason>>,
    /// Results for the orphans, and the NICs that could not be queried; `None` for a dry run.
    pub release: Option<ReleaseReport>,
}

/// The verdict on one service, with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Verdict<R> {
    /// The NIC.
    pub device: DeviceId,
    /// The service.
    pub service: ServiceId,
    /// The service in words: `service 5 (uid 5588, VNI 1024)`.
    pub name: String,
    /// The reason for which it is destroyed or kept.
    pub reason: R,
}

/// Reason for which a service is cleaned up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OrphanReason {
    /// A job that has ended made it.
    Ended,
    /// One of its VNIs is in the pool, and no live job has it.
    InPool,
    /// It was abandoned before it had a VNI.
    Unfinished,
}

/// Reason for which a service is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeepReason {
    /// It is the default service.
    Default,
    /// It is a system service.
    System,
    /// It belongs to a live job.
    Live,
    /// A record says that somebody else than the scheduler made it: an administrator, or a container
    /// runtime.
    Recorded,
    /// It may be of a job that has ended, but no record says who made it.
    Foreign,
    /// None of its VNIs is in the pool.
    OutsidePool,
    /// It has no VNI yet, and may still be in the making.
    Unfinished,
    /// The driver refused its VNI range, and destroying it may make the kernel use memory that it
    /// has freed; see [`Quirks::REFUSED_RANGE`].
    RangeRefused,
}

impl fmt::Display for CleanReport {
    /// One line for each service: what became of it or, for a dry run, what would. A cleanup also has
    /// a line for each NIC that failed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(release) = &self.release {
            return release.fmt(f);
        }
        let orphans = self.orphans.iter().map(|orphan| format!("Would destroy {orphan}"));
        let kept = self.kept.iter().map(|kept| format!("Keeps {kept}"));
        let lines: Vec<String> = orphans.chain(kept).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl fmt::Display for OrphanReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended => "its job has ended",
            Self::InPool => "its VNI is in the pool, and no live job has it",
            Self::Unfinished => "it was abandoned before it had a VNI",
        })
    }
}

impl fmt::Display for KeepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "it is the default service",
            Self::System => "it is a system service",
            Self::Live => "it belongs to a live job",
            Self::Recorded => "an administrator or a container runtime made it",
            Self::Foreign => "no record says who made it",
            Self::OutsidePool => "none of its VNIs is in the pool",
            Self::Unfinished => "it has no VNI yet: its creation may still be in progress",
            Self::RangeRefused => {
                "the driver refused its VNI range, and destroying it may make the kernel use memory \
                 that it has freed: destroy it by hand if another service was in the way; otherwise \
                 leave it until the driver is reloaded"
            }
        })
    }
}

impl<R: fmt::Display> fmt::Display for Verdict<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.device, self.name, self.reason)
    }
}

/// The VNIs of the jobs that a node has records of: of each file `NAME.vnis` in a directory, such as
/// `1024,1025`. A prolog writes it before it makes services, an epilog removes it after they are
/// gone, so this is what [`CleanPolicy::live`](crate::CleanPolicy::live) asks for.
///
/// # Errors
///
/// The directory or a record cannot be read, or a record holds something else; the error names it.
pub fn live_vnis(directory: &Path) -> io::Result<IdSet> {
    let of = |path: &Path, what: &dyn fmt::Display| {
        io::Error::other(format!("{}: {what}", path.display()))
    };
    let mut live = IdSet::new();
    let entries = durable::answers(directory).and_then(|()| fs::read_dir(directory));
    let entries = entries.map_err(|error| of(directory, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| of(directory, &error))?.path();
        if path.extension().is_none_or(|kind| kind != "vnis") {
            continue;
        }
        let text = match kernel_file::read(&path) {
            // The job has ended since the directory was read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            text => text.map_err(|error| of(&path, &error))?,
        };
        let vnis: IdSet = text.trim().parse().map_err(|error| of(&path, &error))?;
        live = live.union(&vnis);
    }
    Ok(live)
}
