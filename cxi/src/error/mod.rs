//! The error type of this crate.

mod kind;
mod refusal;
mod shortage;

use std::sync::Arc;
use std::{fmt, io};

use cxi_ioctl::{CommandError, Errno, Opcode};

use crate::{DeviceId, InvalidPciAddress, InvalidSpec, InvalidValue, ServiceId};

pub use kind::ErrorKind;
pub use refusal::Refusal;
pub use shortage::{Shortage, VniConflict};

/// Error of an operation on a NIC: the failure, its place, the command, and the reason.
///
/// Printed as one line: `cxi0: SVC_ALLOC: not enough TXQs: 512 requested, 96 available`.
/// [`kind`](Self::kind) has the same for programs, and [`errno`](Self::errno) is the driver's
/// errno. Converts to an [`io::Error`] of the matching kind that keeps the text.
#[derive(Clone)]
pub struct Error(Box<Repr>);

#[derive(Clone)]
struct Repr {
    device: Option<DeviceId>,
    opcode: Option<Opcode>,
    errno: Errno,
    kind: Arc<ErrorKind>,
    leftover: Option<Leftover>,
}

/// A service that was made on the way and could not be destroyed again.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Leftover {
    /// The service, which still exists.
    pub service: ServiceId,
    /// The reason for which it could not be destroyed.
    pub error: Error,
}

/// The result of every function that queries a device.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an error that says no more than its cause, for higher layers and for tests.
    #[must_use]
    pub fn new(kind: ErrorKind, errno: Errno) -> Self {
        Self(Box::new(Repr {
            device: None,
            opcode: None,
            errno,
            kind: Arc::new(kind),
            leftover: None,
        }))
    }

    /// Creates an error for a request that no driver would accept: EINVAL.
    #[must_use]
    pub fn invalid(kind: impl Into<ErrorKind>) -> Self {
        Self::new(kind.into(), Errno::EINVAL)
    }

    /// Creates an error for a refusal; `explain` says what the errno means for this command.
    pub(crate) fn refused(
        error: CommandError,
        explain: impl FnOnce(Errno) -> Option<ErrorKind>,
    ) -> Self {
        let (opcode, errno) = (error.opcode(), error.errno());
        let kind = match error {
            CommandError::Refused { errno, .. } => {
                explain(errno).unwrap_or_else(|| ErrorKind::of(opcode, errno))
            }
            error => ErrorKind::Protocol(error),
        };
        Self::new(kind, errno).during(opcode)
    }

    /// Sets the device.
    #[must_use]
    pub fn on(mut self, device: DeviceId) -> Self {
        self.0.device = Some(device);
        self
    }

    /// Sets the command.
    #[must_use]
    pub fn during(mut self, opcode: Opcode) -> Self {
        self.0.opcode = Some(opcode);
        self
    }

    pub(crate) fn leaving(mut self, service: ServiceId, error: Self) -> Self {
        self.0.leftover = Some(Leftover { service, error });
        self
    }

    /// Returns the kind of the error, for programs.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The driver's errno. There is always one, even for what was never sent: EINVAL for a request
    /// that no driver would accept, EOPNOTSUPP for one that this driver cannot execute.
    #[must_use]
    pub fn errno(&self) -> Errno {
        self.0.errno
    }

    /// The NIC.
    #[must_use]
    pub fn device(&self) -> Option<DeviceId> {
        self.0.device
    }

    /// The command that failed or was about to be sent.
    #[must_use]
    pub fn command(&self) -> Option<Opcode> {
        self.0.opcode
    }

    /// The service that still exists although the call failed, because undoing it failed too.
    #[must_use]
    pub fn leftover(&self) -> Option<&Leftover> {
        self.0.leftover.as_ref()
    }

    /// Removes the leftover, for a caller that has destroyed it since.
    #[must_use]
    pub fn without_leftover(mut self) -> Self {
        self.0.leftover = None;
        self
    }

    /// Removes the NIC, for a text that names it elsewhere.
    #[must_use]
    pub fn without_device(mut self) -> Self {
        self.0.device = None;
        self
    }

    /// Returns whether something is still in use, so that the same call may succeed later.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(*self.0.kind, ErrorKind::Busy { .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(device) = self.0.device {
            write!(f, "{device}: ")?;
        }
        if let Some(opcode) = self.0.opcode {
            write!(f, "{opcode}: ")?;
        }
        self.0.kind.fmt(f)?;
        if let Some(Leftover { service, error }) = &self.0.leftover {
            write!(
                f,
                "; service {service} is left behind, because destroying it failed too: {}",
                error.0.kind
            )?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("device", &self.0.device)
            .field("command", &self.0.opcode)
            .field("errno", &self.0.errno)
            .field("kind", &self.0.kind)
            .field("leftover", &self.0.leftover)
            .finish()
    }
}

