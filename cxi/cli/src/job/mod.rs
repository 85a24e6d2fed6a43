//! `cxi job`: what a prolog, an epilog and a housekeeping script need.

pub(crate) mod cli;
pub(crate) mod epilog;
pub(crate) mod explain;
pub(crate) mod list;
pub(crate) mod node;

mod controller;
mod env;
mod plan;
mod prolog;
mod run;

use crate::exit::Failure;
use crate::options::Common;
use crate::output::Report;
use cli::JobCommand;

pub(crate) fn run(command: &JobCommand, common: &Common) -> Result<Report, Failure> {
    match command {
        JobCommand::Plan { size } => plan::run(size, common),
        JobCommand::Prolog(arguments) => prolog::run(arguments, common),
        JobCommand::Epilog(arguments) => epilog::run(arguments, common),
        JobCommand::Clean(arguments) => epilog::clean(arguments, common),
        JobCommand::Env(arguments) => env::run(arguments, common),
        JobCommand::Reserve(arguments) => controller::reserve(arguments, common),
        JobCommand::Release(arguments) => controller::release(arguments, common),
        JobCommand::Sweep { live } => controller::sweep(live, common),
        JobCommand::Confirm { job, node } => controller::confirm(job, node, common),
        JobCommand::List { controller } => list::run(&[], *controller, common),
        JobCommand::Show { jobs, controller } => list::run(jobs, *controller, common),
        JobCommand::Run(arguments) => run::run(arguments, common),
        JobCommand::Become { uid, gid, program } => Err(run::become_user(*uid, *gid, program)),
    }
}
