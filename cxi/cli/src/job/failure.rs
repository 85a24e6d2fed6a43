//! What a failure of the library means for the user of the command.

use cxi::InvalidSpec;
use cxi_job::allocate::AllocateError;
use cxi_job::environment::EnvironmentError;
use cxi_job::pool::log::ChangeError;
use cxi_job::site::SiteError;
use cxi_job::{ErrorCode, InvalidJobRequest};

use super::epilog;
use crate::collectives;
use crate::exit::{Exit, Failure, of_device};
use crate::output::nics;
use crate::vni::{of_change, of_pool, of_reserve};

impl From<SiteError> for Failure {
    fn from(error: SiteError) -> Self {
        let plain = |error: &SiteError| Self::new(error.code().into(), error.to_string());
        match error {
            // This command's own, which the library passed on.
            SiteError::Nics(error) | SiteError::PoolStore(error) => match error.downcast::<Self>() {
                Ok(failure) => *failure,
                Err(error) => match error.downcast::<ChangeError<SiteError>>() {
                    Ok(error) => of_change(*error, plain),
                    Err(error) => Self::new(Exit::Failed, error.to_string()),
                },
            },
            SiteError::Setting(error) => error.into(),
            SiteError::Nic(error) => of_device(&error),
            SiteError::Request(error) => error.into(),
            SiteError::Reserve(error) => of_reserve(&error),
            SiteError::Pool(error) => of_pool(&error),
            SiteError::Fabric(error) => collectives::failure(&error),
            SiteError::Environment(error) => error.into(),
            SiteError::Allocate(error) => error.into(),
            SiteError::Left(release) => {
                let mut left = epilog::left(&release, std::time::Duration::ZERO);
                left.drain(..1).next().unwrap_or_else(|| plain(&SiteError::Left(release)))
            }
            SiteError::Unfinished { error, left } => {
                Self::from(*error).hint(Self::from(*left).message())
            }
            SiteError::NoController => plain(&error)
                .hint("The setting controller.records names it, on a file system that all nodes mount."),
            SiteError::Undecided { .. } => plain(&error).hint(
                "Does its prolog on the controller call cxi job reserve, and is controller.records the \
                 same there?",
            ),
            SiteError::NoRecord { .. } => plain(&error).hint(
                "Its prolog did not run here, or has failed; or its epilog has finished.",
            ),
            SiteError::Live(_) => plain(&error).hint("Nothing was destroyed."),
            _ => plain(&error),
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
            error => Self::bad_input(error.to_string()),
        }
    }
}

impl From<EnvironmentError> for Failure {
    fn from(error: EnvironmentError) -> Self {
        match error {
            EnvironmentError::NoService => Self::new(
                Exit::NotFound,
                "the job has no enabled service on this node",
            )
            .hint("cxi service list shows the services of this node."),
            EnvironmentError::RepeatedDevice { .. } => {
                Self::bad_input(error.to_string()).hint("Also name the job's VNIs, with --vni.")
            }
            _ => Self::new(Exit::Failed, error.to_string()),
        }
    }
}

/// With everything that the NICs report; what several NICs report is printed once.
impl From<AllocateError> for Failure {
    fn from(error: AllocateError) -> Self {
        let exit = error.code().into();
        if let AllocateError::Locked(lock) = &error {
            return Self::new(exit, error.to_string()).errno(lock.errno()).hint(
                "--lock or CXI_LOCK names the lock file that all commands on this node share.",
            );
        }
        if error.failures().is_empty() {
            return Self::new(exit, error.to_string());
        }
        let failures = error.failures().iter();
        let failures = failures.map(|failure| (failure.device, failure.text()));
        let mut text: Vec<String> = nics::merge(failures)
            .into_iter()
            .map(|(devices, text)| format!("{}: {text}", nics::name(&devices)))
            .collect();
        text.push(error.remains());
        let failure = Self::new(exit, text.join("\n"));
        if error.code() == ErrorCode::NotEnough {
            failure
                .hint("--no-tles makes a job without TLEs, --mode=scale-back takes what is available.")
                .hint(
                    "cxi job plan shows how many jobs of a size fit, cxi service usage who has what.",
                )
        } else {
            failure
        }
    }
}
