//! A service as the driver reports it.

use std::fmt;

use cxi_ioctl::abi::service::{SvcDesc, SvcFlags};

use crate::error::{Error, ErrorKind, Result};
use crate::{
    Limits, Member, Members, ServiceId, TrafficClass, TrafficClasses, Vni, VniAccess, VniList,
    VniRange,
};
use cxi_ioctl::Errno;

/// Bits of the counter pool in the flags byte.
pub(super) const POOL_SHIFT: u8 = 6;

/// A service as the driver reports it.
///
/// Values that this library does not know, from a newer driver, are preserved: see
/// [`descriptor`](Self::descriptor).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Service {
    id: ServiceId,
    desc: SvcDesc,
    range: Option<VniRange>,
}

pub(super) fn flags(desc: &SvcDesc) -> SvcFlags {
    SvcFlags::from_bits_truncate(desc.flags)
}

/// The id of a service in the driver's answer.
pub(super) fn numbered(id: u32) -> Result<ServiceId> {
    ServiceId::new(id).map_err(|_| {
        let text = "the driver's answer contains a service with ID 0";
        Error::new(ErrorKind::Nonsense(text.into()), Errno::EPROTO)
    })
}

impl Service {
    pub(super) fn from_kernel(desc: SvcDesc) -> Result<Self> {
        let id = numbered(desc.svc_id)?;
        Ok(Self { id, desc, range: None })
    }

    /// A service that does not exist yet.
    pub(super) fn without_id(desc: SvcDesc) -> Self {
        Self { id: ServiceId::DEFAULT, desc, range: None }
    }

    pub(super) fn with_range(mut self, range: Option<VniRange>) -> Self {
        self.range = range;
        self
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> ServiceId {
        self.id
    }

    /// Returns whether LNIs can be allocated.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.has(SvcFlags::ENABLE)
    }

    /// Returns whether it is marked as the system's.
    #[must_use]
    pub fn is_system(&self) -> bool {
        self.has(SvcFlags::IS_SYSTEM_SVC)
    }

    /// Returns the members that may use it; `None` for everyone.
    #[must_use]
    pub fn members(&self) -> Option<Members> {
        let [first, second] = self.desc.members.map(Member::from_kernel);
        self.has(SvcFlags::RESTRICTED_MEMBERS).then(|| {
            // A duplicate means the same as a single one.
            let second = second.filter(|member| Some(*member) != first);
            Members::from_kernel(first.into_iter().chain(second))
        })
    }

    /// Returns the VNIs to which it gives access.
    #[must_use]
    pub fn vnis(&self) -> VniAccess {
        if let Some(range) = self.range {
            return VniAccess::Range(range);
        }
        if self.restricted_vnis() {
            VniAccess::List(self.listed_vnis())
        } else {
            VniAccess::Unrestricted
        }
    }

    /// Returns the traffic classes that may be used; `None` for all.
    #[must_use]
    pub fn traffic_classes(&self) -> Option<TrafficClasses> {
        let named = TrafficClass::ALL.into_iter().zip(self.desc.tcs);
        self.has(SvcFlags::RESTRICTED_TCS)
            .then(|| named.filter(|(_, on)| *on != 0).map(|(class, _)| class).collect())
    }

    /// Returns whether it was created with limits.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.has(SvcFlags::RESOURCE_LIMITS)
    }

    /// The limits in force: what is reserved, and the most it may have. Without [limits of its
    /// own](Self::is_limited) those are the totals of the NIC and 8 reserved TLEs.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits::from_kernel(&self.desc.limits)
    }

    /// The counter pool that is stored for it.
    #[must_use]
    pub fn counter_pool(&self) -> u8 {
        self.desc.flags >> POOL_SHIFT
    }

    /// The kernel's form, with everything that a newer driver may have put there.
    #[must_use]
    pub fn descriptor(&self) -> &SvcDesc {
        &self.desc
    }

    pub(super) fn restricted_vnis(&self) -> bool {
        self.has(SvcFlags::RESTRICTED_VNIS)
    }

    /// The VNIs in the descriptor, whether or not they take effect.
    pub(crate) fn listed_vnis(&self) -> VniList {
        let named = self.desc.vnis.iter().take(self.desc.num_vld_vnis.into());
        VniList::from_kernel(named.filter_map(|vni| Vni::new(*vni).ok()))
    }

    /// Returns whether the driver counts a VNI range: one VNI that is in no list. A driver that
    /// then denies the range does not know the command, or not in this form.
    pub(super) fn counts_a_range(&self) -> bool {
        !self.restricted_vnis() && self.desc.num_vld_vnis == 1 && self.listed_vnis().is_empty()
    }

    fn has(&self, flag: SvcFlags) -> bool {
        flags(&self.desc).contains(flag)
    }
}

/// One line: `service 5: uid 1000; VNIs 1024,1025; low-latency`, followed by `disabled` and
/// `system` where they apply.
impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "service {}: ", self.id)?;
        match self.members() {
            None => f.write_str("everyone")?,
            Some(members) if members.is_empty() => f.write_str("no one")?,
            Some(members) => members.fmt(f)?,
        }
        write!(f, "; VNIs {}", self.vnis())?;
        if let Some(classes) = self.traffic_classes() {
            write!(f, "; {classes}")?;
        }
        for (is_so, word) in [(!self.is_enabled(), "disabled"), (self.is_system(), "system")] {
            if is_so {
                write!(f, "; {word}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("id", &self.id)
            .field("enabled", &self.is_enabled())
            .field("system", &self.is_system())
            .field("members", &self.members())
            .field("vnis", &self.vnis())
            .field("traffic_classes", &self.traffic_classes())
            .field("limited", &self.is_limited())
            .field("limits", &self.limits())
            .finish_non_exhaustive()
    }
}
