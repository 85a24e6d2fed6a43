//! Stores to the doorbell of a target queue, some of which are trapped and some not.

use std::time::{Duration, Instant};

use cxi::{Device, ServiceId, Vni};

use crate::endpoint::{Endpoint, Problem};

/// A VNI of the default service.
const VNI: u16 = 10;
/// Stores that follow each other closely: after the first ones the doorbell is open.
const BURST: u32 = 6;
/// The NIC closes it within that time, and the next store comes at any moment of it.
const SPREAD: u64 = 1_200;
/// How long a store may take to be noticed.
const LIMIT: Duration = Duration::from_secs(2);

/// Rings a target queue again and again while the NIC opens and closes the doorbell, and waits for
/// each last command.
///
/// # Errors
///
/// A store was never noticed.
pub fn ring(device: &Device, pid: u32, rounds: u64) -> Result<String, Problem> {
    let nid = device.info()?.nid;
    let mut end = Endpoint::new(device, ServiceId::DEFAULT, Vni::new(VNI)?, nid, pid)?;
    for round in 0..rounds {
        for _ in 0..BURST {
            end.ring_target()?;
            wait(&end, round)?;
        }
        // All moments, in an order that has nothing to do with the NIC's.
        let moment = Duration::from_micros(round * 7_919 % SPREAD);
        let start = Instant::now();
        while start.elapsed() < moment {
            std::hint::spin_loop();
        }
        end.ring_target()?;
        wait(&end, round)?;
    }
    Ok("ok".to_owned())
}

fn wait(end: &Endpoint, round: u64) -> Result<(), Problem> {
    let start = Instant::now();
    while !end.target_is_idle()? {
        if start.elapsed() > LIMIT {
            return Err(format!("a store of round {round} is lost").into());
        }
        std::hint::spin_loop();
    }
    Ok(())
}
