//! Why a call has no result.

use std::io;

use cxi::explain::{Attempt, Facts, explain};
use cxi::{DeviceId, Errno, Error, ErrorKind, ServiceId};
use cxi_ioctl::CommandError;

use crate::sysfs::Attribute;

/// C gets the errno; the rest is for the explanation. Nothing of it is on the heap, so that it can
/// be kept without a destructor, which would keep the library from being unloaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    pub(crate) errno: Errno,
    cause: Cause,
}

/// What failed.
#[derive(Clone, Copy, Debug)]
enum Cause {
    /// An argument, before anything was sent.
    Argument,
    /// The system: memory, a file.
    System,
    /// Opening the NIC of that number.
    Open { device: u32 },
    /// A file in sysfs, whose content or absence was not as expected.
    Sysfs(Attribute),
    /// A command to the NIC of that number, and what it was to do.
    Command {
        device: u32,
        error: CommandError,
        attempt: Attempt,
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

    pub(crate) fn open(device: u32, error: &io::Error) -> Self {
        Self {
            errno: Errno::from_io(error),
            cause: Cause::Open { device },
        }
    }

    pub(crate) const fn sysfs(attribute: Attribute, errno: Errno) -> Self {
        Self {
            errno,
            cause: Cause::Sysfs(attribute),
        }
    }

    pub(crate) const fn command(device: u32, error: CommandError) -> Self {
        Self {
            errno: error.errno(),
            cause: Cause::Command {
                device,
                error,
                attempt: Attempt::Other,
            },
        }
    }

    /// Adds what a command that failed was to do; leaves other failures alone.
    pub(crate) fn during(mut self, what: Attempt) -> Self {
        if let Cause::Command { attempt, .. } = &mut self.cause {
            *attempt = what;
        }
        self
    }

    /// As [`during`](Self::during), for a command about a service.
    pub(crate) fn about(self, service: u32) -> Self {
        match ServiceId::new(service) {
            Ok(service) => self.during(Attempt::OnService(service)),
            Err(_) => self,
        }
    }

    /// Why, in the words of the crate `cxi`. Queries the NIC that refused a command.
    pub(crate) fn explain(&self) -> Explanation {
        let error = match self.cause {
            Cause::Argument => {
                let text = "invalid argument: NULL, 0, or something that is not, or no longer, a \
                            handle";
                return Explanation::failure(text.to_owned());
            }
            Cause::System => return Explanation::failure(io::Error::from(self.errno).to_string()),
            Cause::Open { device } => {
                let (path, error) = (format!("/dev/cxi{device}").into(), self.errno.into());
                Error::new(ErrorKind::Open { path, error }, self.errno).on(DeviceId::new(device))
            }
            Cause::Sysfs(attribute) => attribute.explain(self.errno),
            Cause::Command {
                device,
                error,
                attempt,
            } => {
                let id = DeviceId::new(device);
                match cxi::Device::open(id) {
                    Ok(device) => device.explain(&attempt, error),
                    // Without the NIC there are no facts.
                    Err(_) => explain(&attempt, error, &Facts::default()).on(id),
                }
            }
        };
        Explanation {
            is_answer: is_answer(&error),
            text: error.to_string(),
        }
    }
}

/// Why a call failed.
pub(crate) struct Explanation {
    pub(crate) text: String,
    /// Whether the failure is how the driver says "none".
    pub(crate) is_answer: bool,
}

impl Explanation {
    fn failure(text: String) -> Self {
        Self {
            text,
            is_answer: false,
        }
    }
}

/// Whether a query about a service that exists found that it has none of what was asked for. HPE's
/// tools ask each service for a namespace and a range, and expect EINVAL.
fn is_answer(error: &Error) -> bool {
    use cxi_ioctl::Opcode;
    matches!(
        error.command(),
        Some(Opcode::SVC_GET_NETNS | Opcode::SVC_GET_VNI_RANGE | Opcode::SVC_GET_EXCLUSIVE_CP)
    ) && matches!(error.kind(), ErrorKind::Refused(_))
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Self {
        Self {
            errno,
            cause: Cause::System,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Errno::from_io(&error).into()
    }
}
