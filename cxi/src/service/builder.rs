//! Building a specification.

use super::table::Settings;
use super::{Contradiction, InvalidSpec, ServiceSpec};
use crate::{Limit, Limits, Member, Members, TrafficClasses, Vni, VniAccess, VniList, VniRange};

/// Builds a [`ServiceSpec`].
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ServiceSpecBuilder {
    members: Option<Vec<Member>>,
    vnis: Option<Vec<Vni>>,
    vni_range: Option<VniRange>,
    unrestricted: bool,
    traffic_classes: Option<TrafficClasses>,
    limits: Option<Limits>,
    enabled: Option<bool>,
    pub(super) settings: Settings,
}

impl ServiceSpecBuilder {
    /// Admits a user, group or network namespace; at most two, and a network namespace only on its
    /// own. Without any member, everyone on the node may use the service.
    pub fn member(mut self, member: Member) -> Self {
        self.members.get_or_insert_default().push(member);
        self
    }

    /// Admits exactly these members, or no process if there are none.
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

    setters! {
        /// Sets whether the service is enabled after it is made. The default is true.
        enabled: bool;
        /// Gives access to a block of VNIs. Needs SHS 13.1 or later.
        vni_range: VniRange;
        /// Allows only these traffic classes. The default is to allow all.
        traffic_classes: TrafficClasses;
        /// Sets the limit of every resource: start from [`Limits::none`] or [`Limits::all_of`] a NIC.
        ///
        /// Without limits a service may have everything that the NIC has. It reserves nothing but 8
        /// TLEs, for which it takes a TLE pool. TLEs come in pools of at least 8, and a NIC has three
        /// for services other than the default one; limits without TLEs need no pool. Reserving LEs
        /// takes one of 15 LE pools.
        limits: Limits;
    }

    /// Names no VNIs at all; [`VniAccess::Unrestricted`] describes what that means in each release.
    pub fn unrestricted_vnis(mut self) -> Self {
        self.unrestricted = true;
        self
    }

    /// Sets the VNIs, in any of the three forms.
    pub fn vni_access(self, vnis: VniAccess) -> Self {
        match vnis {
            VniAccess::List(list) => self.vnis(list.iter()),
            VniAccess::Range(range) => self.vni_range(range),
            VniAccess::Unrestricted => self.unrestricted_vnis(),
        }
    }

    /// Checks the specification and returns it.
    ///
    /// # Errors
    ///
    /// [`InvalidSpec`] says what is wrong and what would be right.
    pub fn build(self) -> Result<ServiceSpec, InvalidSpec> {
        let vnis = match (self.vnis, self.vni_range, self.unrestricted) {
            (Some(vnis), None, false) => VniAccess::List(VniList::new(vnis)?),
            (None, Some(range), false) => VniAccess::Range(range),
            (None, None, true) => VniAccess::Unrestricted,
            (None, None, false) => return Err(InvalidSpec::NoVnis),
            (Some(_), Some(range), _) => return Err(InvalidSpec::ListAndRange { range }),
            (_, _, true) => {
                return Err(Contradiction::NamedAndUnrestricted.into());
            }
        };
        if self.settings.exclusive_vnis && vnis == VniAccess::Unrestricted {
            return Err(Contradiction::NoExclusiveVnis.into());
        }
        if self.settings.exclusive_cp && !matches!(vnis, VniAccess::Range(_)) {
            return Err(Contradiction::ExclusiveCpsWithoutRange.into());
        }
        // One that admits nobody is what a parent is in any case.
        if self.settings.parent && self.members.as_ref().is_some_and(|members| !members.is_empty())
        {
            return Err(Contradiction::MembersOfParent.into());
        }
        if self.settings.parent && self.settings.exclusive_cp {
            return Err(Contradiction::ExclusiveCpsOfParent.into());
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
            let (reserved, max) = (limit.reserved(), limit.max());
            if self.settings.parent && reserved != max {
                return Err(InvalidSpec::ParentLimit { resource, reserved, max });
            }
        }
        if self.settings.counter_pool > 3 {
            return Err(InvalidSpec::CounterPool(self.settings.counter_pool));
        }
        Ok(ServiceSpec {
            members: self.members.map(Members::new).transpose()?,
            vnis,
            traffic_classes: self.traffic_classes,
            limits: self.limits,
            enabled: self.enabled.unwrap_or(true),
            settings: self.settings,
        })
    }
}