impl std::error::Error for Error {
    /// The cause: the system's error, the invalid value, or the driver's errno.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(match &*self.0.kind {
            ErrorKind::Open { error, .. } => error,
            ErrorKind::InvalidSpec(error) => error,
            ErrorKind::InvalidValue(error) => error,
            ErrorKind::NotEnough(error) => error,
            ErrorKind::VniTaken(error) => error,
            ErrorKind::Protocol(error) => error,
            _ => &self.0.errno,
        })
    }
}

/// A handle that could not be closed, or a [`ScopedService`](crate::ScopedService) that could not
/// be destroyed, and why. The handle is still valid; `?` keeps only the error.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct NotClosed<T> {
    /// The handle, for another attempt.
    pub handle: T,
    /// The driver's error.
    #[source]
    pub error: Error,
}

impl<T> From<NotClosed<T>> for Error {
    /// Drops the handle.
    fn from(refused: NotClosed<T>) -> Self {
        refused.error
    }
}

impl From<InvalidSpec> for Error {
    fn from(error: InvalidSpec) -> Self {
        Self::invalid(error)
    }
}

impl From<InvalidValue> for Error {
    fn from(error: InvalidValue) -> Self {
        Self::invalid(error)
    }
}

impl From<InvalidPciAddress> for Error {
    fn from(error: InvalidPciAddress) -> Self {
        InvalidValue::from(error).into()
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = Self::from(error.errno()).kind();
        Self::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_where_and_what_and_keeps_the_errno() {
        let error = Error::refused(
            CommandError::refused(Opcode::SVC_DESTROY, Errno::from_raw(4242)),
            |_| None,
        )
        .on(DeviceId::new(3));
        assert_eq!(
            error.to_string(),
            "cxi3: SVC_DESTROY: the driver refused with errno 4242 (Unknown error 4242)"
        );
        assert_eq!(error.errno().raw(), 4242);
        assert_eq!(error.device(), Some(DeviceId::new(3)));
        assert_eq!(error.command(), Some(Opcode::SVC_DESTROY));
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }

    #[test]
    fn becomes_an_io_error_of_the_right_kind() {
        let busy = Error::refused(CommandError::refused(Opcode::SVC_ALLOC, Errno::EPERM), |_| None);
        let text = busy.to_string();
        let io = io::Error::from(busy);
        assert_eq!(io.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(io.to_string(), text);
        let back = io.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        assert_eq!(back.map(Error::errno), Some(Errno::EPERM));
    }

    #[test]
    fn a_clone_can_be_of_another_nic() {
        let error = Error::invalid(ErrorKind::InvalidInput("no".into())).on(DeviceId::new(3));
        assert_eq!(error.clone().on(DeviceId::new(4)).device(), Some(DeviceId::new(4)));
        assert_eq!(error.device(), Some(DeviceId::new(3)));
    }

    #[test]
    fn a_leftover_is_named() {
        let undo = Error::new(ErrorKind::Removed, Errno::EIO);
        let error = Error::invalid(ErrorKind::InvalidInput("no".into()))
            .on(DeviceId::new(0))
            .leaving(ServiceId::DEFAULT, undo);
        assert_eq!(
            error.to_string(),
            "cxi0: no; service 1 is left behind, because destroying it failed too: \
             the device has been removed"
        );
        assert_eq!(error.leftover().map(|left| left.service.get()), Some(1));
    }
}
