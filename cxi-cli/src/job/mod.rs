//! `cxi job`: what a prolog, an epilog and a housekeeping script need.

mod become_user;
mod clean;
pub(crate) mod cli;
mod env;
mod epilog;
mod job_node;
mod job_request;
mod plan;
mod progress;
mod prolog;
mod run;
mod which;

use crate::exit::Failure;
use crate::options::Common;
use crate::output::Report;
use crate::settings;
use cli::JobCommand;

pub(crate) use job_node::JobNode;
pub(crate) use which::parse_grant;

pub(crate) fn run(command: &JobCommand, common: &Common) -> Result<Report, Failure> {
    match command {
        JobCommand::Plan { size } => plan::run(size, common),
        JobCommand::Prolog {
            who,
            size,
            service,
            lock,
            dry_run,
        } => {
            // Errors in the request are reported before NICs are looked for.
            let request = job_request::of_arguments(who, size, service, &common.settings)?;
            if *dry_run {
                prolog::dry_run(&request, size, common)
            } else {
                prolog::run(&request, lock, common)
            }
        }
        JobCommand::Epilog {
            which,
            wait,
            lock,
            dry_run,
        } => epilog::run(which, wait.time(&common.settings)?, lock, *dry_run, common),
        JobCommand::Clean {
            vni_pool,
            live,
            live_from,
            wait,
            lock,
            dry_run,
        } => {
            let live = clean::Live::new(live.as_ref(), live_from.as_deref());
            let vni_pool = common.settings.or(vni_pool.clone(), &settings::POOL_VNIS)?;
            clean::run(
                &vni_pool,
                &live,
                wait.time(&common.settings)?,
                lock,
                *dry_run,
                common,
            )
        }
        JobCommand::Env { which } => env::run(which, common),
        JobCommand::Run(arguments) => run::run(arguments, common),
        JobCommand::Become { uid, gid, program } => Err(become_user::run(*uid, *gid, program)),
    }
}
