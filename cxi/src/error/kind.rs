//! Kinds of errors.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cxi_ioctl::{CommandError, DriverRelease, Errno, Opcode};

use super::{Refusal, Shortage, VniConflict};
use crate::driver::{DetectedRelease, Quirks};
use crate::service::InvalidSpec;
use crate::{InvalidValue, ServiceId};

/// Kind of an error, for programs. [`Error`](crate::Error) adds where it happened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The device node cannot be opened.
    #[error("cannot open {}: {}", path.display(), open_reason(error))]
    Open {
        /// The device node.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Something in sysfs cannot be read, or is malformed.
    #[error("{}: {reason}", path.display())]
    Sysfs {
        /// The file or directory.
        path: PathBuf,
        /// The fault in the request.
        reason: String,
    },
    /// The specification of a service is wrong. Nothing was sent.
    #[error(transparent)]
    InvalidSpec(#[from] InvalidSpec),
    /// A value is invalid, such as VNI 0. Nothing was sent.
    #[error(transparent)]
    InvalidValue(#[from] InvalidValue),
    /// The request is invalid in some other way. Nothing was sent.
    #[error("{0}")]
    InvalidInput(Cow<'static, str>),
    /// ENOSPC: something is exhausted.
    #[error(transparent)]
    NotEnough(Shortage),
    /// EEXIST: a VNI is taken.
    #[error(transparent)]
    VniTaken(VniConflict),
    /// EPERM: the caller may not do this.
    #[error("not permitted: {0}")]
    NotPermitted(Cow<'static, str>),
    /// EINVAL: there is no such service.
    #[error("there is no service {service}")]
    NoSuchService {
        /// The service.
        service: ServiceId,
    },
    /// EKEYREVOKED: the service is disabled.
    #[error("service {service} is disabled{}", hint(*.service))]
    ServiceDisabled {
        /// The service.
        service: ServiceId,
    },
    /// EBUSY: still in use. The same call may succeed later.
    #[error("{what} is still in use{}", so_far(waited.as_ref()))]
    Busy {
        /// The object in use, and its user.
        what: Cow<'static, str>,
        /// Time that the call waited, and number of attempts, if it did wait.
        waited: Option<(Duration, u32)>,
    },
    /// The driver is too old for this, or not known to support it. Nothing was sent.
    #[error(
        "{what} is not known to this driver ({has}): it needs {} or later",
        words(*.needs)
    )]
    Unsupported {
        /// The request.
        what: Cow<'static, str>,
        /// First release that can do it.
        needs: DriverRelease,
        /// The release that the driver behaves like.
        has: DetectedRelease,
    },
    /// The driver would accept the request, but does not give the protection that was requested.
    /// Nothing was sent.
    #[error("this driver ({has}) cannot promise {what}")]
    NotGuaranteed {
        /// The request, and a replacement that could be used.
        what: Cow<'static, str>,
        /// The release that the driver behaves like.
        has: DetectedRelease,
    },
    /// The driver may answer with damage. Nothing was sent;
    /// [`Device::allow_quirks`](crate::Device::allow_quirks) permits sending it.
    #[error("not sent, as this driver ({has}) may be one where {quirk}")]
    Quirk {
        /// The damage that may happen.
        quirk: Quirks,
        /// The release that the driver behaves like.
        has: DetectedRelease,
    },
    /// EIO: the NIC is gone.
    #[error("the device has been removed")]
    Removed,
    /// The driver's response does not have the known form.
    #[error("{}", protocol(.0))]
    Protocol(CommandError),
    /// EPROTO: the driver's response has the known form, but contradicts itself or the request.
    #[error("{0}")]
    Nonsense(Cow<'static, str>),
    /// There is no memory that the NIC could write to.
    #[error("cannot allocate {len} bytes of memory for the NIC: {errno}")]
    NoMemory {
        /// Length that was asked for, in bytes.
        len: usize,
        /// The system's error.
        errno: Errno,
    },
    /// A window of the device cannot be mapped.
    #[error("cannot map the {window} of the device: {errno}")]
    NotMapped {
        /// The window.
        window: String,
        /// The system's error.
        errno: Errno,
    },
    /// ENOENT: the device was opened without its directory in sysfs, or has none.
    #[error("this device has no entry in sysfs")]
    NoSysfs,
    /// The driver refused, for a known reason.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The driver refused with an errno that has no special meaning for this command.
    #[error("the driver refused with {} ({})", .0, describe(*.0))]
    Other(Errno),
}

impl ErrorKind {
    /// Returns the meaning of an errno regardless of the command.
    pub(super) fn of(opcode: Opcode, errno: Errno) -> Self {
        match errno {
            Errno::EIO => Self::Removed,
            Errno::EPERM if opcode.needs_admin() => Self::NotPermitted(
                "it needs CAP_SYS_ADMIN in the initial user namespace, and a physical function"
                    .into(),
            ),
            errno => Self::Other(errno),
        }
    }
}

fn hint(service: ServiceId) -> &'static str {
    if service.is_default() {
        ": the default service is, unless the administrator enables it; use your own service"
    } else {
        ""
    }
}

fn so_far(waited: Option<&(Duration, u32)>) -> String {
    waited.map_or_else(String::new, |(time, attempts)| {
        format!(" after {time:?} and {attempts} attempts")
    })
}

fn protocol(error: &CommandError) -> String {
    let text = error.to_string();
    let prefix = format!("{}: ", error.opcode());
    text.strip_prefix(&prefix).unwrap_or(&text).to_owned()
}

fn words(release: DriverRelease) -> String {
    match release.name().strip_prefix("shs-") {
        Some(number) => format!("SHS {number}"),
        None => format!("the driver {release}"),
    }
}

/// The system's text for an errno.
pub(crate) fn describe(errno: Errno) -> String {
    let text = io::Error::from(errno).to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text.get(..end).unwrap_or(&text).to_owned()
}

fn open_reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such device".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "permission denied: read and write access to the device node is needed".to_owned()
        }
        _ if error.raw_os_error() == Some(Errno::EIO.raw()) => {
            "the device has been removed".to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_command_of_the_administrators_takes_the_capability() {
        let text = |opcode| ErrorKind::of(opcode, Errno::EPERM).to_string();
        assert!(text(Opcode::SVC_ALLOC).starts_with("not permitted: it needs CAP_SYS_ADMIN"));
        assert_eq!(
            text(Opcode::CP_ALLOC),
            "the driver refused with EPERM (Operation not permitted)"
        );
    }

    #[test]
    fn a_node_that_cannot_be_opened_says_why() {
        let text = |errno: Errno| {
            let path = PathBuf::from("/dev/cxi0");
            let error = io::Error::from_raw_os_error(errno.raw());
            ErrorKind::Open { path, error }.to_string()
        };
        for (errno, reason) in [
            (Errno::ENOENT, "there is no such device"),
            (
                Errno::EACCES,
                "permission denied: read and write access to the device node is needed",
            ),
            (Errno::EIO, "the device has been removed"),
            (Errno::EMFILE, "Too many open files (os error 24)"),
        ] {
            assert_eq!(text(errno), format!("cannot open /dev/cxi0: {reason}"));
        }
    }
}
