//! `cxi service`: services on one NIC or several.

pub(crate) mod change;
pub(crate) mod cli;
pub(crate) mod found;
pub(crate) mod show;

use crate::exit::Failure;
use crate::node::{changing, reading};
use crate::options::Common;
use crate::output::Report;
use cli::ServiceCommand;

pub(crate) fn run(command: &ServiceCommand, common: &Common) -> Result<Report, Failure> {
    match command {
        ServiceCommand::List => reading(common, show::list),
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
        ServiceCommand::Usage { ids } => reading(common, |node| show::usage(node, ids)),
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
