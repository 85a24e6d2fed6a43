//! What a specification requires of the driver.

use cxi_ioctl::{Errno, Opcode};

use super::{ServiceSpec, Services, conflict};
use crate::driver::{Capabilities, Quirks};
use crate::error::{Error, ErrorKind, Result};
use crate::{DriverRelease, VniAccess, VniRange};

const OPCODE: Opcode = Opcode::SVC_ALLOC;

impl Services {
    /// Refuses what this driver does not support, or not as requested.
    pub(super) fn check_release(&self, spec: &ServiceSpec, proven: Capabilities) -> Result<()> {
        let device = &self.device;
        if spec.netns().is_some() {
            device.needs(Capabilities::NETNS, OPCODE)?;
        }
        match spec.vnis {
            VniAccess::Range(_) => device.needs(Capabilities::VNI_RANGES, OPCODE)?,
            VniAccess::Unrestricted => device.guard(Quirks::OPEN_VNIS, OPCODE)?,
            VniAccess::List(_) => {}
        }
        if spec.lnis_per_rgid.is_some_and(|count| count.get() > 1) {
            device.guard(Quirks::SHARED_RGID, Opcode::SVC_SET_LPR)?;
        }
        if spec.exclusive_vnis {
            self.check_exclusive(spec.vnis)?;
        }
        let lists_no_vni = matches!(spec.vnis, VniAccess::List(list) if list.is_empty());
        if lists_no_vni && !proven.contains(Capabilities::EMPTY_VNI_LIST) {
            device.needs(Capabilities::EMPTY_VNI_LIST, OPCODE)?;
        }
        let lacks_members = spec.members.is_some_and(|members| members.is_empty());
        if lacks_members && !proven.contains(Capabilities::UNUSED_MEMBER_SLOTS) {
            // SHS 13.0 would open it to everybody.
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
            Some(shortage) => Err(Error::new(ErrorKind::NotEnough(shortage), Errno::ENOSPC)
                .during(OPCODE)
                .on(self.device.id())),
            None => Ok(()),
        }
    }

    /// Whether the driver keeps other services off the VNIs.
    fn check_exclusive(&self, vnis: VniAccess) -> Result<()> {
        let single = match vnis {
            VniAccess::List(list) => list.iter().map(VniRange::from).collect(),
            VniAccess::Range(range) if range.size() == 1 => vec![range],
            // Blocks never overlap anything.
            _ => Vec::new(),
        };
        let Some(first) = single.first() else {
            return Ok(());
        };
        let driver = self.device.driver()?;
        if driver.can(Capabilities::EXCLUSIVE_VNIS) {
            return Ok(());
        }
        let refuse = |kind, errno| Err(Error::new(kind, errno).during(OPCODE).on(self.device.id()));
        if let Some(conflict) =
            conflict::find(&self.list().unwrap_or_default(), &single, |_, _| true)
        {
            return refuse(ErrorKind::VniTaken(conflict), Errno::EEXIST);
        }
        let has = driver.detected_release();
        let instead = if driver.can(Capabilities::VNI_RANGES) {
            "; a block of two VNIs or more would be exclusive"
        } else {
            ""
        };
        let what = format!("that no other service gets VNI {first}{instead}");
        let what = what.into();
        refuse(ErrorKind::NotGuaranteed { what, has }, Errno::EOPNOTSUPP)
    }
}
