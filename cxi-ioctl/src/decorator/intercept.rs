//! A function in place of a driver, or in front of one.

use std::fmt;
use std::os::fd::BorrowedFd;

use crate::{Errno, Mapping, Request, Transport};

/// Passes every command to a function, which answers it or sends it to the transport inside.
///
/// ```
/// use cxi_ioctl::abi::service::SvcDestroyCmd;
/// use cxi_ioctl::{CharDev, Errno, Intercept, Opcode, Transport, execute};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // /dev/null takes every command that has no response.
/// let device =
///     Intercept::new(CharDev::open("/dev/null")?, |file, request| match request.opcode() {
///         Opcode::SVC_DESTROY => Err(Errno::EBUSY),
///         _ => file.submit(request),
///     });
/// let error = execute(&device, &SvcDestroyCmd::of(7)).unwrap_err();
/// assert_eq!(error.errno(), Errno::EBUSY);
/// # Ok(())
/// # }
/// ```
pub struct Intercept<T, F> {
    inner: T,
    submit: F,
}

impl<T, F> Intercept<T, F>
where
    F: Fn(&T, Request<'_>) -> Result<(), Errno> + Send + Sync,
{
    /// Calls `submit` for each command, in the thread that sends it.
    pub fn new(inner: T, submit: F) -> Self {
        Self { inner, submit }
    }
}

impl<T: fmt::Debug, F> fmt::Debug for Intercept<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Intercept").field(&self.inner).finish()
    }
}

impl<T: Transport, F> Transport for Intercept<T, F>
where
    F: Fn(&T, Request<'_>) -> Result<(), Errno> + Send + Sync,
{
    fn submit(&self, request: Request<'_>) -> Result<(), Errno> {
        (self.submit)(&self.inner, request)
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        self.inner.map(offset, len)
    }

    fn file(&self) -> Option<BorrowedFd<'_>> {
        self.inner.file()
    }
}
