//! Failing on purpose.

use std::os::fd::BorrowedFd;
use std::sync::{Mutex, PoisonError};

use crate::{Errno, Mapping, Opcode, Request, Transport};

/// One kind of failure: which commands fail, how often, and whether they are carried out.
///
/// A new one hits every command, for ever, before it reaches the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Injection {
    errno: Errno,
    opcode: Option<Opcode>,
    skip: u64,
    times: u64,
    carried_out: bool,
}

impl Injection {
    /// Commands fail with this errno.
    #[must_use]
    pub const fn errno(errno: Errno) -> Self {
        Self {
            errno,
            opcode: None,
            skip: 0,
            times: u64::MAX,
            carried_out: false,
        }
    }

    /// Only commands of this opcode, which alone are counted then.
    #[must_use]
    pub const fn on(mut self, opcode: Opcode) -> Self {
        self.opcode = Some(opcode);
        self
    }

    /// The first `count` commands go through: `skip(k - 1)` fails the k-th.
    #[must_use]
    pub const fn skip(mut self, count: u64) -> Self {
        self.skip = count;
        self
    }

    /// So many fail, later ones go through.
    #[must_use]
    pub const fn times(mut self, count: u64) -> Self {
        self.times = count;
        self
    }

    /// The driver carries the command out first; only the answer is lost, as when it cannot
    /// deliver its response (EFAULT). What it wrote stands in the response.
    #[must_use]
    pub const fn after_the_command(mut self) -> Self {
        self.carried_out = true;
        self
    }

    /// Counts the command; what becomes of it, if it is hit.
    fn hit(&mut self, opcode: Opcode) -> Option<(Errno, bool)> {
        if self.opcode.is_some_and(|only| only != opcode) {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        if self.times == 0 {
            return None;
        }
        if self.times != u64::MAX {
            self.times -= 1;
        }
        Some((self.errno, self.carried_out))
    }
}

/// Makes commands fail as told.
///
/// Each [`Injection`] counts the commands it applies to. The first one that hits decides, and
/// those behind it do not count that command. Injections can come and go while the transport is in use.
///
/// ```
/// use cxi_ioctl::abi::service::SvcDestroyCmd;
/// use cxi_ioctl::{CharDev, Errno, Fault, Injection, Opcode, execute};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // /dev/null takes every command that has no response.
/// let device = Fault::new(CharDev::open("/dev/null")?);
/// device.inject(Injection::errno(Errno::EBUSY).on(Opcode::SVC_DESTROY).times(2));
/// let destroy = SvcDestroyCmd { svc_id: 7, ..SvcDestroyCmd::new() };
/// assert_eq!(execute(&device, &destroy).unwrap_err().errno(), Errno::EBUSY);
/// assert_eq!(execute(&device, &destroy).unwrap_err().errno(), Errno::EBUSY);
/// assert_eq!(execute(&device, &destroy), Ok(()));
/// assert_eq!(device.injected(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Fault<T> {
    inner: T,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    injections: Vec<Injection>,
    injected: u64,
}

impl<T: Transport> Fault<T> {
    /// Nothing fails yet.
    pub fn new(inner: T) -> Self {
        Self {
            inner,
            state: Mutex::default(),
        }
    }

    /// Adds an injection behind those there are.
    pub fn inject(&self, injection: Injection) {
        self.lock().injections.push(injection);
    }

    /// Removes all injections.
    pub fn clear(&self) {
        self.lock().injections.clear();
    }

    /// How many commands were made to fail.
    #[must_use]
    pub fn injected(&self) -> u64 {
        self.lock().injected
    }

    /// The transport inside.
    pub fn inner(&self) -> &T {
        &self.inner
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, opcode: Opcode) -> Option<(Errno, bool)> {
        let mut state = self.lock();
        let hit = state
            .injections
            .iter_mut()
            .find_map(|injection| injection.hit(opcode));
        state.injected += u64::from(hit.is_some());
        hit
    }
}

impl<T: Transport> Transport for Fault<T> {
    fn submit(&self, request: Request<'_>) -> Result<(), Errno> {
        match self.next(request.opcode()) {
            None => self.inner.submit(request),
            Some((errno, false)) => Err(errno),
            Some((errno, true)) => {
                self.inner.submit(request)?;
                Err(errno)
            }
        }
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        self.inner.map(offset, len)
    }

    fn file(&self) -> Option<BorrowedFd<'_>> {
        self.inner.file()
    }
}
