//! Stores to the doorbell of a target queue, some of which are trapped and some not.

use std::time::{Duration, Instant};

use cxi::lni::Pid;
use cxi::{Device, ServiceId, Vni};
use cxi_data::SetState;

use crate::process::{Problem, Process};

/// A VNI of the default service.
const VNI: u16 = 10;
/// Stores in quick succession: after the first ones, the doorbell is open.
const BURST: u32 = 6;
/// The NIC closes it within this many microseconds, and the next store comes at any time in between.
const SPREAD: u64 = 1_200;
/// Longest time until a store is noticed.
const LIMIT: Duration = Duration::from_secs(2);

/// Rings a target queue repeatedly while the NIC opens and closes the doorbell, and waits until the
/// NIC has read each command.
///
/// # Errors
///
/// A store was never noticed.
pub fn ring(device: &Device, pid: u32, rounds: u64) -> Result<String, Problem> {
    let pid = Some(Pid::new(pid)?);
    let mut process = Process::new(device, ServiceId::DEFAULT, Vni::new(VNI)?, pid)?;
    for round in 0..rounds {
        for _ in 0..BURST {
            command(&mut process, round)?;
        }
        // All delays, in an order that is independent of the NIC's timing.
        let moment = Duration::from_micros(round * 7_919 % SPREAD);
        let start = Instant::now();
        while start.elapsed() < moment {
            std::hint::spin_loop();
        }
        command(&mut process, round)?;
        process.events.drain().for_each(drop);
    }
    Ok("ok".to_owned())
}

fn command(process: &mut Process, round: u64) -> Result<(), Problem> {
    process.target.post(&SetState::enable(&process.pte))?;
    let start = Instant::now();
    while !process.target.is_idle()? {
        if start.elapsed() > LIMIT {
            return Err(format!("a store of round {round} is lost").into());
        }
        std::hint::spin_loop();
    }
    Ok(())
}
