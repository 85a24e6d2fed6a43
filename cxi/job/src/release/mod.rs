//! Ending a job by destroying its services on every NIC.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, io};

use cxi::error::{Error, ErrorKind};
use cxi::{Backoff, Clock, Device, DeviceId, Members, Service, ServiceId, SystemClock, VniAccess};
use cxi_ioctl::Errno;

use crate::node::Node;
use crate::view::has_same_id_and_purpose;
use crate::{Grant, parallel};
use cxi_site::durable::{LockError, LockGuard};
use cxi_site::proc::Users;

mod filter;
mod outcome;

pub use filter::Filter;
pub(super) use filter::overlaps;
pub use outcome::{FailedNic, Outcome, ReleaseReport, ReleaseStatus, Released};

/// Shorter pauses are not reported, because a report looks up which processes have the NIC open.
const WORTH_REPORTING: Duration = Duration::from_millis(30);

impl Node {
    /// Destroys the services that a filter selects, on all NICs in parallel.
    ///
    /// A busy service is tried again, first after a millisecond and then with longer pauses, until
    /// the deadline of `options`. An error with one service or NIC does not stop the others. The
    /// default service is never selected, and system services only [by id](Filter::services).
    ///
    /// Ids are reused. Before each attempt the NIC is therefore asked whether the service is still
    /// the same, under the [lock](Node::with_lock) if the node has one.
    ///
    /// Needs CAP_SYS_ADMIN.
    ///
    /// ```
    /// # use cxi::Vni;
    /// # use cxi_mock::{Credentials, MockNode, NicConfig};
    /// # let mock = MockNode::with_nics(2, &NicConfig::new())?;
    /// # let node = cxi_job::Node::from_transports(mock.devices(&Credentials::root())?);
    /// # let vni = Vni::new(4034)?;
    /// use cxi_job::{Filter, JobRequest, ReleaseOptions, ReleaseStatus};
    /// use std::time::Duration;
    ///
    /// node.allocate(&JobRequest::builder().uid(1000).vni(vni).build()?)?;
    /// let job = Filter::vnis([vni]).uid(1000);
    /// let release = node.release(&job, &ReleaseOptions::until(Duration::from_secs(5)));
    /// assert_eq!(release.status(), ReleaseStatus::Done);
    /// assert_eq!(release.services.len(), 2);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "cxil_destroy_svc")]
    #[must_use = "services may be left"]
    pub fn release(&self, filter: &Filter, options: &ReleaseOptions<'_>) -> ReleaseReport {
        let (services, nics) = self.list_services();
        let selected = services
            .into_iter()
            .map(|(device, service)| (device.id(), service))
            .filter(|(device, service)| filter.selects(*device, service));
        let selected: Vec<(DeviceId, Service)> = selected.collect();
        ReleaseReport {
            services: release_chosen(self, &selected, &|_| Ok(BTreeSet::new()), options),
            nics,
            shared: false,
        }
    }

    /// Destroys what an allocation made, except for what it adopted: for a grant that could not be handed
    /// on.
    #[must_use]
    pub fn undo(&self, grant: &Grant) -> ReleaseReport {
        let made = grant.services.iter().filter(|entry| !entry.adopted);
        let made = Filter::services(made.map(|entry| (entry.device, entry.service)));
        self.release(&made, &ReleaseOptions::once())
    }
}

impl Node {
    /// The services of all NICs, and the NICs that could not be queried.
    pub(super) fn list_services(&self) -> (Vec<(&Device, Service)>, Vec<FailedNic>) {
        let unopened = self.nics().iter().filter(|nic| nic.device().is_none());
        let mut failed: Vec<FailedNic> = unopened
            .map(|nic| {
                let reason = nic.problems().first().map_or_else(String::new, ToString::to_string);
                FailedNic { device: nic.id(), reason: format!("{}: {reason}", nic.id()) }
            })
            .collect();
        let nics: Vec<&Device> = self.manageable().map(|(_, device)| device).collect();
        let lists = parallel::each(&nics, |device| device.services().list());
        let mut services = Vec::new();
        for (device, list) in nics.into_iter().zip(lists) {
            match list {
                Ok(list) => services.extend(list.into_iter().map(|service| (device, service))),
                Err(error) => {
                    failed.push(FailedNic { device: device.id(), reason: error.to_string() });
                }
            }
        }
        failed.sort_by_key(|nic| nic.device);
        (services, failed)
    }
}

