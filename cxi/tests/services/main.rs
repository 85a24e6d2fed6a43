//! Services: their life, what a driver answers, what is refused and why, on every driver release.

#[path = "../common/mod.rs"]
mod common;

mod answers;
mod errors;
mod exclusive;
#[cfg(feature = "serde")]
mod json;
mod life;
mod parents;
mod quirks;
mod refusals;
mod releases;
mod scoped;
mod settings;
mod shortages;
mod waiting;

use std::sync::Arc;

use cxi::{Errno, ServiceId};
use cxi_mock::{Credentials, Nic};

/// Asks for an LNI of the service as this caller.
fn lni(nic: &Arc<Nic>, caller: Credentials, service: ServiceId) -> Result<(), Errno> {
    let lni = common::device(nic, caller).alloc_lni(service);
    lni.map(drop).map_err(|error| error.errno())
}
