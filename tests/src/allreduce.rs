//! Processes on several nodes sum numbers in the fabric, as in the example of `cxi-data`.

#[path = "../../cxi/data/examples/allreduce/participant.rs"]
mod participant;

use std::io::Write;

use cxi::{Device, ServiceId, Vni};
use participant::Participant;

use crate::process as common;
use common::{Problem, Process};

/// A VNI of the default service.
const VNI: u16 = 10;

/// Sums numbers in a tree of `size` processes, round by round. Rank 0 is on the root's NIC; it
/// starts when all others have printed `ready`.
///
/// # Errors
///
/// A sum is wrong, or an event does not arrive.
pub fn allreduce(
    device: &Device,
    tree: u16,
    (rank, size): (u32, u32),
    rounds: u64,
) -> Result<String, Problem> {
    let process = Process::new(device, ServiceId::DEFAULT, Vni::new(VNI)?, None)?;
    let mut participant = Participant::new(process, tree, rank)?;
    writeln!(std::io::stdout(), "ready")?;
    participant.run(size, rounds)?;
    Ok(format!("{rounds} sums"))
}
