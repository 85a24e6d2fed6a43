//! Why a call has no result.

use cxi_ioctl::abi::service::{SvcAllocResp, SvcDesc};
use cxi_ioctl::{CommandError, Errno};

/// C gets the errno; the rest is for the explanation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    pub(crate) errno: Errno,
    pub(crate) cause: Cause,
}

/// What failed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cause {
    /// An argument, before anything was sent.
    Argument,
    /// The system: memory, a file.
    System,
    /// A command to the NIC of that number.
    Command { device: u32, error: CommandError },
    /// Making a service.
    Service {
        device: u32,
        error: CommandError,
        desc: SvcDesc,
        response: Option<SvcAllocResp>,
    },
    /// Destroying a service, or allocating an LNI of it.
    OfService {
        device: u32,
        error: CommandError,
        service: u32,
    },
    /// A queue, a counting event or a portal table entry.
    Below {
        device: u32,
        error: CommandError,
        service: u32,
        /// For a command queue: whether it transmits.
        transmit: bool,
    },
    /// A communication profile or a domain on a VNI.
    OnVni {
        device: u32,
        error: CommandError,
        service: u32,
        vni: u32,
        class: u32,
    },
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// NULL where a pointer is required, or an invalid number.
    pub(crate) const fn argument() -> Self {
        Self {
            errno: Errno::EINVAL,
            cause: Cause::Argument,
        }
    }

    pub(crate) const fn command(device: u32, error: CommandError) -> Self {
        Self {
            errno: error.errno(),
            cause: Cause::Command { device, error },
        }
    }

    /// Adds what is known about a command that failed; leaves other failures alone.
    pub(crate) fn with(mut self, cause: impl FnOnce(u32, CommandError) -> Cause) -> Self {
        if let Cause::Command { device, error } = self.cause {
            self.cause = cause(device, error);
        }
        self
    }
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Self {
        Self {
            errno,
            cause: Cause::System,
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Errno::from_io(&error).into()
    }
}
