//! `cxi integration`: the scripts for a scheduler, with absolute paths, because the programs that they
//! call need not be in a prolog's `PATH`.

mod checks;
mod cli;
mod diff;
mod placed;
mod scripts;
mod systemd;

use crate::exit::Failure;
use crate::options::Common;
use crate::output::Report;
use checks::{refuse_foreign, refuse_used};
pub(crate) use cli::IntegrationCommand;
use cli::Role;
use placed::Placed;
use scripts::{scripts, units};

pub(crate) fn run(command: &IntegrationCommand, common: &Common) -> Result<Report, Failure> {
    match command {
        IntegrationCommand::Install { scheduler, place, force } => {
            let machine = place.machine(common)?;
            let wanted = scripts(*scheduler, &machine)?;
            let plan = Placed::load(&machine, *scheduler)?.plan(wanted, *force, &machine)?;
            plan.carry_out(*scheduler, &machine, common)
        }
        IntegrationCommand::Enable { scheduler, place, systemd, role, despite_services, yes } => {
            let machine = place.machine(common)?;
            let systemd = machine.path(common, "--systemd", systemd.as_ref(), systemd::UNITS)?;
            // An image has no services.
            let has_services = *role != Some(Role::Controller) && !machine.is_image();
            if has_services && !despite_services {
                refuse_foreign(common)?;
            }
            let mut wanted = scripts(*scheduler, &machine)?;
            wanted.extend(units(*scheduler, &machine, &wanted, &systemd, *role));
            let plan = Placed::load(&machine, *scheduler)?.plan(wanted, false, &machine)?;
            if *yes { plan.carry_out(*scheduler, &machine, common) } else { Ok(plan.preview()) }
        }
        IntegrationCommand::Disable { scheduler, place, yes } => {
            let machine = place.machine(common)?;
            refuse_used(*scheduler, &machine)?;
            placed::disable(*scheduler, &machine, *yes, common)
        }
        IntegrationCommand::Status { scheduler, place } => {
            let machine = place.machine(common)?;
            placed::status(*scheduler, &machine, &scripts(*scheduler, &machine)?)
        }
    }
}
