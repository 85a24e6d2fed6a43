//! Counters that changed within a second: `telemetry NIC`.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::time::Duration;

use cxi::{Device, Result};

fn counters(device: &Device) -> Result<BTreeMap<String, u64>> {
    let names = device.telemetry_counters()?.into_iter();
    names.map(|name| device.telemetry(&name).map(|reading| (name, reading.value))).collect()
}

fn main() -> Result<()> {
    let nic = std::env::args().nth(1).unwrap_or_else(|| "cxi0".to_owned());
    let device = Device::open(nic.parse()?)?;
    let before = counters(&device)?;
    std::thread::sleep(Duration::from_secs(1));
    for (name, value) in counters(&device)? {
        let change = value.wrapping_sub(before.get(&name).copied().unwrap_or(value));
        if change > 0 {
            println!("{name:<40} {change:>12}/s");
        }
    }
    Ok(())
}
