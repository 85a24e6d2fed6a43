//! Failures: reasons for which a call has no result.

use std::cell::Cell;
use std::io;

use cxi::explain::{Attempt, Facts, explain};
use cxi::{DeviceId, Errno, Error, ErrorKind, ServiceId};
use cxi_ioctl::CommandError;

use crate::sysfs::Attribute;

/// Reason for which a call failed.
///
/// C gets the errno; the rest is for the explanation. The type is small because it is part of every
/// function's result. What is rarely needed is in [`DETAILS`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    pub(crate) errno: Errno,
    cause: Cause,
}

/// Source of a failure.
#[derive(Clone, Copy, Debug)]
enum Cause {
    /// An argument was invalid; nothing was sent.
    Argument,
    /// The system refused something, such as memory or a file.
    System,
    /// See [`DETAILS`]. Such a failure is returned before the thread can have another one.
    Detailed,
}

/// Source of a failure, if there is more to say than the errno and that an argument is invalid.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Details {
    /// Opening the NIC with this number.
    Open { device: u32 },
    /// A file in sysfs, whose content or absence was not as expected.
    Sysfs(Attribute),
    /// A command to the NIC with this number, and what the command was for.
    Command { device: u32, error: CommandError, attempt: Attempt },
}

thread_local! {
    /// The details of this thread's last failure that has any. They use no heap, because a destructor
    /// would prevent the library from being unloaded.
    static DETAILS: Cell<Option<Details>> = const { Cell::new(None) };
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A required pointer is NULL, or a number is invalid.
    pub(crate) const fn argument() -> Self {
        Self { errno: Errno::EINVAL, cause: Cause::Argument }
    }

    #[cold]
    fn detailed(errno: Errno, details: Details) -> Self {
        DETAILS.set(Some(details));
        Self { errno, cause: Cause::Detailed }
    }

    pub(crate) fn open(device: u32, error: &io::Error) -> Self {
        Self::detailed(Errno::from_io(error), Details::Open { device })
    }

    pub(crate) fn sysfs(attribute: Attribute, errno: Errno) -> Self {
        Self::detailed(errno, Details::Sysfs(attribute))
    }

    #[cold]
    pub(crate) fn command(device: u32, error: CommandError, attempt: Attempt) -> Self {
        let details = Details::Command { device, error, attempt };
        Self::detailed(error.errno(), details)
    }

    /// Adds what a failed command was for; leaves other failures unchanged.
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

    /// The thread's details about it, as long as the thread has no other failure.
    pub(crate) fn details(self) -> Option<Details> {
        matches!(self.cause, Cause::Detailed).then(|| DETAILS.get()).flatten()
    }

    /// The reason, in the words of the crate `cxi`. Queries the NIC that refused a command.
    pub(crate) fn explain(self, details: Option<Details>) -> Explanation {
        let error = match details {
            None => {
                let text = match self.cause {
                    Cause::Argument => "invalid argument: NULL, 0, or something that is not, or \
                                        no longer, a handle"
                        .to_owned(),
                    _ => io::Error::from(self.errno).to_string(),
                };
                return Explanation { text, is_answer: false };
            }
            Some(Details::Open { device }) => {
                let (path, error) = (format!("/dev/cxi{device}").into(), self.errno.into());
                Error::new(ErrorKind::Open { path, error }, self.errno).on(DeviceId::new(device))
            }
            Some(Details::Sysfs(attribute)) => attribute.explain(self.errno),
            Some(Details::Command { device, error, attempt }) => {
                let id = DeviceId::new(device);
                match cxi::Device::open(id) {
                    Ok(device) => device.explain(&attempt, error),
                    // Without the NIC, there are no facts to explain it with.
                    Err(_) => explain(&attempt, error, &Facts::default()).on(id),
                }
            }
        };
        Explanation { is_answer: is_answer(&error), text: error.to_string() }
    }
}

/// Text that says why a call failed.
pub(crate) struct Explanation {
    pub(crate) text: String,
    /// `true` if the failure is how the driver says "none".
    pub(crate) is_answer: bool,
}

/// Returns whether a query about an existing service found that the service does not have that
/// property. HPE's tools query each service's namespace and range, and expect EINVAL.
fn is_answer(error: &Error) -> bool {
    use cxi_ioctl::Opcode;
    matches!(
        error.command(),
        Some(Opcode::SVC_GET_NETNS | Opcode::SVC_GET_VNI_RANGE | Opcode::SVC_GET_EXCLUSIVE_CP)
    ) && matches!(error.kind(), ErrorKind::Refused(_))
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Self {
        Self { errno, cause: Cause::System }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Errno::from_io(&error).into()
    }
}