/// Returns the services of a NIC that are to be kept now; called with the lock held, before each attempt.
pub(super) type Kept<'a> = dyn Fn(&Device) -> io::Result<BTreeSet<ServiceId>> + Sync + 'a;

/// The lock of a node, which the NICs of a release hold together: they would otherwise wait for each
/// other, and in vain where nobody is to be waited for.
struct Turn<'a> {
    node: &'a Node,
    shared: Mutex<Shared>,
}

#[derive(Default)]
struct Shared {
    guard: Option<LockGuard>,
    /// Number of NICs that need it.
    users: usize,
}

impl<'a> Turn<'a> {
    fn new(node: &'a Node) -> Self {
        Self { node, shared: Mutex::default() }
    }

    fn take(&self) -> Result<Share<'_>, LockError> {
        let begun = Instant::now();
        let mut shared = self.shared();
        if shared.users == 0 {
            shared.guard = self.node.acquire_after(begun.elapsed())?;
        }
        shared.users += 1;
        Ok(Share(self))
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lock, for one NIC.
struct Share<'a>(&'a Turn<'a>);

impl Drop for Share<'_> {
    fn drop(&mut self) {
        // The file is unlocked before another NIC may ask for it.
        let mut shared = self.0.shared();
        shared.users -= 1;
        if shared.users == 0 {
            shared.guard = None;
        }
    }
}

/// One NIC's part of a release.
struct Pass<'a> {
    node: &'a Node,
    turn: &'a Turn<'a>,
    device: &'a Device,
    options: &'a ReleaseOptions<'a>,
    kept: &'a Kept<'a>,
    start: Duration,
    done: Vec<Released>,
}

/// A service that is still busy.
#[derive(Clone, Copy)]
struct Pending {
    service: Service,
    attempts: u32,
}

impl Pass<'_> {
    fn run(mut self, services: impl Iterator<Item = Service>) -> Vec<Released> {
        let attempts = 0;
        let pending = services.map(|service| Pending { service, attempts });
        let mut pending: Vec<Pending> = pending.collect();
        let mut pauses = Backoff::default().pauses();
        loop {
            pending = self.attempt(pending);
            let waited = self.waited();
            let left = self.options.deadline.saturating_sub(waited);
            if pending.is_empty() || left.is_zero() {
                break;
            }
            let pause = pauses.next().unwrap_or(left);
            // With a clock that stands still, pauses of zero would loop forever.
            let pause = pause.max(Duration::from_micros(1)).min(left);
            if pause >= WORTH_REPORTING {
                self.report(&pending, left);
            }
            self.options.clock.sleep(pause);
        }
        for busy in &pending {
            let users = self.users(&busy.service);
            let outcome =
                Outcome::StillBusy { waited: self.waited(), attempts: busy.attempts, users };
            self.finish(&busy.service, outcome);
        }
        self.done.sort_by_key(|released| released.service);
        self.done
    }

    /// Tries to destroy each service; returns the busy ones.
    fn attempt(&mut self, pending: Vec<Pending>) -> Vec<Pending> {
        let mut busy = Vec::new();
        if pending.is_empty() {
            return busy;
        }
        let held = self.turn.take().map_err(|error| Outcome::failed(&error, error.errno()));
        let kept = held.and_then(|held| match (self.kept)(self.device) {
            Ok(kept) => Ok((held, kept)),
            Err(error) => {
                let errno = error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
                Err(Outcome::failed(&error, errno))
            }
        });
        let (_held, kept) = match kept {
            Ok(kept) => kept,
            Err(outcome) => {
                for one in &pending {
                    self.finish(&one.service, outcome.clone());
                }
                return busy;
            }
        };
        for mut one in pending {
            if kept.contains(&one.service.id()) {
                self.finish(&one.service, Outcome::Kept);
                continue;
            }
            // The id may belong to another service by now.
            if !self.is_still_there(&one.service) {
                self.finish(&one.service, Outcome::AlreadyGone);
                continue;
            }
            one.attempts += 1;
            match self.device.services().destroy(one.service.id()) {
                Ok(()) => self.finish(&one.service, Outcome::Destroyed),
                Err(error) if error.is_busy() => busy.push(one),
                Err(error) => {
                    let outcome = self.failed(&one.service, &error);
                    self.finish(&one.service, outcome);
                }
            }
        }
        busy
    }

    /// Returns whether the id still belongs to the same service. If the NIC does not answer, the
    /// attempt that follows will say why.
    fn is_still_there(&self, before: &Service) -> bool {
        match self.device.services().get(before.id()) {
            Ok(now) => has_same_id_and_purpose(before, &now),
            Err(error) => !is_gone(&error),
        }
    }

    fn failed(&self, service: &Service, error: &Error) -> Outcome {
        if is_gone(error) {
            return Outcome::AlreadyGone;
        }
        // The driver may have destroyed it, and only its answer was lost.
        match self.device.services().get(service.id()) {
            Err(asking) if is_gone(&asking) => Outcome::Destroyed,
            // Another process destroyed it first, and the id belongs to another service.
            Ok(now) if !has_same_id_and_purpose(service, &now) => Outcome::AlreadyGone,
            _ => Outcome::failed(error, error.errno()),
        }
    }

    fn finish(&mut self, service: &Service, outcome: Outcome) {
        self.done.push(Released::new(self.device.id(), service, outcome));
    }

    fn report(&self, pending: &[Pending], left: Duration) {
        let Some(progress) = self.options.progress else { return };
        for busy in pending {
            progress(&Waiting {
                device: self.device.id(),
                service: busy.service.id(),
                members: busy.service.members(),
                vnis: busy.service.vnis(),
                users: self.users(&busy.service),
                attempts: busy.attempts,
                waited: self.waited(),
                left,
            });
        }
    }

    fn users(&self, service: &Service) -> Users {
        self.node.proc().users_of(self.device.id()).among(service.members().as_ref())
    }

    fn waited(&self) -> Duration {
        self.options.clock.now().saturating_sub(self.start)
    }
}

