//! Injecting faults.

use std::os::fd::BorrowedFd;
use std::sync::{Mutex, PoisonError};

use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::abi::service::{RSRC_COUNT, SvcAllocCmd, SvcAllocResp, SvcFlags};
use crate::{Errno, Mapping, Opcode, Request, Transport};

/// A fault: which commands fail, how often, and whether they are carried out first.
///
/// By default it hits every command, forever, before it reaches the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    errno: Errno,
    opcode: Option<Opcode>,
    after: u64,
    times: u64,
    carried_out: bool,
    shortage: Option<Shortage>,
}

/// A resource (an index of `RSRC_*`), and how many of it are available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shortage {
    resource: usize,
    available: u16,
}

impl Fault {
    /// Commands fail with this errno.
    #[must_use]
    pub const fn errno(errno: Errno) -> Self {
        Self { errno, opcode: None, after: 0, times: u64::MAX, carried_out: false, shortage: None }
    }

    /// SVC_ALLOC fails with ENOSPC if it reserves more than this many of a resource: an index of
    /// `RSRC_*`, or a `cxi::Resource`. The response says how many are available, and like a driver's
    /// nothing about the resources after that.
    #[must_use]
    pub fn shortage(resource: impl Into<usize>, available: u16) -> Self {
        Self {
            shortage: Some(Shortage { resource: resource.into(), available }),
            ..Self::errno(Errno::ENOSPC).on(Opcode::SVC_ALLOC)
        }
    }

    /// Hits, and counts, only commands with this opcode.
    #[must_use]
    pub const fn on(mut self, opcode: Opcode) -> Self {
        self.opcode = Some(opcode);
        self
    }

    /// Lets the first `commands` through: `after(k - 1)` fails the k-th.
    #[must_use]
    pub const fn after(mut self, commands: u64) -> Self {
        self.after = commands;
        self
    }

    /// Fails this many commands and lets later ones through.
    #[must_use]
    pub const fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    /// Fails one command and lets later ones through.
    #[must_use]
    pub const fn once(self) -> Self {
        self.times(1)
    }

    /// Lets the driver carry the command out first; only its answer is lost, as when it cannot
    /// deliver the response (EFAULT). The response contains what the driver wrote.
    #[must_use]
    pub const fn carried_out(mut self) -> Self {
        self.carried_out = true;
        self
    }

    /// Counts a command, and returns what happens to it if it is hit; for transports and mocks that
    /// keep their own faults.
    pub fn strike(&mut self, opcode: Opcode, command: &[u8]) -> Option<Strike> {
        let is_concerned = self.opcode.is_none_or(|only| only == opcode)
            && self.shortage.is_none_or(|it| it.refuses(command));
        if !is_concerned {
            return None;
        }
        if self.after > 0 {
            self.after -= 1;
            return None;
        }
        if self.times == 0 {
            return None;
        }
        if self.times != u64::MAX {
            self.times -= 1;
        }
        Some(Strike {
            errno: self.errno,
            carried_out: self.carried_out,
            response: self.shortage.map(Shortage::response),
        })
    }
}

impl Shortage {
    /// Returns whether a SVC_ALLOC reserves more than there is.
    fn refuses(self, command: &[u8]) -> bool {
        SvcAllocCmd::read_from_prefix(command).is_ok_and(|(command, _)| {
            let desc = command.svc_desc;
            let limit = desc.limits.types.get(self.resource);
            SvcFlags::from_bits_retain(desc.flags).contains(SvcFlags::RESOURCE_LIMITS)
                && limit.is_some_and(|limit| limit.res > self.available)
        })
    }

    fn response(self) -> SvcAllocResp {
        let mut response = SvcAllocResp::new_zeroed();
        response.fail_info.rsrc_avail =
            std::array::from_fn::<_, RSRC_COUNT, _>(|index| match index.cmp(&self.resource) {
                std::cmp::Ordering::Less => u16::MAX,
                std::cmp::Ordering::Equal => self.available,
                std::cmp::Ordering::Greater => 0,
            });
        response
    }
}

/// Effect of a [`Fault`] on a command that it hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Strike {
    /// The answer.
    pub errno: Errno,
    /// `true` if the driver carries the command out first.
    pub carried_out: bool,
    /// Content of the response in spite of the error.
    pub response: Option<SvcAllocResp>,
}

/// A transport in which commands fail on request.
///
/// Each [`Fault`] counts the commands it applies to. The first one that hits decides, and the ones
/// after it do not count that command. Faults can be added and removed while the transport is in
/// use.
///
/// ```
/// use cxi_ioctl::abi::service::SvcDestroyCmd;
/// use cxi_ioctl::{CharDev, Errno, Fault, Faulty, Opcode, execute};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // /dev/null takes every command that has no response.
/// let device = Faulty::new(CharDev::open("/dev/null")?);
/// device.inject(Fault::errno(Errno::EBUSY).on(Opcode::SVC_DESTROY).times(2));
/// let destroy = SvcDestroyCmd::of(7);
/// assert_eq!(execute(&device, &destroy).unwrap_err().errno(), Errno::EBUSY);
/// assert_eq!(execute(&device, &destroy).unwrap_err().errno(), Errno::EBUSY);
/// assert_eq!(execute(&device, &destroy), Ok(()));
/// assert_eq!(device.injected(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Faulty<T> {
    inner: T,
    state: Mutex<Injections>,
}

#[derive(Debug, Default)]
struct Injections {
    faults: Vec<Fault>,
    injected: u64,
}

impl<T: Transport> Faulty<T> {
    /// Wraps a transport, without any fault.
    pub fn new(inner: T) -> Self {
        Self { inner, state: Mutex::default() }
    }

    /// Adds a fault after the existing ones.
    pub fn inject(&self, fault: Fault) {
        self.lock().faults.push(fault);
    }

    /// Removes all faults.
    pub fn clear(&self) {
        self.lock().faults.clear();
    }

    /// Returns the number of commands that were made to fail.
    #[must_use]
    pub fn injected(&self) -> u64 {
        self.lock().injected
    }

    /// The transport inside.
    pub fn inner(&self) -> &T {
        &self.inner
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Injections> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, request: &Request<'_>) -> Option<Strike> {
        let mut state = self.lock();
        let hit = state
            .faults
            .iter_mut()
            .find_map(|fault| fault.strike(request.opcode(), request.command()));
        state.injected += u64::from(hit.is_some());
        hit
    }
}

impl<T: Transport> Transport for Faulty<T> {
    fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
        let Some(strike) = self.next(&request) else { return self.inner.submit(request) };
        if let Some(response) = strike.response
            && let Some(room) = request.response().get_mut(..size_of::<SvcAllocResp>())
        {
            room.copy_from_slice(response.as_bytes());
        }
        if strike.carried_out {
            self.inner.submit(request)?;
        }
        Err(strike.errno)
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        self.inner.map(offset, len)
    }

    fn file(&self) -> Option<BorrowedFd<'_>> {
        self.inner.file()
    }
}
