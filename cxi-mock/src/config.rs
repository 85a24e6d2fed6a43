//! The configuration of a mock NIC: driver release, module parameters, totals, identity.

use std::ops::RangeInclusive;

use cxi_ioctl::{DriverRelease, Errno};

use crate::{Card, Identity};

/// LEs of a processing element of the chip.
const MAX_LES: u16 = 16_384;

/// Configuration of a mock NIC.
///
/// The default is a Cassini 2 NIC without virtual functions under the driver of SHS 14.0.1 with
/// its default parameters.
///
/// ```
/// use cxi_ioctl::DriverRelease;
/// use cxi_mock::{Nic, NicConfig};
///
/// let nic = Nic::new(
///     NicConfig::new()
///         .release(DriverRelease::Main2026_07)
///         .virtual_functions(1)
///         .parameters(|params| params.disable_default_svc = false)
///         .totals(|totals| totals.txqs = 16),
/// )?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct NicConfig {
    /// The driver release.
    pub release: DriverRelease,
    /// Parameters of the driver's modules.
    pub params: ModuleParameters,
    /// Number of virtual functions in addition to the physical one, at most 64.
    pub virtual_functions: u32,
    /// `true` if HPE's retry handler runs: it has an event queue from the start, and a served node
    /// shows its files.
    pub retry_handler: bool,
    /// Number of each resource that the NIC has.
    pub totals: Totals,
    /// Properties that the NIC reports about itself.
    pub identity: Identity,
}

impl NicConfig {
    /// The default configuration.
    #[must_use]
    pub fn new() -> Self {
        Self {
            release: DriverRelease::Shs14_0_1,
            params: ModuleParameters::default(),
            virtual_functions: 0,
            retry_handler: false,
            totals: Totals::default(),
            identity: Identity::default(),
        }
    }

    /// Sets the driver release.
    #[must_use]
    pub fn release(mut self, release: DriverRelease) -> Self {
        self.release = release;
        self
    }

    /// Changes module parameters.
    #[must_use]
    pub fn parameters(mut self, change: impl FnOnce(&mut ModuleParameters)) -> Self {
        change(&mut self.params);
        self
    }

    /// Sets the number of virtual functions.
    #[must_use]
    pub fn virtual_functions(mut self, count: u32) -> Self {
        self.virtual_functions = count;
        self
    }

    /// Lets HPE's retry handler run.
    #[must_use]
    pub fn retry_handler(mut self) -> Self {
        self.retry_handler = true;
        self
    }

    /// Sets the device totals: a test that fills a small NIC runs faster.
    #[must_use]
    pub fn totals(mut self, change: impl FnOnce(&mut Totals)) -> Self {
        change(&mut self.totals);
        self
    }

    /// Makes it a NIC of this kind. Its addresses and the state of its link stay.
    #[must_use]
    pub fn card(mut self, card: Card) -> Self {
        self.identity.become_card(card);
        self
    }

    /// Sets what the NIC reports about itself.
    #[must_use]
    pub fn identity(mut self, change: impl FnOnce(&mut Identity)) -> Self {
        change(&mut self.identity);
        self
    }

    /// Configurations for the NICs of one node that differ only in their addresses: the fabric
    /// address and the PCI bus count up from this one's.
    pub(crate) fn alike(&self, count: u8) -> impl Iterator<Item = Self> {
        (0..count).map(|index| {
            self.clone().identity(|identity| {
                identity.nid = identity.nid.wrapping_add(u32::from(index));
                identity.uc_nic = identity.uc_nic.wrapping_add(i32::from(index));
                identity.pci_address.bus = identity.pci_address.bus.wrapping_add(index);
            })
        })
    }
}

impl Default for NicConfig {
    fn default() -> Self {
        Self::new()
    }
}

