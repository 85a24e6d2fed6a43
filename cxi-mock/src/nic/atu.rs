//! Memory descriptors and the address contexts that they need.

use cxi_ioctl::Errno;
use cxi_ioctl::abi::memory::{MapFlags, Md};
use zerocopy::FromZeros;

use super::ids::Ids;
use super::lni::Lni;
use super::rgid::LACS;
use super::table::Table;
use super::window::PAGE;
use super::{Caller, Device, Slot};

/// A flag beyond those of the header that the driver takes, as part of the kind.
const KIND_FLAG: u32 = 1 << 19;
/// Where memory is taken for huge pages: the mock cannot see how a caller's memory is backed.
const HUGE_PAGES: std::ops::Range<u64> = 1 << 40..2 << 40;

/// What mappings have in common that share an address context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "independent yes-or-no facts")]
struct Kind {
    pinned: bool,
    uncached: bool,
    other: bool,
    huge: bool,
}

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

impl Device {
    /// ATU_MAP.
    pub(super) fn atu_map(
        &mut self,
        caller: &Caller<'_>,
        lni: u32,
        va: u64,
        len: u64,
        flags: u32,
    ) -> Result<Md, Errno> {
        self.lni_of(caller.file, lni)?;
        let end = self.check_range(va, len)?;
        let kind = kind(flags, va)?;
        let lac = self.address_context(lni, kind)?;
        let (page_shift, huge_shift, page) = if kind.huge {
            (16, 30, 1 << 30)
        } else {
            (12, 21, PAGE)
        };
        let start = va - va % page;
        let mut md = Md::new_zeroed();
        md.iova = start;
        md.va = start;
        md.len = end
            .checked_next_multiple_of(page)
            .map_or(len, |end| end - start);
        md.lac = lac;
        md.page_shift = page_shift;
        md.huge_shift = huge_shift;
        md.id = self.atu.md_ids.alloc().ok_or(Errno::ENOSPC)?;
        let descriptor = Descriptor {
            file: caller.file,
            lni,
            md,
            users: 0,
        };
        self.atu.mds.put(md.id, descriptor);
        self.hold_lni(lni);
        self.file_mut(caller.file)?.mds.insert(md.id);
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
    fn address_context(&mut self, id: u32, kind: Kind) -> Result<u8, Errno> {
        let lni = self.lnis.get(id).ok_or(Errno::EINVAL)?;
        if let Some(ac) = lni.acs.iter().find(|ac| ac.kind == kind) {
            return Ok(ac.lac);
        }
        let (svc, rgid) = (lni.svc, lni.rgid);
        self.charge(svc, Slot::Ac)?;
        let context = self.new_context(rgid, kind);
        let Some(context) = context else {
            self.refund(svc, Slot::Ac);
            return Err(Errno::ENOSPC);
        };
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
        self.atu.md_ids.free(id);
        self.unhold_lni(lni);
        self.file_mut(file)?.mds.remove(&id);
        Ok(())
    }

    /// ATU_UPDATE_MD: other memory behind a descriptor, within its range.
    pub(super) fn atu_update_md(&self, file: u32, id: u32, va: u64, len: u64) -> Result<(), Errno> {
        self.md_of(file, id)?;
        self.check_range(va, len)?;
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

/// The kind of a mapping; EINVAL for flags that do not go together or mean nothing, EOPNOTSUPP
/// for address translation services, which the mock's host does not have.
fn kind(flags: u32, va: u64) -> Result<Kind, Errno> {
    let known = MapFlags::from_bits_truncate(flags);
    let pinned = known.contains(MapFlags::PIN);
    let unknown = flags & !(MapFlags::all().bits() | KIND_FLAG) != 0;
    let paging = known.intersects(MapFlags::FAULT | MapFlags::PREFETCH);
    if unknown || known.contains(MapFlags::UNUSED) || (pinned && paging) {
        return Err(Errno::EINVAL);
    }
    if known.intersects(MapFlags::ATS | MapFlags::ATS_PT | MapFlags::ATS_DYN) {
        return Err(Errno::EOPNOTSUPP);
    }
    Ok(Kind {
        pinned,
        uncached: known.contains(MapFlags::NOCACHE),
        other: flags & KIND_FLAG != 0,
        huge: HUGE_PAGES.contains(&va),
    })
}
