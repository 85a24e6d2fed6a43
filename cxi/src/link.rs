//! History of a NIC's link.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Device;
use crate::sysfs::NicDirectory;

/// Number of restarts whose times the driver keeps.
const RESTARTS: u32 = 10;

/// When a NIC's link restarted, and how often it was lost. A link that restarts often has a bad cable
/// or a bad port: HPE's health checks accept four restarts within an hour, and nine within ten hours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct LinkHistory {
    /// When the link restarted, the latest first: the driver keeps the last ten times, in seconds.
    pub restarts: Vec<SystemTime>,
    /// Number of times that the network device has lost its carrier since the driver was loaded; `None` if the
    /// kernel does not say.
    pub carrier_losses: Option<u64>,
}

impl LinkHistory {
    /// The number of restarts within this time before `now`, at most ten. A restart that `now` has not
    /// come to counts too: clocks are set.
    #[must_use]
    pub fn restarts_within(&self, time: Duration, now: SystemTime) -> usize {
        let is_recent = |at: &&SystemTime| now.duration_since(**at).map_or(true, |age| age <= time);
        self.restarts.iter().filter(is_recent).count()
    }
}

impl Device {
    /// Reads when the link restarted (`link_restarts`) and how often the network device has lost its
    /// carrier. Sends the driver nothing, and reads about twelve files, which needs no privilege.
    /// Without sysfs, nothing is known.
    ///
    /// ```
    /// # use cxi_mock::{Nic, NicConfig};
    /// # let nic = Nic::new(NicConfig::new())?;
    /// use std::time::{Duration, SystemTime};
    ///
    /// # let device = cxi::Device::cxi0(nic.root()?);
    /// let link = device.link_history();
    /// if link.restarts_within(Duration::from_secs(3600), SystemTime::now()) > 4 {
    ///     println!("look at the cable of {}", device.id());
    /// }
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn link_history(&self) -> LinkHistory {
        self.directory().map_or_else(LinkHistory::default, read)
    }
}

fn read(nic: &NicDirectory) -> LinkHistory {
    let number = |name: &str| nic.attribute(name)?.parse::<u64>().ok();
    let seconds = (0..RESTARTS).filter_map(|place| number(&format!("link_restarts/time_{place}")));
    // A place that was never used reads as zero.
    let times = seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs);
    let mut restarts: Vec<_> = times.filter_map(|since| UNIX_EPOCH.checked_add(since)).collect();
    restarts.sort_unstable_by(|one, other| other.cmp(one));
    let network_device = nic.network_device();
    let carrier_losses =
        network_device.and_then(|name| number(&format!("net/{name}/carrier_down_count")));
    LinkHistory { restarts, carrier_losses }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn restarts_are_read_as_the_driver_writes_them() {
        let sys = tempfile::tempdir().unwrap();
        let nic = cxi_mock::Nic::new(cxi_mock::NicConfig::new()).unwrap();
        let transport = std::sync::Arc::new(nic.root().unwrap());
        let device = Device::with_sysfs(crate::DeviceId::new(0), transport, sys.path());
        let directory = sys.path().join("class/cxi_user/cxi0/device");
        assert_eq!(device.link_history(), LinkHistory::default());
        fs::create_dir_all(directory.join("link_restarts")).unwrap();
        fs::create_dir_all(directory.join("net/hsn0")).unwrap();
        // Ten places, of which the oldest is the next to be used; one cannot be read.
        for (place, text) in ["5000\n", "7000\n", "x\n", "0\n", "1000\n"].iter().enumerate() {
            fs::write(directory.join(format!("link_restarts/time_{place}")), text).unwrap();
        }
        fs::write(directory.join("net/hsn0/carrier_down_count"), "4\n").unwrap();
        let history = device.link_history();
        assert_eq!(history.restarts, [at(7000), at(5000), at(1000)]);
        assert_eq!(history.carrier_losses, Some(4));
        let within = |seconds| history.restarts_within(Duration::from_secs(seconds), at(6000));
        assert_eq!([within(0), within(1000), within(5000)], [1, 2, 3]);
    }
}
