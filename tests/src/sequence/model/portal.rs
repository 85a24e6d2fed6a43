//! Portal table entries and where domains have them.

use cxi_ioctl::Errno;

use super::accounting::PTE;
use super::{Model, Values, lowest_free};
use crate::sequence::operation::Caller;

const OFFSETS: u32 = 256;

#[derive(Clone, Copy, Debug)]
pub struct Pte {
    pub file: usize,
    pub lni: u32,
    /// 0: none.
    pub eq: u32,
}

/// An entry at an offset of a domain.
#[derive(Clone, Copy, Debug)]
pub struct Mapped {
    pub pte: u32,
    pub domain: u32,
    pub offset: u32,
}

impl Model {
    pub(super) fn pte_alloc(
        &mut self,
        file: usize,
        caller: Caller,
        lni: u32,
        eq: u32,
        ethernet: bool,
    ) -> Values {
        let svc_id = self.lni(file, lni)?.svc_id;
        self.own_eq(file, eq)?;
        if ethernet && !caller.admin {
            return Err(Errno::EPERM);
        }
        let number = match self.lni(file, lni)?.spare_ptes.pop_front() {
            Some(spare) => spare,
            None => self.take_numbered(svc_id, PTE)?,
        };
        self.ptes.insert(number, Pte { file, lni, eq });
        Ok(vec![number])
    }

    pub(super) fn pte_free(&mut self, file: usize, number: u32) -> Values {
        self.own_pte(file, number)?;
        if self.mappings.values().any(|mapped| mapped.pte == number) {
            return Err(Errno::EBUSY);
        }
        self.drop_pte(number);
        Ok(vec![])
    }

    fn own_pte(&self, file: usize, number: u32) -> Result<Pte, Errno> {
        let found = self.ptes.get(&number).filter(|pte| pte.file == file);
        found.copied().ok_or(Errno::EINVAL)
    }

    pub(super) fn drop_pte(&mut self, number: u32) {
        let Some(pte) = self.ptes.remove(&number) else {
            return;
        };
        if let Some(lni) = self.lnis.get_mut(&pte.lni) {
            lni.spare_ptes.push_back(number);
        }
    }

    pub(super) fn pte_map(&mut self, file: usize, number: u32, domain: u32, offset: u32) -> Values {
        let pte = self.own_pte(file, number)?;
        let found = self.domains.get(&domain);
        let found = found.filter(|found| found.file == file && found.lni == pte.lni);
        if found.is_none() || offset >= OFFSETS {
            return Err(Errno::EINVAL);
        }
        let taken = self.mappings.keys().filter(|(owner, _)| *owner == file);
        let index = lowest_free(0, taken.map(|(_, index)| *index));
        let mapped = Mapped {
            pte: number,
            domain,
            offset,
        };
        self.mappings.insert((file, index), mapped);
        Ok(vec![index])
    }

    pub(super) fn pte_unmap(&mut self, file: usize, index: u32) -> Values {
        let removed = self.mappings.remove(&(file, index));
        removed.map(|_| vec![]).ok_or(Errno::EINVAL)
    }
}
