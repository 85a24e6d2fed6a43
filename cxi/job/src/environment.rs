//! The `SLINGSHOT_*` variables that tell a job its VNIs, NICs, services and traffic classes.
//!
//! | variable | value | example |
//! |---|---|---|
//! | `SLINGSHOT_VNIS` | the job's VNIs | `4034,4035` |
//! | `SLINGSHOT_DEVICES` | the node's NICs | `cxi0,cxi1` |
//! | `SLINGSHOT_SVC_IDS` | one service for each NIC, in the same order | `11,12` |
//! | `SLINGSHOT_TCS` | traffic classes: DEDICATED_ACCESS 1, LOW_LATENCY 2, BULK_DATA 4, BEST_EFFORT
//! 8 | `0xa` |
//!
//! Programs read them as follows:
//!
//! - libfabric uses only the first VNI, and pairs devices with services by position. If an entry is
//!   missing or negative, it silently picks another service of the same user, or the default one.
//!   Ranks on different NICs are then on different VNIs and cannot communicate. For that reason a
//!   NIC without a service is left out here, never written as -1. libfabric does not read the
//!   classes.
//! - Cray MPICH reads the classes.
//! - Mercury picks a VNI by index, by default 1: the second one, which is Slurm's job-wide VNI.
//! - Chapel and ADIOS2 use the first service, whatever the NIC.
//! - None of them looks for a variable in a second place: the four belong together, so
//!   [clear](CLEAR) all four before setting any.
//!
//! ```
//! use cxi::{DeviceId, ServiceId, TrafficClasses, Vni};
//! use cxi_job::environment::SlingshotEnv;
//!
//! let tcs = TrafficClasses::LOW_LATENCY | TrafficClasses::BEST_EFFORT;
//! let services =
//!     [(DeviceId::new(0), ServiceId::new(11)?), (DeviceId::new(1), ServiceId::new(12)?)];
//! let env = SlingshotEnv::new([Vni::new(4034)?], services, Some(tcs))?;
//! assert_eq!(
//!     env.vars(),
//!     [
//!         ("SLINGSHOT_VNIS", "4034".to_owned()),
//!         ("SLINGSHOT_DEVICES", "cxi0,cxi1".to_owned()),
//!         ("SLINGSHOT_SVC_IDS", "11,12".to_owned()),
//!         ("SLINGSHOT_TCS", "0xa".to_owned()),
//!     ]
//! );
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

use serde::Serialize;
use std::ffi::OsString;
use std::process::Command;
use std::str::FromStr;

use cxi::{DeviceId, ServiceId, TrafficClasses, Vni};
use cxi_site::collectives::TCS;

const VNIS: &str = "SLINGSHOT_VNIS";
const DEVICES: &str = "SLINGSHOT_DEVICES";
const SVC_IDS: &str = "SLINGSHOT_SVC_IDS";

/// The variables to remove before a job's own are set, or if it gets none.
pub const CLEAR: [&str; 4] = [VNIS, DEVICES, SVC_IDS, TCS];

/// The Slingshot variables of a job on one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SlingshotEnv {
    vnis: Vec<Vni>,
    services: Vec<(DeviceId, ServiceId)>,
    tcs: Option<TrafficClasses>,
}

/// Reason for which the variables are not those that a scheduler sets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// A value is not UTF-8 text.
    #[error("{name} is not UTF-8 text")]
    NotText {
        /// The variable.
        name: &'static str,
    },
    /// A variable is set to an empty value.
    #[error("{name} is set but empty: unset it, or give it a value")]
    Empty {
        /// The variable.
        name: &'static str,
    },
    /// A variable is missing that belongs with another one.
    #[error("{name} is not set, but {present} is")]
    Missing {
        /// The variable that is not set.
        name: &'static str,
        /// The variable that is set.
        present: &'static str,
    },
    /// One entry of a list is wrong.
    #[error("{name}, entry {position}: {reason}")]
    Entry {
        /// The variable.
        name: &'static str,
        /// Number of the entry, from 1.
        position: usize,
        /// The fault, and its correction.
        reason: String,
    },
    /// The lists of NICs and services differ in length.
    #[error(
        "{devices} devices but {services} service IDs: {DEVICES} and {SVC_IDS} have one entry for \
         each NIC"
    )]
    Lengths {
        /// Entries in `SLINGSHOT_DEVICES`.
        devices: usize,
        /// Entries in `SLINGSHOT_SVC_IDS`.
        services: usize,
    },
    /// No VNI.
    #[error("no VNI: a job with services has at least one")]
    NoVni,
    /// No service.
    #[error("no service: the job has none on this node")]
    NoService,
    /// A VNI is named twice.
    #[error("VNI {vni} is named twice")]
    RepeatedVni {
        /// The VNI.
        vni: Vni,
    },
    /// A NIC is named twice.
    #[error("{device} is named twice: a job has one service on each NIC")]
    RepeatedDevice {
        /// The NIC.
        device: DeviceId,
    },
    /// The traffic classes are wrong.
    #[error(
        "{TCS} is {value:?}: expected 0x1 to 0xf (DEDICATED_ACCESS 1, LOW_LATENCY 2, BULK_DATA 4, BEST_EFFORT 8)"
    )]
    TrafficClasses {
        /// The value.
        value: String,
    },
    /// The services of a job allow different VNIs.
    #[error(
        "the service on {device} allows different VNIs from the one on {first}: all must allow \
         the same VNIs in the same order"
    )]
    VnisDiffer {
        /// One NIC.
        first: DeviceId,
        /// The other.
        device: DeviceId,
    },
}

