//! `cxi vni`: a pool of VNIs stored in a file.

mod change;
pub(crate) mod cli;
mod file;
mod show;

use cxi_job::pool::{PoolConfigError, PoolError, ReserveError};

use crate::exit::{Exit, Failure};
use crate::options::Common;
use crate::output::Report;
use cli::{VniArgs, VniCommand};

pub(crate) use change::this_node;
pub(crate) use file::{PoolFile, of_change};

pub(crate) fn run(arguments: &VniArgs, common: &Common) -> Result<Report, Failure> {
    let file = &arguments.pool.file(&common.settings)?;
    match &arguments.command {
        VniCommand::Configure(config) => change::configure(file, config),
        VniCommand::Reserve {
            job,
            count,
            block,
            for_steps,
            tenant,
            step,
        } => {
            let request = change::request(*count, *block, *for_steps, tenant.clone());
            change::reserve(file, job, step.as_ref(), &request)
        }
        VniCommand::Cancel { job } => change::cancel(file, job),
        VniCommand::Release { job, nodes, step } => {
            change::release(file, job, nodes, step.as_ref())
        }
        VniCommand::Confirm {
            job,
            node,
            stray,
            operator,
            ..
        } => change::confirm(file, job.as_ref(), node.as_ref(), *stray, *operator),
        VniCommand::Show { job } => show::run(file, job.as_ref()),
        VniCommand::Reconcile { node, seen } => {
            change::reconcile(file, common, node.as_ref(), seen.as_ref())
        }
    }
}

pub(crate) fn of_reserve(error: &ReserveError) -> Failure {
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
            .hint("cxi vni show lists the draining jobs, and the nodes that have not confirmed."),
        _ => failure,
    }
}

pub(crate) fn of_pool(error: &PoolError) -> Failure {
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
