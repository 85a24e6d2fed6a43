//! `cxi job`: what a prolog, an epilog and a housekeeping script need.

mod become_user;
mod clean;
pub(crate) mod cli;
mod collectives;
mod controller;
mod env;
mod epilog;
mod job_node;
mod job_request;
mod list;
mod plan;
mod progress;
mod prolog;
mod rdzv;
mod record_args;
mod recorded;
mod run;
#[cfg(test)]
mod scale;
mod which;

use crate::exit::Failure;
use crate::network::Network;
use crate::options::Common;
use crate::output::Report;
use crate::settings;
use crate::vni::this_node;
use cli::JobCommand;

pub(crate) use clean::left_over;
pub(crate) use job_node::JobNode;
pub(crate) use list::{Job, of_controller, of_node};
pub(crate) use record_args::has_no_nic;
pub(crate) use recorded::records;
pub(crate) use which::parse_grant;

pub(crate) fn run(command: &JobCommand, common: &Common) -> Result<Report, Failure> {
    match command {
        JobCommand::Plan { size } => plan::run(size, common),
        JobCommand::Prolog {
            record,
            who,
            size,
            service,
            lock,
            dry_run,
        } => {
            if let Some(nothing) = record.optional.without_nics(common) {
                return Ok(nothing);
            }
            if let (Some((job, component)), false) = (record.names(), *dry_run) {
                let starting = recorded::Starting {
                    job,
                    component,
                    who,
                    size,
                    service,
                    lock,
                    common,
                };
                return starting.prolog();
            }
            // Errors in the request are reported before NICs are looked for.
            let (network, settings) = (Network::default(), &common.settings);
            let request = job_request::of_arguments(who, size, service, &network, settings)?;
            if *dry_run {
                prolog::dry_run(&request, size, common)
            } else {
                prolog::run(&request, lock, common)
            }
        }
        JobCommand::Epilog {
            record,
            node,
            which,
            wait,
            lock,
            dry_run,
        } => {
            if let Some(nothing) = record.optional.without_nics(common) {
                return Ok(nothing);
            }
            let retry = wait.time(&common.settings)?;
            match record.names() {
                Some(job) if !dry_run => {
                    let node = node.clone().map_or_else(this_node, Ok)?;
                    let release = recorded::epilog(job, &node, retry, lock, common)?;
                    Ok(epilog::release_report(&release, retry))
                }
                _ => epilog::run(which, retry, lock, *dry_run, common),
            }
        }
        JobCommand::Clean {
            vni_pool,
            live,
            live_from,
            none_live,
            optional,
            node,
            wait,
            lock,
            dry_run,
        } => {
            if let Some(nothing) = optional.without_nics(common) {
                return Ok(nothing);
            }
            let settings = &common.settings;
            let cleaning = clean::Cleaning {
                pool: settings.or(vni_pool.clone(), &settings::POOL_VNIS)?,
                live: live.clone().unwrap_or_default(),
                live_from: live_from.as_deref(),
                none_live: *none_live,
                node: node.clone().map_or_else(this_node, Ok)?,
                retry: wait.time(settings)?,
                lock,
                dry_run: *dry_run,
            };
            clean::run(&cleaning, common)
        }
        JobCommand::Env {
            job: Some(job),
            step,
            ..
        } => env::of_record(job, step.as_ref(), common),
        JobCommand::Env { which, .. } => env::run(which, common),
        JobCommand::Reserve(arguments) => controller::reserve(arguments, common),
        JobCommand::Release(arguments) => controller::release(arguments, common),
        JobCommand::Confirm { job, node } => controller::confirm(job, node, common),
        JobCommand::List { controller } => list::run(*controller, common),
        JobCommand::Run(arguments) => run::run(arguments, common),
        JobCommand::Become { uid, gid, program } => Err(become_user::run(*uid, *gid, program)),
    }
}
