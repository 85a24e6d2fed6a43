//! Resource groups, each with the service that has the same number.

use cxi_ioctl::abi::service::{SVC_MAX_VNIS, SvcDesc, SvcFlags};

use super::access::AccessList;
use super::accounting::{Entries, Reservation};

/// A profile that a service keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub(crate) enum Held {
    /// None.
    #[default]
    None,
    /// The profile with this id.
    Profile(u32),
    /// A freed profile: a bug of the driver.
    Dangling,
    /// The profile with this id, which the service has given up because of the same bug. It exists
    /// as long as others use it.
    GivenUp(u32),
}

impl Held {
    pub(crate) fn id(self) -> Option<u32> {
        match self {
            Self::Profile(id) => Some(id),
            Self::None | Self::Dangling | Self::GivenUp(_) => None,
        }
    }

    /// The profile that a service holds when all files are closed. Nothing but the service keeps a
    /// profile then.
    pub(crate) fn without_users(self) -> Self {
        match self {
            Self::GivenUp(_) => Self::Dangling,
            held => held,
        }
    }
}

/// The profiles for one entry of a service's VNI list, or for its range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct ProfilePair {
    pub(crate) tx: Held,
    pub(crate) rx: Held,
}

/// A resource group and its service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Group {
    /// Position in the order of allocation.
    pub(crate) seq: u64,
    /// The descriptor as SVC_GET shows it.
    pub(crate) desc: SvcDesc,
    pub(crate) access: AccessList,
    pub(crate) reserved: Reservation,
    pub(crate) lnis_per_rgid: u32,
    /// `true` if it was made as a system service; updates do not change this.
    pub(crate) system: bool,
    pub(crate) cntr_pool_id: u32,
    /// `true` if services of a virtual function get their VNIs and resources from it.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "std::ops::Not::not"))]
    pub(crate) is_parent: bool,
    /// The virtual function that made it, below its parent service.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub(crate) function: Option<u32>,
    /// The number of LNIs, including those that wait for their cleanup.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) lnis: u32,
    pub(crate) profiles: [ProfilePair; SVC_MAX_VNIS],
}

impl Group {
    pub(crate) fn flags(&self) -> SvcFlags {
        flags(&self.desc)
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.flags().contains(SvcFlags::ENABLE)
    }

    /// The profiles that the recorded VNI count covers.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (usize, ProfilePair)> + use<> {
        self.profiles.into_iter().enumerate().take(self.desc.num_vld_vnis.into())
    }

    pub(crate) fn set_enabled(&mut self, enabled: bool) {
        let flag = SvcFlags::ENABLE.bits();
        self.desc.flags = self.desc.flags & !flag | if enabled { flag } else { 0 };
    }

    /// The group as it is when all files are closed.
    pub(crate) fn without_users(&self) -> Self {
        let mut group = self.clone();
        group.lnis = 0;
        group.reserved.entries = Entries::default();
        for pair in &mut group.profiles {
            pair.rx = pair.rx.without_users();
        }
        group
    }
}

/// The flags of a descriptor.
pub(crate) fn flags(desc: &SvcDesc) -> SvcFlags {
    SvcFlags::from_bits_truncate(desc.flags)
}
