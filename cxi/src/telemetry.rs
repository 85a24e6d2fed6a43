//! Hardware counters, from sysfs.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::sysfs::{NicFolder, attribute, malformed, unreadable};

/// A reading of a hardware counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Reading {
    /// What was counted.
    pub value: u64,
    /// When the hardware was read: time since the epoch.
    pub time: Duration,
}

impl Device {
    /// Names of the NIC's hardware counters, in alphabetical order.
    ///
    /// # Errors
    ///
    /// The folder cannot be read; [`ErrorKind::Sysfs`] if the device has no sysfs.
    pub fn telemetry_counters(&self) -> Result<Vec<String>> {
        let folder = self.telemetry_folder()?;
        let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
        let mut names = entries
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<std::io::Result<Vec<_>>>()
            .map_err(|error| unreadable(folder, &error))?;
        names.sort_unstable();
        Ok(names)
    }

    /// Reads one hardware counter, such as `hni_pkts_sent_by_tc_0`.
    ///
    /// # Errors
    ///
    /// ENOENT if there is no such counter; [`ErrorKind::Sysfs`] with EINVAL if the file does not
    /// hold a reading.
    #[doc(alias = "cxil_read_cntr")]
    pub fn telemetry(&self, counter: &str) -> Result<Reading> {
        if counter.is_empty() || counter.contains('/') || counter.starts_with('.') {
            let text = format!("'{counter}' is no name of a counter");
            return Err(Error::invalid(ErrorKind::InvalidInput(text.into())).on(self.id()));
        }
        let path = self.telemetry_folder()?.join(counter);
        let text = attribute(&path).map_err(|error| unreadable(&path, &error).on(self.id()))?;
        parse(text.trim()).ok_or_else(|| {
            let start: String = text.trim().chars().take(64).collect();
            let reason = format!("'{start}' is no reading: expected value@seconds.nanoseconds");
            malformed(&path, reason).on(self.id())
        })
    }

    fn telemetry_folder(&self) -> Result<&Path> {
        let folder = self.folder().map(NicFolder::telemetry);
        folder.ok_or_else(|| self.without_sysfs())
    }
}

fn parse(text: &str) -> Option<Reading> {
    let (value, time) = text.split_once('@')?;
    let (seconds, nanoseconds) = time.split_once('.')?;
    let nanoseconds = nanoseconds
        .parse()
        .ok()
        .filter(|count| *count < 1_000_000_000)?;
    Some(Reading {
        value: value.parse().ok()?,
        time: Duration::new(seconds.parse().ok()?, nanoseconds),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_have_a_value_and_a_time() {
        let reading = parse("18446744073709551615@1700000000.000000042").unwrap();
        assert_eq!(reading.value, u64::MAX);
        assert_eq!(reading.time, Duration::new(1_700_000_000, 42));
        for bad in ["", "5", "5@7", "5@7.1000000000", "-1@7.0", "5@x.0"] {
            assert_eq!(parse(bad), None);
        }
    }
}