impl SlingshotEnv {
    /// The environment of a job with these VNIs, the application's first, and one service on each
    /// NIC.
    ///
    /// # Errors
    /// [`EnvironmentError`]: no VNI, a VNI or a NIC named twice, or traffic classes other than the
    /// four.
    pub fn new(
        vnis: impl IntoIterator<Item = Vni>,
        services: impl IntoIterator<Item = (DeviceId, ServiceId)>,
        tcs: Option<TrafficClasses>,
    ) -> Result<Self, EnvironmentError> {
        let vnis: Vec<Vni> = vnis.into_iter().collect();
        if vnis.is_empty() {
            return Err(EnvironmentError::NoVni);
        }
        if let Some(vni) = repeated(&vnis) {
            return Err(EnvironmentError::RepeatedVni { vni });
        }
        let services: Vec<_> = services.into_iter().collect();
        let devices: Vec<DeviceId> = services.iter().map(|(device, _)| *device).collect();
        if let Some(device) = repeated(&devices) {
            return Err(EnvironmentError::RepeatedDevice { device });
        }
        match tcs {
            Some(tcs) if tcs.bits() == 0 || tcs.bits() > 0xf => {
                Err(EnvironmentError::TrafficClasses { value: format!("{:#x}", tcs.bits()) })
            }
            _ => Ok(Self { vnis, services, tcs }),
        }
    }

    /// Returns what a job inside another one (a sub-instance) gets: its own services if it has any,
    /// otherwise everything that the outer job has, unchanged.
    ///
    /// Its own services take precedence, so that variables that happen to be set for a scheduler's
    /// daemon do not replace a reservation.
    ///
    /// # Errors
    /// As [`SlingshotEnv::parse`], for the outer job's variables; they are not read if the job has
    /// services of its own.
    pub fn inherit(
        own: Option<Self>,
        outer: impl Fn(&'static str) -> Option<OsString>,
    ) -> Result<Option<Self>, EnvironmentError> {
        own.map_or_else(|| Self::parse(outer), |own| Ok(Some(own)))
    }

    /// The VNIs, the application's first.
    #[must_use]
    pub fn vnis(&self) -> &[Vni] {
        &self.vnis
    }

    /// The NICs, with the service on each; empty on a node without NICs.
    #[must_use]
    pub fn services(&self) -> &[(DeviceId, ServiceId)] {
        &self.services
    }

    /// The traffic classes, if the environment has them.
    #[must_use]
    pub const fn traffic_classes(&self) -> Option<TrafficClasses> {
        self.tcs
    }

    /// The names and values to set. Remove all of [`CLEAR`] first.
    #[must_use]
    pub fn vars(&self) -> Vec<(&'static str, String)> {
        let mut vars = vec![(VNIS, join(self.vnis.iter()))];
        if !self.services.is_empty() {
            vars.push((DEVICES, join(self.services.iter().map(|entry| entry.0))));
            vars.push((SVC_IDS, join(self.services.iter().map(|entry| entry.1))));
        }
        if let Some(tcs) = self.tcs {
            vars.push((TCS, format!("{:#x}", tcs.bits())));
        }
        vars
    }

    /// Sets the variables of a program about to be started, and removes the others of [`CLEAR`].
    pub fn set_on<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        for name in CLEAR {
            command.env_remove(name);
        }
        command.envs(self.vars())
    }
}

fn repeated<T: Copy + PartialEq>(entries: &[T]) -> Option<T> {
    let mut before = entries.iter().enumerate();
    before
        .find(|(index, entry)| entries.iter().take(*index).any(|other| other == *entry))
        .map(|(_, entry)| *entry)
}

fn join<T: ToString>(entries: impl Iterator<Item = T>) -> String {
    let entries: Vec<String> = entries.map(|entry| entry.to_string()).collect();
    entries.join(",")
}

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
    ///     "3 devices but 4 service IDs: SLINGSHOT_DEVICES and SLINGSHOT_SVC_IDS have one entry for each NIC"
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
            return Err(EnvironmentError::Lengths { devices: devices.len(), services: ids.len() });
        }
        let services = devices.into_iter().zip(ids.into_iter().map(|id| id.0));
        Self::new(vnis, services, tcs).map(Some)
    }
}

fn to_text(name: &'static str, value: OsString) -> Result<String, EnvironmentError> {
    let text = value.into_string().map_err(|_| EnvironmentError::NotText { name })?;
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
        Err(EnvironmentError::Entry { name, position: index + 1, reason })
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
        text.parse().map(Self).map_err(|error: cxi::InvalidValue| error.to_string())
    }
}

fn parse_classes(text: &str) -> Result<TrafficClasses, EnvironmentError> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    digits
        .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
        .and_then(|digits| u8::from_str_radix(digits, 16).ok())
        .filter(|bits| (1..=0xf).contains(bits))
        .and_then(TrafficClasses::from_bits)
        .ok_or_else(|| EnvironmentError::TrafficClasses { value: text.to_owned() })
}
