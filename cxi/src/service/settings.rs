//! The table of a service's settings, and the commands for those that are not in its descriptor, and
//! for its VNI range and network namespace.

use cxi_ioctl::abi::service::{
    SvcGetExclusiveCpCmd, SvcGetNetnsCmd, SvcGetVniRangeCmd, SvcGetVniRangeResp, SvcIsParentGetCmd,
    SvcSetExclusiveCpCmd, SvcSetLprCmd, SvcSetNetnsCmd, SvcSetVniRangeCmd,
};
use cxi_ioctl::{Command, Errno, Opcode, svc_get_lpr};

use super::{Service, ServiceSpec, Services};
use crate::driver::{Capabilities, Quirks};
use crate::error::{Error, ErrorKind, Result, VniConflict};
use crate::explain::Attempt;
use crate::{LnisPerRgid, Member, Members, ServiceId, VniAccess, VniRange};

/// Calls a macro with the rows of the table.
///
/// A row names the builder's method with what it takes and how a specification keeps that, and:
///
/// - `key`: its name in JSON, YAML and HPE's templates.
/// - `variant`, `name`, `title` and `help`: its [`ServiceSetting`], the name of an option, what it is
///   called where a service is shown, and what an option for it does.
/// - `told by`: the method of a specification, with its documentation.
/// - `needs`: what a driver must be able to do for any value but the default.
/// - `read`: from the `descriptor`, by a method of [`Service`](super::Service); by a `command`, by a
///   method of [`Services`]; or `nowhere`, if the driver does not store it.
/// - `write`: `never` after the service was made; `always`, or only while it is `disabled`, by two
///   methods of [`Services`]: for a service that nobody can have used yet, and for any other.
macro_rules! with_settings {
    ($then:ident) => {
        $then! {
            /// Marks the service as a system service. The driver only stores this.
            system: bool as bool {
                key "is_system_svc",
                variant System, name "system", title "System service",
                help "Mark it as a system service",
                told by is_system "Returns whether it is marked as the system's.",
                needs Capabilities::empty(),
                read descriptor is_system,
                write never,
            }
            /// Makes it a parent service, from which the services of a virtual function get their VNIs
            /// and resources. It reserves exactly what it may have, and has neither members nor
            /// exclusive communication profiles. HPE's newest headers have such services; no driver
            /// release that this version supports does, and making one fails with
            /// [`ErrorKind::Refused`](crate::ErrorKind::Refused).
            parent: bool as bool {
                key "is_parent",
                variant Parent, name "parent", title "Parent service",
                help "Make it a parent service, from which those of a virtual function get their \
VNIs and resources",
                told by is_parent
                    "Returns whether services of a virtual function get their VNIs and resources \
from it.",
                needs Capabilities::PARENT_SERVICES,
                read command is_parent,
                write never,
            }
            /// Sets a counter pool, 0 to 3. The driver only stores this.
            counter_pool: u8 as u8 {
                key "cntr_pool_id",
                variant CounterPool, name "counter-pool", title "Counter pool",
                help "Counter pool, 0 to 3, which the driver only stores",
                told by counter_pool "The counter pool that is stored for it, 0 to 3.",
                needs Capabilities::empty(),
                read descriptor counter_pool,
                write never,
            }
            /// Requests that no other service may get the VNIs, now or later.
            ///
            /// A block of two or more VNIs always has this property. Single VNIs have it from SHS 13.0
            /// to 14.0.0. Other drivers let any number of services list the same VNI; with those, or if
            /// the release cannot be determined, making the service fails with
            /// [`ErrorKind::NotGuaranteed`](crate::ErrorKind::NotGuaranteed). The driver does not store
            /// this request.
            exclusive_vnis: bool as bool {
                key "exclusive_vnis",
                variant ExclusiveVnis, name "exclusive-vnis", title "Exclusive VNIs",
                help "Refuse to create it if other services can get its VNIs",
                told by exclusive_vnis "Returns whether no other service may get its VNIs.",
                needs Capabilities::empty(),
                read nowhere,
                write never,
            }
            /// Gives every LNI its own communication profiles, which
            /// [`CommunicationProfile::modify`](crate::lni::CommunicationProfile::modify) needs. Only
            /// for services with a VNI range, from SHS 13.1 on.
            exclusive_cp: bool as bool {
                key "exclusive_cp",
                variant ExclusiveCp, name "exclusive-cp", title "Exclusive CPs",
                help "Give each LNI its own communication profiles (only with a VNI range)",
                told by exclusive_cp
                    "Returns whether every LNI has its own communication profiles.",
                needs Capabilities::EXCLUSIVE_CPS,
                read command exclusive_cp,
                write disabled write_exclusive_cp set_exclusive_cp,
            }
            /// Sets how many LNIs may share one RGID. The default is 1, unless the driver's
            /// administrator has configured another.
            lnis_per_rgid: LnisPerRgid as Option<LnisPerRgid> {
                key "lnis_per_rgid",
                variant LnisPerRgid, name "lnis-per-rgid", title "LNIs per RGID",
                help "LNIs that may share an RGID, 0 to 8",
                told by lnis_per_rgid
                    "Returns the number of LNIs that may share one RGID; `None` for the driver's \
default.",
                needs Capabilities::empty(),
                read command lnis_per_rgid,
                write always set_lnis_per_rgid set_lnis_per_rgid,
            }
        }
    };
}
pub(super) use with_settings;

