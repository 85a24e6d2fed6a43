//! How many codewords the links receive, and how many of them were damaged.

use std::thread;
use std::time::Duration;

use cxi::{CounterReading, Device};
use serde::Serialize;

use super::Entry;
use crate::exit::{Failure, of_device};
use crate::output::table::Columns;

/// A value for each kind of codeword.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Codewords<T> {
    good: T,
    corrected: T,
    uncorrected: T,
}

/// Codewords a second, NIC by NIC, from two readings with a pause between.
pub(super) fn measure(devices: &[Device], time: Duration) -> Result<Vec<Codewords<f64>>, Failure> {
    let all = || -> Result<Vec<_>, Failure> {
        let readings = devices.iter().map(read).collect::<cxi::Result<_>>();
        readings.map_err(|error| of_device(&error))
    };
    let before = all()?;
    thread::sleep(time);
    let after = all()?;
    Ok(before
        .into_iter()
        .zip(after)
        .map(Codewords::rates)
        .collect())
}

fn read(device: &Device) -> cxi::Result<Codewords<CounterReading>> {
    Ok(Codewords {
        good: device.telemetry("hni_pcs_good_cw")?,
        corrected: device.telemetry("hni_pcs_corrected_cw")?,
        uncorrected: device.telemetry("hni_pcs_uncorrected_cw")?,
    })
}

impl Codewords<f64> {
    fn rates((before, after): (Codewords<CounterReading>, Codewords<CounterReading>)) -> Self {
        Self {
            good: rate(before.good, after.good),
            corrected: rate(before.corrected, after.corrected),
            uncorrected: rate(before.uncorrected, after.uncorrected),
        }
    }
}

/// The counters wrap around; the hardware says when each was read. Two readings of the same moment
/// say nothing.
#[allow(clippy::cast_precision_loss, reason = "a rate need not be exact")]
fn rate(before: CounterReading, after: CounterReading) -> f64 {
    let time = after.time.saturating_sub(before.time).as_secs_f64();
    let count = after.value.wrapping_sub(before.value) as f64;
    if time > 0.0 { count / time } else { 0.0 }
}

pub(super) fn table(devices: &[Entry]) -> String {
    let headings = ["NIC", "Good codewords/s", "Corrected", "Uncorrected"];
    let mut table = Columns::new(&headings).right(&[1, 2, 3]);
    for entry in devices {
        if let Some(rates) = &entry.codewords_per_second {
            table.row([
                entry.info.device.to_string(),
                format!("{:.2}", rates.good),
                format!("{:.2}", rates.corrected),
                format!("{:.2}", rates.uncorrected),
            ]);
        }
    }
    table.render(0)
}
