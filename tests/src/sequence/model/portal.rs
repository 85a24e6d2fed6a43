//! Portal table entries and where domains have them.

use cxi_ioctl::Errno;
use cxi_ioctl::abi::portal::{PteAllocCmd, PteMapCmd};

use super::accounting::PTE;
use super::file::owned;
use super::{Model, Values, lowest_free};
use crate::sequence::operation::Caller;

const OFFSETS: u32 = 256;
const MULTICAST_OFFSETS: u32 = 1 << 18;
pub const MATCHING: u64 = 1 << 7;
pub const SPACE_CHECK: u64 = 1 << 8;
pub const ETHERNET_PTE: u64 = 1 << 11;
const LIST_COUNTERS: usize = 256;

#[derive(Clone, Copy, Debug)]
pub struct Pte {
    pub file: usize,
    pub lni: u32,
    /// 0: none.
    pub eq: u32,
    pub software: bool,
    /// It has a counter for lists that are neither matched nor checked for space.
    pub counted: bool,
    /// It receives Ethernet frames.
    pub ethernet: bool,
}

/// An entry at an offset of a domain, or at a multicast address.
#[derive(Clone, Copy, Debug)]
pub struct Mapped {
    pub file: usize,
    pub multicast: bool,
    pub pte: u32,
    pub domain: u32,
    pub offset: u32,
}

impl Model {
    pub(super) fn pte_alloc(&mut self, file: usize, caller: Caller, asked: &PteAllocCmd) -> Values {
        let (lni, eq, options) = (asked.lni_hndl, asked.evtq_hndl, asked.opts.bits);
        let svc_id = self.lni(file, lni)?.svc_id;
        self.own_eq(file, eq)?;
        if options & ETHERNET_PTE != 0 && !caller.admin {
            return Err(Errno::EPERM);
        }
        let number = match self.lni(file, lni)?.spare_ptes.pop_front() {
            Some(spare) => spare,
            None => self.take_numbered(svc_id, PTE)?,
        };
        let ethernet = options & ETHERNET_PTE != 0;
        let listed = !ethernet && options & (MATCHING | SPACE_CHECK) == 0;
        let counted = listed && self.list_counters() < LIST_COUNTERS;
        let pte = Pte { file, lni, eq, software: false, counted, ethernet };
        self.ptes.insert(number, pte);
        Ok(vec![number])
    }

    /// Counters for lists that are neither matched nor checked for space.
    pub fn list_counters(&self) -> usize {
        self.ptes.values().filter(|pte| pte.counted).count()
    }

    pub(super) fn pte_transition(&mut self, file: usize, number: u32, drop_count: u32) -> Values {
        let mut pte = owned(&self.ptes, file, number)?;
        if pte.ethernet {
            return Err(Errno::EINVAL);
        }
        if !pte.software && drop_count != 0 {
            return Err(Errno::EAGAIN);
        }
        pte.software = true;
        self.ptes.insert(number, pte);
        Ok(vec![])
    }

    pub(super) fn pte_free(&mut self, file: usize, number: u32) -> Values {
        owned(&self.ptes, file, number)?;
        if self.mappings.values().any(|mapped| mapped.pte == number) {
            return Err(Errno::EBUSY);
        }
        self.drop_pte(number);
        Ok(vec![])
    }

    pub(super) fn drop_pte(&mut self, number: u32) {
        let pte = self.ptes.remove(&number).unwrap();
        self.lni_mut(pte.lni).spare_ptes.push_back(number);
    }

    pub(super) fn pte_map(&mut self, file: usize, asked: &PteMapCmd) -> Values {
        let (number, domain) = (asked.pte_number, asked.domain_hndl);
        let (offset, multicast) = (asked.pid_offset, asked.is_multicast != 0);
        let pte = owned(&self.ptes, file, number)?;
        let found = owned(&self.domains, file, domain);
        let same_lni = found.is_ok_and(|found| found.lni == pte.lni);
        let end = if multicast { MULTICAST_OFFSETS } else { OFFSETS };
        if !same_lni || offset >= end {
            return Err(Errno::EINVAL);
        }
        let mut others = self.mappings.values().filter(|mapped| mapped.multicast);
        if multicast && others.clone().any(|mapped| mapped.pte == number) {
            return Err(Errno::EINVAL);
        }
        if multicast && others.any(|mapped| mapped.offset == offset) {
            return Err(Errno::ENOSPC);
        }
        let index = lowest_free(0, self.mappings.keys().copied());
        let mapped = Mapped { file, multicast, pte: number, domain, offset };
        self.mappings.insert(index, mapped);
        Ok(vec![index])
    }

    pub(super) fn pte_unmap(&mut self, file: usize, index: u32) -> Values {
        let pte = owned(&self.mappings, file, index)?.pte;
        self.mappings.remove(&index);
        // With any mapping of an entry goes the entry's multicast address.
        let others = self.mappings.values_mut();
        for other in others.filter(|other| other.pte == pte) {
            other.multicast = false;
        }
        Ok(vec![])
    }
}
