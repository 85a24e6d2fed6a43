//! The safe library on a NIC, whatever carries its commands: in the same process, served, or real.
//!
//! Every check makes its own services, on VNIs of its own, and leaves the NIC as it was.

mod resources;
mod services;
pub mod wait;

use cxi::{Device, Limits, ServiceSpec, ServiceSpecBuilder, Vni};

/// What a check says when it fails.
pub type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Opens the NIC once more, as a privileged caller.
pub type Opener<'a> = &'a dyn Fn() -> cxi::Result<Device>;

/// One check by name.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    run: fn(Opener<'_>) -> Outcome,
}

macro_rules! checks {
    ($($module:ident::$name:ident)*) => {
        &[$(Check { name: stringify!($name), run: $module::$name }),*]
    };
}

/// Every check.
pub const CHECKS: &[Check] = checks! {
    services::what_was_made_is_read_back
    services::lists_agree
    services::settings_are_kept
    services::a_shortage_is_explained
    services::a_service_in_use_stays
    resources::limits_bite
    resources::a_closed_file_gives_everything_back
    resources::targets_are_mapped
    resources::memory_is_registered
};

/// Runs every check and says what is wrong, or how many there were.
///
/// # Errors
///
/// One line for each check that failed, and what it left behind.
pub fn run_all(open: Opener<'_>) -> Result<usize, String> {
    let mut wrong = Vec::new();
    let before = services_of(open);
    for check in CHECKS {
        if let Err(error) = (check.run)(open) {
            wrong.push(format!("{}: {error}", check.name));
        }
        let after = services_of(open);
        if after != before {
            wrong.push(format!("{}: left {after:?}, found {before:?}", check.name));
        }
    }
    if wrong.is_empty() {
        Ok(CHECKS.len())
    } else {
        Err(wrong.join("\n"))
    }
}

fn services_of(open: Opener<'_>) -> Option<Vec<u32>> {
    let services = open().ok()?.services().list().ok()?;
    Some(services.iter().map(|service| service.id().get()).collect())
}

/// The VNI of a check. They are high, away from what a site hands out first.
fn vni(number: u16) -> Result<Vni, cxi::InvalidVni> {
    Vni::new(64_000 + number)
}

/// A service that asks for nothing, not even a TLE pool.
fn modest(number: u16) -> Result<ServiceSpecBuilder, cxi::InvalidVni> {
    Ok(ServiceSpec::builder()
        .vni(vni(number)?)
        .limits(Limits::default()))
}

/// Fails a check with a reason.
fn ensure(holds: bool, what: &str) -> Outcome {
    if holds { Ok(()) } else { Err(what.into()) }
}