impl Services {
    /// Returns the specification that would make a service like this one: [`get`](Self::get), plus
    /// what takes separate commands, namely its network namespace, RGID sharing, exclusive
    /// profiles, and whether it is a parent.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::NoSuchService`] (EINVAL).
    /// - [`ErrorKind::InvalidSpec`]: the service has a property that this library cannot request.
    pub fn spec(&self, id: ServiceId) -> Result<ServiceSpec> {
        let mut spec = ServiceSpec::try_from(&self.get(id)?)
            .map_err(|error| Error::invalid(error).on(self.device.id()))?;
        self.query_settings(id, &mut spec.settings)?;
        if spec.members.is_some_and(|members| members.is_empty()) {
            let netns = self.netns(id)?.map(Member::NetNs);
            spec.members = Some(Members::from_kernel(netns));
        }
        Ok(spec)
    }

    /// Sets how many LNIs of a service may share one RGID (SVC_SET_LPR).
    ///
    /// A driver with RGID sharing turned off (`enable_rgid_sharing`) reports success and changes
    /// nothing, even for a service that does not exist: read the number back where it matters.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::NoSuchService`] (EINVAL).
    /// - [`ErrorKind::Busy`] (EBUSY): the service has an LNI.
    /// - [`ErrorKind::Quirk`] for more than one up to SHS 13.0, nothing was sent: an LNI that
    ///   shares an RGID may get a wrong one there, and freeing it crashes the kernel.
    #[doc(alias = "cxil_set_svc_lpr")]
    pub fn set_lnis_per_rgid(&self, id: ServiceId, count: LnisPerRgid) -> Result<()> {
        if count.get() > 1 {
            self.device.guard(Quirks::SHARED_RGID, SvcSetLprCmd::OPCODE)?;
        }
        let command = SvcSetLprCmd::of(id.get(), count.get());
        self.device.attempt(Attempt::OnService(id), &command)
    }

    /// Returns how many LNIs of a service may share one RGID (SVC_GET_LPR).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSuchService`]: the driver hides its EINVAL in the value.
    #[doc(alias = "cxil_get_svc_lpr")]
    pub fn lnis_per_rgid(&self, id: ServiceId) -> Result<LnisPerRgid> {
        svc_get_lpr(self.device.transport(), id.get())
            .map(LnisPerRgid::from_kernel)
            .map_err(|error| self.device.explain(&Attempt::OnService(id), error))
    }

