//! Changing a service.

use cxi_ioctl::abi::service::{SVC_MAX_VNIS, SvcEnableCmd, SvcFlags, SvcUpdateCmd};
use cxi_ioctl::{Errno, Opcode};

use super::presence::Presence;
use super::{Service, ServiceSpec, Services};
use crate::driver::{Capabilities, Quirks};
use crate::error::{Error, ErrorKind, Result, Shortage};
use crate::{ServiceId, VniAccess};

impl Services {
    /// Writes the specification over that of a service (SVC_UPDATE).
    ///
    /// Only [`enabled`](ServiceSpec::is_enabled) is certain to be applied. From SHS 13.0 on the
    /// driver takes other members, VNIs and traffic classes and merely notes them: lists show
    /// them, and in force stays what the service was made with. So a specification that changes
    /// one of them is refused here. Limits are not even noted. To change a service, destroy it
    /// and make another.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::NoSuchService`] (EINVAL).
    /// - [`ErrorKind::Busy`] (EBUSY): the service has an LNI.
    /// - [`ErrorKind::InvalidInput`], nothing was sent: the service has limits and the
    ///   specification has none, or the other way round, which the driver refuses; or the number
    ///   of VNIs changes, which a driver from SHS 13.1 on accepts and then can neither enable the
    ///   service nor give all of its VNIs back.
    /// - [`ErrorKind::NotGuaranteed`], nothing was sent: members, VNIs or traffic classes change.
    /// - [`ErrorKind::NotEnough`] (ENOSPC): the NIC's table of VNIs is full. The service is
    ///   disabled then.
    #[doc(alias = "cxil_update_svc")]
    pub fn update(&self, id: ServiceId, spec: &ServiceSpec) -> Result<()> {
        let service = self.get(id)?;
        self.guard_vni_count(&service, Opcode::SVC_UPDATE)?;
        let refuse = |text: String| {
            Err(Error::invalid(ErrorKind::InvalidInput(text.into()))
                .during(Opcode::SVC_UPDATE)
                .on(self.device.id()))
        };
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
        if !self.device.before_13_1()? && shape(service.vnis()) != shape(spec.vnis) {
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
                    "other {what} for service {id}, which drivers from shs-13.0 on note and do not \
                     apply: destroy it and make another"
                )
                .into(),
                has: self.device.driver()?.detected_release(),
            };
            return Err(Error::invalid(kind)
                .during(Opcode::SVC_UPDATE)
                .on(self.device.id()));
        }
        self.store(id, spec)
    }

    /// SVC_UPDATE without a look at what is there.
    pub(super) fn store(&self, id: ServiceId, spec: &ServiceSpec) -> Result<()> {
        let mut desc = spec.to_kernel(self.device.before_13_1()?);
        if matches!(spec.vnis, VniAccess::Range(_)) {
            // The driver counts a range as one VNI, and looks at the count.
            desc.num_vld_vnis = 1;
        }
        self.send_update(id, desc)
    }

    /// Enables or disables a service: SVC_ENABLE, or SVC_UPDATE where the driver is older than
    /// SHS 13.1. On SHS 13.0 the VNIs of a disabled service can still be used through LNIs of
    /// other services.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::NoSuchService`] (EINVAL).
    /// - [`ErrorKind::Busy`] (EBUSY): the service has an LNI, even if nothing would change.
    /// - [`ErrorKind::NotEnough`] (ENOSPC): the NIC's table of VNIs is full. The service is
    ///   disabled then.
    #[doc(alias = "cxil_svc_enable")]
    pub fn set_enabled(&self, id: ServiceId, enabled: bool) -> Result<()> {
        if self.device.before_13_1()? {
            let mut desc = *self.read(id)?.descriptor();
            desc.flags &= !SvcFlags::ENABLE.bits();
            if enabled {
                desc.flags |= SvcFlags::ENABLE.bits();
            }
            return self.send_update(id, desc);
        }
        self.device
            .needs(Capabilities::SERVICE_ENABLE, Opcode::SVC_ENABLE)?;
        self.check_vni_count(id, Opcode::SVC_ENABLE)?;
        let command = SvcEnableCmd {
            svc_id: id.get(),
            enable: enabled.into(),
            ..SvcEnableCmd::new()
        };
        self.device
            .call(&command, |errno| self.why_not_changed(id, errno))
    }

    /// Refuses to touch a service that is said to have more VNIs than a service can have: the
    /// driver would read behind its arrays. Only programs that write descriptors of their own
    /// make such services.
    pub(super) fn check_vni_count(&self, id: ServiceId, opcode: Opcode) -> Result<()> {
        if self.device.is_known_safe(Quirks::VNI_COUNT) {
            return Ok(());
        }
        match self.read(id) {
            Ok(service) => self.guard_vni_count(&service, opcode),
            // One that cannot be read is the driver's to refuse.
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
        let command = SvcUpdateCmd {
            svc_desc: desc,
            ..SvcUpdateCmd::new()
        };
        self.device
            .call(&command, |errno| self.why_not_changed(id, errno))
            .map(drop)
    }

    fn why_not_changed(&self, id: ServiceId, errno: Errno) -> Option<ErrorKind> {
        match errno {
            Errno::EBUSY => Some(busy(id)),
            Errno::ENOSPC => Some(ErrorKind::NotEnough(Shortage::VniTable {
                used: self.vni_slots().unwrap_or_default(),
            })),
            Errno::EINVAL => match self.presence(id) {
                Presence::Gone => Some(ErrorKind::NoSuchService { service: id }),
                Presence::There => Some(ErrorKind::Refused(
                    "the VNIs that the service is said to have are not there (EINVAL): setting \
                     its range, or an update, went wrong; destroy it and make another"
                        .into(),
                )),
                Presence::Unknown => None,
            },
            Errno::EPERM => self.on_virtual_function(),
            _ => None,
        }
    }

    /// Reads a service before a command whose EINVAL has several reasons.
    pub(super) fn exists(&self, id: ServiceId, opcode: Opcode) -> Result<Service> {
        self.read(id).map_err(|error| match error.kind() {
            ErrorKind::NoSuchService { .. } => error.during(opcode),
            _ => error,
        })
    }
}

/// What of a specification differs from the service and would not be put into force.
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

/// What of the VNIs the driver counts.
fn shape(vnis: VniAccess) -> (bool, usize) {
    match vnis {
        VniAccess::List(list) => (true, list.len()),
        VniAccess::Range(_) => (false, 1),
        VniAccess::Unrestricted => (false, 0),
    }
}

pub(super) fn busy(service: ServiceId) -> ErrorKind {
    ErrorKind::Busy {
        what: format!("service {service}").into(),
        waited: None,
    }
}
