//! `cxi vni`: a pool of VNIs that a file keeps.

mod change;
pub(crate) mod cli;
mod log;
mod replay;
mod show;

use std::path::Path;
use std::time::SystemTime;

use cxi_job::VniPool;
use cxi_job::pool::{Event, PoolConfigError, PoolError, ReserveError, Snapshot, Timestamp};
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::options::Common;
use crate::output::Report;
use crate::state_file::{self, StateFile, VNI_POOL};
use cli::{VniArgs, VniCommand};

pub(crate) use log::parse as parse_log;

pub(crate) fn run(arguments: &VniArgs, common: &Common) -> Result<Report, Failure> {
    match &arguments.command {
        VniCommand::Configure(config) => change::configure(arguments, config),
        VniCommand::Reserve {
            job,
            count,
            block,
            tenant,
            step,
        } => {
            let request = change::request(*count, *block, tenant.clone());
            change::reserve(arguments, job, step.as_ref(), &request)
        }
        VniCommand::Release { job, nodes, step } => {
            change::release(arguments, job, nodes, step.as_ref())
        }
        VniCommand::Confirm {
            job,
            node,
            stray,
            operator,
            ..
        } => change::confirm(arguments, job.as_ref(), node.as_ref(), *stray, *operator),
        VniCommand::Show { job } => show::run(&arguments.pool, job.as_ref()),
        VniCommand::Reconcile { node, seen } => {
            change::reconcile(arguments, common, node.as_ref(), seen.as_ref())
        }
        VniCommand::Replay {
            from,
            vnis,
            dry_run,
        } => replay::run(&arguments.pool, from, vnis.as_ref(), *dry_run),
    }
}

fn now() -> Timestamp {
    SystemTime::now().into()
}

/// The pool of a file; `None` if there is no file.
fn load(path: &Path) -> Result<Option<VniPool>, Failure> {
    let Some(snapshot) = state_file::load::<Snapshot>(VNI_POOL, path)? else {
        return Ok(None);
    };
    VniPool::restore(snapshot).map(Some).map_err(|error| {
        Failure::bad_input(format!("{}: {error}", path.display()))
            .hint("The file was left as it is.")
    })
}

fn existing(path: &Path) -> Result<VniPool, Failure> {
    load(path)?.ok_or_else(|| {
        Failure::bad_input(format!("{}: there is no pool of VNIs", path.display()))
            .hint("Make one, such as: cxi vni configure 1024-65535")
            .hint("--pool FILE or CXI_VNI_POOL names another file.")
    })
}

/// A pool that no other `cxi` changes meanwhile.
struct Open<'a> {
    pool: VniPool,
    file: StateFile,
    log: Option<&'a Path>,
}

impl<'a> Open<'a> {
    fn existing(arguments: &'a VniArgs) -> Result<Self, Failure> {
        // Nothing is left behind where no pool is.
        existing(&arguments.pool)?;
        let file = StateFile::lock(VNI_POOL, &arguments.pool)?;
        Ok(Self {
            pool: existing(file.path())?,
            file,
            log: arguments.log.as_deref(),
        })
    }

    /// Logs a change, then keeps the pool.
    fn keep(&self, event: Option<&Event>) -> Result<(), Failure> {
        let Some(event) = event else {
            return Ok(());
        };
        if let Some(path) = self.log {
            log::append(path, event)?;
        }
        self.file.save(&self.pool.snapshot())
    }
}

/// What a change came to, for programs.
#[derive(Serialize)]
struct Changed<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a Event>,
}

fn of_reserve(error: &ReserveError) -> Failure {
    let exit = match error {
        ReserveError::Count { .. }
        | ReserveError::BlockSize { .. }
        | ReserveError::UnknownTenant { .. } => Exit::BadInput,
        ReserveError::Short(_) => Exit::NotEnough,
        ReserveError::Draining { .. } => Exit::Busy,
        _ => Exit::Failed,
    };
    let failure = Failure::new(exit, error.to_string());
    match error {
        ReserveError::Short(short) if short.draining > 0 => failure
            .hint("cxi vni show says which jobs are draining, and which nodes have not confirmed."),
        _ => failure,
    }
}

fn of_pool(error: &PoolError) -> Failure {
    let exit = match error {
        PoolError::UnknownJob { .. }
        | PoolError::UnknownStep { .. }
        | PoolError::NotStray { .. } => Exit::NotFound,
        PoolError::Config(_) => Exit::BadInput,
        _ => Exit::Failed,
    };
    let failure = Failure::new(exit, error.to_string());
    match error {
        PoolError::NotReleased { job } => failure.hint(format!(
            "End its use first: cxi vni release {job} --nodes …"
        )),
        _ => failure,
    }
}

fn of_config(error: &PoolConfigError) -> Failure {
    Failure::bad_input(error.to_string())
}