    /// Sets whether every LNI gets its own communication profiles (SVC_SET_EXCLUSIVE_CP), which
    /// [`CommunicationProfile::modify`](crate::lni::CommunicationProfile::modify) needs. Only for
    /// disabled services with a VNI range, from SHS 13.1 on. Prefer
    /// [`exclusive_cp`](crate::ServiceSpecBuilder::exclusive_cp), which sets this before any
    /// process can have a profile.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::Quirk`], and nothing is sent, where this would change anything: if a process
    ///   has a communication profile on the range, the kernel then uses freed memory, and there is no
    ///   way to see whether one has.
    /// - [`ErrorKind::NoSuchService`] (EINVAL).
    /// - EINVAL: the service lists its VNIs, or has no range.
    /// - [`ErrorKind::Busy`] (EBUSY): the service is enabled.
    /// - [`ErrorKind::Unsupported`].
    #[doc(alias = "cxil_svc_set_exclusive_cp")]
    pub fn set_exclusive_cp(&self, id: ServiceId, exclusive: bool) -> Result<()> {
        self.device.needs(Capabilities::EXCLUSIVE_CPS, SvcSetExclusiveCpCmd::OPCODE)?;
        if self.would_switch_profiles(id, exclusive)? {
            let quirk = Quirks::SWITCHED_EXCLUSIVE_CP;
            self.device.guard(quirk, SvcSetExclusiveCpCmd::OPCODE)?;
        }
        self.write_exclusive_cp(id, exclusive)
    }

    /// Returns whether the driver would execute the change, and the change would make a difference.
    fn would_switch_profiles(&self, id: ServiceId, exclusive: bool) -> Result<bool> {
        let service = match self.get(id) {
            Err(error) if matches!(error.kind(), ErrorKind::NoSuchService { .. }) => {
                return Ok(false);
            }
            service => service?,
        };
        let is_ready = matches!(service.vnis(), VniAccess::Range(_)) && !service.is_enabled();
        Ok(is_ready && self.exclusive_cp(id)? != exclusive)
    }

    /// Sets it for a service that no process can have used yet, or where the quirk is allowed.
    pub(super) fn write_exclusive_cp(&self, id: ServiceId, exclusive: bool) -> Result<()> {
        let command = SvcSetExclusiveCpCmd::of(id.get(), exclusive.into());
        self.device.attempt(Attempt::OnService(id), &command)
    }

    /// Returns whether every LNI gets its own communication profiles (SVC_GET_EXCLUSIVE_CP).
    /// False for services that cannot have them, and with drivers that do not support them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSuchService`] (EINVAL).
    #[doc(alias = "cxil_svc_get_exclusive_cp")]
    pub fn exclusive_cp(&self, id: ServiceId) -> Result<bool> {
        const OPCODE: Opcode = SvcGetExclusiveCpCmd::OPCODE;
        let proven = self.device.proven_capabilities()?;
        if !proven.contains(Capabilities::EXCLUSIVE_CPS) {
            self.exists(id, OPCODE)?;
            return Ok(false);
        }
        match self.device.execute(&SvcGetExclusiveCpCmd::of(id.get())) {
            Ok(found) => Ok(found.exclusive_cp != 0),
            // Without VNIs there cannot be a profile that would be exclusive.
            Err(error) if error.errno() == Errno::ENOENT => Ok(false),
            Err(error) => Err(self.device.explain(&Attempt::OnService(id), error)),
        }
    }

    /// Returns whether services of a virtual function may get their VNIs and resources from a
    /// service (SVC_IS_PARENT_GET). False with drivers that have no such services, which are all
    /// that have been released.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSuchService`] (EINVAL).
    pub fn is_parent(&self, id: ServiceId) -> Result<bool> {
        if !self.device.driver()?.can(Capabilities::PARENT_SERVICES) {
            self.exists(id, SvcIsParentGetCmd::OPCODE)?;
            return Ok(false);
        }
        let command = SvcIsParentGetCmd::of(id.get());
        Ok(self.device.attempt(Attempt::OnService(id), &command)?.is_parent != 0)
    }

