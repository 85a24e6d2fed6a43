//! Scripted faults of the files by which the kernel shows a NIC.

use std::time::Duration;

use cxi_ioctl::Errno;

/// A fault of a file that the kernel shows of a NIC, or of all files of a directory.
///
/// The model has no files; a front end that shows some asks
/// [`Faults::reading`](crate::Faults::reading) and [`Faults::is_gone`](crate::Faults::is_gone).
///
/// ```
/// use cxi_ioctl::Errno;
/// use cxi_mock::{FileFault, Nic, NicConfig};
///
/// let nic = Nic::new(NicConfig::new())?;
/// // The second reading of any counter fails, and no other.
/// nic.faults().inject_file(FileFault::errno("telemetry", Errno::EIO).after(1).times(1));
/// assert_eq!(nic.faults().reading("telemetry/hni_pcs_good_cw").errno, None);
/// assert_eq!(nic.faults().reading("telemetry/atu_cache_miss_0").errno, Some(Errno::EIO));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFault {
    path: String,
    effect: Effect,
    after: u64,
    times: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Errno(Errno),
    Slow(Duration),
    Gone,
}

/// Result of reading a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reading {
    /// Errno with which it fails, if it does.
    pub errno: Option<Errno>,
    /// Time that it takes.
    pub delay: Duration,
}

impl FileFault {
    /// Reading fails. The path is that below the directory of the PCI function, such as
    /// `telemetry/hni_pcs_good_cw`; that of a directory means all files below it.
    #[must_use]
    pub fn errno(path: impl Into<String>, errno: Errno) -> Self {
        Self::new(path, Effect::Errno(errno))
    }

    /// Reading takes this long.
    #[must_use]
    pub fn slow(path: impl Into<String>, delay: Duration) -> Self {
        Self::new(path, Effect::Slow(delay))
    }

    /// The file or directory is not there.
    #[must_use]
    pub fn gone(path: impl Into<String>) -> Self {
        Self::new(path, Effect::Gone)
    }

    fn new(path: impl Into<String>, effect: Effect) -> Self {
        let path = path.into().trim_matches('/').to_owned();
        Self { path, effect, after: 0, times: u64::MAX }
    }

    /// Lets this many readings pass first. Only those that an errno would hit are counted.
    #[must_use]
    pub fn after(self, readings: u64) -> Self {
        Self { after: readings, ..self }
    }

    /// Hits only this many readings.
    #[must_use]
    pub fn times(self, readings: u64) -> Self {
        Self { times: readings, ..self }
    }

    /// Returns whether it is about this path.
    fn concerns(&self, path: &str) -> bool {
        let below = path.strip_prefix(&self.path);
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || self.path.is_empty())
    }

    /// Returns whether it hides this path.
    pub(crate) fn hides(&self, path: &str) -> bool {
        self.effect == Effect::Gone && self.concerns(path)
    }

    /// Returns the time that it adds to a reading.
    pub(crate) fn delay(&self, path: &str) -> Duration {
        match self.effect {
            Effect::Slow(delay) if self.concerns(path) => delay,
            _ => Duration::ZERO,
        }
    }

    /// Returns the errno of a reading, which counts.
    pub(crate) fn strike(&mut self, path: &str) -> Option<Errno> {
        let Effect::Errno(errno) = self.effect else { return None };
        if !self.concerns(path) {
            return None;
        }
        if self.after > 0 {
            self.after -= 1;
            return None;
        }
        self.times = self.times.checked_sub(1)?;
        Some(errno)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_stands_for_what_is_below_it() {
        let fault = FileFault::gone("telemetry/");
        assert!(fault.hides("telemetry") && fault.hides("telemetry/hni_pcs_good_cw"));
        assert!(!fault.hides("telemetry_2") && !fault.hides("properties/nid"));
        assert!(FileFault::gone("").hides("properties/nid"));
    }

    #[test]
    fn readings_are_counted() {
        let mut fault = FileFault::errno("fru", Errno::EIO).after(1).times(2);
        let mut read = || fault.strike("fru/part_number");
        let results = [read(), read(), read(), read()];
        assert_eq!(results, [None, Some(Errno::EIO), Some(Errno::EIO), None]);
        assert_eq!(fault.strike("uc/version"), None);
    }
}
