//! Keys: which service and VNI a process uses.

use std::fmt;
use std::str::FromStr;

use super::{NaError, decimal};
use crate::environment::SlingshotEnv;
use cxi::{DeviceId, ServiceId, Vni};

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