    /// Gives a service its block of VNIs (SVC_SET_VNI_RANGE). Needs SHS 13.1 or later.
    ///
    /// The service must have been made with [unrestricted VNIs](crate::VniAccess::Unrestricted) and
    /// have no range yet; it has to be [enabled](Self::set_enabled) afterward.
    /// [`create`](Self::create) with a range takes care of all that.
    ///
    /// A driver that refuses a range leaves the service broken, and it must be destroyed. Whatever
    /// can be known to go wrong is therefore checked first.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::NoSuchService`] (EINVAL).
    /// - [`ErrorKind::InvalidInput`], nothing was sent: the service lists its VNIs, or already has
    ///   a range, of which the driver would lose track.
    /// - [`ErrorKind::VniTaken`] (EEXIST): another service has one of the VNIs.
    /// - [`ErrorKind::Unsupported`].
    #[doc(alias = "cxil_svc_set_vni_range")]
    pub fn set_vni_range(&self, id: ServiceId, range: VniRange) -> Result<()> {
        const OPCODE: Opcode = SvcSetVniRangeCmd::OPCODE;
        self.device.needs(Capabilities::VNI_RANGES, OPCODE)?;
        let service = self.exists(id, OPCODE)?;
        if service.restricted_vnis() {
            let text =
                format!("service {id} lists its VNIs ({}): it cannot have a range", service.vnis());
            return Err(self.device.invalid(OPCODE, text));
        }
        if let Some(present) = self.vni_range(id)? {
            let text =
                format!("service {id} already has VNI range {present}: it cannot have another");
            return Err(self.device.invalid(OPCODE, text));
        }
        // Every driver refuses blocks that overlap, unless both are single VNIs.
        let is_certain = |a: VniRange, b: VniRange| a.size() > 1 || b.size() > 1;
        let listed = self.list().unwrap_or_default();
        let others = listed.iter().filter(|other| other.id() != id);
        if let Some(conflict) = VniConflict::find(others, &[range], is_certain) {
            let kind = ErrorKind::VniTaken(conflict);
            return Err(self.device.error(kind, Errno::EEXIST, OPCODE));
        }
        self.write_vni_range(id, range)
    }

    pub(super) fn write_vni_range(&self, id: ServiceId, range: VniRange) -> Result<()> {
        let command = SvcSetVniRangeCmd::of(id.get(), range.first().into(), range.last().into());
        self.device.attempt(Attempt::SetVniRange(id, range), &command)
    }

    /// Returns the VNI block of a service (SVC_GET_VNI_RANGE); `None` if it lists its VNIs, has no
    /// range yet, or the driver does not support ranges.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::NoSuchService`] (EINVAL).
    /// - ENOENT: the service lost its range, because a driver refused one. Destroy it.
    #[doc(alias = "cxil_svc_get_vni_range")]
    pub fn vni_range(&self, id: ServiceId) -> Result<Option<VniRange>> {
        match self.device.execute(&SvcGetVniRangeCmd::of(id.get())) {
            Ok(found) => self.bounds(found).map(Some),
            // EOPNOTSUPP: a group that was not made as a service.
            Err(error) if matches!(error.errno(), Errno::EINVAL | Errno::EOPNOTSUPP) => {
                let service = self.exists(id, SvcGetVniRangeCmd::OPCODE)?;
                if service.counts_a_range() {
                    return Err(self.device.refused(error, |_| None));
                }
                Ok(None)
            }
            Err(error) => Err(self.device.explain(&Attempt::OnService(id), error)),
        }
    }

