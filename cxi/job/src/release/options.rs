//! How long to try, and how to report progress.

use std::fmt;
use std::time::Duration;

use crate::proc::Users;
use cxi::{Backoff, Clock, DeviceId, Members, ServiceId, SystemClock, VniAccess};

/// How long to try, and how to report progress.
#[derive(Clone)]
pub struct ReleaseOptions<'a> {
    pub(super) deadline: Duration,
    pub(super) backoff: Backoff,
    pub(super) clock: Clocks<'a>,
    pub(super) progress: Option<&'a (dyn Fn(&Waiting) + Sync)>,
}

/// A clock, owned or borrowed.
#[derive(Clone)]
pub(super) enum Clocks<'a> {
    System(SystemClock),
    Given(&'a dyn Clock),
}

impl Clocks<'_> {
    pub(super) fn now(&self) -> Duration {
        self.clock().now()
    }

    pub(super) fn sleep(&self, time: Duration) {
        self.clock().sleep(time);
    }

    fn clock(&self) -> &dyn Clock {
        match self {
            Self::System(clock) => clock,
            Self::Given(clock) => *clock,
        }
    }
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
        Self {
            deadline,
            backoff: Backoff::default(),
            clock: Clocks::System(SystemClock::new()),
            progress: None,
        }
    }

    /// Sets the pauses. The default is from 1 ms, doubling, to 1 s.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets the clock.
    #[must_use]
    pub fn clock(mut self, clock: &'a dyn Clock) -> Self {
        self.clock = Clocks::Given(clock);
        self
    }

    pub(crate) fn sleep(&self, time: Duration) {
        self.clock.sleep(time);
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
        f.debug_struct("ReleaseOptions")
            .field("deadline", &self.deadline)
            .field("backoff", &self.backoff)
            .finish_non_exhaustive()
    }
}

/// What a release is waiting for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// The NIC.
    pub device: DeviceId,
    /// The service that is busy.
    pub service: ServiceId,
    /// Its members; `None` for everybody.
    pub members: Option<Members>,
    /// Its VNIs.
    pub vnis: VniAccess,
    /// The processes that have the NIC open; only those of members, if there are any.
    pub users: Users,
    /// How many attempts were made.
    pub attempts: u32,
    /// How long the release has been trying.
    pub waited: Duration,
    /// How long it will continue to try.
    pub left: Duration,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: service {} ({}) is still in use; {}; {} s left",
            self.device,
            self.service,
            super::name(self.members.as_ref(), self.vnis),
            self.users,
            self.left.as_secs_f64().ceil(),
        )
    }
}
