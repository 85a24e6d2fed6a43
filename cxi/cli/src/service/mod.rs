//! `cxi service`: services on one NIC or several.

pub(crate) mod change;
pub(crate) mod cli;
pub(crate) mod found;
mod picture;
mod settings;
pub(crate) mod show;

use cxi_job::owners::OwnedService;
use cxi_site::JobId;

use crate::exit::{Exit, Failure};
use crate::job::list::records;
use crate::node::{changing, reading};
use crate::options::Common;
use crate::output::Report;
use cli::ServiceCommand;

pub(crate) fn run(command: &ServiceCommand, common: &Common) -> Result<Report, Failure> {
    match command {
        ServiceCommand::List(which) => {
            let made = which.job.as_ref().map(|job| made_for(job, common)).transpose()?;
            reading(common, |node| show::list(node, which, made.as_deref()))
        }
        // The parser does not see the conflict when --json precedes the subcommand.
        ServiceCommand::Show(show) if show.yaml && common.json => {
            Err(Failure::bad_input("--yaml and --json cannot be given together"))
        }
        ServiceCommand::Show(show) if show.yaml => {
            reading(common, |node| show::yaml(node, &show.ids))
        }
        ServiceCommand::Show(show) => {
            reading(common, |node| show::run(node, &show.ids, show.verbose))
        }
        ServiceCommand::Usage { ids, svg } => reading(common, |node| show::usage(node, ids, *svg)),
        ServiceCommand::Create(arguments) => {
            // Report errors in the specification before looking for NICs.
            let spec = change::specification(arguments)?;
            changing(common, |node| change::create(node, &spec, &common.settings))
        }
        ServiceCommand::Update(changes) => {
            changing(common, |node| change::update(node, changes, &common.settings))
        }
        ServiceCommand::Destroy(arguments) => {
            changing(common, |node| change::destroy(node, arguments, &common.settings))
        }
        ServiceCommand::Enable(services) => {
            changing(common, |node| change::set_enabled(node, &services.ids, true))
        }
        ServiceCommand::Disable(services) => {
            changing(common, |node| change::set_enabled(node, &services.ids, false))
        }
    }
}

/// The services that a job of this node has, as its record says.
fn made_for(job: &JobId, common: &Common) -> Result<Vec<OwnedService>, Failure> {
    let record = records(common)?.0.into_iter().find(|record| record.job == *job);
    let record = record.ok_or_else(|| {
        Failure::new(Exit::NotFound, format!("job {job} has no record on this node"))
            .hint("cxi job list shows the jobs.")
    })?;
    Ok(record.made)
}