/// Parameters of the driver's modules, by their names there.
///
/// A release that does not know a parameter ignores it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "the driver's parameters are what they are")]
pub struct ModuleParameters {
    /// `true` if the default service starts disabled. Default on.
    pub disable_default_svc: bool,
    /// `true` if the default service is not restricted to VNIs. Default off.
    pub default_svc_test_mode: bool,
    /// TLEs reserved for the default service, raised to 8. Default 512.
    pub default_svc_num_tles: u32,
    /// VNIs of the default service; the list ends at the first one outside 1 to 65535. Default 1
    /// and 10.
    pub default_vnis: [u32; 4],
    /// `true` if LNIs may share an RGID (from 13.1). Default on.
    pub enable_rgid_sharing: bool,
    /// LNIs per RGID of new user services (from 13.1). Default 1.
    pub default_lnis_per_rgid: u32,
    /// `true` if rendezvous gets are on when the driver is loaded. Default on.
    pub rdzv_get_en_default: bool,
    /// LEs of each processing element, at most 16384. Default 16384.
    pub pe_total_les: u32,
    /// Width of a PID in bits. Default 9.
    pub pid_bits: u32,
    /// Profile of the combinations of traffic class and type that exist. Default 2; profile 1,
    /// which HPE's own tests load, has dedicated access instead of low latency.
    pub active_qos_profile: u32,
}

impl Default for ModuleParameters {
    fn default() -> Self {
        Self {
            disable_default_svc: true,
            default_svc_test_mode: false,
            default_svc_num_tles: 512,
            default_vnis: [1, 10, 0, 0],
            enable_rgid_sharing: true,
            default_lnis_per_rgid: 1,
            pe_total_les: 16384,
            rdzv_get_en_default: true,
            pid_bits: 9,
            active_qos_profile: 2,
        }
    }
}

impl ModuleParameters {
    /// LEs of each processing element.
    pub(crate) fn list_entries(&self) -> u16 {
        u16::try_from(self.pe_total_les).map_or(MAX_LES, |les| les.min(MAX_LES))
    }
}

/// Number of each resource that the NIC has. LEs are a module parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Totals {
    /// Portal table entries; number 0 is never assigned.
    pub ptes: u16,
    /// Transmit command queues, at most 1024.
    pub txqs: u16,
    /// Target command queues.
    pub tgqs: u16,
    /// Event queues, numbered from 1.
    pub eqs: u16,
    /// Counting events, numbered from 1.
    pub cts: u16,
    /// Trigger list entries.
    pub tles: u16,
    /// Address contexts.
    pub acs: u16,
}

impl Default for Totals {
    fn default() -> Self {
        Self { ptes: 2048, txqs: 1024, tgqs: 512, eqs: 2047, cts: 2047, tles: 2048, acs: 1022 }
    }
}

/// Reason for which the driver does not load with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The first of `default_vnis` is not a VNI.
    #[error("default_vnis starts with {first}: expected at least one VNI from 1 to 65535")]
    NoDefaultVni {
        /// First entry of the list.
        first: u32,
    },
    /// The default service would need more TLEs than there are.
    #[error("default_svc_num_tles is {asked}: the NIC has {total}")]
    TooManyTles {
        /// The value of the parameter.
        asked: u32,
        /// Number that there are.
        total: u16,
    },
    /// A VNI occurs twice in `default_vnis`, which this release refuses.
    #[error("default_vnis has VNI {vni} twice, which the driver of {release} refuses")]
    DuplicateDefaultVni {
        /// The VNI.
        vni: u32,
        /// The driver.
        release: DriverRelease,
    },
    /// A value that a NIC cannot have.
    #[error("{what} is {value}: expected {} to {}", .expected.start(), .expected.end())]
    OutOfRange {
        /// The name of the value.
        what: &'static str,
        /// The value.
        value: u32,
        /// The permitted values.
        expected: RangeInclusive<u32>,
    },
    /// The default service cannot be made.
    #[error("cannot create the default service: {0}")]
    DefaultService(Errno),
}

impl LoadError {
    /// The errno with which loading the driver's module fails.
    #[must_use]
    pub fn errno(&self) -> Errno {
        match self {
            Self::DuplicateDefaultVni { .. } => Errno::EEXIST,
            Self::DefaultService(errno) => *errno,
            _ => Errno::EINVAL,
        }
    }
}
