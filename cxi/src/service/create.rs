//! Making a service.

use std::time::Duration;

use cxi_ioctl::abi::service::{SvcAllocCmd, SvcAllocParentCmd, SvcDesc};
use cxi_ioctl::{Errno, Opcode, execute};

use super::read::numbered;
use super::{ScopedService, ServiceSetting, ServiceSpec, Services, SettingChange};
use crate::driver::{Capabilities, Quirks};
use crate::error::{Error, ErrorKind, Result, VniConflict};
use crate::explain::Attempt;
use crate::{Backoff, DriverRelease, ServiceId, SystemClock, VniAccess, VniRange};

const OPCODE: Opcode = Opcode::SVC_ALLOC;

/// Longest time that undoing may take.
const UNDO: Duration = Duration::from_millis(100);

impl Services {
    /// Makes a service (SVC_ALLOC, for a [parent](super::ServiceSpecBuilder::parent)
    /// SVC_ALLOC_PARENT, and any further commands) and returns its id.
    ///
    /// A VNI list takes one command. A VNI range takes three (allocate, set the range, enable), a
    /// network namespace four, and RGID sharing and exclusive CPs one more each. If a later command
    /// fails, the service is destroyed again; if that fails too or would be dangerous,
    /// [`Error::leftover`] has its id.
    ///
    /// If the driver's answer cannot be read ([`ErrorKind::Protocol`] or EFAULT), the driver keeps
    /// the service, and its id is lost: look for it in the [list](Self::list), as `Node::allocate`
    /// of `cxi-job` does.
    ///
    /// The service is enabled unless the specification [says
    /// otherwise](super::ServiceSpecBuilder::enabled); even then it is enabled for the moment
    /// between two commands. One with [unrestricted VNIs](VniAccess::Unrestricted) stays disabled
    /// until it has a [VNI range](Self::set_vni_range).
    ///
    /// The same specification gives the same protection with every driver, or an error. One
    /// exception: on SHS 13.0 the VNIs of a disabled service can still be used through LNIs of
    /// other services.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::InvalidSpec`]: a limit is above what the NIC has. Nothing was sent.
    /// - [`ErrorKind::NotEnough`] (ENOSPC): something is exhausted; the error names it.
    /// - [`ErrorKind::VniTaken`] (EEXIST): another service has a VNI. Ranges may never overlap;
    ///   from SHS 13.0 to 14.0.0 neither may single VNIs.
    /// - [`ErrorKind::NotPermitted`] (EPERM).
    /// - [`ErrorKind::Unsupported`]: the driver is too old for a range, a namespace, a parent service,
    ///   or a service without VNIs or members.
    /// - [`ErrorKind::NotGuaranteed`]: [exclusive VNIs](super::ServiceSpecBuilder::exclusive_vnis)
    ///   are requested, but the driver lets other services list them.
    /// - [`ErrorKind::Quirk`]: unrestricted VNIs are requested up to SHS 13.0, where the service
    ///   would be enabled at once.
    #[doc(alias = "cxil_alloc_svc")]
    pub fn create(&self, spec: &ServiceSpec) -> Result<ServiceId> {
        let proven = self.check(spec)?;
        let desc = spec.to_kernel(proven);
        let id = self.allocate(&desc, spec.is_parent())?;
        self.complete(id, spec, proven).map_err(|error| self.undo(id, error))?;
        Ok(id)
    }

