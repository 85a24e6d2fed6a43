//! Changing a service.

use cxi_ioctl::abi::service::{SVC_MAX_VNIS, SvcEnableCmd, SvcFlags, SvcUpdateCmd};
use cxi_ioctl::{Errno, Opcode};

use super::{Service, ServiceSpec, Services};
use crate::driver::{Capabilities, Quirks};
use crate::error::{ErrorKind, Result};
use crate::explain::Attempt;
use crate::{ServiceId, VniAccess};

impl Services {
    /// Replaces the specification of a service (SVC_UPDATE).
    ///
    /// Only [`enabled`](ServiceSpec::is_enabled) is certain to take effect. From SHS 13.0 on the
    /// driver stores other members, VNIs and traffic classes without applying them: lists show the
    /// new ones, but those from the service's creation remain in force. A specification that
    /// changes one of them is therefore refused here. Limits are not even stored. To change a
    /// service, destroy it and make another.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::NoSuchService`] (EINVAL).
    /// - [`ErrorKind::Busy`] (EBUSY): the service has an LNI.
    /// - [`ErrorKind::InvalidInput`], nothing was sent: only one of the service and the
    ///   specification has limits, which the driver refuses; or the number of VNIs differs, which a
    ///   driver from SHS 13.1 on accepts, only to be unable to enable the service or to release all
    ///   of its VNIs.
    /// - [`ErrorKind::NotGuaranteed`], nothing was sent: members, VNIs or traffic classes differ.
    /// - [`ErrorKind::NotEnough`] (ENOSPC): the NIC's table of VNIs is full. The service is then
    ///   disabled.
    #[doc(alias = "cxil_update_svc")]
    pub fn update(&self, id: ServiceId, spec: &ServiceSpec) -> Result<()> {
        let service = self.get(id)?;
        self.guard_vni_count(&service, Opcode::SVC_UPDATE)?;
        let refuse = |text: String| Err(self.device.invalid(Opcode::SVC_UPDATE, text));
        if spec.is_parent() && !self.is_parent(id)? {
            return refuse(format!("service {id} is not a parent service: that cannot be changed"));
        }
        if service.is_limited() != spec.limits.is_some() {
            let (has, wants) = if service.is_limited() {
                ("has limits", "has none")
            } else {
                ("has no limits", "has some")
            };
            return refuse(format!(
                "service {id} {has} and the specification {wants}: that cannot be changed"
            ));
        }
        let proven = self.device.proven_capabilities()?;
        // Drivers that know ranges keep a profile for each VNI, and only as many as there were.
        if proven.contains(Capabilities::VNI_RANGES) && shape(service.vnis()) != shape(spec.vnis) {
            return refuse(format!(
                "service {id} has VNIs {} and the specification {}: their number and kind cannot \
                 be changed",
                service.vnis(),
                spec.vnis
            ));
        }
        if let Some(what) = merely_noted(&service, spec) {
            let kind = ErrorKind::NotGuaranteed {
                what: format!(
                    "other {what} for service {id}, which drivers from shs-13.0 on store but do \
                     not apply: destroy it and create another"
                )
                .into(),
                has: self.device.driver()?.detected_release(),
            };
            let device = &self.device;
            return Err(device.error(kind, Errno::EINVAL, Opcode::SVC_UPDATE));
        }
        self.store(id, spec)
    }

    /// SVC_UPDATE without checking the service first.
    pub(super) fn store(&self, id: ServiceId, spec: &ServiceSpec) -> Result<()> {
        let mut desc = spec.to_kernel(self.device.proven_capabilities()?);
        if matches!(spec.vnis, VniAccess::Range(_)) {
            // To the driver a range is one VNI, and it compares the counts.
            desc.num_vld_vnis = 1;
        }
        self.send_update(id, desc)
    }

    /// Enables or disables a service: SVC_ENABLE, or SVC_UPDATE with drivers older than SHS 13.1.
    /// On SHS 13.0 the VNIs of a disabled service can still be used through LNIs of other services.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::NoSuchService`] (EINVAL).
    /// - [`ErrorKind::Busy`] (EBUSY): the service has an LNI, even if nothing would change.
    /// - [`ErrorKind::NotEnough`] (ENOSPC): the NIC's table of VNIs is full. The service is then
    ///   disabled.
    #[doc(alias = "cxil_svc_enable")]
    pub fn set_enabled(&self, id: ServiceId, enabled: bool) -> Result<()> {
        let proven = self.device.proven_capabilities()?;
        if !proven.contains(Capabilities::SERVICE_ENABLE) {
            let mut desc = *self.read(id)?.descriptor();
            desc.flags &= !SvcFlags::ENABLE.bits();
            if enabled {
                desc.flags |= SvcFlags::ENABLE.bits();
            }
            return self.send_update(id, desc);
        }
        self.device.needs(Capabilities::SERVICE_ENABLE, Opcode::SVC_ENABLE)?;
        self.check_vni_count(id, Opcode::SVC_ENABLE)?;
        let command = SvcEnableCmd::of(id.get(), enabled.into());
        self.device.attempt(Attempt::OnService(id), &command)
    }

    /// Refuses to touch a service that claims more VNIs than a service can have: the driver would
    /// read past the end of its arrays. Only programs that write their own descriptors make such
    /// services.
    pub(super) fn check_vni_count(&self, id: ServiceId, opcode: Opcode) -> Result<()> {
        if self.device.is_known_safe(Quirks::VNI_COUNT) {
            return Ok(());
        }
        match self.read(id) {
            Ok(service) => self.guard_vni_count(&service, opcode),
            // If it cannot be read, refusing it is up to the driver.
            Err(_) => Ok(()),
        }
    }

    fn guard_vni_count(&self, service: &Service, opcode: Opcode) -> Result<()> {
        if usize::from(service.descriptor().num_vld_vnis) > SVC_MAX_VNIS {
            return self.device.guard(Quirks::VNI_COUNT, opcode);
        }
        Ok(())
    }

    fn send_update(&self, id: ServiceId, mut desc: cxi_ioctl::abi::service::SvcDesc) -> Result<()> {
        desc.svc_id = id.get();
        let command = SvcUpdateCmd::of(desc);
        self.device.attempt(Attempt::OnService(id), &command).map(drop)
    }

    /// Reads a service before a command for which EINVAL has several reasons.
    pub(super) fn exists(&self, id: ServiceId, opcode: Opcode) -> Result<Service> {
        self.read(id).map_err(|error| match error.kind() {
            ErrorKind::NoSuchService { .. } => error.during(opcode),
            _ => error,
        })
    }
}

/// Returns the part of a specification that differs from the service and would not take effect.
fn merely_noted(service: &Service, spec: &ServiceSpec) -> Option<&'static str> {
    if service.members().as_ref() != spec.members() {
        Some("members")
    } else if service.vnis() != spec.vnis() {
        Some("VNIs")
    } else if service.traffic_classes() != spec.traffic_classes() {
        Some("traffic classes")
    } else {
        None
    }
}

/// The part of the VNIs that the driver counts.
fn shape(vnis: VniAccess) -> (bool, usize) {
    match vnis {
        VniAccess::List(list) => (true, list.len()),
        VniAccess::Range(_) => (false, 1),
        VniAccess::Unrestricted => (false, 0),
    }
}
