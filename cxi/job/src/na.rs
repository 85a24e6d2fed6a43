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

use std::fmt;
use std::str::FromStr;

use cxi::{DeviceId, ServiceId, Vni};

use crate::environment::SlingshotEnv;

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

/// The index of the VNI that Mercury uses if a key does not name one.
const DEFAULT_VNI_INDEX: usize = 1;

/// `svc_id:vni[:idx]`: the service and VNI that a process uses, each either given or looked up in
/// `SLINGSHOT_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AuthKey {
    service: Option<ServiceId>,
    vni: Option<Vni>,
    index: Option<usize>,
}

impl AuthKey {
    /// A key with both parts given, as for a job's grant.
    #[must_use]
    pub const fn new(service: ServiceId, vni: Vni) -> Self {
        Self {
            service: Some(service),
            vni: Some(vni),
            index: None,
        }
    }

    /// A key that is looked up, with the VNI at `index` (counted from 0).
    #[must_use]
    pub const fn looked_up(index: usize) -> Self {
        Self {
            service: None,
            vni: None,
            index: Some(index),
        }
    }

    /// The service; `None` if it is looked up by NIC.
    #[must_use]
    pub const fn service(self) -> Option<ServiceId> {
        self.service
    }

    /// The VNI; `None` if it is looked up.
    #[must_use]
    pub const fn vni(self) -> Option<Vni> {
        self.vni
    }

    /// The index at which the VNI is looked up, counted from 0. Meaningless if the VNI is given.
    #[must_use]
    pub fn index(self) -> usize {
        self.index.unwrap_or(DEFAULT_VNI_INDEX)
    }

    /// Returns the service and VNI that Mercury would use on a NIC.
    ///
    /// # Errors
    /// [`NaError`]: the environment has no service on the NIC, or no VNI at the index.
    pub fn resolve(
        self,
        device: DeviceId,
        env: &SlingshotEnv,
    ) -> Result<(ServiceId, Vni), NaError> {
        let service = self.service.or_else(|| env.service_on(device));
        let service = service.ok_or(NaError::NoService { device })?;
        let index = self.index();
        let vni = self.vni.or_else(|| env.vnis().get(index).copied());
        let count = env.vnis().len();
        Ok((service, vni.ok_or(NaError::NoVni { index, count })?))
    }
}

impl fmt::Display for AuthKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let service = self.service.map_or(0, ServiceId::get);
        write!(f, "{service}:{}", self.vni.map_or(0, Vni::get))?;
        match self.index {
            Some(index) => write!(f, ":{index}"),
            None => Ok(()),
        }
    }
}

impl FromStr for AuthKey {
    type Err = NaError;

    fn from_str(text: &str) -> Result<Self, NaError> {
        let [service, vni, index] = key_parts(text, "svc_id:vni or svc_id:vni:index")?;
        Ok(Self {
            service: service.number(u32::MAX.into())?.and_then(to_service),
            vni: vni.number(u16::MAX.into())?.and_then(to_vni),
            index: index
                .number(u8::MAX.into())?
                .and_then(|index| usize::try_from(index).ok()),
        })
    }
}

/// `svc_id:min[:max]`: a service and the VNIs of a range that a process may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AuthKeyRange {
    service: Option<ServiceId>,
    first: Vni,
    last: Option<Vni>,
}

impl AuthKeyRange {
    /// The service; `None` if it is looked up by NIC.
    #[must_use]
    pub const fn service(self) -> Option<ServiceId> {
        self.service
    }

    /// The lowest VNI.
    #[must_use]
    pub const fn first(self) -> Vni {
        self.first
    }

    /// The highest VNI; the same as the lowest if the key names only one.
    #[must_use]
    pub fn last(self) -> Vni {
        self.last.unwrap_or(self.first)
    }
}

impl fmt::Display for AuthKeyRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}",
            self.service.map_or(0, ServiceId::get),
            self.first
        )?;
        match self.last {
            Some(last) => write!(f, ":{last}"),
            None => Ok(()),
        }
    }
}

impl FromStr for AuthKeyRange {
    type Err = NaError;

    fn from_str(text: &str) -> Result<Self, NaError> {
        let [service, min, max] = key_parts(text, "svc_id:min or svc_id:min:max")?;
        let first = min.number(u16::MAX.into())?.and_then(to_vni);
        let first = first.ok_or_else(|| min.bad("the lowest VNI is 0, which is not a VNI"))?;
        let last = match max.number(u16::MAX.into())? {
            None => None,
            Some(last) => match to_vni(last) {
                Some(last) if last >= first => Some(last),
                _ => return Err(max.bad("the highest VNI is below the lowest")),
            },
        };
        Ok(Self {
            service: service.number(u32::MAX.into())?.and_then(to_service),
            first,
            last,
        })
    }
}

/// Parses one part of a key; the other arguments are for the error message.
struct Part<'a> {
    text: &'a str,
    value: Option<&'a str>,
    expected: &'static str,
}

impl Part<'_> {
    fn bad(&self, reason: impl Into<String>) -> NaError {
        NaError::Key {
            text: self.text.to_owned(),
            reason: reason.into(),
            expected: self.expected,
        }
    }

    fn number(&self, max: u64) -> Result<Option<u64>, NaError> {
        let Some(part) = self.value else {
            return Ok(None);
        };
        match decimal(part).filter(|number| *number <= max) {
            Some(number) => Ok(Some(number)),
            None => Err(self.bad(format!("{part:?}: expected a number from 0 to {max}"))),
        }
    }
}

fn key_parts<'a>(text: &'a str, expected: &'static str) -> Result<[Part<'a>; 3], NaError> {
    let mut parts = text.split(':');
    let parts = [parts.next(), parts.next(), parts.next(), parts.next()];
    let part = |value| Part {
        text,
        value,
        expected,
    };
    match parts {
        [first, Some(second), third, None] => Ok([part(first), part(Some(second)), part(third)]),
        [_, None, ..] => Err(part(None).bad("it has no ':'")),
        _ => Err(part(None).bad("it has more than three parts")),
    }
}

fn to_service(number: u64) -> Option<ServiceId> {
    ServiceId::try_from(number).ok()
}

fn to_vni(number: u64) -> Option<Vni> {
    Vni::try_from(number).ok()
}
