//! The specification of a service.

use cxi_ioctl::abi::profile::TC_COUNT;
use cxi_ioctl::abi::service::{SVC_MAX_VNIS, SvcDesc, SvcFlags, SvcMember};

use super::read::{POOL_SHIFT, flags};
use super::table::Settings;
use super::{InvalidSpec, Service, ServiceSpecBuilder};
use crate::driver::Capabilities;
use crate::pools::MIN_TLES;
use crate::{
    Limit, Limits, Members, Resource, ResourceMap, TrafficClass, TrafficClasses, VniAccess,
};

/// The specification of a service: who may use it, on which VNIs, with which traffic classes, and
/// how much of the NIC.
///
/// Made with a [`builder`](Self::builder), which checks everything that does not depend on the NIC.
///
/// ```
/// use cxi::{Limit, Limits, Member, Resource, ServiceSpec, TrafficClasses, Vni};
///
/// let spec = ServiceSpec::builder()
///     .member(Member::Uid(1000))
///     .vni(Vni::new(1024)?)
///     .traffic_classes(TrafficClasses::LOW_LATENCY | TrafficClasses::BEST_EFFORT)
///     .limits(
///         Limits::none()
///             .with(Resource::Txqs, Limit::new(8, 16)?)
///             .with(Resource::Ptes, Limit::at_most(64)),
///     )
///     .build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "super::json::Template", try_from = "super::json::Template")
)]
pub struct ServiceSpec {
    pub(super) members: Option<Members>,
    pub(super) vnis: VniAccess,
    pub(super) traffic_classes: Option<TrafficClasses>,
    pub(super) limits: Option<Limits>,
    pub(super) enabled: bool,
    pub(super) settings: Settings,
}

impl ServiceSpec {
    /// Starts building a specification. It needs VNIs; everything else has a default.
    pub fn builder() -> ServiceSpecBuilder {
        ServiceSpecBuilder::default()
    }

    /// Returns the members that may use the service; `None` for everyone on the node.
    #[must_use]
    pub fn members(&self) -> Option<&Members> {
        self.members.as_ref()
    }

    /// Returns the VNIs to which it gives access.
    #[must_use]
    pub fn vnis(&self) -> VniAccess {
        self.vnis
    }

    /// Returns the traffic classes that may be used; `None` for all.
    #[must_use]
    pub fn traffic_classes(&self) -> Option<TrafficClasses> {
        self.traffic_classes
    }

    /// Returns the limits of the service; `None` for no limits.
    #[must_use]
    pub fn limits(&self) -> Option<&Limits> {
        self.limits.as_ref()
    }

    /// Returns whether it is enabled after it is made.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Returns the specification with other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Option<Limits>) -> Self {
        self.limits = limits;
        self
    }

    /// The network namespace, if that is the only member.
    pub(super) fn netns(&self) -> Option<u32> {
        self.members.and_then(|members| members.netns())
    }

    /// Checks whether every limit fits a NIC with these totals.
    ///
    /// # Errors
    ///
    /// [`InvalidSpec::LimitAboveTotal`] for the first limit that does not fit.
    pub fn fits(&self, totals: &ResourceMap<u16>) -> Result<(), InvalidSpec> {
        let Some(limits) = &self.limits else { return Ok(()) };
        for (resource, limit) in limits.iter() {
            let total = totals[resource];
            if limit.max() > total {
                return Err(InvalidSpec::LimitAboveTotal { resource, max: limit.max(), total });
            }
        }
        Ok(())
    }

    /// The specification that the kernel's form expresses.
    pub(crate) fn from_kernel(desc: SvcDesc) -> Result<Self, InvalidSpec> {
        Self::try_from(&Service::without_id(desc))
    }

    /// The kernel's form, for a driver that can certainly do what is `proven`.
    pub(super) fn to_kernel(self, proven: Capabilities) -> SvcDesc {
        let mut flags = SvcFlags::empty();
        flags.set(SvcFlags::RESTRICTED_MEMBERS, self.members.is_some());
        flags.set(SvcFlags::RESTRICTED_TCS, self.traffic_classes.is_some());
        flags.set(SvcFlags::RESOURCE_LIMITS, self.limits.is_some());
        flags.set(SvcFlags::ENABLE, self.enabled);
        flags.set(SvcFlags::IS_SYSTEM_SVC, self.is_system());
        let (mut vnis, mut num_vld_vnis) = ([0; SVC_MAX_VNIS], 0);
        if let VniAccess::List(list) = self.vnis {
            flags |= SvcFlags::RESTRICTED_VNIS;
            for (slot, vni) in vnis.iter_mut().zip(list.iter()) {
                *slot = vni.get();
                num_vld_vnis += 1;
            }
        }
        let classes = self.traffic_classes.unwrap_or_default();
        let mut tcs = [0; TC_COUNT];
        for (slot, class) in tcs.iter_mut().zip(TrafficClass::ALL) {
            *slot = classes.contains(class.into()).into();
        }
        SvcDesc {
            flags: flags.bits() | self.counter_pool() << POOL_SHIFT,
            num_vld_vnis,
            vnis,
            tcs,
            _pad0: [0],
            members: kernel_members(self.members.unwrap_or_default(), proven),
            limits: self.limits.unwrap_or_default().to_kernel(),
            svc_id: 0,
        }
    }
}