    /// Returns whether a driver refused the range of a service. Either another service was in the
    /// way, and destroying this one is harmless; or a domain of uid 0 was, and the driver keeps a
    /// profile that it has freed. The two cannot be told apart afterward, and to ask, as a list of
    /// services does, makes the driver read that profile.
    ///
    /// # Errors
    ///
    /// As [`Self::vni_range`], except ENOENT.
    pub fn has_lost_range(&self, id: ServiceId) -> Result<bool> {
        match self.vni_range(id) {
            Ok(_) => Ok(false),
            Err(error) if error.errno() == Errno::ENOENT => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn bounds(&self, found: SvcGetVniRangeResp) -> Result<VniRange> {
        VniRange::from_bounds(found.vni_min.into(), found.vni_max.into()).map_err(|error| {
            let text = format!("the driver answers with an invalid range: {error}");
            let kind = ErrorKind::Nonsense(text.into());
            self.device.error(kind, Errno::EPROTO, SvcGetVniRangeCmd::OPCODE)
        })
    }

    /// The range of a service that was read; also `None` if it was lost.
    pub(super) fn range_of(&self, service: &Service) -> Result<Option<VniRange>> {
        match self.device.execute(&SvcGetVniRangeCmd::of(service.id().get())) {
            Ok(found) => self.bounds(found).map(Some),
            Err(error) => match error.errno() {
                Errno::ENOENT => Ok(None),
                Errno::EINVAL | Errno::EOPNOTSUPP if !service.counts_a_range() => Ok(None),
                _ => Err(self.device.refused(error, |_| None)),
            },
        }
    }

    /// Admits the processes of a network namespace to a service (SVC_SET_NETNS). `inode` is the
    /// namespace's inode number. Needs SHS 14.0 or later.
    ///
    /// The service must be disabled and restricted to members, none of which is a uid or gid.
    /// [`create`](Self::create) with [`Member::NetNs`] takes care of everything. Namespaces
    /// accumulate: no command removes one. Inode numbers are reused after a namespace is gone.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::NoSuchService`] (EINVAL).
    /// - [`ErrorKind::Busy`] (EBUSY): the service is enabled.
    /// - EEXIST: it has a uid, a gid or this namespace already, or is open to everyone.
    /// - [`ErrorKind::Unsupported`].
    #[doc(alias = "cxil_svc_set_netns")]
    pub fn set_netns(&self, id: ServiceId, inode: u32) -> Result<()> {
        const OPCODE: Opcode = SvcSetNetnsCmd::OPCODE;
        if let Err(error) = Members::new([Member::NetNs(inode)]) {
            return Err(self.device.invalid(OPCODE, error.to_string()));
        }
        self.device.needs(Capabilities::NETNS, OPCODE)?;
        let command = SvcSetNetnsCmd::of(id.get(), inode);
        self.device.attempt(Attempt::OnService(id), &command)
    }

    /// The network namespace that may use a service, by inode number (SVC_GET_NETNS). If there are
    /// several, the lowest; `None` if there is none, or the driver does not support them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSuchService`] (EINVAL).
    #[doc(alias = "cxil_svc_get_netns")]
    pub fn netns(&self, id: ServiceId) -> Result<Option<u32>> {
        match self.device.execute(&SvcGetNetnsCmd::of(id.get())) {
            Ok(found) => Ok(Some(found.value)),
            Err(error) if error.errno() == Errno::EINVAL => {
                self.exists(id, SvcGetNetnsCmd::OPCODE)?;
                Ok(None)
            }
            Err(error) => Err(self.device.refused(error, |_| None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cxi_ioctl::{Request, Transport};

    use super::*;
    use crate::Device;

    /// A driver that refuses everything.
    #[derive(Debug)]
    struct Refusing(Errno);

    impl Transport for Refusing {
        fn submit(&self, _: Request<'_>) -> std::result::Result<(), Errno> {
            Err(self.0)
        }
    }

    #[test]
    fn a_range_is_lost_only_if_the_driver_says_so() {
        let lost = |errno| {
            let device = Device::cxi0(Arc::new(Refusing(errno)));
            let lost = device.services().has_lost_range(ServiceId::DEFAULT);
            lost.map_err(|error| error.errno())
        };
        assert_eq!(lost(Errno::ENOENT), Ok(true));
        assert_eq!(lost(Errno::EIO), Err(Errno::EIO));
    }
}
