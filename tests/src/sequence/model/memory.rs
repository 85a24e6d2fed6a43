//! Memory registrations and the address contexts behind them.

use cxi_ioctl::{DriverRelease, Errno};

use super::accounting::AC;
use super::{Model, Values, lowest_free};

pub const PIN: u32 = 1;
pub const ATS: u32 = 2;
pub const NOCACHE: u32 = 32;
/// Flags that a caller may set without changing the kind of mapping: write and read.
pub const PERMISSIONS: u32 = 4 | 8;
const PAGE: u64 = 4096;
const LACS: u32 = 8;

/// A kind of mapping: pinned or not, cached or not.
pub type Mapping = (bool, bool);

#[derive(Clone, Copy, Debug)]
pub struct Md {
    pub file: usize,
    pub lni: u32,
    pub va: u64,
    pub len: u64,
}

impl Model {
    pub(super) fn atu_map(
        &mut self,
        file: usize,
        lni: u32,
        va: u64,
        len: u64,
        flags: u32,
    ) -> Values {
        let owner = self.lni(file, lni)?;
        let (svc_id, rgid) = (owner.svc_id, owner.rgid);
        if len == 0 {
            return Err(Errno::EINVAL);
        }
        if va.checked_add(len).is_none() {
            return Err(if self.release == DriverRelease::Main {
                Errno::EOVERFLOW
            } else {
                Errno::EFAULT
            });
        }
        if flags & !(PIN | ATS | NOCACHE | PERMISSIONS) != 0 {
            return Err(Errno::EINVAL);
        }
        if flags & ATS != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        let mapping = (flags & PIN != 0, flags & NOCACHE != 0);
        let existing = self.lni(file, lni)?.contexts.get(&mapping).copied();
        let lac = match existing {
            Some(lac) => lac,
            None => self.new_context(svc_id, rgid, lni, mapping)?,
        };
        let id = lowest_free(1, self.mds.keys().copied());
        let md = Md {
            file,
            lni,
            va,
            len: len.next_multiple_of(PAGE),
        };
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
        if let Some(lni) = self.lnis.get_mut(&lni) {
            lni.contexts.insert(mapping, lac);
        }
        Ok(lac)
    }

    /// Address contexts of an RGID.
    pub fn lacs(&self, rgid: u32) -> Vec<u32> {
        let sharing = self.lnis.values().filter(|lni| lni.rgid == rgid);
        sharing
            .flat_map(|lni| lni.contexts.values().copied())
            .collect()
    }

    pub(super) fn atu_unmap(&mut self, file: usize, id: u32) -> Values {
        if self.mds.get(&id).is_none_or(|md| md.file != file) {
            return Err(Errno::EINVAL);
        }
        if self.eqs.values().any(|eq| eq.md == id) {
            return Err(Errno::EBUSY);
        }
        self.mds.remove(&id);
        Ok(vec![])
    }
}
