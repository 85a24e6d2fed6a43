//! Parent services, from which the services of virtual functions get their VNIs and resources.
//!
//! The rules are inferred: from the tests and the template of libcxi, and from HPE's guide to
//! SR-IOV. A service below a parent, which a virtual function makes, has no profiles: those of its
//! parent are for its VNIs. Its resources are taken from the NIC's, not from the parent's.

use std::mem::offset_of;

use cxi_ioctl::abi::service::{
    MEMBER_IGNORE, SvcDesc, SvcDestroyCmd, SvcEnableCmd, SvcFailInfo, SvcFlags,
};
use cxi_ioctl::{Errno, Opcode};

use crate::nic::device::Device;
use crate::nic::parts::descriptor;
use crate::nic::parts::group::{Group, ProfilePair, flags};

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

    /// Returns whether a virtual function may send a command that is an administrator's: to make a
    /// service below its parent, and to switch or destroy one that it made.
    pub(super) fn is_for_child(&self, function: u32, opcode: Opcode, command: &[u8]) -> bool {
        let id = match opcode {
            Opcode::SVC_ALLOC => return self.parents.contains_key(&function),
            Opcode::SVC_DESTROY => command.get(offset_of!(SvcDestroyCmd, svc_id)..),
            Opcode::SVC_ENABLE => command.get(offset_of!(SvcEnableCmd, svc_id)..),
            _ => None,
        };
        let id = id.and_then(<[u8]>::first_chunk).map(|id| u32::from_ne_bytes(*id));
        let group = id.and_then(|id| self.services.get(id).ok());
        group.is_some_and(|group| group.function == Some(function))
    }

    /// SVC_ALLOC of a virtual function. EINVAL for a VNI that is not its parent's.
    pub(super) fn svc_alloc_child(
        &mut self,
        function: u32,
        desc: &SvcDesc,
        info: &mut SvcFailInfo,
    ) -> Result<u32, Errno> {
        descriptor::check(desc, &self.services.totals(), &self.rules)?;
        let parent = self.parents.get(&function).ok_or(Errno::EPERM)?;
        let parent = self.services.get(*parent)?;
        let vnis = desc.vnis.iter().take(desc.num_vld_vnis.into());
        let is_restricted = flags(desc).contains(SvcFlags::RESTRICTED_VNIS);
        if is_restricted && !vnis.clone().all(|vni| self.has_vni(parent, *vni)) {
            return Err(Errno::EINVAL);
        }
        let id = self.services.next_id()?;
        let access = descriptor::access(desc, &self.rules)?;
        let mut group = self.new_group_of(id, desc, info, access, <[ProfilePair; _]>::default())?;
        group.function = Some(function);
        self.services.add(group);
        Ok(id)
    }

    /// Returns whether a VNI is of a service's list or range.
    fn has_vni(&self, group: &Group, vni: u16) -> bool {
        group.counted().any(|(_, pair)| {
            let tx = pair.tx.id().and_then(|id| self.vnis.tx().get(id));
            tx.is_some_and(|tx| (tx.vni..=tx.last()).contains(&vni))
        })
    }

    /// The services that a virtual function has made.
    fn children(&self, function: u32) -> impl Iterator<Item = u32> {
        let of_function = move |group: &Group| group.function == Some(function);
        self.services.iter().filter(move |(_, group)| of_function(group)).map(|(id, _)| id)
    }

    /// EBUSY for a parent with services below it.
    pub(super) fn no_children(&self, id: u32) -> Result<(), Errno> {
        let functions = self.parents.iter().filter(|(_, parent)| **parent == id);
        if functions.flat_map(|(function, _)| self.children(*function)).next().is_some() {
            return Err(Errno::EBUSY);
        }
        Ok(())
    }

    /// Destroys what virtual functions have made that are gone, except for what is still in use.
    pub(in crate::nic) fn destroy_children(&mut self) {
        let ids: Vec<u32> = self.parents.keys().flat_map(|it| self.children(*it)).collect();
        for id in ids {
            let _ = self.svc_destroy(id);
        }
    }

    /// EBUSY for the parent of a virtual function.
    pub(super) fn not_assigned(&self, id: u32) -> Result<(), Errno> {
        if self.parents.values().any(|parent| *parent == id) {
            return Err(Errno::EBUSY);
        }
        Ok(())
    }

    /// Assigns a parent service to a virtual function, or none with 0; EBUSY while the function has
    /// services.
    pub(in crate::nic) fn assign_parent(&mut self, function: u32, id: u32) -> Result<(), Errno> {
        if self.children(function).next().is_some() {
            return Err(Errno::EBUSY);
        }
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
