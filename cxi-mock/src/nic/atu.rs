//! Memory descriptors and the address contexts that they need.

use cxi_ioctl::abi::memory::{
    AtuMapCmd, AtuMapResp, AtuUnmapCmd, AtuUpdateMdCmd, MapFlags, Md, MdHints,
};
use cxi_ioctl::{Errno, Opcode};
use zerocopy::FromZeros;

use super::dispatch::Call;
use super::ids::Ids;
use super::lni::Lni;
use super::mapping::{Kind, Mapping, USER_SPACE};
use super::rgid::LACS;
use super::table::Table;
use super::window::PAGE;
use super::{Caller, Device, Slot};
use crate::Backing;

/// An address context of an LNI.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressContext {
    kind: Kind,
    id: u32,
    /// Its number within the RGID.
    lac: u8,
}

/// A memory descriptor.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    file: u32,
    lni: u32,
    md: Md,
    pinned: bool,
    /// Event queues in it.
    users: u32,
}

/// All memory descriptors and the numbers of address contexts.
#[derive(Debug)]
pub(crate) struct Atu {
    ac_ids: Ids,
    md_ids: Ids,
    mds: Table<Descriptor>,
}

impl Atu {
    pub(crate) fn new(acs: u16) -> Self {
        Self {
            ac_ids: Ids::new(1, u32::from(acs) + 1),
            md_ids: Ids::new(1, u32::MAX),
            mds: Table::default(),
        }
    }

    pub(crate) fn acs_used(&self) -> u32 {
        self.ac_ids.used()
    }

    pub(crate) fn md_count(&self) -> u32 {
        self.mds.count()
    }
}

/// Arguments of ATU_MAP.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewMd {
    pub(super) lni: u32,
    pub(super) va: u64,
    pub(super) len: u64,
    pub(super) flags: u32,
    pub(super) hints: MdHints,
}

