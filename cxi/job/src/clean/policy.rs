//! Which services a clean-up destroys.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::time::Duration;

use super::report::{KeepReason, OrphanReason};
use crate::IdSet;
use crate::node::Node;
use crate::release::overlaps;
use cxi::{DeviceId, Service, ServiceId, VniAccess};

/// Which services to clean up, and which to keep.
///
/// The default service and system services are always kept.
#[derive(Clone)]
pub struct CleanPolicy<'a> {
    pool: IdSet,
    live_vnis: IdSet,
    live_services: BTreeSet<(DeviceId, ServiceId)>,
    live: &'a (dyn Fn() -> io::Result<IdSet> + Sync),
    unfinished: Unfinished,
    pub(super) dry_run: bool,
}

/// When a service counts as abandoned half-made.
#[derive(Debug, Clone, Copy)]
enum Unfinished {
    /// After a pause, if the node's lock shows that nobody is still making it.
    Locked,
    After(Duration),
    Never,
}

/// How long a service may stay unfinished on a node with a lock.
const PAUSE: Duration = Duration::from_secs(1);

impl<'a> CleanPolicy<'a> {
    /// Cleans up services with any VNI of the scheduler's pool, and unfinished ones.
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

    /// Sets the function that returns the VNIs of live jobs, whose services are kept. It is called
    /// after the services are listed, and again before each attempt to destroy any, possibly from
    /// several threads.
    ///
    /// A job that starts in the meantime is recorded before it gets a service, so this function finds
    /// it. The fixed set of [`keep_vnis`](Self::keep_vnis) would not have it.
    #[must_use]
    pub fn live(mut self, live: &'a (dyn Fn() -> io::Result<IdSet> + Sync)) -> Self {
        self.live = live;
        self
    }

    /// Keeps services with any of these VNIs: those of live jobs. Only for nodes where no job
    /// starts in the meantime; otherwise use [`live`](Self::live).
    #[must_use]
    pub fn keep_vnis(mut self, vnis: &IdSet) -> Self {
        self.live_vnis = self.live_vnis.union(vnis);
        self
    }

    /// Keeps these services.
    #[must_use]
    pub fn keep_services(
        mut self,
        services: impl IntoIterator<Item = (DeviceId, ServiceId)>,
    ) -> Self {
        self.live_services.extend(services);
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

    pub(super) fn pause(&self, node: &Node) -> Option<Duration> {
        match self.unfinished {
            Unfinished::After(pause) => Some(pause),
            Unfinished::Locked if node.has_lock() => Some(PAUSE),
            Unfinished::Locked | Unfinished::Never => None,
        }
    }

    pub(super) fn live_now(&self) -> io::Result<IdSet> {
        Ok((self.live)()?.union(&self.live_vnis))
    }

    /// Sets whether to report only what would be destroyed.
    #[must_use]
    pub fn dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }

    pub(super) fn judge(
        &self,
        device: DeviceId,
        service: &Service,
        live: &IdSet,
        unfinished: bool,
    ) -> Result<OrphanReason, KeepReason> {
        if service.id().is_default() {
            return Err(KeepReason::Default);
        }
        if service.is_system() {
            return Err(KeepReason::System);
        }
        if self.live_services.contains(&(device, service.id())) || overlaps(service.vnis(), live) {
            return Err(KeepReason::Live);
        }
        if overlaps(service.vnis(), &self.pool) {
            return Ok(OrphanReason::InPool);
        }
        if service.is_enabled() || service.vnis() != VniAccess::Unrestricted {
            return Err(KeepReason::OutsidePool);
        }
        if unfinished {
            Ok(OrphanReason::Unfinished)
        } else {
            Err(KeepReason::Unfinished)
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