/// SHS 13.0 opens a service to everyone if one of the two slots is unused. It accepts the same
/// member twice; later drivers do not, and do not need it.
fn kernel_members(members: Members, proven: Capabilities) -> [SvcMember; Members::MAX] {
    const UNUSED: SvcMember = SvcMember { id: 0, kind: 0 };
    let mut given = members.iter().map(crate::Member::to_kernel);
    let first = given.next().unwrap_or(UNUSED);
    let may_be_unused = proven.contains(Capabilities::UNUSED_MEMBER_SLOTS);
    let second = given.next().unwrap_or(if may_be_unused { UNUSED } else { first });
    [first, second]
}

/// Returns the limits that the driver makes of a specification's: those that it would reserve.
pub(super) fn effective_limits(desc: &SvcDesc) -> Limits {
    if flags(desc).contains(SvcFlags::RESOURCE_LIMITS) {
        Limits::from_kernel(&desc.limits).as_stored()
    } else {
        Limits::none().with(Resource::Tles, Limit::exactly(MIN_TLES))
    }
}

impl TryFrom<&Service> for ServiceSpec {
    type Error = InvalidSpec;

    /// Returns the specification that would make a service like this one.
    ///
    /// # Errors
    ///
    /// The service has a property that this library cannot request, such as a kind of member from a
    /// newer driver.
    fn try_from(service: &Service) -> Result<Self, InvalidSpec> {
        let mut builder = Self::builder().vni_access(service.vnis()).enabled(service.is_enabled());
        builder.settings = Settings::described(service);
        if let Some(members) = service.members() {
            builder = builder.members(members.iter());
        }
        if let Some(classes) = service.traffic_classes() {
            builder = builder.traffic_classes(classes);
        }
        if service.is_limited() {
            builder = builder.limits(service.limits());
        }
        builder.build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limit, Vni};

    fn builder() -> ServiceSpecBuilder {
        ServiceSpec::builder().vni(Vni::new(5).unwrap())
    }

    #[test]
    fn tles_are_counted_as_the_driver_counts_them() {
        let tles = |builder: ServiceSpecBuilder| {
            let desc = builder.build().unwrap().to_kernel(Capabilities::empty());
            effective_limits(&desc)[Resource::Tles]
        };
        let limited = |limit| tles(builder().limits(Limits::none().with(Resource::Tles, limit)));
        assert_eq!(limited(Limit::NONE), Limit::NONE);
        assert_eq!(limited(Limit::at_most(3)), Limit::exactly(8));
        assert_eq!(limited(Limit::exactly(8)), Limit::exactly(8));
        assert_eq!(limited(Limit::new(9, 20).unwrap()), Limit::exactly(9));
        assert_eq!(tles(builder()), Limit::exactly(8));
    }

    #[test]
    fn limits_that_a_driver_made_up_cannot_be_asked_for() {
        let mut desc = SvcDesc {
            flags: (SvcFlags::RESTRICTED_VNIS | SvcFlags::RESOURCE_LIMITS).bits(),
            svc_id: 2,
            num_vld_vnis: 1,
            vnis: [1024, 0, 0, 0],
            ..zerocopy::FromZeros::new_zeroed()
        };
        desc.limits.types[4] = cxi_ioctl::abi::service::Limits { max: 16, res: 17 };
        let service = Service::from_kernel(desc).unwrap();
        let message = "CTs: 17 reserved but at most 16: expected a maximum no lower than the \
                       reservation";
        let copied = ServiceSpec::try_from(&service).unwrap_err();
        assert_eq!(copied.to_string(), message);
        let builder = ServiceSpec::builder().vni(Vni::new(1024).unwrap());
        let built = builder.limits(service.limits()).build().unwrap_err();
        assert_eq!(built, copied);
    }
}
