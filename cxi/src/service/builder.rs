//! Building a specification.

use super::{InvalidSpec, ServiceSpec};
use crate::{
    Limit, Limits, LnisPerRgid, Member, Members, TrafficClasses, Vni, VniAccess, VniList, VniRange,
};

/// Builds a [`ServiceSpec`].
#[derive(Clone, Debug)]
#[must_use]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a question of its own"
)]
pub struct ServiceSpecBuilder {
    members: Option<Vec<Member>>,
    vnis: Option<Vec<Vni>>,
    range: Option<VniRange>,
    unrestricted: bool,
    traffic_classes: Option<TrafficClasses>,
    limits: Option<Limits>,
    enabled: bool,
    system: bool,
    counter_pool: u8,
    exclusive_vnis: bool,
    exclusive_cp: bool,
    lnis_per_rgid: Option<LnisPerRgid>,
}

impl Default for ServiceSpecBuilder {
    fn default() -> Self {
        Self {
            members: None,
            vnis: None,
            range: None,
            unrestricted: false,
            traffic_classes: None,
            limits: None,
            enabled: true,
            system: false,
            counter_pool: 0,
            exclusive_vnis: false,
            exclusive_cp: false,
            lnis_per_rgid: None,
        }
    }
}

impl ServiceSpecBuilder {
    /// Lets somebody use the service; at most two, a network namespace only alone. Without any
    /// member everybody on the node may use it.
    pub fn member(mut self, member: Member) -> Self {
        self.members.get_or_insert_default().push(member);
        self
    }

    /// Lets these use the service, and nobody if there are none.
    pub fn members(mut self, members: impl IntoIterator<Item = Member>) -> Self {
        self.members.get_or_insert_default().extend(members);
        self
    }

    /// Adds a VNI; at most four.
    pub fn vni(mut self, vni: Vni) -> Self {
        self.vnis.get_or_insert_default().push(vni);
        self
    }

    /// Adds VNIs; at most four in all.
    pub fn vnis(mut self, vnis: impl IntoIterator<Item = Vni>) -> Self {
        self.vnis.get_or_insert_default().extend(vnis);
        self
    }

    /// Gives access to a block of VNIs. From SHS 13.1 on.
    pub fn vni_range(mut self, range: VniRange) -> Self {
        self.range = Some(range);
        self
    }

    /// Asks that no other service may get the VNIs, now or later.
    ///
    /// A block of two VNIs or more always has that. Single VNIs have it from SHS 13.0 to 14.0.0;
    /// other drivers let any number of services list the same, and making the service is an
    /// error then: [`ErrorKind::NotGuaranteed`](crate::ErrorKind::NotGuaranteed), also where it cannot
    /// be told whether the driver is one of those. The driver stores nothing of this.
    pub fn exclusive_vnis(mut self, exclusive: bool) -> Self {
        self.exclusive_vnis = exclusive;
        self
    }

    /// Names no VNIs at all; see [`VniAccess::Unrestricted`] for what that means by release.
    pub fn unrestricted_vnis(mut self) -> Self {
        self.unrestricted = true;
        self
    }

    /// Sets the VNIs in any of the three ways.
    pub fn vni_access(self, vnis: VniAccess) -> Self {
        match vnis {
            VniAccess::List(list) => self.vnis(list.iter()),
            VniAccess::Range(range) => self.vni_range(range),
            VniAccess::Unrestricted => self.unrestricted_vnis(),
        }
    }

    /// Allows these traffic classes only. Without this call all are allowed.
    pub fn traffic_classes(mut self, classes: TrafficClasses) -> Self {
        self.traffic_classes = Some(classes);
        self
    }

    /// Limits every resource: start from [`Limits::none`] or [`Limits::all_of`] a NIC.
    ///
    /// Without limits a service may have all that the NIC has, reserves nothing but 8 TLEs, and
    /// takes one of three TLE pools for that. TLEs come in pools of at least 8, of which a NIC has
    /// three for services besides the default one; limits with none for TLEs need no pool. LE
    /// reservations need one of 15 pools.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Whether the service is enabled after its creation. Default: it is.
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// Marks the service as the system's. The driver only notes it.
    pub fn system(mut self, system: bool) -> Self {
        self.system = system;
        self
    }

    /// Notes a counter pool, 0 to 3. The driver only notes it.
    pub fn counter_pool(mut self, pool: u8) -> Self {
        self.counter_pool = pool;
        self
    }

    /// Gives every LNI communication profiles of its own, which
    /// [`CommunicationProfile::modify`](crate::lni::CommunicationProfile::modify) needs. For
    /// services with a VNI range. From SHS 13.1 on.
    pub fn exclusive_cp(mut self, exclusive: bool) -> Self {
        self.exclusive_cp = exclusive;
        self
    }

    /// How many LNIs may share one RGID. Without this call every LNI has its own, unless the
    /// driver's administrator chose another default.
    pub fn lnis_per_rgid(mut self, count: LnisPerRgid) -> Self {
        self.lnis_per_rgid = Some(count);
        self
    }

    /// Checks it.
    ///
    /// # Errors
    ///
    /// What is wrong and what would be right.
    pub fn build(self) -> Result<ServiceSpec, InvalidSpec> {
        let vnis = match (self.vnis, self.range, self.unrestricted) {
            (Some(vnis), None, false) => VniAccess::List(VniList::new(vnis)?),
            (None, Some(range), false) => VniAccess::Range(range),
            (None, None, true) => VniAccess::Unrestricted,
            (None, None, false) => return Err(InvalidSpec::NoVnis),
            (Some(_), Some(range), _) => return Err(InvalidSpec::ListAndRange { range }),
            (_, _, true) => {
                return Err(InvalidSpec::Contradiction(
                    "VNIs are named and unrestricted: a service has one or the other",
                ));
            }
        };
        if self.exclusive_vnis && vnis == VniAccess::Unrestricted {
            return Err(InvalidSpec::Contradiction(
                "exclusive VNIs are asked for, but none are named",
            ));
        }
        if self.exclusive_cp && !matches!(vnis, VniAccess::Range(_)) {
            return Err(InvalidSpec::Contradiction(
                "exclusive CPs are asked for, which only a service with a VNI range has",
            ));
        }
        if let Some(classes) = self.traffic_classes {
            if classes.is_empty() {
                return Err(InvalidSpec::NoTrafficClass);
            }
            if !TrafficClasses::all().contains(classes) {
                let bits = classes.bits();
                return Err(InvalidSpec::TrafficClassBits { bits });
            }
        }
        for (resource, limit) in self.limits.iter().flat_map(Limits::iter) {
            Limit::new(limit.reserved(), limit.max())
                .map_err(|reason| InvalidSpec::Limit { resource, reason })?;
        }
        if self.counter_pool > 3 {
            return Err(InvalidSpec::CounterPool(self.counter_pool));
        }
        Ok(ServiceSpec {
            members: self.members.map(Members::new).transpose()?,
            vnis,
            traffic_classes: self.traffic_classes,
            limits: self.limits,
            enabled: self.enabled,
            system: self.system,
            counter_pool: self.counter_pool,
            exclusive_vnis: self.exclusive_vnis,
            exclusive_cp: self.exclusive_cp,
            lnis_per_rgid: self.lnis_per_rgid,
        })
    }
}