impl Device {
    /// The commands for memory descriptors.
    pub(super) fn memory_command(
        &mut self,
        opcode: Opcode,
        call: &mut Call<'_>,
    ) -> Result<(), Errno> {
        let file = call.caller.file;
        match opcode {
            Opcode::ATU_MAP => {
                let AtuMapCmd {
                    lni,
                    va,
                    len,
                    flags,
                    hints,
                    ..
                } = call.command()?;
                let new = NewMd {
                    lni,
                    va,
                    len,
                    flags,
                    hints,
                };
                let md = self.atu_map(&call.caller, &new, call.memory.backing())?;
                let mut response = AtuMapResp::new_zeroed();
                response.id = md.id;
                response.md = md;
                call.made(md.id, &response)
            }
            Opcode::ATU_UNMAP => {
                let command: AtuUnmapCmd = call.command()?;
                self.atu_unmap(file, command.id)
            }
            Opcode::ATU_UPDATE_MD => {
                let AtuUpdateMdCmd {
                    id, va, len, flags, ..
                } = call.command()?;
                self.atu_update_md(file, id, va, len, flags)
            }
            // Traffic that is on its way in has arrived: there is none.
            Opcode::INBOUND_WAIT => Ok(()),
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    /// ATU_MAP of what may be memory to pin.
    pub(super) fn atu_map(
        &mut self,
        caller: &Caller<'_>,
        new: &NewMd,
        backing: Backing,
    ) -> Result<Md, Errno> {
        let NewMd { lni, va, len, .. } = *new;
        self.lni_of(caller.file, lni)?;
        let end = self.check_range(va, len)?;
        let mapping = Mapping::of(new, caller.credentials, &self.rules)?;
        let pinned = mapping.flags.contains(MapFlags::PIN);
        if !pinned && self.is_virtual(caller.file) {
            return Err(Errno::EOPNOTSUPP);
        }
        let ats = mapping.flags.contains(MapFlags::ATS);
        if ats && !self.rules.ats_after_charge {
            return Err(Errno::EOPNOTSUPP);
        }
        if va >= USER_SPACE || (pinned && backing == Backing::Missing) {
            return Err(Errno::EFAULT);
        }
        let writes = mapping.flags.contains(MapFlags::WRITE);
        if pinned && writes && backing == Backing::ReadOnly {
            return Err(Errno::EINVAL);
        }
        let lac = self.address_context(lni, &mapping)?;
        let page = mapping.page.max(PAGE);
        let start = va - va % page;
        let mut md = Md::new_zeroed();
        md.iova = start;
        md.va = start;
        md.len = end
            .checked_next_multiple_of(page)
            .map_or(len, |end| end - start);
        md.lac = lac;
        md.page_shift = mapping.kind.page_shift.into();
        md.huge_shift = mapping.kind.huge_shift.into();
        md.id = self.atu.md_ids.alloc().ok_or(Errno::ENOSPC)?;
        let descriptor = Descriptor {
            file: caller.file,
            lni,
            md,
            pinned,
            users: 0,
        };
        self.atu.mds.put(md.id, descriptor);
        self.hold_lni(lni);
        self.file_mut(caller.file)?.mds.insert(md.id);
        let rgid = self.lni_of(caller.file, lni)?.rgid;
        self.data_path
            .add_region(rgid, &md, mapping.flags, caller.memory);
        Ok(md)
    }

    fn check_range(&self, va: u64, len: u64) -> Result<u64, Errno> {
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
        let lni = self.lnis.get(id).ok_or(Errno::EINVAL)?;
        let mut shared = lni.acs.iter().filter(|_| !mapping.alone);
        if let Some(ac) = shared.find(|ac| ac.kind == mapping.kind) {
            return Ok(ac.lac);
        }
        let (svc, rgid) = (lni.svc, lni.rgid);
        self.charge(svc, Slot::Ac)?;
        let context = if mapping.flags.contains(MapFlags::ATS) {
            Err(Errno::EOPNOTSUPP)
        } else {
            self.new_context(rgid, mapping.kind).ok_or(Errno::ENOSPC)
        };
        let context = context.inspect_err(|_| self.refund(svc, Slot::Ac))?;
        if let Some(lni) = self.lnis.get_mut(id) {
            lni.acs.push(context);
        }
        Ok(context.lac)
    }

    fn new_context(&mut self, rgid: u32, kind: Kind) -> Option<AddressContext> {
        let lac = self.take_lac(rgid)?;
        let Some(id) = self.atu.ac_ids.alloc() else {
            self.give_lac(rgid, lac);
            return None;
        };
        Some(AddressContext { kind, id, lac })
    }

    pub(super) fn take_lac(&mut self, rgid: u32) -> Option<u8> {
        let entry = self.rgids.get_mut(rgid)?;
        let lac = entry.lacs.trailing_ones();
        if lac >= LACS {
            return None;
        }
        entry.lacs |= 1 << lac;
        u8::try_from(lac).ok()
    }

    pub(super) fn give_lac(&mut self, rgid: u32, lac: u8) {
        if let Some(entry) = self.rgids.get_mut(rgid) {
            entry.lacs &= !(1 << lac);
        }
    }

    fn md_of(&self, file: u32, id: u32) -> Result<&Descriptor, Errno> {
        let descriptor = self.atu.mds.get(id).filter(|md| md.file == file);
        descriptor.ok_or(Errno::EINVAL)
    }

    /// EINVAL unless the memory lies in the descriptor.
    pub(super) fn check_in_md(&self, file: u32, id: u32, va: u64, len: u64) -> Result<(), Errno> {
        let md = &self.md_of(file, id)?.md;
        let end = va.checked_add(len).ok_or(Errno::EINVAL)?;
        if va < md.va || end > md.va.saturating_add(md.len) {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }

    /// Whether memory of two descriptors is translated by the same address context.
    pub(super) fn same_context(&self, one: u32, other: u32) -> bool {
        let context = |id| self.atu.mds.get(id).map(|there| (there.lni, there.md.lac));
        context(one) == context(other)
    }

    pub(super) fn hold_md(&mut self, id: u32) {
        if let Some(descriptor) = self.atu.mds.get_mut(id) {
            descriptor.users += 1;
        }
    }

    pub(super) fn unhold_md(&mut self, id: u32) {
        if let Some(descriptor) = self.atu.mds.get_mut(id) {
            descriptor.users = descriptor.users.saturating_sub(1);
        }
    }

    /// ATU_UNMAP: the address context stays until the LNI ends.
    pub(super) fn atu_unmap(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        let Descriptor { lni, users, .. } = *self.md_of(file, id)?;
        if users > 0 {
            return Err(Errno::EBUSY);
        }
        self.atu.mds.remove(id);
        self.data_path.remove_region(id);
        self.atu.md_ids.free(id);
        self.unhold_lni(lni);
        self.file_mut(file)?.mds.remove(&id);
        Ok(())
    }

    /// ATU_UPDATE_MD: faults pages of a descriptor in that are not pinned. No bytes are fine.
    pub(super) fn atu_update_md(
        &self,
        file: u32,
        id: u32,
        va: u64,
        len: u64,
        flags: u32,
    ) -> Result<(), Errno> {
        let faults = MapFlags::from_bits_truncate(flags).contains(MapFlags::FAULT);
        if self.md_of(file, id)?.pinned || !faults {
            return Err(Errno::EINVAL);
        }
        self.check_in_md(file, id, va, len)
    }

    /// Gives back what an LNI holds of address contexts.
    pub(super) fn end_acs(&mut self, lni: &Lni) {
        for ac in &lni.acs {
            self.atu.ac_ids.free(ac.id);
            self.give_lac(lni.rgid, ac.lac);
            self.refund(lni.svc, Slot::Ac);
        }
        if let Some(lac) = lni.vf_lac {
            self.give_lac(lni.rgid, lac);
        }
    }
}
