//! LNIs, the RGIDs that they share, and how they end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cxi_ioctl::Errno;

use super::accounting::{AC, CT, EQ, PTE};
use super::event_queue::SpareEq;
use super::memory::Mapping;
use super::{Model, Values, lowest_free};
use crate::sequence::operation::Caller;

const RGIDS: u32 = 255;

#[derive(Clone, Debug)]
pub struct Lni {
    /// `None`: freed, but a queue was still busy.
    pub file: Option<usize>,
    pub svc_id: u32,
    pub rgid: u32,
    /// Freed queues that still hold number and unit.
    pub freed_queues: Vec<u32>,
    /// Freed event queues, oldest first, for the next allocation.
    pub spare_eqs: VecDeque<SpareEq>,
    pub spare_ptes: VecDeque<u32>,
    /// Freed counting events, held to the end.
    pub spent_cts: Vec<u32>,
    /// The address context of each kind of mapping.
    pub contexts: BTreeMap<Mapping, u32>,
    /// RX profiles in which it has reserved PIDs, and the reservations.
    pub reservations: Vec<(u32, u32)>,
}

impl Model {
    pub(super) fn lni_alloc(&mut self, file: usize, caller: Caller, svc_id: u32) -> Values {
        let service = self.services.get(&svc_id).ok_or(Errno::EINVAL)?;
        if !service.enabled {
            return Err(Errno::EKEYREVOKED);
        }
        if !service.access.admits(caller) {
            return Err(Errno::EPERM);
        }
        let mut users: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
        for lni in self.lnis.values() {
            users.entry(lni.rgid).or_insert((lni.svc_id, 0)).1 += 1;
        }
        let share = service.lnis_per_rgid;
        let shared = users
            .iter()
            .find(|(_, (owner, users))| share >= 2 && *owner == svc_id && *users < share);
        let rgid = shared.map_or_else(|| lowest_free(1, users.keys().copied()), |(rgid, _)| *rgid);
        if rgid > RGIDS {
            return Err(Errno::ENOSPC);
        }
        let id = lowest_free(1, self.lnis.keys().copied());
        let lni = Lni {
            file: Some(file),
            svc_id,
            rgid,
            freed_queues: Vec::new(),
            spare_eqs: VecDeque::new(),
            spare_ptes: VecDeque::new(),
            spent_cts: Vec::new(),
            contexts: BTreeMap::new(),
            reservations: Vec::new(),
        };
        self.lnis.insert(id, lni);
        Ok(vec![id])
    }

    pub(super) fn lni_free(&mut self, file: usize, lni: u32) -> Values {
        self.lni(file, lni)?;
        if self.has_objects(lni) {
            return Err(Errno::EBUSY);
        }
        self.end_lni(lni);
        Ok(vec![])
    }

    /// An LNI of an open file.
    pub(super) fn lni(&mut self, file: usize, lni: u32) -> Result<&mut Lni, Errno> {
        let found = self.lnis.get_mut(&lni);
        found.filter(|found| found.file == Some(file)).ok_or(Errno::EINVAL)
    }

    /// An LNI that exists, even if it has been freed.
    pub(super) fn lni_mut(&mut self, lni: u32) -> &mut Lni {
        self.lnis.get_mut(&lni).unwrap()
    }

    /// The LNIs of an open file.
    pub fn lnis_of(&self, file: usize) -> Vec<u32> {
        let own = self.lnis.iter().filter(|(_, lni)| lni.file == Some(file));
        own.map(|(id, _)| *id).collect()
    }

    /// Objects of an LNI are in use.
    pub fn has_objects(&self, lni: u32) -> bool {
        self.cps.values().any(|cp| cp.lni == lni)
            || self.domains.values().any(|domain| domain.lni == lni)
            || self.queues.values().any(|queue| queue.lni == lni)
            || self.eqs.values().any(|eq| eq.lni == lni)
            || self.ptes.values().any(|pte| pte.lni == lni)
            || self.cts.values().any(|ct| ct.lni == lni)
            || self.mds.values().any(|md| md.lni == lni)
            || self.waits.values().any(|owner| *owner == lni)
    }

    /// Ends an LNI without objects; one with busy queues ends when they are idle.
    pub(super) fn end_lni(&mut self, id: u32) {
        self.finalize_queues(id);
        let lni = self.lni_mut(id);
        lni.file = None;
        let waits = !lni.freed_queues.is_empty();
        // Reservations go with the call that frees the LNI; its numbers and credits may wait.
        for (profile, _) in std::mem::take(&mut lni.reservations) {
            let table = self.rx.get_mut(profile);
            table.reserved_pids.retain(|(pid, owner, _)| {
                if *owner == id {
                    table.taken_pids.remove(pid);
                }
                *owner != id
            });
            self.rx.release(profile);
        }
        if waits {
            return;
        }
        let lni = self.lnis.remove(&id).unwrap();
        let svc_id = lni.svc_id;
        for eq in lni.spare_eqs {
            self.return_numbered(svc_id, EQ, eq.number);
        }
        for pte in lni.spare_ptes {
            self.return_numbered(svc_id, PTE, pte);
        }
        for ct in lni.spent_cts {
            self.return_numbered(svc_id, CT, ct);
        }
        for _ in lni.contexts {
            self.return_unit(svc_id, AC);
        }
    }

    /// Tries again to end the LNIs that were freed with busy queues.
    pub(super) fn clean_up(&mut self) {
        let pending = self.lnis.iter().filter(|(_, lni)| lni.file.is_none());
        let pending: Vec<u32> = pending.map(|(id, _)| *id).collect();
        for lni in pending {
            self.end_lni(lni);
        }
    }

    /// RGIDs in use.
    pub fn rgids(&self) -> BTreeSet<u32> {
        self.lnis.values().map(|lni| lni.rgid).collect()
    }
}