    /// Makes a service that is destroyed when its handle is dropped; see [`ScopedService`].
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create).
    pub fn create_scoped(&self, spec: &ServiceSpec) -> Result<ScopedService> {
        let id = self.create(spec)?;
        Ok(ScopedService::new(self.clone(), id))
    }

    /// Checks what can be known before sending; returns what the driver can certainly do.
    fn check(&self, spec: &ServiceSpec) -> Result<Capabilities> {
        spec.fits(&self.device.totals()?)
            .map_err(|error| self.device.error(error.into(), Errno::EINVAL, OPCODE))?;
        let proven = self.device.proven_capabilities()?;
        self.check_release(spec, proven)?;
        Ok(proven)
    }

    /// Refuses what this driver does not support, or not as requested.
    fn check_release(&self, spec: &ServiceSpec, proven: Capabilities) -> Result<()> {
        let device = &self.device;
        if spec.netns().is_some() {
            device.needs(Capabilities::NETNS, OPCODE)?;
        }
        match spec.vnis {
            VniAccess::Range(_) => device.needs(Capabilities::VNI_RANGES, OPCODE)?,
            VniAccess::Unrestricted => device.guard(Quirks::OPEN_VNIS, OPCODE)?,
            VniAccess::List(_) => {}
        }
        let opcode = if spec.is_parent() { Opcode::SVC_ALLOC_PARENT } else { OPCODE };
        for setting in spec.settings.given() {
            device.needs(setting.needs(), opcode)?;
        }
        if spec.lnis_per_rgid().is_some_and(|count| count.get() > 1) {
            device.guard(Quirks::SHARED_RGID, Opcode::SVC_SET_LPR)?;
        }
        if spec.exclusive_vnis() {
            self.check_exclusive(spec.vnis)?;
        }
        let lists_no_vni = matches!(spec.vnis, VniAccess::List(list) if list.is_empty());
        if lists_no_vni && !proven.contains(Capabilities::EMPTY_VNI_LIST) {
            device.needs(Capabilities::EMPTY_VNI_LIST, OPCODE)?;
        }
        let lacks_members = spec.members.is_some_and(|members| members.is_empty());
        if lacks_members && !proven.contains(Capabilities::UNUSED_MEMBER_SLOTS) {
            // SHS 13.0 would open it to everyone.
            let what = "a service without any member";
            return Err(device.unsupported(what, DriverRelease::Shs13_1, OPCODE));
        }
        if proven.contains(Capabilities::POOL_FLAGS) {
            return Ok(());
        }
        self.check_pools(spec)
    }

    /// SHS 12.0 keeps the LE pools of a service that it refuses for lack of TLEs, so the request
    /// must not be sent.
    fn check_pools(&self, spec: &ServiceSpec) -> Result<()> {
        if !self.device.threatens(Quirks::REFUSED_SERVICE_LEAK)? {
            return Ok(());
        }
        match self.short_of_tles(&spec.to_kernel(Capabilities::empty())) {
            Some(shortage) => {
                let kind = ErrorKind::NotEnough(shortage);
                Err(self.device.error(kind, Errno::ENOSPC, OPCODE))
            }
            None => Ok(()),
        }
    }

    /// Returns whether the driver keeps other services off the VNIs.
    fn check_exclusive(&self, vnis: VniAccess) -> Result<()> {
        let single = match vnis {
            VniAccess::List(list) => list.iter().map(VniRange::from).collect(),
            VniAccess::Range(range) if range.size() == 1 => vec![range],
            // Blocks never overlap anything.
            _ => Vec::new(),
        };
        let Some(first) = single.first() else { return Ok(()) };
        let driver = self.device.driver()?;
        if driver.can(Capabilities::EXCLUSIVE_VNIS) {
            return Ok(());
        }
        let refuse = |kind, errno| Err(self.device.error(kind, errno, OPCODE));
        let listed = self.list().unwrap_or_default();
        if let Some(conflict) = VniConflict::find(&listed, &single, |_, _| true) {
            return refuse(ErrorKind::VniTaken(conflict), Errno::EEXIST);
        }
        let has = driver.detected_release();
        let instead = if driver.can(Capabilities::VNI_RANGES) {
            "; a block of two VNIs or more would be exclusive"
        } else {
            ""
        };
        let what = format!("that no other service gets VNI {first}{instead}").into();
        refuse(ErrorKind::NotGuaranteed { what, has }, Errno::EOPNOTSUPP)
    }

    fn allocate(&self, desc: &SvcDesc, parent: bool) -> Result<ServiceId> {
        let mut svc_desc = *desc;
        if let Some(slot) = svc_desc
            .members
            .iter_mut()
            .find(|member| member.kind == cxi_ioctl::abi::service::MEMBER_NET_NS)
        {
            // The driver would not take the id from here, but would make an unwanted entry for a
            // namespace. SVC_SET_NETNS makes the real one.
            *slot = cxi_ioctl::abi::service::SvcMember { id: 0, kind: 0 };
        }
        let transport = self.device.transport();
        let made = if parent {
            execute(transport, &SvcAllocParentCmd::of(svc_desc))
        } else {
            execute(transport, &SvcAllocCmd::of(svc_desc))
        };
        match made {
            Ok(response) => {
                numbered(response.svc_id).map_err(|error| error.during(OPCODE).on(self.device.id()))
            }
            Err(error) => Err(self.device.explain(&Attempt::Create(svc_desc), error)),
        }
    }

    /// Completes a service after SVC_ALLOC.
    fn complete(&self, id: ServiceId, spec: &ServiceSpec, proven: Capabilities) -> Result<()> {
        if let VniAccess::Range(range) = spec.vnis {
            self.write_vni_range(id, range)?;
        }
        self.write_settings(id, &spec.settings, SettingChange::Always)?;
        let waits_for_range = proven.contains(Capabilities::UNRESTRICTED_WAITS);
        let mut is_enabled = match spec.vnis {
            VniAccess::List(_) => true,
            VniAccess::Range(_) => false,
            VniAccess::Unrestricted => !waits_for_range,
        };
        let while_disabled = |it: ServiceSetting| it.change() == Some(SettingChange::WhileDisabled);
        let needs_disabled = spec.netns().is_some() || spec.settings.given().any(while_disabled);
        if needs_disabled && is_enabled {
            self.set_enabled(id, false)?;
            is_enabled = false;
        }
        self.write_settings(id, &spec.settings, SettingChange::WhileDisabled)?;
        if let Some(netns) = spec.netns() {
            self.set_netns(id, netns)?;
            return self.store(id, spec);
        }
        let can_be_enabled = spec.vnis != VniAccess::Unrestricted || !waits_for_range;
        let enable = spec.enabled && can_be_enabled;
        if enable == is_enabled { Ok(()) } else { self.set_enabled(id, enable) }
    }

    fn undo(&self, id: ServiceId, error: Error) -> Error {
        if taken_outside_services(&error) && !self.device.allows_quirks(Quirks::REFUSED_RANGE) {
            let stays = self.device.quirk(Quirks::REFUSED_RANGE, Opcode::SVC_DESTROY);
            return error.leaving(id, stays);
        }
        match self.destroy_when_idle_with(id, UNDO, Backoff::default(), &SystemClock) {
            Ok(()) => error,
            Err(undo) => error.leaving(id, undo),
        }
    }
}

/// Returns whether a range was refused not because of another service, but because of a domain of
/// uid 0 on one of the VNIs. The driver then keeps a freed profile, and destroying the service
/// would use it.
fn taken_outside_services(error: &Error) -> bool {
    error.command() == Some(Opcode::SVC_SET_VNI_RANGE)
        && matches!(error.kind(), ErrorKind::VniTaken(VniConflict { holder: None, .. }))
}
