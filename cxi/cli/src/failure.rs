//! Failures of libraries, as the user of the command sees them: exit code, text and hints.

use cxi::InvalidSpec;
use cxi_job::InvalidJobRequest;
use cxi_job::allocate::AllocateError;
use cxi_job::cluster::{NicsUnavailable, SiteError};
use cxi_job::environment::EnvironmentError;
use cxi_site::ErrorCode;
use cxi_site::fabric::{FabricError, HttpError, Problem};
use cxi_site::pool::log::{AppendError, ChangeError};
use cxi_site::pool::{PoolError, ReserveError};
use cxi_site::settings::SettingsError;
use cxi_vni_etcd::{PoolPlace, SitePoolError};

use crate::exit::{Exit, Failure};
use crate::files::of_lock;
use crate::job::epilog::left;
use crate::output::{by_nic, joined};
use crate::settings::ALL;

/// The one place where a kind of failure becomes an exit code.
impl From<ErrorCode> for Exit {
    fn from(code: ErrorCode) -> Self {
        match code {
            ErrorCode::BadInput => Self::BadInput,
            ErrorCode::NoDevice => Self::NoDevice,
            ErrorCode::Busy => Self::Busy,
            ErrorCode::NotFound => Self::NotFound,
            ErrorCode::NotPermitted => Self::NotPermitted,
            ErrorCode::NotEnough => Self::NotEnough,
            ErrorCode::OtherUser => Self::OtherUser,
            _ => Self::Failed,
        }
    }
}

impl From<cxi::Error> for Failure {
    fn from(error: cxi::Error) -> Self {
        Self::new(ErrorCode::of(&error), &error).errno(error.errno())
    }
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        let failure = Self::bad_input(&error).excerpt(error.excerpt());
        if let SettingsError::Unknown { .. } = &error {
            let names = joined(ALL.iter().map(|key| key.name()), ", ");
            return failure.hint(format!("Expected one of {names}."));
        }
        failure
    }
}

impl From<SiteError> for Failure {
    fn from(error: SiteError) -> Self {
        let plain = |error: &SiteError| Self::new(error.code(), error);
        match error {
            SiteError::Nics(error) => error.into(),
            SiteError::PoolStore { code, source, .. } => match source.downcast::<SitePoolError>() {
                Ok(error) => (*error).into(),
                Err(error) => Self::new(code, error),
            },
            SiteError::Setting(error) => error.into(),
            SiteError::Nic(error) => error.into(),
            SiteError::Request(error) => error.into(),
            SiteError::Reserve(error) => error.into(),
            SiteError::Pool(error) => error.into(),
            SiteError::Fabric(error) => error.into(),
            SiteError::Allocate(error) => error.into(),
            SiteError::Left(release) => {
                let left = left(&release, std::time::Duration::ZERO).into_iter();
                let all = left.reduce(|first, other| first.hint(other.message()));
                all.unwrap_or_else(|| plain(&SiteError::Left(release)))
            }
            SiteError::Unfinished { error, left } => {
                Self::from(*error).hint(Self::from(*left).message())
            }
            SiteError::NoController => plain(&error)
                .hint("Set controller.records to a directory on a file system that all nodes mount."),
            SiteError::OtherUser { ref job, .. } => {
                let hint = format!(
                    "If the scheduler lost its state, and uses its job numbers again: cxi job release {job} \
                     ends the earlier job. Its number and its VNIs are free when its nodes have confirmed, \
                     which cxi job list shows."
                );
                plain(&error).hint(hint)
            }
            SiteError::UnknownVnis { ref job, .. } => {
                let hint = format!(
                    "Restore the record or the pool. If no node has services of job {job}, remove the \
                     directory of its record."
                );
                plain(&error).hint(hint)
            }
            SiteError::Undecided { .. } => plain(&error).hint(
                "Check that its prolog on the controller calls cxi job reserve, and that controller.records \
                 is the same there. A controller that was killed may have lost the job.",
            ),
            SiteError::NoRecord { .. } => plain(&error).hint(
                "Its prolog did not run here or failed, or its epilog has finished.",
            ),
            SiteError::OtherRequest { ref job, .. } => plain(&error).hint(format!(
                "Nothing was changed. With --replace, what it has is destroyed; if it has ended: cxi job \
                 epilog --job {job}"
            )),
            SiteError::SharedVnis { ref job, .. } => plain(&error).hint(format!(
                "Nothing was changed. Two users with one VNI could communicate: give this job another \
                 VNI, or, if the other one has ended: cxi job epilog --job {job}"
            )),
            SiteError::Live(_) => plain(&error).hint("Nothing was destroyed."),
            _ => plain(&error),
        }
    }
}

/// A failure of this command, which the library passes through, and gets back from it.
impl From<NicsUnavailable> for Failure {
    fn from(error: NicsUnavailable) -> Self {
        let failure = Self::new(error.code, error.message);
        let failure = error.hints.into_iter().fold(failure, Self::hint);
        match error.errno {
            Some(errno) => failure.errno(errno),
            None => failure,
        }
    }
}

impl From<Failure> for NicsUnavailable {
    fn from(failure: Failure) -> Self {
        let code = match failure.kind() {
            Exit::BadInput => ErrorCode::BadInput,
            Exit::NoDevice => ErrorCode::NoDevice,
            Exit::Busy => ErrorCode::Busy,
            Exit::NotFound => ErrorCode::NotFound,
            Exit::NotPermitted => ErrorCode::NotPermitted,
            Exit::NotEnough => ErrorCode::NotEnough,
            Exit::OtherUser => ErrorCode::OtherUser,
            Exit::Failed
            | Exit::NothingToDo
            | Exit::Findings
            | Exit::ProgramNotStarted
            | Exit::ProgramNotFound => ErrorCode::Failed,
        };
        failure.unavailable(code)
    }
}

