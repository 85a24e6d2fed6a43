//! Why a call has no result.

use std::cell::Cell;
use std::io;

use cxi::explain::{Attempt, Facts, explain};
use cxi::{DeviceId, Errno, Error, ErrorKind, ServiceId};
use cxi_ioctl::CommandError;

use crate::sysfs::Attribute;

/// Why a call failed.
///
/// C gets the errno; the rest is for the explanation. It is small, because every function passes a
/// place for it to those that it calls; what few ever ask for is in [`DETAILS`].
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
    /// What [`DETAILS`] says. Such a failure is returned before the thread can have another one.
    Detailed,
}

/// What failed, where the errno and an argument are not all.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Details {
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

thread_local! {
    /// Of the last failure in this thread that has any. Nothing of it is on the heap: a destructor
    /// would keep the library from being unloaded.
    static DETAILS: Cell<Option<Details>> = const { Cell::new(None) };
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

    #[cold]
    fn detailed(errno: Errno, details: Details) -> Self {
        DETAILS.set(Some(details));
        Self {
            errno,
            cause: Cause::Detailed,
        }
    }

    pub(crate) fn open(device: u32, error: &io::Error) -> Self {
        Self::detailed(Errno::from_io(error), Details::Open { device })
    }

    pub(crate) fn sysfs(attribute: Attribute, errno: Errno) -> Self {
        Self::detailed(errno, Details::Sysfs(attribute))
    }

    #[cold]
    pub(crate) fn command(device: u32, error: CommandError, attempt: Attempt) -> Self {
        let details = Details::Command {
            device,
            error,
            attempt,
        };
        Self::detailed(error.errno(), details)
    }

    /// Adds what a command that failed was to do; leaves other failures alone.
    #[cold]
    pub(crate) fn during(self, what: Attempt) -> Self {
        let mut details = self.details();
        if let Some(Details::Command { attempt, .. }) = &mut details {
            *attempt = what;
            DETAILS.set(details);
        }
        self
    }

    /// As [`during`](Self::during), for a command about a service.
    #[cold]
    pub(crate) fn about(self, service: u32) -> Self {
        match ServiceId::new(service) {
            Ok(service) => self.during(Attempt::OnService(service)),
            Err(_) => self,
        }
    }

    /// What the thread knows of it, as long as it has no other failure.
    pub(crate) fn details(self) -> Option<Details> {
        matches!(self.cause, Cause::Detailed)
            .then(|| DETAILS.get())
            .flatten()
    }

    /// Why, in the words of the crate `cxi`. Queries the NIC that refused a command.
    pub(crate) fn explain(self, details: Option<Details>) -> Explanation {
        let error = match details {
            None => {
                let text = match self.cause {
                    Cause::Argument => "invalid argument: NULL, 0, or something that is not, or \
                                        no longer, a handle"
                        .to_owned(),
                    _ => io::Error::from(self.errno).to_string(),
                };
                return Explanation {
                    text,
                    is_answer: false,
                };
            }
            Some(Details::Open { device }) => {
                let (path, error) = (format!("/dev/cxi{device}").into(), self.errno.into());
                Error::new(ErrorKind::Open { path, error }, self.errno).on(DeviceId::new(device))
            }
            Some(Details::Sysfs(attribute)) => attribute.explain(self.errno),
            Some(Details::Command {
                device,
                error,
                attempt,
            }) => {
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
