//! The commands for LNIs, and the cleanup of what they leave.

use cxi_ioctl::Errno;
use cxi_ioctl::abi::lni::{LniAllocCmd, LniAllocCmdV1, LniAllocResp};

use super::{Call, Caller};
use crate::HazardKind;
use crate::nic::device::Device;
use crate::nic::parts::accounting::Slot;
use crate::nic::parts::descriptor;
use crate::nic::parts::lnis::{FreeEq, Lni, first_element};
use crate::nic::parts::objects::Object;
use crate::rules::MemberCheck;

pub(super) fn lni_alloc(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let svc = if device.rules.lni_alloc_long {
        call.command::<LniAllocCmd>()?.svc_id
    } else {
        call.command::<LniAllocCmdV1>()?.svc_id
    };
    let lni = device.lni_alloc(&call.caller, svc)?;
    call.made(lni, &LniAllocResp { lni })
}

impl Device {
    fn lni_alloc(&mut self, caller: &Caller<'_>, svc: u32) -> Result<u32, Errno> {
        let group = self.services.get(svc)?;
        // The driver checks this first, so even a caller who may not use the service gets
        // EKEYREVOKED.
        if !group.is_enabled() {
            return Err(Errno::EKEYREVOKED);
        }
        // Only the entries count: neither root nor a capability gets around them.
        let admitted = match self.rules.member_check {
            MemberCheck::None => descriptor::admits(&group.desc, caller.credentials, &self.rules),
            MemberCheck::Id | MemberCheck::IdAndTwice => {
                group.access.admits(caller.credentials, &self.rules)
            }
        };
        if !admitted {
            return Err(Errno::EPERM);
        }
        let is_virtual = self.files.is_virtual(caller.file);
        let joined = self.rgids.join(svc, group.lnis_per_rgid, is_virtual)?;
        // Numbers do not run out before RGIDs do.
        let id = self.lnis.live.number()?;
        let lni = Lni {
            svc,
            rgid: joined.rgid,
            wrong_rgid: joined.wrong,
            next_element: first_element(joined.rgid),
            lacs: joined.lac.into_iter().collect(),
            ..Lni::default()
        };
        self.lnis.live.put(id, (caller.file, id), lni);
        self.services.get_mut(svc)?.lnis += 1;
        Ok(id)
    }

    /// The LNI of a handle; EINVAL if it does not belong to the file.
    pub(super) fn lni_of(&self, file: u32, id: u32) -> Result<&Object<Lni>, Errno> {
        self.lnis.live.of(file, id)
    }

    /// Frees an LNI. EBUSY while it has objects. With busy queues it succeeds, and the cleanup does
    /// the rest.
    pub(super) fn lni_free(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        let mut lni = self.lnis.live.take(file, id)?.into_inner();
        self.end_reservations(id, &mut lni);
        if let Some(rgid) = lni.wrong_rgid {
            self.hazard(HazardKind::WrongRgid { lni: id, rgid });
        }
        // These are freed at once, even if a busy queue keeps the LNI.
        for lac in std::mem::take(&mut lni.lacs) {
            self.rgids.give_lac(lni.rgid, lac);
        }
        if let Some(busy) = self.lni_end(id, lni) {
            self.lnis.ending.push(busy);
            self.lnis.scheduled = true;
        }
        Ok(())
    }

    /// Returns everything that a freed LNI holds, unless its queues are busy. The LNI is then
    /// returned.
    fn lni_end(&mut self, id: u32, mut lni: Lni) -> Option<(u32, Lni)> {
        lni.freed_cqs = self.finalize_cqs(lni.svc, lni.freed_cqs);
        if !lni.freed_cqs.is_empty() {
            return Some((id, lni));
        }
        // Until now, these kept number and credit for the LNI's next queues and entries.
        for FreeEq { id, .. } in lni.free_eqs {
            self.eqs.queues.give_number(id);
            self.services.refund(lni.svc, Slot::Eq);
        }
        for id in lni.free_ptes {
            self.portals.ptes.give_number(id);
            self.services.refund(lni.svc, Slot::Pte);
        }
        for id in lni.dead_cts {
            self.cts.give_number(id);
            self.services.refund(lni.svc, Slot::Ct);
        }
        for ac in lni.acs {
            self.acs.free(ac.id);
            self.rgids.give_lac(lni.rgid, ac.lac);
            self.services.refund(lni.svc, Slot::Ac);
        }
        self.rgids.leave(lni.rgid);
        if let Ok(group) = self.services.get_mut(lni.svc) {
            group.lnis = group.lnis.saturating_sub(1);
        }
        self.lnis.live.give_number(id);
        None
    }

    /// Tries again to end the LNIs that wait for it.
    pub(super) fn end_pending_lnis(&mut self) {
        let ending = std::mem::take(&mut self.lnis.ending).into_iter();
        self.lnis.ending = ending.filter_map(|(id, lni)| self.lni_end(id, lni)).collect();
    }

    /// The cleanup that runs every second while LNIs wait for it. Returns whether it was due.
    pub(in crate::nic) fn tick(&mut self) -> bool {
        let due = self.lnis.scheduled;
        if due {
            self.end_pending_lnis();
            self.lnis.scheduled = !self.lnis.ending.is_empty();
        }
        due
    }
}
