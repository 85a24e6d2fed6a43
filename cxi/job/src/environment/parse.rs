//! Parsing the variables.

use std::ffi::OsString;
use std::str::FromStr;

use super::{DEVICES, EnvironmentError, SVC_IDS, SlingshotEnv, TCS, VNIS};
use cxi::{DeviceId, ServiceId, TrafficClasses, Vni};

impl SlingshotEnv {
    /// Reads the variables through `get`. `None` if none is set: the job has no reservation.
    ///
    /// Accepts what schedulers write: blanks around entries; `0xa` and `0x0a`; no devices and
    /// services on a node without NICs; traffic classes alone, without a reservation (Flux does
    /// that).
    ///
    /// ```
    /// use cxi_job::environment::SlingshotEnv;
    ///
    /// let vars = [
    ///     ("SLINGSHOT_VNIS", "4034"),
    ///     ("SLINGSHOT_DEVICES", "cxi0,cxi1,cxi2"),
    ///     ("SLINGSHOT_SVC_IDS", "11,11,12,11"),
    /// ];
    /// let get = |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
    /// assert_eq!(
    ///     SlingshotEnv::parse(get).unwrap_err().to_string(),
    ///     "3 devices but 4 service ids: SLINGSHOT_DEVICES and SLINGSHOT_SVC_IDS have one entry for each NIC"
    /// );
    /// ```
    ///
    /// # Errors
    /// [`EnvironmentError`] states which variable is wrong, where and why.
    pub fn parse(
        get: impl Fn(&'static str) -> Option<OsString>,
    ) -> Result<Option<Self>, EnvironmentError> {
        let text = |name| get(name).map(|value| to_text(name, value)).transpose();
        let (vnis, devices) = (text(VNIS)?, text(DEVICES)?);
        let (ids, tcs) = (text(SVC_IDS)?, text(TCS)?);
        let tcs = tcs.as_deref().map(parse_classes).transpose()?;
        let missing = |name, present| EnvironmentError::Missing { name, present };
        match (&devices, &ids) {
            (Some(_), None) => return Err(missing(SVC_IDS, DEVICES)),
            (None, Some(_)) => return Err(missing(DEVICES, SVC_IDS)),
            _ => {}
        }
        let Some(vnis) = vnis else {
            return match devices {
                Some(_) => Err(missing(VNIS, DEVICES)),
                None => Ok(None),
            };
        };
        let devices = parse_list::<DeviceId>(DEVICES, devices.as_deref())?;
        let vnis = parse_list::<Vni>(VNIS, Some(&vnis))?;
        let ids = parse_list::<ServiceEntry>(SVC_IDS, ids.as_deref())?;
        if devices.len() != ids.len() {
            return Err(EnvironmentError::Lengths {
                devices: devices.len(),
                services: ids.len(),
            });
        }
        let services = devices.into_iter().zip(ids.into_iter().map(|id| id.0));
        Self::new(vnis, services, tcs).map(Some)
    }
}

fn to_text(name: &'static str, value: OsString) -> Result<String, EnvironmentError> {
    let text = value
        .into_string()
        .map_err(|_| EnvironmentError::NotText { name })?;
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(EnvironmentError::Empty { name });
    }
    Ok(trimmed.to_owned())
}

fn parse_list<T: FromStr<Err: ToString>>(
    name: &'static str,
    text: Option<&str>,
) -> Result<Vec<T>, EnvironmentError> {
    let entries = text.into_iter().flat_map(|text| text.split(','));
    let parse = |(index, entry): (usize, &str)| {
        let reason = match entry.trim() {
            "" => "nothing between the commas".to_owned(),
            entry => match entry.parse() {
                Ok(value) => return Ok(value),
                Err(error) => T::Err::to_string(&error),
            },
        };
        Err(EnvironmentError::Entry {
            name,
            position: index + 1,
            reason,
        })
    };
    entries.enumerate().map(parse).collect()
}

struct ServiceEntry(ServiceId);

impl FromStr for ServiceEntry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "-1" {
            return Err(
                "-1 stands for a NIC without a service: leave that NIC out of both lists, or libfabric \
                 takes another service there and ranks on different NICs cannot talk"
                    .to_owned(),
            );
        }
        text.parse()
            .map(Self)
            .map_err(|error: cxi::InvalidServiceId| error.to_string())
    }
}

fn parse_classes(text: &str) -> Result<TrafficClasses, EnvironmentError> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    digits
        .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
        .and_then(|digits| u8::from_str_radix(digits, 16).ok())
        .filter(|bits| (1..=0xf).contains(bits))
        .and_then(TrafficClasses::from_bits)
        .ok_or_else(|| EnvironmentError::TrafficClasses {
            value: text.to_owned(),
        })
}