fn is_gone(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NoSuchService { .. })
}

/// Destroys these services, each only as long as it is what it was when it was chosen, and is not
/// to be kept.
pub(super) fn release_chosen(
    node: &Node,
    chosen: &[(DeviceId, Service)],
    kept: &Kept<'_>,
    options: &ReleaseOptions<'_>,
) -> Vec<Released> {
    let nics: Vec<&Device> = node.manageable().map(|(_, device)| device).collect();
    let (turn, start) = (&Turn::new(node), options.clock.now());
    let done = parallel::each(&nics, |device| {
        let mine = chosen.iter().filter(|(nic, _)| *nic == device.id());
        let pass = Pass { node, turn, device, options, kept, start, done: Vec::new() };
        pass.run(mine.map(|(_, service)| *service))
    });
    done.into_iter().flatten().collect()
}

/// A VNI access and members in words, for printing a service that is gone.
fn name(members: Option<&Members>, vnis: VniAccess) -> String {
    let members = members.map_or_else(|| "everyone".to_owned(), Members::to_string);
    format!("{members}, {}", super::describe::vnis(vnis))
}

/// Deadline of a release, and its reports of progress.
#[derive(Clone)]
pub struct ReleaseOptions<'a> {
    deadline: Duration,
    pub(crate) clock: &'a dyn Clock,
    progress: Option<&'a (dyn Fn(&Waiting) + Sync)>,
}

impl<'a> ReleaseOptions<'a> {
    /// One attempt for each service.
    #[must_use]
    pub fn once() -> Self {
        Self::until(Duration::ZERO)
    }

    /// Attempts until the deadline, counted from the start of the release.
    #[must_use]
    pub fn until(deadline: Duration) -> Self {
        Self { deadline, clock: &SystemClock, progress: None }
    }

    /// Sets the clock.
    #[must_use]
    pub fn clock(mut self, clock: &'a dyn Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets a function that is called before each pause of 30 ms or more, once for each busy
    /// service, possibly from several threads.
    #[must_use]
    pub fn progress(mut self, progress: &'a (dyn Fn(&Waiting) + Sync)) -> Self {
        self.progress = Some(progress);
        self
    }
}

impl fmt::Debug for ReleaseOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReleaseOptions").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

/// State of a release that is waiting.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// The NIC.
    pub device: DeviceId,
    /// The service that is busy.
    pub service: ServiceId,
    /// Its members; `None` for everyone.
    pub members: Option<Members>,
    /// Its VNIs.
    pub vnis: VniAccess,
    /// The processes that have the NIC open; only those of members, if there are any.
    pub users: Users,
    /// Number of attempts that were made.
    pub attempts: u32,
    /// Time for which the release has been trying.
    pub waited: Duration,
    /// Time for which it will continue to try.
    pub left: Duration,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: service {} ({}) is still in use; {}; {} s left",
            self.device,
            self.service,
            name(self.members.as_ref(), self.vnis),
            self.users,
            self.left.as_secs_f64().ceil(),
        )
    }
}
