//! The commands for memory descriptors, and the address contexts that those need.

use std::sync::Arc;

use cxi_engine::Region;
use cxi_ioctl::Errno;
use cxi_ioctl::abi::memory::{AtuMapCmd, AtuMapResp, AtuUpdateMdCmd, MapFlags, Md};
use zerocopy::FromZeros;

use super::{Call, Caller};
use crate::Backing;
use crate::caller_memory::USER_SPACE;
use crate::data_path::{page_bytes, small};
use crate::nic::device::Device;
use crate::nic::parts::accounting::Slot;
use crate::nic::parts::lnis::{AddressContext, Lni};
use crate::nic::parts::mapping::{Descriptor, Mapping, is_huge};

pub(super) fn atu_map(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let md = device.atu_map(&call.caller, &call.command()?, call.memory.backing)?;
    let mut response = AtuMapResp::new_zeroed();
    (response.id, response.md) = (md.id, md);
    call.made(md.id, &response)
}

pub(super) fn atu_update_md(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    device.atu_update_md(call.caller.file, &call.command()?)
}

#[expect(clippy::unnecessary_wraps, reason = "as every handler does")]
pub(super) fn inbound_wait(_: &mut Device, _: &mut Call<'_>) -> Result<(), Errno> {
    // INBOUND_WAIT waits for traffic on its way in, and the mock has none.
    Ok(())
}

impl Device {
    /// ATU_MAP of memory that may have to be pinned.
    fn atu_map(
        &mut self,
        caller: &Caller<'_>,
        command: &AtuMapCmd,
        backing: Backing,
    ) -> Result<Md, Errno> {
        let AtuMapCmd { lni, va, len, .. } = *command;
        let rgid = self.lni_of(caller.file, lni)?.rgid;
        let end = self.check_range(va, len)?;
        let mapping = Mapping::of(command, caller.credentials, &self.rules)?;
        let pinned = mapping.flags.contains(MapFlags::PIN);
        let is_virtual = self.files.is_virtual(caller.file);
        let alloc_only = is_virtual && mapping.flags.contains(MapFlags::ALLOC_MD);
        // A virtual function has no page faults.
        if is_virtual && !pinned && !alloc_only {
            return Err(Errno::EOPNOTSUPP);
        }
        if va >= USER_SPACE {
            return Err(Errno::EFAULT);
        }
        // The driver pins after it has charged for the address context, which stays with the LNI
        // even if pinning fails. A lack of credit therefore takes precedence over bad memory.
        let lac = self.address_context(lni, &mapping)?;
        let writes = mapping.flags.contains(MapFlags::WRITE);
        match backing {
            Backing::Missing if pinned => return Err(Errno::EFAULT),
            Backing::ReadOnly if pinned && writes => return Err(Errno::EINVAL),
            _ => {}
        }
        let page = mapping.page.max(page_bytes());
        let start = va - va % page;
        let mut md = Md::new_zeroed();
        md.iova = start;
        md.va = if alloc_only { 0 } else { start };
        md.len = end.checked_next_multiple_of(page).map_or(len, |end| end - start);
        md.lac = lac;
        md.page_shift = mapping.kind.page_shift.into();
        md.huge_shift = mapping.kind.huge_shift.into();
        md.id = self.mds.number()?;
        let descriptor = Descriptor { md, pinned, huge: mapping.huge };
        self.mds.put(md.id, (caller.file, lni), descriptor);
        self.lnis.live.hold(lni);
        let region = Region {
            rgid: small(rgid),
            lac,
            iova: md.iova,
            len: md.len,
            va: md.va,
            readable: mapping.flags.contains(MapFlags::READ),
            writable: writes,
            memory: Arc::clone(caller.memory),
        };
        self.data_path.state().engine.add_region(md.id, region);
        Ok(md)
    }

    /// The end of a range; an errno if it wraps around.
    pub(super) fn check_range(&self, va: u64, len: u64) -> Result<u64, Errno> {
        if len == 0 {
            return Err(Errno::EINVAL);
        }
        va.checked_add(len).ok_or(if self.rules.wrap_is_overflow {
            Errno::EOVERFLOW
        } else {
            Errno::EFAULT
        })
    }

    /// The LNI's address context for a kind of mapping, or a new one.
    fn address_context(&mut self, id: u32, mapping: &Mapping) -> Result<u8, Errno> {
        let lni = self.lnis.live.get(id).ok_or(Errno::EINVAL)?;
        let mut shared = lni.acs.iter().filter(|_| !mapping.alone);
        if let Some(ac) = shared.find(|ac| ac.kind == mapping.kind) {
            return Ok(ac.lac);
        }
        let Lni { svc, rgid, .. } = **lni;
        self.services.may_charge(svc, Slot::Ac)?;
        // Only here do drivers up to SHS 14.0 notice that the host has no ATS.
        if mapping.flags.contains(MapFlags::ATS) {
            return Err(Errno::EOPNOTSUPP);
        }
        if !self.acs.has_free() {
            return Err(Errno::ENOSPC);
        }
        let lac = self.rgids.take_lac(rgid).ok_or(Errno::ENOSPC)?;
        let context =
            AddressContext { kind: mapping.kind, id: self.acs.alloc().ok_or(Errno::ENOSPC)?, lac };
        self.services.charge(svc, Slot::Ac)?;
        if let Some(lni) = self.lnis.live.get_mut(id) {
            lni.acs.push(context);
        }
        Ok(lac)
    }

    /// EINVAL unless the memory lies in the descriptor.
    pub(super) fn check_in_md(&self, file: u32, id: u32, va: u64, end: u64) -> Result<(), Errno> {
        let md = &self.mds.of(file, id)?.md;
        if va < md.va || end > md.va.saturating_add(md.len) {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }

    /// Returns whether the address contexts of two descriptors have the same number. The driver
    /// does not check whether they are of the same LNI.
    pub(super) fn same_lac(&self, one: u32, other: u32) -> bool {
        let lac = |id| self.mds.get(id).map(|there| there.md.lac);
        lac(one) == lac(other)
    }

    /// Unmaps a descriptor. The address context stays until the LNI ends.
    pub(super) fn atu_unmap(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        let md = self.mds.remove(file, id)?;
        self.data_path.state().engine.remove_region(id);
        self.lnis.live.release(md.lni);
        Ok(())
    }

    /// Faults in pages of a descriptor that are not pinned. An empty range is accepted.
    fn atu_update_md(&self, file: u32, command: &AtuUpdateMdCmd) -> Result<(), Errno> {
        let AtuUpdateMdCmd { id, va, len, flags, .. } = *command;
        let md = self.mds.of(file, id)?;
        if self.rules.wrap_is_overflow && va.checked_add(len).is_none() {
            return Err(Errno::EOVERFLOW);
        }
        if self.files.is_virtual(file) {
            return Err(Errno::EOPNOTSUPP);
        }
        let faults = MapFlags::from_bits_truncate(flags).contains(MapFlags::FAULT);
        // The tables of a descriptor are for pages of one kind only.
        if md.pinned || !faults || is_huge(va) != md.huge {
            return Err(Errno::EINVAL);
        }
        let end = va.checked_add(len).ok_or(Errno::EINVAL)?;
        self.check_in_md(file, id, va, end)
    }
}