impl From<SitePoolError> for Failure {
    fn from(error: SitePoolError) -> Self {
        const OTHER: &str = "The setting pool.file or CXI_POOL_FILE names another";
        let failure = Self::new(error.code(), &error);
        match error {
            SitePoolError::Setting(error) => error.into(),
            SitePoolError::Pool(error) => error.into(),
            SitePoolError::Locked(error) => of_lock("pool file", &error),
            SitePoolError::Log(_, ChangeError::Append(error)) => error.into(),
            SitePoolError::Log(PoolPlace::File(_), ChangeError::Load(_)) => {
                failure.hint(format!("The file was left as it is. {OTHER} one."))
            }
            SitePoolError::Missing(place) => {
                // The code for "not found" means a missing job, which scripts treat differently.
                let failure = Self::bad_input(failure.message())
                    .hint("Create one, for example: cxi vni configure 1024-65535");
                match place {
                    PoolPlace::File(_) => failure.hint(format!("{OTHER} file.")),
                    _ => failure,
                }
            }
            _ => failure,
        }
    }
}

impl From<InvalidJobRequest> for Failure {
    fn from(error: InvalidJobRequest) -> Self {
        match error {
            InvalidJobRequest::NoMember => Self::bad_input(
                "no member: name who may use the services with --uid, --gid or --netns",
            ),
            InvalidJobRequest::Spec(InvalidSpec::NoVnis) => Self::bad_input(
                "no VNIs: name them with --vni, or a block of them with --vni-range",
            ),
            InvalidJobRequest::DefaultVni(_) => {
                Self::bad_input(error).hint("The setting job.allow-default-vnis permits it.")
            }
            error => Self::bad_input(error),
        }
    }
}

impl From<EnvironmentError> for Failure {
    fn from(error: EnvironmentError) -> Self {
        Self::failed(error)
    }
}

impl From<AllocateError> for Failure {
    fn from(error: AllocateError) -> Self {
        let exit = error.code();
        if let AllocateError::Locked(lock) = &error {
            return Self::new(exit, &error).errno(lock.errno()).hint(
                "The setting node.lock or CXI_LOCK names the lock file that all commands on this node share.",
            );
        }
        if error.failures().is_empty() {
            return Self::new(exit, &error);
        }
        let failures = error.failures().iter().map(|failure| (failure.device, failure.text()));
        let mut text = by_nic(failures);
        text.push(error.remains());
        let failure = Self::of_lines(exit, &text.join("\n"));
        if error.code() == ErrorCode::NotEnough {
            failure
                .hint("--no-tles makes a job without TLEs; --mode=scale-back takes what is available.")
                .hint(
                    "cxi job plan shows how many jobs of a size fit, cxi service usage which services use what.",
                )
        } else {
            failure
        }
    }
}

impl From<FabricError> for Failure {
    fn from(error: FabricError) -> Self {
        let failure = Self::new(error.code(), &error);
        match error.problem() {
            Problem::Transport(HttpError::Untrusted(_)) => failure.hint(
                "The setting fabric-manager.certificate names the authorities by which it is verified.",
            ),
            _ => failure,
        }
    }
}

impl From<ReserveError> for Failure {
    fn from(error: ReserveError) -> Self {
        let failure = Self::new(error.code(), &error);
        match error {
            ReserveError::Short(short) if short.part.draining > 0 => failure.hint(
                "cxi vni show lists the draining jobs, and the nodes that have not confirmed.",
            ),
            ReserveError::Others { job, .. } => failure.hint(format!(
                "If no node has services of an earlier job {job}: cxi vni release {job}, then cxi vni \
                 confirm {job} --all."
            )),
            _ => failure,
        }
    }
}

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
        let failure = Self::new(error.code(), &error);
        match error {
            PoolError::NotReleased { job } => {
                failure.hint(format!("End its use first: cxi vni release {job} --nodes …"))
            }
            _ => failure,
        }
    }
}

impl From<AppendError> for Failure {
    fn from(error: AppendError) -> Self {
        Self::failed(&error).hint(match error {
            AppendError::Failed(_) => "The pool is unchanged.",
            _ => "Another controller leads this pool. On the one that leads: cxi vni lead.",
        })
    }
}

/// A change that the pool refuses, or that cannot be stored.
impl<E> From<ChangeError<E>> for Failure
where
    Self: From<E>,
    ChangeError<E>: std::fmt::Display,
{
    fn from(error: ChangeError<E>) -> Self {
        match error {
            ChangeError::Refused(error) => error.into(),
            ChangeError::Append(error) => error.into(),
            error => Self::bad_input(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use cxi_ioctl::Errno;

    use super::*;

    /// Through the library and back.
    #[test]
    fn a_failure_to_open_nics_keeps_its_kind_and_its_hints() {
        let failure = Failure::new(Exit::NotPermitted, "no").hint("Be root.").errno(Errno::EACCES);
        let error = SiteError::Nics(failure.clone().into());
        assert_eq!((error.code(), error.errno()), (ErrorCode::NotPermitted, Errno::EACCES));
        let back = Failure::from(error);
        assert_eq!((back.to_string(), back.kind()), (failure.to_string(), failure.kind()));
        let json = |failure: &Failure| serde_json::to_value(failure).unwrap();
        assert_eq!(json(&back), json(&failure));
    }
}
