//! Memory registrations and the address contexts behind them.

use cxi_ioctl::abi::memory::{AtuMapCmd, AtuUpdateMdCmd};
use cxi_ioctl::{DriverRelease, Errno};

use super::accounting::AC;
use super::file::owned;
use super::{Model, Values, lowest_free};

const PIN: u32 = 1;
const ATS: u32 = 2;
const FAULT: u32 = 16;
const DEVICE: u32 = 1 << 9;
const PREFETCH: u32 = 1 << 12;
/// Flags that do not change the kind of mapping: write, read, fault, user address, no
/// translation yet, prefetch.
const NOT_OF_THE_KIND: u32 = 4 | 8 | FAULT | 1 << 6 | 1 << 11 | PREFETCH;
/// From this address on, no process has memory.
pub const USER_END: u64 = 1 << 47;
const PAGE: u64 = 4096;
const LACS: u32 = 8;

/// A kind of mapping: the flags that count.
pub type Mapping = u32;

pub const fn kind(flags: u32) -> Mapping {
    flags & !NOT_OF_THE_KIND
}

#[derive(Clone, Copy, Debug)]
pub struct Md {
    pub file: usize,
    pub lni: u32,
    pub va: u64,
    pub len: u64,
    pub lac: u32,
    pub pinned: bool,
}

impl Model {
    pub(super) fn atu_map(&mut self, file: usize, asked: &AtuMapCmd) -> Values {
        let (lni, va, len, flags) = (asked.lni, asked.va, asked.len, asked.flags);
        let owner = self.lni(file, lni)?;
        let (svc_id, rgid) = (owner.svc_id, owner.rgid);
        if len == 0 {
            return Err(Errno::EINVAL);
        }
        if va.checked_add(len).is_none() {
            return Err(if self.release >= DriverRelease::Main2026_07 {
                Errno::EOVERFLOW
            } else {
                Errno::EFAULT
            });
        }
        let pinned = flags & PIN != 0;
        if pinned && flags & (FAULT | PREFETCH) != 0 {
            return Err(Errno::EINVAL);
        }
        let early = flags & ATS != 0 && self.release >= DriverRelease::Main2026_07;
        if flags & DEVICE != 0 || early {
            return Err(Errno::EOPNOTSUPP);
        }
        if va >= USER_END {
            return Err(Errno::EFAULT);
        }
        if flags & ATS != 0 {
            self.charge(svc_id, AC)?;
            self.return_unit(svc_id, AC);
            return Err(Errno::EOPNOTSUPP);
        }
        let mapping = kind(flags);
        let existing = self.lni(file, lni)?.contexts.get(&mapping).copied();
        let lac = match existing {
            Some(lac) => lac,
            None => self.new_context(svc_id, rgid, lni, mapping)?,
        };
        let id = lowest_free(1, self.mds.keys().copied());
        let md = Md { file, lni, va, len: len.next_multiple_of(PAGE), lac, pinned };
        self.mds.insert(id, md);
        Ok(vec![id, lac])
    }

    fn new_context(
        &mut self,
        svc_id: u32,
        rgid: u32,
        lni: u32,
        mapping: Mapping,
    ) -> Result<u32, Errno> {
        self.charge(svc_id, AC)?;
        let lac = lowest_free(0, self.lacs(rgid));
        if lac >= LACS {
            self.return_unit(svc_id, AC);
            return Err(Errno::ENOSPC);
        }
        self.lni_mut(lni).contexts.insert(mapping, lac);
        Ok(lac)
    }

    /// Address contexts of an RGID.
    pub fn lacs(&self, rgid: u32) -> Vec<u32> {
        let sharing = self.lnis.values().filter(|lni| lni.rgid == rgid);
        sharing.flat_map(|lni| lni.contexts.values().copied()).collect()
    }

    pub(super) fn atu_unmap(&mut self, file: usize, id: u32) -> Values {
        owned(&self.mds, file, id)?;
        let next = |eq: &super::EventQueue| eq.next.map(|(md, _)| md);
        let mut eqs = self.eqs.values();
        let held = self.held_mds.iter().any(|(_, md)| *md == id);
        if held || eqs.any(|eq| eq.md == id || next(eq) == Some(id)) {
            return Err(Errno::EBUSY);
        }
        self.mds.remove(&id);
        Ok(vec![])
    }

    pub(super) fn atu_update(&self, file: usize, asked: &AtuUpdateMdCmd) -> Values {
        let md = owned(&self.mds, file, asked.id)?;
        let inside = asked.va >= md.va && asked.va + asked.len <= md.va + md.len;
        if md.pinned || asked.flags & FAULT == 0 || !inside {
            return Err(Errno::EINVAL);
        }
        Ok(vec![])
    }
}
