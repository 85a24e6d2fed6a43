//! Hardware counters.

use std::ffi::c_int;
use std::path::{Path, PathBuf};

use cxi_ioctl::Errno;

use crate::counters::{self, COUNT};
use crate::device::Dev;
use crate::failure::{Failure, Result};
use crate::ffi::{In, Out, status};
use crate::handle::Handle;
use crate::public::Timespec;
use crate::scan;
use crate::sysfs::{self, Attribute, PAGE};

/// Directory in which the driver shows the counters of its NICs.
const CLASS: &str = "/sys/class/cxi";
/// The directory of the counters below that of a NIC.
const DIRECTORY: &str = "device/telemetry";

#[unsafe(no_mangle)]
extern "C" fn cxil_read_cntr(
    dev: Handle<Dev>,
    cntr: u32,
    value: Out<u64>,
    ts: Out<Timespec>,
) -> c_int {
    status(|| {
        let nic = Nic::of(dev.get()?);
        let value = value.required()?;
        ts.set(nic.read(cntr, &value, 0)?);
        Ok(())
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
        let nic = Nic::of(dev.get()?);
        let value = value.required()?;
        let count = count as usize;
        if !(1..=counters::named()).contains(&count) {
            return Err(Failure::argument());
        }
        let mut last = Timespec { sec: 0, nsec: 0 };
        for (index, number) in cntr.array(count)?.into_iter().enumerate() {
            last = nic.read(number, &value, index)?;
        }
        ts.set(last);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_read_all_cntrs(dev: Handle<Dev>, value: Out<u64>, ts: Out<Timespec>) -> c_int {
    status(|| {
        let nic = Nic::of(dev.get()?);
        let value = value.required()?;
        let mut last = Timespec { sec: 0, nsec: 0 };
        for (index, number) in (0..COUNT).zip(0..) {
            if counters::name(number).is_some() {
                last = nic.read(number, &value, index)?;
            } else {
                value.set_at(index, 0);
            }
        }
        ts.set(last);
        Ok(())
    })
}

/// The counters of a NIC.
struct Nic {
    number: u32,
    directory: PathBuf,
}

impl Nic {
    fn of(dev: &Dev) -> Self {
        let nic = Path::new(CLASS).join(dev.info.get().name());
        Self { number: dev.number, directory: nic.join(DIRECTORY) }
    }

    /// Reads the counter with this number into an element of the results. The value is stored even
    /// if the time after it cannot be parsed.
    fn read(&self, number: u32, value: &Out<u64>, index: usize) -> Result<Timespec> {
        let name = counters::name(number).ok_or_else(Failure::argument)?;
        let file = Attribute {
            class: "cxi",
            expected: "a number, @ and a time",
            ..Attribute::user(self.number, DIRECTORY, name)
        };
        let mut page = [0; PAGE];
        let text = sysfs::read(&self.directory.join(name), &mut page)
            .map_err(|error| file.unread(&error))?;
        let malformed = file.failed(Errno::EINVAL);
        let (counted, rest) = scan::number(text, 10).ok_or(malformed)?;
        value.set_at(index, counted);
        time(rest).ok_or(malformed)
    }
}

fn time(text: &[u8]) -> Option<Timespec> {
    let (sec, rest) = scan::number(scan::after(text, b'@')?, 10)?;
    let (nsec, _) = scan::number(scan::after(rest, b'.')?, 10)?;
    Some(Timespec { sec: sec.cast_signed(), nsec: nsec.cast_signed() })
}
