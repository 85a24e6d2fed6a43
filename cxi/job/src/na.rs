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

/// The largest port id. To the NIC, 511 means any port; Mercury writes 0 for that.
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
        let number = |pid| {
            let wrong = || bad(format!("invalid port id {pid:?}: expected 0 to {MAX_PID}"));
            decimal(pid, MAX_PID).ok_or_else(wrong)
        };
        Self::new(device, pid.map(number).transpose()?)
    }
}

/// A number without a sign, at most `most`.
fn decimal<T: Copy + FromStr + PartialOrd>(text: &str, most: T) -> Option<T> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && *number <= most)
}

/// The index of the VNI that Mercury uses if a key does not name one.
const DEFAULT_VNI_INDEX: usize = 1;

/// `svc_id:vni[:more]`: what both kinds of keys consist of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Key {
    service: Option<ServiceId>,
    vni: Option<Vni>,
    more: Option<u16>,
}

impl Key {
    /// Parses a key. The number after the VNI is at most `most`.
    fn parse(text: &str, most: u16, expected: &'static str) -> Result<Self, NaError> {
        let bad = |reason: String| bad_key(text, reason, expected);
        let wrong =
            |part: &str, most: u32| bad(format!("{part:?}: expected a number from 0 to {most}"));
        let short =
            |part: &str, most| decimal(part, most).ok_or_else(|| wrong(part, u32::from(most)));
        let parts: Vec<&str> = text.split(':').collect();
        let (service, vni, more) = match parts[..] {
            [service, vni] => (service, vni, None),
            [service, vni, more] => (service, vni, Some(more)),
            [] | [_] => return Err(bad("it has no ':'".to_owned())),
            _ => return Err(bad("it has more than three parts".to_owned())),
        };
        let id = decimal(service, u32::MAX).ok_or_else(|| wrong(service, u32::MAX))?;
        Ok(Self {
            service: ServiceId::new(id).ok(),
            vni: Vni::new(short(vni, u16::MAX)?).ok(),
            more: more.map(|more| short(more, most)).transpose()?,
        })
    }
}

fn bad_key(text: &str, reason: String, expected: &'static str) -> NaError {
    let text = text.to_owned();
    NaError::Key {
        text,
        reason,
        expected,
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let service = self.service.map_or(0, ServiceId::get);
        write!(f, "{service}:{}", self.vni.map_or(0, Vni::get))?;
        self.more.map_or(Ok(()), |more| write!(f, ":{more}"))
    }
}

/// `svc_id:vni[:idx]`: the service and VNI that a process uses, each either given or looked up in
/// `SLINGSHOT_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AuthKey(Key);

impl AuthKey {
    /// A key with both parts given, as for a job's grant.
    #[must_use]
    pub const fn new(service: ServiceId, vni: Vni) -> Self {
        Self(Key {
            service: Some(service),
            vni: Some(vni),
            more: None,
        })
    }

    /// A key that is looked up, with the VNI at `index` (counted from 0).
    #[must_use]
    pub fn looked_up(index: u8) -> Self {
        Self(Key {
            more: Some(index.into()),
            ..Key::default()
        })
    }

    /// The service; `None` if it is looked up by NIC.
    #[must_use]
    pub const fn service(self) -> Option<ServiceId> {
        self.0.service
    }

    /// The VNI; `None` if it is looked up.
    #[must_use]
    pub const fn vni(self) -> Option<Vni> {
        self.0.vni
    }

    /// The index at which the VNI is looked up, counted from 0. Meaningless if the VNI is given.
    #[must_use]
    pub fn index(self) -> usize {
        self.0.more.map_or(DEFAULT_VNI_INDEX, usize::from)
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
        let service = self.service().or_else(|| env.service_on(device));
        let service = service.ok_or(NaError::NoService { device })?;
        let index = self.index();
        let vni = self.vni().or_else(|| env.vnis().get(index).copied());
        let count = env.vnis().len();
        Ok((service, vni.ok_or(NaError::NoVni { index, count })?))
    }
}

impl fmt::Display for AuthKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for AuthKey {
    type Err = NaError;

    fn from_str(text: &str) -> Result<Self, NaError> {
        Key::parse(text, u8::MAX.into(), "svc_id:vni or svc_id:vni:index").map(Self)
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
        let (service, vni) = (self.service, Some(self.first));
        let more = self.last.map(Vni::get);
        Key { service, vni, more }.fmt(f)
    }
}

impl FromStr for AuthKeyRange {
    type Err = NaError;

    fn from_str(text: &str) -> Result<Self, NaError> {
        let expected = "svc_id:min or svc_id:min:max";
        let bad = |reason: &str| bad_key(text, reason.to_owned(), expected);
        let Key { service, vni, more } = Key::parse(text, u16::MAX, expected)?;
        let first = vni.ok_or_else(|| bad("the lowest VNI is 0, which is not a VNI"))?;
        let last = more.map(|last| {
            let last = Vni::new(last).ok().filter(|last| *last >= first);
            last.ok_or_else(|| bad("the highest VNI is below the lowest"))
        });
        Ok(Self {
            service,
            first,
            last: last.transpose()?,
        })
    }
}
