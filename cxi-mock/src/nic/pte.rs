//! Portal table entries and their mappings.

use std::collections::BTreeMap;

use cxi_ioctl::Errno;
use cxi_ioctl::abi::portal::{PTLTE_DISABLED, PTLTE_SOFTWARE_MANAGED, PtOptions, PteStatus};
use cxi_ioctl::abi::service::RSRC_LE;

use super::ids::Ids;
use super::lni::Lni;
use super::table::Table;
use super::{Caller, Device, Slot};

/// A portal table entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pte {
    file: u32,
    lni: u32,
    eq: u32,
    /// Mappings of it.
    mapped: u32,
    state: u32,
    drop_count: u32,
}

/// A mapping of a portal table entry into a domain, or to a multicast address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PteMap {
    pte: u32,
    domain: u32,
    place: (u32, u32),
}

/// All portal table entries.
#[derive(Debug)]
pub(crate) struct Ptes {
    ids: Ids,
    table: Table<Pte>,
    /// Places in domains that are taken: domain (0 for multicast) and offset.
    places: BTreeMap<(u32, u32), u32>,
}

impl Ptes {
    /// Entry 0 is counted, but never handed out.
    pub(crate) fn new(total: u16) -> Self {
        Self {
            ids: Ids::new(1, total.into()),
            table: Table::default(),
            places: BTreeMap::new(),
        }
    }

    /// Entries whose numbers are in use.
    pub(crate) fn used(&self) -> u32 {
        self.ids.used()
    }
}

impl Device {
    /// PTE_ALLOC: the number.
    pub(super) fn pte_alloc(
        &mut self,
        caller: &Caller<'_>,
        lni: u32,
        eq: u32,
        options: u64,
    ) -> Result<u32, Errno> {
        let svc = self.lni_of(caller.file, lni)?.svc;
        if eq != 0 {
            self.eq_of(caller.file, eq)?;
        }
        let options = PtOptions::from_bits_truncate(options);
        if options.contains(PtOptions::ETHERNET) && !caller.credentials.net_raw {
            return Err(Errno::EPERM);
        }
        let held = self
            .lnis
            .get_mut(lni)
            .and_then(|lni| lni.free_ptes.pop_front());
        let id = if let Some(id) = held {
            id
        } else {
            self.charge(svc, Slot::Pte)?;
            self.ptes.ids.alloc().ok_or_else(|| {
                self.refund(svc, Slot::Pte);
                Errno::ENOSPC
            })?
        };
        self.ptes.table.put(
            id,
            Pte {
                file: caller.file,
                lni,
                eq,
                mapped: 0,
                state: PTLTE_DISABLED,
                drop_count: 0,
            },
        );
        self.hold_eq(eq);
        self.hold_lni(lni);
        self.file_mut(caller.file)?.ptes.insert(id);
        Ok(id)
    }

    fn pte_of(&self, file: u32, id: u32) -> Result<&Pte, Errno> {
        let pte = self.ptes.table.get(id).filter(|pte| pte.file == file);
        pte.ok_or(Errno::EINVAL)
    }

    /// PTE_FREE: the LNI keeps number and credit for its next one.
    pub(super) fn pte_free(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        let Pte {
            lni, eq, mapped, ..
        } = *self.pte_of(file, id)?;
        if mapped > 0 {
            return Err(Errno::EBUSY);
        }
        self.ptes.table.remove(id);
        self.unhold_eq(eq);
        self.unhold_lni(lni);
        self.file_mut(file)?.ptes.remove(&id);
        if let Some(lni) = self.lnis.get_mut(lni) {
            lni.free_ptes.push_back(id);
        }
        Ok(())
    }

    /// PTE_MAP: the number of the mapping within the file.
    pub(super) fn pte_map(
        &mut self,
        file: u32,
        pte: u32,
        domain: u32,
        offset: u32,
        multicast: bool,
    ) -> Result<u32, Errno> {
        let lni = self.pte_of(file, pte)?.lni;
        let owner = self.domain_of(file, domain)?.lni;
        if owner != lni || (!multicast && offset >= self.domains.pid_granule()) {
            return Err(Errno::EINVAL);
        }
        let place = (if multicast { 0 } else { domain }, offset);
        if self.ptes.places.contains_key(&place) {
            return Err(Errno::EEXIST);
        }
        let entry = self.file_mut(file)?;
        let id = entry.map_ids.alloc().ok_or(Errno::ENOSPC)?;
        entry.maps.put(id, PteMap { pte, domain, place });
        self.ptes.places.insert(place, pte);
        if let Some(pte) = self.ptes.table.get_mut(pte) {
            pte.mapped += 1;
        }
        if let Some(domain) = self.domains.get_mut(domain) {
            domain.mapped += 1;
        }
        Ok(id)
    }

    /// PTE_UNMAP.
    pub(super) fn pte_unmap(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        let entry = self.file_mut(file)?;
        let map = entry.maps.remove(id).ok_or(Errno::EINVAL)?;
        entry.map_ids.free(id);
        self.ptes.places.remove(&map.place);
        if let Some(pte) = self.ptes.table.get_mut(map.pte) {
            pte.mapped = pte.mapped.saturating_sub(1);
        }
        if let Some(domain) = self.domains.get_mut(map.domain) {
            domain.mapped = domain.mapped.saturating_sub(1);
        }
        Ok(())
    }

    /// PTE_LE_INVALIDATE. Lists are empty, so that nothing is ever found to invalidate.
    pub(super) fn pte_le_invalidate(&self, file: u32, id: u32) -> Result<(), Errno> {
        self.pte_of(file, id).map(drop)
    }

    /// PTE_TRANSITION_SM: matching goes on in software.
    pub(super) fn pte_transition(
        &mut self,
        file: u32,
        id: u32,
        drop_count: u32,
    ) -> Result<(), Errno> {
        self.pte_of(file, id)?;
        if let Some(pte) = self.ptes.table.get_mut(id) {
            pte.state = PTLTE_SOFTWARE_MANAGED;
            pte.drop_count = drop_count;
        }
        Ok(())
    }

    /// PTE_STATUS: changes what the caller left in its buffer.
    pub(super) fn pte_status(
        &self,
        file: u32,
        id: u32,
        status: &mut PteStatus,
    ) -> Result<(), Errno> {
        let pte = self.pte_of(file, id)?;
        let svc = self.lnis.get(pte.lni).map(|lni| lni.svc);
        let group = svc.and_then(|svc| self.groups.get(svc));
        let limit = group.map(|group| group.desc.limits.types[RSRC_LE]);
        let pools = group.and_then(|group| group.le_pools).unwrap_or_default();
        let allocated = self.registers.les_allocated.iter().zip(pools);
        let allocated = allocated.filter_map(|(element, pool)| element.get(usize::from(pool)));
        status.drop_count = pte.drop_count;
        status.state = u8::try_from(pte.state).unwrap_or(0);
        status.les_reserved = limit.map_or(0, |limit| limit.res);
        status.les_max = limit.map_or(0, |limit| limit.max);
        status.les_allocated = allocated.copied().max().unwrap_or(0);
        status.ule_count = 0;
        Ok(())
    }

    /// Gives back what an LNI holds of portal table entries.
    pub(super) fn end_ptes(&mut self, lni: &Lni) {
        for id in &lni.free_ptes {
            self.ptes.ids.free(*id);
            self.refund(lni.svc, Slot::Pte);
        }
    }
}
