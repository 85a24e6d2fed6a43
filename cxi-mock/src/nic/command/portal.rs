//! The commands for portal table entries and their mappings.

use cxi_engine::{EntryPool, Portal, PortalOptions};
use cxi_ioctl::Errno;
use cxi_ioctl::abi::portal::{
    PtOptions, PteAllocCmd, PteAllocResp, PteLeInvalidateCmd, PteMapCmd, PteMapResp, PteStatus,
    PteStatusCmd, PteTransitionSmCmd,
};
use cxi_ioctl::abi::service::RSRC_LE;
use zerocopy::{FromZeros, IntoBytes};

use super::{Call, Caller};
use crate::data_path::small;
use crate::nic::device::Device;
use crate::nic::parts::accounting::Slot;
use crate::nic::parts::lnis::Lni;
use crate::nic::parts::pools::LePools;
use crate::nic::parts::portals::{Pte, PteMap};

/// Offsets that a multicast address can have.
const MULTICAST_OFFSETS: u32 = 1 << 18;

/// The state of entries for Ethernet frames, which the data path does not have.
const ETHERNET_STATE: u8 = 4;

pub(super) fn pte_alloc(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let pte_number = device.pte_alloc(&call.caller, &call.command()?)?;
    call.made(pte_number, &PteAllocResp { pte_number })
}

pub(super) fn pte_map(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let file = call.caller.file;
    let command: PteMapCmd = call.command()?;
    let map = PteMap {
        pte: command.pte_number,
        domain: command.domain_hndl,
        offset: command.pid_offset,
        multicast: command.is_multicast != 0,
    };
    let pte_index = device.pte_map(file, map)?;
    call.made(pte_index, &PteMapResp { pte_index })
}

pub(super) fn pte_le_invalidate(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let file = call.caller.file;
    let command: PteLeInvalidateCmd = call.command()?;
    // The driver waits for messages that are still on their way to an unlinked entry.
    // The data path finishes each message before the next command, so there are none.
    device.portals.ptes.of(file, command.pte_index).map(drop)
}

pub(super) fn pte_status(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let file = call.caller.file;
    let command: PteStatusCmd = call.command()?;
    let read = |status: &mut PteStatus| call.memory.read_response(status.as_mut_bytes());
    let (status, offsets) = device.pte_status(file, command.pte_index, read)?;
    if status.ule_offsets != 0 && !offsets.is_empty() {
        call.memory.list = Some(offsets.as_bytes().to_vec());
    }
    call.respond(&status)
}

pub(super) fn pte_transition_sm(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let file = call.caller.file;
    let command: PteTransitionSmCmd = call.command()?;
    device.pte_transition(file, command.pte_index, command.drop_count)
}

impl Device {
    /// Allocates an entry, under the oldest number that the LNI holds or a new one.
    fn pte_alloc(&mut self, caller: &Caller<'_>, command: &PteAllocCmd) -> Result<u32, Errno> {
        let (lni, eq) = (command.lni_hndl, command.evtq_hndl);
        let Lni { svc, rgid, .. } = **self.lni_of(caller.file, lni)?;
        if eq != 0 {
            self.eqs.queues.of(caller.file, eq)?;
        }
        let options = PtOptions::from_bits_truncate(command.opts.bits);
        if options.contains(PtOptions::ETHERNET) && !caller.credentials.net_raw {
            return Err(Errno::EPERM);
        }
        let owner = self.lnis.live.get_mut(lni);
        let id = if let Some(held) = owner.and_then(|lni| lni.free_ptes.pop_front()) {
            held
        } else {
            self.services.may_charge(svc, Slot::Pte)?;
            let id = self.portals.ptes.number()?;
            self.services.charge(svc, Slot::Pte)?;
            id
        };
        let ethernet = options.contains(PtOptions::ETHERNET);
        let listed = options.intersects(PtOptions::IS_MATCHING | PtOptions::DO_SPACE_CHECK);
        let counted = !ethernet && !listed && self.portals.take_counter();
        // Entries of an LNI go to the processing elements in turn, whatever their numbers.
        let element = self.lnis.live.of_mut(caller.file, lni)?.take_element();
        let pte = Pte { eq, multicast: None, counted, ethernet, element };
        self.portals.ptes.put(id, (caller.file, lni), pte);
        self.eqs.queues.hold(eq);
        self.lnis.live.hold(lni);
        let pools = self.services.get(svc)?.reserved.le_pools.unwrap_or_default();
        let portal = Portal {
            rgid: small(rgid),
            eq: small(eq),
            options: PortalOptions::from_bits_truncate(options.bits()),
            pool: EntryPool { element, pool: pools[usize::from(element)] },
        };
        self.data_path.state().engine.add_portal(small(id), portal);
        Ok(id)
    }

