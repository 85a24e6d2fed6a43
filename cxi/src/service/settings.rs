//! RGID sharing, exclusive communication profiles, and the complete specification of a service.

use cxi_ioctl::abi::service::{SvcGetExclusiveCpCmd, SvcSetExclusiveCpCmd, SvcSetLprCmd};
use cxi_ioctl::{Command, Errno, Opcode, svc_get_lpr};

use super::{ServiceSpec, Services};
use crate::driver::{Capabilities, Quirks};
use crate::error::{Error, ErrorKind, Result};
use crate::explain::Attempt;
use crate::{LnisPerRgid, Member, Members, ServiceId, VniAccess};

impl Services {
    /// Returns the specification that would make a service like this one: [`get`](Self::get), plus
    /// what takes separate commands, namely its network namespace, RGID sharing, and exclusive
    /// profiles.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::NoSuchService`] (EINVAL).
    /// - [`ErrorKind::InvalidSpec`]: the service has a property that this library cannot request.
    pub fn spec(&self, id: ServiceId) -> Result<ServiceSpec> {
        let mut spec = ServiceSpec::try_from(&self.get(id)?)
            .map_err(|error| Error::invalid(error).on(self.device.id()))?;
        spec.lnis_per_rgid = Some(self.lnis_per_rgid(id)?);
        spec.exclusive_cp = self.exclusive_cp(id)?;
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
            self.device
                .guard(Quirks::SHARED_RGID, SvcSetLprCmd::OPCODE)?;
        }
        let command = SvcSetLprCmd {
            svc_id: id.get(),
            lnis_per_rgid: count.get(),
            ..SvcSetLprCmd::new()
        };
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

    /// Sets whether every LNI gets communication profiles of its own (SVC_SET_EXCLUSIVE_CP), which
    /// [`CommunicationProfile::modify`](crate::lni::CommunicationProfile::modify) needs. For services with a VNI range, while they
    /// are disabled. From SHS 13.1 on. Say it with
    /// [`exclusive_cp`](crate::ServiceSpecBuilder::exclusive_cp) instead, which comes before anybody can
    /// have a profile.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::Quirk`], and nothing is sent, where this would change anything: if anybody has a
    ///   communication profile on the range, the kernel uses freed memory then, and nobody can see
    ///   whether anybody has.
    /// - [`ErrorKind::NoSuchService`] (EINVAL).
    /// - EINVAL: the service lists its VNIs, or has no range.
    /// - [`ErrorKind::Busy`] (EBUSY): the service is enabled.
    /// - [`ErrorKind::Unsupported`].
    #[doc(alias = "cxil_svc_set_exclusive_cp")]
    pub fn set_exclusive_cp(&self, id: ServiceId, exclusive: bool) -> Result<()> {
        self.device
            .needs(Capabilities::EXCLUSIVE_CPS, SvcSetExclusiveCpCmd::OPCODE)?;
        if self.would_switch_profiles(id, exclusive)? {
            let quirk = Quirks::SWITCHED_EXCLUSIVE_CP;
            self.device.guard(quirk, SvcSetExclusiveCpCmd::OPCODE)?;
        }
        self.write_exclusive_cp(id, exclusive)
    }

    /// Whether the driver would do it, and something would be different then.
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

    /// Sets it for a service that nobody can have used yet, or with leave.
    pub(super) fn write_exclusive_cp(&self, id: ServiceId, exclusive: bool) -> Result<()> {
        let command = SvcSetExclusiveCpCmd {
            svc_id: id.get(),
            exclusive_cp: exclusive.into(),
            ..SvcSetExclusiveCpCmd::new()
        };
        self.device.attempt(Attempt::OnService(id), &command)
    }

    /// Returns whether every LNI gets communication profiles of its own (SVC_GET_EXCLUSIVE_CP).
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
}
