//! Hardware counters.

use std::ffi::c_int;
use std::fs;
use std::path::{Path, PathBuf};

use crate::counters::{self, COUNT, NAMED};
use crate::device::Dev;
use crate::failure::{Failure, Result};
use crate::ffi::{In, Out, status};
use crate::handle::Handle;
use crate::public::Timespec;
use crate::scan;

/// Where the driver shows the counters of its NICs.
const CLASS: &str = "/sys/class/cxi";

#[unsafe(no_mangle)]
extern "C" fn cxil_read_cntr(
    dev: Handle<Dev>,
    cntr: u32,
    value: Out<u64>,
    ts: Out<Timespec>,
) -> c_int {
    status(|| {
        let directory = directory(dev.get()?);
        let value = value.required()?;
        ts.set(read(&directory, cntr, &value, 0)?);
        Ok(0)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_read_n_cntrs(
    dev: Handle<Dev>,
    count: u32,
    cntr: In<u32>,
    value: Out<u64>,
    ts: Out<Timespec>,
) -> c_int {
    status(|| {
        let directory = directory(dev.get()?);
        let value = value.required()?;
        let count = count as usize;
        if !(1..=NAMED).contains(&count) {
            return Err(Failure::argument());
        }
        let mut last = Timespec { sec: 0, nsec: 0 };
        for (index, number) in cntr.array(count)?.into_iter().enumerate() {
            last = read(&directory, number, &value, index)?;
        }
        ts.set(last);
        Ok(0)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_read_all_cntrs(dev: Handle<Dev>, value: Out<u64>, ts: Out<Timespec>) -> c_int {
    status(|| {
        let directory = directory(dev.get()?);
        let value = value.required()?;
        let mut last = Timespec { sec: 0, nsec: 0 };
        for (index, number) in (0..COUNT).zip(0..) {
            if counters::name(number).is_some() {
                last = read(&directory, number, &value, index)?;
            } else {
                value.set_at(index, 0);
            }
        }
        ts.set(last);
        Ok(0)
    })
}

fn directory(dev: &Dev) -> PathBuf {
    let nic = Path::new(CLASS).join(dev.info.get().name());
    nic.join("device/telemetry")
}

/// Reads the counter of that number into an element of the results. The value is stored even if
/// the time after it cannot be read.
fn read(directory: &Path, number: u32, value: &Out<u64>, index: usize) -> Result<Timespec> {
    let name = counters::name(number).ok_or_else(Failure::argument)?;
    let text = fs::read(directory.join(name))?;
    let (counted, rest) = scan::number(&text, 10).ok_or_else(Failure::argument)?;
    value.set_at(index, counted);
    time(rest).ok_or_else(Failure::argument)
}

fn time(text: &[u8]) -> Option<Timespec> {
    let (sec, rest) = scan::number(scan::after(text, b'@')?, 10)?;
    let (nsec, _) = scan::number(scan::after(rest, b'.')?, 10)?;
    Some(Timespec {
        sec: sec.cast_signed(),
        nsec: nsec.cast_signed(),
    })
}