    /// Frees an entry. The LNI keeps number and credit for its next one.
    pub(super) fn pte_free(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        let pte = self.portals.take(file, id)?;
        self.data_path.state().engine.remove_portal(small(id));
        self.eqs.queues.release(pte.eq);
        self.lnis.live.release(pte.lni);
        if let Some(lni) = self.lnis.live.get_mut(pte.lni) {
            lni.free_ptes.push_back(id);
        }
        Ok(())
    }

    /// Returns the device's number of the mapping. A place in a domain can be mapped several times.
    /// An entry has at most one multicast address, which is not shared.
    fn pte_map(&mut self, file: u32, map: PteMap) -> Result<u32, Errno> {
        let pte = self.portals.ptes.of(file, map.pte)?;
        let domain = self.domains.objects.of(file, map.domain)?.clone();
        let end = if map.multicast { MULTICAST_OFFSETS } else { self.domains.pid_granule() };
        if domain.lni != pte.lni || map.offset >= end || (map.multicast && pte.multicast.is_some())
        {
            return Err(Errno::EINVAL);
        }
        let id = self.portals.map(file, map)?;
        self.domains.objects.hold(map.domain);
        let engine = &mut self.data_path.state().engine;
        let (profile, pte) = (domain.pids.number(), small(map.pte));
        if map.multicast {
            engine.map_multicast(profile, map.offset, pte);
        } else {
            engine.map_portal(profile, small(domain.pid), small(map.offset), pte);
        }
        Ok(id)
    }

    pub(super) fn pte_unmap(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        let map = self.portals.unmap(file, id)?;
        self.domains.objects.release(map.domain);
        if let Some(domain) = self.domains.objects.get(map.domain) {
            let engine = &mut self.data_path.state().engine;
            let profile = domain.pids.number();
            if map.multicast {
                engine.unmap_multicast(profile, map.offset);
            } else {
                engine.unmap_portal(profile, small(domain.pid), small(map.offset));
            }
        }
        Ok(())
    }

    /// Lets software do the matching if the caller has seen all messages that were dropped. Once
    /// software does, the count is ignored.
    fn pte_transition(&self, file: u32, id: u32, drop_count: u32) -> Result<(), Errno> {
        // The relay of virtual functions has no such command.
        if self.files.is_virtual(file) {
            return Err(Errno::EOPNOTSUPP);
        }
        if self.portals.ptes.of(file, id)?.ethernet {
            return Err(Errno::EINVAL);
        }
        let engine = &mut self.data_path.state().engine;
        engine.transition_to_software(small(id), drop_count).map_err(|_| Errno::EAGAIN)
    }

    /// Changes what the caller left in its buffer.
    fn pte_status(
        &mut self,
        file: u32,
        id: u32,
        read: impl FnOnce(&mut PteStatus) -> Result<(), Errno>,
    ) -> Result<(PteStatus, Vec<u64>), Errno> {
        let pte = self.portals.ptes.of(file, id)?;
        let (lni, element, ethernet) = (pte.lni, usize::from(pte.element), pte.ethernet);
        let mut status = PteStatus::new_zeroed();
        if let Err(errno) = read(&mut status) {
            // The driver forgets to release the entry, which stays until the file is closed.
            self.portals.ptes.hold(id);
            return Err(errno);
        }
        let svc = self.lnis.live.get(lni).map(|lni| lni.svc);
        let group = svc.and_then(|svc| self.services.get(svc).ok());
        let own = group.and_then(|group| Some((group.reserved.le_pools?, &group.desc.limits)));
        // Pool 0 is what services without a pool share: all LEs, none of them reserved.
        let totals = self.services.totals();
        let (pools, limits) = own.unwrap_or((LePools::default(), &totals));
        let pool = pools.get(element).copied().map_or(0, usize::from);
        let set = self.registers.les_allocated.get(element);
        let set = set.and_then(|pools| pools.get(pool)).copied();
        let portal = self.data_path.portal_status(id);
        status.drop_count = portal.drop_count;
        status.state = if ethernet { ETHERNET_STATE } else { portal.state };
        status.les_reserved = limits.types[RSRC_LE].res;
        status.les_max = limits.types[RSRC_LE].max;
        status.les_allocated = set.unwrap_or(0).max(portal.les_allocated);
        let room = usize::from(status.ule_count);
        let mut offsets = portal.unexpected;
        // The field has 16 bits, so longer lists are reported with the largest length that fits.
        status.ule_count = u16::try_from(offsets.len()).unwrap_or(u16::MAX);
        offsets.truncate(room);
        Ok((status, offsets))
    }
}
