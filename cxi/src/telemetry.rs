//! Hardware counters, from sysfs.

use std::time::Duration;

use crate::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::sysfs::{NicDirectory, malformed, unreadable};

/// A reading of a hardware counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct CounterReading {
    /// The count.
    pub value: u64,
    /// When the hardware was read: time since the Unix epoch.
    pub time: Duration,
}

impl Device {
    /// Names of the NIC's hardware counters, in alphabetical order.
    ///
    /// # Errors
    ///
    /// The directory cannot be read; [`ErrorKind::Sysfs`] if the device has no sysfs.
    pub fn telemetry_counters(&self) -> Result<Vec<String>> {
        let directory = self.telemetry_directory()?;
        let path = directory.telemetry();
        let names = directory.sysfs().names(path).map_err(|error| unreadable(path, &error))?;
        let mut names: Vec<_> =
            names.into_iter().map(|name| name.to_string_lossy().into_owned()).collect();
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
    pub fn telemetry(&self, counter: &str) -> Result<CounterReading> {
        if counter.is_empty() || counter.contains('/') || counter.starts_with('.') {
            let text = format!("invalid counter name '{counter}': expected a file name");
            return Err(Error::invalid(ErrorKind::InvalidInput(text.into())).on(self.id()));
        }
        let directory = self.telemetry_directory()?;
        let path = directory.telemetry().join(counter);
        let text = directory
            .sysfs()
            .attribute(&path)
            .map_err(|error| unreadable(&path, &error).on(self.id()))?;
        parse(text.trim()).ok_or_else(|| {
            let start: String = text.trim().chars().take(64).collect();
            let reason = format!("invalid reading '{start}': expected value@seconds.nanoseconds");
            malformed(&path, reason).on(self.id())
        })
    }

    fn telemetry_directory(&self) -> Result<&NicDirectory> {
        self.directory().ok_or_else(|| self.without_sysfs())
    }
}

fn parse(text: &str) -> Option<CounterReading> {
    let (value, time) = text.split_once('@')?;
    let (seconds, nanoseconds) = time.split_once('.')?;
    let nanoseconds = nanoseconds.parse().ok().filter(|count| *count < 1_000_000_000)?;
    Some(CounterReading {
        value: value.parse().ok()?,
        time: Duration::new(seconds.parse().ok()?, nanoseconds),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

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

    /// A NIC with a directory for its telemetry.
    fn device(sys: &Path) -> (Device, std::path::PathBuf) {
        let nic = cxi_mock::Nic::new(cxi_mock::NicConfig::new()).unwrap();
        let file = nic.open().unwrap();
        let transport = std::sync::Arc::new(file.transport(cxi_mock::Credentials::root()));
        let device = Device::with_sysfs(crate::DeviceId::new(3), transport, sys);
        let directory = device.directory().map(NicDirectory::telemetry);
        let directory = directory.unwrap().to_owned();
        fs::create_dir_all(&directory).unwrap();
        (device, directory)
    }

    #[test]
    fn names_are_in_order_and_lead_nowhere_else() {
        let sys = tempfile::tempdir().unwrap();
        let (device, directory) = device(sys.path());
        // So many that no file system has them in this order by chance.
        let names: Vec<_> = ('a'..='z').map(|letter| format!("hni_{letter}")).collect();
        for name in names.iter().rev().step_by(2).chain(names.iter().step_by(2)) {
            fs::write(directory.join(name), "7@1.5\n").unwrap();
        }
        assert_eq!(device.telemetry_counters().unwrap(), names);
        assert_eq!(device.telemetry("hni_c").unwrap().value, 7);
        fs::write(directory.join("..hidden"), "7@1.5\n").unwrap();
        fs::create_dir(directory.join("sub")).unwrap();
        fs::write(directory.join("sub/x"), "7@1.5\n").unwrap();
        for name in ["", "..hidden", "sub/x", "/sub"] {
            let error = device.telemetry(name).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::InvalidInput(_)), "{error}");
            assert_eq!(error.device(), Some(crate::DeviceId::new(3)));
        }
    }

    #[test]
    fn what_is_not_a_reading_is_said_with_the_nic_and_in_short() {
        let sys = tempfile::tempdir().unwrap();
        let (device, directory) = device(sys.path());
        fs::write(directory.join("bad"), "x".repeat(70)).unwrap();
        let error = device.telemetry("bad").unwrap_err();
        assert_eq!(error.device(), Some(crate::DeviceId::new(3)));
        let text = error.to_string();
        assert!(text.contains(&"x".repeat(64)), "{text}");
        assert!(!text.contains(&"x".repeat(65)), "{text}");
        let missing = device.telemetry("none").unwrap_err();
        assert_eq!(missing.device(), Some(crate::DeviceId::new(3)));
    }
}
