//! Mercury's notation (NA over libfabric) for addresses and keys: `ofi+cxi://cxi0:17` and
//! `11:4034`.
//!
//! Mercury's rules: a device has one digit (`cxi0` to `cxi9`); a port id is 0 to 510, where 0 means
//! any. In a key, a part that is 0 is looked up in `SLINGSHOT_*`; the VNI by index, which is 1 by
//! default: the *second* VNI.
//!
//! ```
//! use cxi::DeviceId;
//! use cxi_job::na::{AuthKey, NaAddress};
//!
//! let address: NaAddress = "ofi+cxi://cxi2:17".parse()?;
//! assert_eq!(
//!     (address.device(), address.pid()),
//!     (Some(DeviceId::new(2)), Some(17))
//! );
//! assert_eq!(
//!     NaAddress::new(Some(DeviceId::new(2)), None)?.to_string(),
//!     "ofi+cxi://cxi2"
//! );
//!
//! let key: AuthKey = "11:4034".parse()?;
//! assert_eq!(key.to_string(), "11:4034");
//! # Ok::<(), cxi_job::na::NaError>(())
//! ```

mod key;

use std::fmt;
use std::str::FromStr;

use cxi::DeviceId;

pub use key::{AuthKey, AuthKeyRange};

/// The largest port id: to the NIC 511 means any, for which Mercury writes 0.
const MAX_PID: u16 = 510;

const PREFIX: &str = "ofi+cxi";

/// Why a text is not valid in Mercury's notation, or does not lead to a service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NaError {
    /// Not an address.
    #[error(
        "invalid NA address {text:?}: {reason} (expected ofi+cxi://cxiN, ofi+cxi://cxiN:pid or ofi+cxi://:pid)"
    )]
    Address {
        /// The text.
        text: String,
        /// What is wrong.
        reason: String,
    },
    /// Not a key.
    #[error("invalid key {text:?}: {reason} (expected {expected})")]
    Key {
        /// The text.
        text: String,
        /// What is wrong.
        reason: String,
        /// What was expected.
        expected: &'static str,
    },
    /// A port id out of range.
    #[error("invalid port id {pid}: expected at most {MAX_PID}")]
    Pid {
        /// The port id.
        pid: u16,
    },
    /// A device that Mercury cannot parse.
    #[error("{device} has no name in Mercury's notation: expected cxi0 to cxi9")]
    Device {
        /// The device.
        device: DeviceId,
    },
    /// The environment has no service on the NIC.
    #[error("no service on {device} in SLINGSHOT_DEVICES")]
    NoService {
        /// The NIC.
        device: DeviceId,
    },
    /// The environment has no VNI at the index.
    #[error(
        "no VNI with index {index}: SLINGSHOT_VNIS has {count} (the first has index 0; without an index Mercury uses 1)"
    )]
    NoVni {
        /// The index.
        index: usize,
        /// How many there are.
        count: usize,
    },
}

/// Where a process listens: a NIC and a port id, each of which may be left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct NaAddress {
    device: Option<DeviceId>,
    pid: Option<u16>,
}

impl NaAddress {
    /// Creates an address. If the device or the port id is `None`, Mercury chooses. Port id 0 means
    /// any, too.
    ///
    /// # Errors
    /// [`NaError::Pid`]: the port id is above 510.
    pub fn new(device: Option<DeviceId>, pid: Option<u16>) -> Result<Self, NaError> {
        match pid {
            Some(pid) if pid > MAX_PID => Err(NaError::Pid { pid }),
            _ => Ok(Self {
                device,
                pid: pid.filter(|pid| *pid != 0),
            }),
        }
    }

    /// The NIC; `None` for any.
    #[must_use]
    pub const fn device(self) -> Option<DeviceId> {
        self.device
    }

    /// The port id, 1 to 510; `None` for any.
    #[must_use]
    pub const fn pid(self) -> Option<u16> {
        self.pid
    }

    /// Checks whether Mercury can parse the address; this library also reads and prints devices
    /// with several digits.
    ///
    /// # Errors
    /// [`NaError::Device`]: the device's number is above 9.
    pub fn check_mercury(self) -> Result<(), NaError> {
        match self.device {
            Some(device) if device.number() > 9 => Err(NaError::Device { device }),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for NaAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        match (self.device, self.pid) {
            (None, None) => Ok(()),
            (Some(device), None) => write!(f, "://{device}"),
            (None, Some(pid)) => write!(f, "://:{pid}"),
            (Some(device), Some(pid)) => write!(f, "://{device}:{pid}"),
        }
    }
}

impl FromStr for NaAddress {
    type Err = NaError;

    /// Parses an address with or without the prefix `ofi+cxi://` (`cxi0:17`, `:17`); `ofi+cxi`
    /// alone means any NIC.
    fn from_str(text: &str) -> Result<Self, NaError> {
        let bad = |reason: String| NaError::Address {
            text: text.to_owned(),
            reason,
        };
        if text == PREFIX {
            return Ok(Self::default());
        }
        let place = match text.split_once("://") {
            None => text,
            Some((PREFIX, place)) => place,
            Some((protocol, _)) => return Err(bad(format!("{protocol:?} is not {PREFIX}"))),
        };
        let (device, pid) = match place.split_once(':') {
            None => (place, None),
            Some((device, pid)) => (device, Some(pid)),
        };
        let device = match (device, pid) {
            ("", Some(_)) => None,
            ("", None) => return Err(bad("no device and no port id".to_owned())),
            (device, _) => {
                let device: Result<DeviceId, _> = device.parse();
                Some(device.map_err(|error| bad(error.to_string()))?)
            }
        };
        let number = |pid: &str| {
            let pid = decimal(pid).and_then(|pid| u16::try_from(pid).ok());
            pid.filter(|pid| *pid <= MAX_PID)
        };
        let pid = match pid {
            None => None,
            Some(pid) => match number(pid) {
                Some(pid) => Some(pid),
                None => {
                    return Err(bad(format!(
                        "invalid port id {pid:?}: expected 0 to {MAX_PID}"
                    )));
                }
            },
        };
        Self::new(device, pid)
    }
}

fn decimal(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}
