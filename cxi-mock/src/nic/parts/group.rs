//! Resource groups, each with the service of the same number.

use cxi_ioctl::abi::service::{SVC_MAX_VNIS, SvcDesc, SvcFlags};

use super::access::AccessList;
use super::accounting::Reservation;

/// A profile that a service keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Held {
    /// None.
    #[default]
    None,
    /// The profile with this id.
    Profile(u32),
    /// A freed profile, because of a mistake in the driver.
    Dangling,
    /// The profile with this id, which the service has given up, by the same mistake: it is there as
    /// long as others use it.
    GivenUp(u32),
}

impl Held {
    pub(crate) fn id(self) -> Option<u32> {
        match self {
            Self::Profile(id) => Some(id),
            Self::None | Self::Dangling | Self::GivenUp(_) => None,
        }
    }
}

/// The profiles for one entry of a service's VNI list, or for its range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProfilePair {
    pub(crate) tx: Held,
    pub(crate) rx: Held,
}

/// A resource group and its service.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Place in the order of allocation.
    pub(crate) seq: u64,
    /// The descriptor as SVC_GET shows it.
    pub(crate) desc: SvcDesc,
    pub(crate) enabled: bool,
    pub(crate) access: AccessList,
    pub(crate) reserved: Reservation,
    pub(crate) lnis_per_rgid: u32,
    /// As given when the service was made; updates do not change them.
    pub(crate) system: bool,
    pub(crate) cntr_pool_id: u32,
    /// LNIs, those that wait for their cleanup included.
    pub(crate) lnis: u32,
    pub(crate) profiles: [ProfilePair; SVC_MAX_VNIS],
}

impl Group {
    pub(crate) fn flags(&self) -> SvcFlags {
        flags(&self.desc)
    }

    /// Profiles that the VNI count on record covers.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (usize, ProfilePair)> + use<> {
        self.profiles
            .into_iter()
            .enumerate()
            .take(self.desc.num_vld_vnis.into())
    }

    pub(crate) fn set_enabled(&mut self, enabled: bool) {
        self.enabled = enabled;
        let mut flags = flags(&self.desc);
        flags.set(SvcFlags::ENABLE, enabled);
        self.desc.flags = (self.desc.flags & !SvcFlags::all().bits()) | flags.bits();
    }
}

/// The flags of a descriptor.
pub(crate) fn flags(desc: &SvcDesc) -> SvcFlags {
    SvcFlags::from_bits_truncate(desc.flags)
}
