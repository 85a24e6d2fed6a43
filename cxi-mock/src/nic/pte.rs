//! Portal table entries and their mappings.

use std::collections::BTreeSet;

use cxi_ioctl::abi::portal::{
    PtOptions, PteAllocCmd, PteAllocResp, PteFreeCmd, PteLeInvalidateCmd, PteMapCmd, PteMapResp,
    PteStatus, PteStatusCmd, PteTransitionSmCmd, PteUnmapCmd,
};
use cxi_ioctl::abi::service::RSRC_LE;
use cxi_ioctl::{Errno, Opcode};
use zerocopy::{FromZeros, IntoBytes};

use super::dispatch::Call;
use super::ids::Ids;
use super::lni::Lni;
use super::pools::LePools;
use super::table::Table;
use super::{Caller, Device, Slot};
use crate::data_path::NewPortal;

/// Offsets that a multicast address can have.
const MULTICAST_OFFSETS: u32 = 1 << 18;
/// Counters for entries whose lists are not matched and not checked for space.
const LIST_COUNTERS: u32 = 256;

/// A portal table entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pte {
    file: u32,
    lni: u32,
    eq: u32,
    /// Mappings of it.
    mapped: u32,
    /// It has a multicast address.
    multicast: bool,
    /// It has a counter for lists without matching.
    counted: bool,
    /// A command that failed still refers to it: it goes with the file.
    leaked: bool,
}

/// A mapping of a portal table entry into a domain, or to a multicast address.
#[derive(Clone, Copy, Debug)]
struct PteMap {
    file: u32,
    pte: u32,
    domain: u32,
    offset: u32,
    multicast: bool,
}

/// All portal table entries.
#[derive(Debug)]
pub(crate) struct Ptes {
    ids: Ids,
    table: Table<Pte>,
    map_ids: Ids,
    maps: Table<PteMap>,
    /// Multicast addresses that are taken.
    multicast: BTreeSet<u32>,
    /// Entries with a counter for lists without matching.
    counted: u32,
}

impl Ptes {
    /// Entry 0 is counted, but never handed out.
    pub(crate) fn new(total: u16) -> Self {
        Self {
            ids: Ids::new(1, total.into()),
            table: Table::default(),
            map_ids: Ids::new(0, u32::MAX),
            maps: Table::default(),
            multicast: BTreeSet::new(),
            counted: 0,
        }
    }

    /// Counters for lists without matching that are in use.
    pub(crate) fn counters_used(&self) -> u32 {
        self.counted
    }

    /// Entries whose numbers are in use.
    pub(crate) fn used(&self) -> u32 {
        self.ids.used()
    }
}

