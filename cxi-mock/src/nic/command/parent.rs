//! Parent services, from which the services of virtual functions get their VNIs and resources.
//!
//! The rules are inferred: from the tests and the template of libcxi, and from HPE's guide to
//! SR-IOV. The services below a parent, which a virtual function makes, are not modeled.

use cxi_ioctl::Errno;
use cxi_ioctl::abi::service::{MEMBER_IGNORE, SvcDesc, SvcFailInfo, SvcFlags};

use crate::nic::device::Device;
use crate::nic::parts::group::flags;

impl Device {
    /// SVC_ALLOC_PARENT. A parent has no members and reserves all that it may have.
    pub(super) fn svc_alloc_parent(
        &mut self,
        desc: &SvcDesc,
        info: &mut SvcFailInfo,
    ) -> Result<u32, Errno> {
        let flags = flags(desc);
        let is_for_members = flags.contains(SvcFlags::RESTRICTED_MEMBERS)
            && desc.members.iter().any(|member| member.kind != MEMBER_IGNORE);
        let leaves_room = flags.contains(SvcFlags::RESOURCE_LIMITS)
            && desc.limits.types.iter().any(|limit| limit.max != limit.res);
        if is_for_members || leaves_room {
            return Err(Errno::EINVAL);
        }
        let id = self.svc_alloc(desc, info)?;
        self.services.get_mut(id)?.is_parent = true;
        Ok(id)
    }

    /// EBUSY for the parent of a virtual function.
    pub(super) fn not_assigned(&self, id: u32) -> Result<(), Errno> {
        if self.parents.values().any(|parent| *parent == id) {
            return Err(Errno::EBUSY);
        }
        Ok(())
    }

    /// Assigns a parent service to a virtual function, or none with 0.
    pub(in crate::nic) fn assign_parent(&mut self, function: u32, id: u32) -> Result<(), Errno> {
        if id == 0 {
            self.parents.remove(&function);
            return Ok(());
        }
        let group = self.services.get(id)?;
        if !group.is_parent {
            return Err(Errno::EINVAL);
        }
        if !group.is_enabled() {
            return Err(Errno::EKEYREVOKED);
        }
        self.parents.insert(function, id);
        Ok(())
    }
}