impl Device {
    /// The commands for portal table entries.
    pub(super) fn portal_command(
        &mut self,
        opcode: Opcode,
        call: &mut Call<'_>,
    ) -> Result<(), Errno> {
        let file = call.caller.file;
        match opcode {
            Opcode::PTE_ALLOC => {
                let PteAllocCmd {
                    lni_hndl,
                    evtq_hndl,
                    opts,
                    ..
                } = call.command()?;
                let pte_number = self.pte_alloc(&call.caller, lni_hndl, evtq_hndl, opts.bits)?;
                call.made(pte_number, &PteAllocResp { pte_number })
            }
            Opcode::PTE_FREE => {
                let command: PteFreeCmd = call.command()?;
                self.pte_free(file, command.pte_number)
            }
            Opcode::PTE_MAP => {
                let command: PteMapCmd = call.command()?;
                let pte_index = self.pte_map(
                    file,
                    command.pte_number,
                    command.domain_hndl,
                    command.pid_offset,
                    command.is_multicast != 0,
                )?;
                call.made(pte_index, &PteMapResp { pte_index })
            }
            Opcode::PTE_UNMAP => {
                let command: PteUnmapCmd = call.command()?;
                self.pte_unmap(file, command.pte_index)
            }
            Opcode::PTE_LE_INVALIDATE => {
                let command: PteLeInvalidateCmd = call.command()?;
                self.pte_le_invalidate(file, command.pte_index)
            }
            Opcode::PTE_STATUS => {
                let command: PteStatusCmd = call.command()?;
                let read =
                    |status: &mut PteStatus| call.memory.read_response(status.as_mut_bytes());
                let (status, offsets) = self.pte_status(file, command.pte_index, read)?;
                if status.ule_offsets != 0 && !offsets.is_empty() {
                    call.memory.write_list(offsets.as_bytes());
                }
                call.respond(&status)
            }
            Opcode::PTE_TRANSITION_SM => {
                let command: PteTransitionSmCmd = call.command()?;
                self.pte_transition(file, command.pte_index, command.drop_count)
            }
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    /// PTE_ALLOC: the number.
    pub(super) fn pte_alloc(
        &mut self,
        caller: &Caller<'_>,
        lni: u32,
        eq: u32,
        options: u64,
    ) -> Result<u32, Errno> {
        let Lni { svc, rgid, .. } = *self.lni_of(caller.file, lni)?;
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
        let counted = !options.intersects(PtOptions::IS_MATCHING | PtOptions::DO_SPACE_CHECK)
            && self.ptes.counted < LIST_COUNTERS;
        self.ptes.counted += u32::from(counted);
        self.ptes.table.put(
            id,
            Pte {
                file: caller.file,
                lni,
                eq,
                mapped: 0,
                multicast: false,
                counted,
                leaked: false,
            },
        );
        self.hold_eq(eq);
        self.hold_lni(lni);
        self.file_mut(caller.file)?.ptes.insert(id);
        let group = self.groups.get(svc);
        self.data_path.add_portal(NewPortal {
            id,
            rgid,
            eq,
            options: options.bits(),
            pools: group.and_then(|group| group.le_pools).unwrap_or_default(),
        });
        Ok(id)
    }

    fn pte_of(&self, file: u32, id: u32) -> Result<&Pte, Errno> {
        let pte = self.ptes.table.get(id).filter(|pte| pte.file == file);
        pte.ok_or(Errno::EINVAL)
    }

    /// PTE_FREE: the LNI keeps number and credit for its next one.
    pub(super) fn pte_free(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        let pte = *self.pte_of(file, id)?;
        if pte.mapped > 0 || pte.leaked {
            return Err(Errno::EBUSY);
        }
        self.ptes.table.remove(id);
        self.data_path.remove_portal(id);
        self.ptes.counted -= u32::from(pte.counted);
        self.unhold_eq(pte.eq);
        self.unhold_lni(pte.lni);
        self.file_mut(file)?.ptes.remove(&id);
        if let Some(lni) = self.lnis.get_mut(pte.lni) {
            lni.free_ptes.push_back(id);
        }
        Ok(())
    }

    /// Frees an entry of a file that is being closed, whatever refers to it.
    pub(super) fn pte_close(&mut self, file: u32, id: u32) {
        if let Some(pte) = self.ptes.table.get_mut(id) {
            pte.leaked = false;
        }
        let _ = self.pte_free(file, id);
    }

    /// PTE_MAP: the number of the mapping, of the device. A place in a domain can be mapped
    /// several times; an entry has one multicast address at most, which is not shared.
    pub(super) fn pte_map(
        &mut self,
        file: u32,
        pte: u32,
        domain: u32,
        offset: u32,
        multicast: bool,
    ) -> Result<u32, Errno> {
        let Pte {
            lni,
            multicast: has,
            ..
        } = *self.pte_of(file, pte)?;
        let owner = self.domain_of(file, domain)?.lni;
        let end = if multicast {
            MULTICAST_OFFSETS
        } else {
            self.domains.pid_granule()
        };
        if owner != lni || offset >= end || (multicast && has) {
            return Err(Errno::EINVAL);
        }
        if multicast && !self.ptes.multicast.insert(offset) {
            return Err(Errno::ENOSPC);
        }
        let id = self.ptes.map_ids.alloc().ok_or(Errno::ENOSPC)?;
        let map = PteMap {
            file,
            pte,
            domain,
            offset,
            multicast,
        };
        self.ptes.maps.put(id, map);
        self.file_mut(file)?.maps.insert(id);
        if let Some(pte) = self.ptes.table.get_mut(pte) {
            pte.mapped += 1;
            pte.multicast |= multicast;
        }
        if let Some(domain) = self.domains.get_mut(domain) {
            domain.mapped += 1;
            let pid = (!multicast).then_some(domain.pid);
            let profile = domain.pids.number();
            self.data_path.map_portal(profile, pid, offset, map.pte);
        }
        Ok(id)
    }

    /// PTE_UNMAP.
    pub(super) fn pte_unmap(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        let map = self.ptes.maps.get(id).filter(|map| map.file == file);
        let PteMap {
            pte,
            domain,
            offset,
            multicast,
            ..
        } = *map.ok_or(Errno::EINVAL)?;
        self.ptes.maps.remove(id);
        self.ptes.map_ids.free(id);
        self.file_mut(file)?.maps.remove(&id);
        if multicast {
            self.ptes.multicast.remove(&offset);
        }
        if let Some(pte) = self.ptes.table.get_mut(pte) {
            pte.mapped = pte.mapped.saturating_sub(1);
            pte.multicast &= !multicast;
        }
        if let Some(domain) = self.domains.get_mut(domain) {
            domain.mapped = domain.mapped.saturating_sub(1);
            let pid = (!multicast).then_some(domain.pid);
            let profile = domain.pids.number();
            self.data_path.unmap_portal(profile, pid, offset);
        }
        Ok(())
    }

    /// PTE_LE_INVALIDATE waits for what is still under way to an entry that was unlinked. The data
    /// path finishes a message before it looks at the next command, so that nothing ever is.
    pub(super) fn pte_le_invalidate(&self, file: u32, id: u32) -> Result<(), Errno> {
        self.pte_of(file, id).map(drop)
    }

    /// PTE_TRANSITION_SM: matching continues in software, if the caller has seen all messages
    /// that were dropped. Once software has it, nothing is looked at.
    pub(super) fn pte_transition(&self, file: u32, id: u32, drop_count: u32) -> Result<(), Errno> {
        self.pte_of(file, id)?;
        let transition = self.data_path.transition(id, drop_count);
        transition.map_err(|_| Errno::EAGAIN)
    }

    /// PTE_STATUS: changes what the caller left in its buffer. If that cannot be read, the
    /// driver forgets to let go of the entry.
    pub(super) fn pte_status(
        &mut self,
        file: u32,
        id: u32,
        read: impl FnOnce(&mut PteStatus) -> Result<(), Errno>,
    ) -> Result<(PteStatus, Vec<u64>), Errno> {
        let pte = *self.pte_of(file, id)?;
        let mut status = PteStatus::new_zeroed();
        if let Err(errno) = read(&mut status) {
            if let Some(pte) = self.ptes.table.get_mut(id) {
                pte.leaked = true;
            }
            return Err(errno);
        }
        let svc = self.lnis.get(pte.lni).map(|lni| lni.svc);
        let group = svc.and_then(|svc| self.groups.get(svc));
        let own = group.and_then(|group| Some((group.le_pools?, &group.desc.limits)));
        // Pool 0 is what services without a pool share: all LEs, none of them reserved.
        let totals = self.accounting.totals();
        let (pools, limits) = own.unwrap_or((LePools::default(), &totals));
        let allocated = self.registers.les_allocated.iter().zip(pools);
        let allocated = allocated.filter_map(|(element, pool)| element.get(usize::from(pool)));
        let portal = self.data_path.portal_status(id);
        status.drop_count = portal.drop_count;
        status.state = portal.state;
        status.les_reserved = limits.types[RSRC_LE].res;
        status.les_max = limits.types[RSRC_LE].max;
        let set = allocated.copied().max().unwrap_or(0);
        status.les_allocated = set.max(portal.les_allocated);
        let room = usize::from(status.ule_count);
        let mut offsets = portal.unexpected;
        status.ule_count = u16::try_from(offsets.len()).unwrap_or(u16::MAX);
        offsets.truncate(room);
        Ok((status, offsets))
    }

    /// Gives back what an LNI holds of portal table entries.
    pub(super) fn end_ptes(&mut self, lni: &Lni) {
        for id in &lni.free_ptes {
            self.ptes.ids.free(*id);
            self.refund(lni.svc, Slot::Pte);
        }
    }
}
