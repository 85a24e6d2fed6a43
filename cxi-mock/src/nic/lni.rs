//! Logical network interfaces.

use std::collections::VecDeque;

use cxi_ioctl::abi::lni::{LniAllocCmd, LniAllocCmdV1, LniAllocResp, LniFreeCmd};
use cxi_ioctl::{Errno, Opcode};

use super::dispatch::Call;
use super::{Caller, Device, descriptor};
use crate::HazardKind;
use crate::rules::MemberCheck;

/// An LNI; it holds what its objects do not give back when they are freed.
#[derive(Clone, Debug)]
pub(crate) struct Lni {
    pub(crate) file: u32,
    pub(crate) svc: u32,
    pub(crate) rgid: u32,
    /// The RGID that the driver believes it to have, where that is wrong.
    pub(crate) wrong_rgid: Option<u32>,
    /// Objects that keep it from being freed.
    pub(crate) objects: u32,
    /// Command queues that are freed but keep number and credit until they are quiet.
    pub(crate) freed_cqs: Vec<u32>,
    /// Event queues to use again, oldest first.
    pub(crate) free_eqs: VecDeque<super::event_queue::FreeEq>,
    /// Portal table entries to use again, oldest first.
    pub(crate) free_ptes: VecDeque<u32>,
    /// Counters that are freed.
    pub(crate) dead_cts: Vec<u32>,
    /// Address contexts.
    pub(crate) acs: Vec<super::atu::AddressContext>,
    /// The logical address context that an LNI of a virtual function has from the start.
    pub(crate) vf_lac: Option<u8>,
    /// Where it reserved PIDs.
    pub(crate) reservations: Vec<super::domain::PidsOf>,
    /// It is freed and waits for its queues to be quiet.
    pub(crate) freed: bool,
}

impl Device {
    /// The commands for LNIs.
    pub(super) fn lni_command(&mut self, opcode: Opcode, call: &mut Call<'_>) -> Result<(), Errno> {
        match opcode {
            Opcode::LNI_ALLOC => {
                let svc = if self.rules.lni_alloc_long {
                    call.command::<LniAllocCmd>()?.svc_id
                } else {
                    call.command::<LniAllocCmdV1>()?.svc_id
                };
                let lni = self.lni_alloc(&call.caller, svc)?;
                call.made(lni, &LniAllocResp { lni })
            }
            Opcode::LNI_FREE => {
                let command: LniFreeCmd = call.command()?;
                self.lni_free(call.caller.file, command.lni)
            }
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    /// LNI_ALLOC.
    pub(super) fn lni_alloc(&mut self, caller: &Caller<'_>, svc: u32) -> Result<u32, Errno> {
        let group = self.groups.get(svc).ok_or(Errno::EINVAL)?;
        if !group.enabled {
            return Err(Errno::EKEYREVOKED);
        }
        let admitted = match self.rules.member_check {
            MemberCheck::None => descriptor::admits(&group.desc, caller.credentials, &self.rules),
            MemberCheck::Id | MemberCheck::IdAndTwice => {
                group.access.admits(caller.credentials, &self.rules)
            }
        };
        if !admitted {
            return Err(Errno::EPERM);
        }
        let joined = self.rgids.join(svc, group.lnis_per_rgid)?;
        let Some(id) = self.lni_ids.alloc() else {
            self.rgids.leave(joined.rgid);
            return Err(Errno::ENOSPC);
        };
        let virt = self.is_virtual(caller.file);
        let vf_lac = virt.then(|| self.take_lac(joined.rgid)).flatten();
        self.lnis.put(
            id,
            Lni {
                file: caller.file,
                svc,
                rgid: joined.rgid,
                wrong_rgid: joined.wrong,
                objects: 0,
                freed_cqs: Vec::new(),
                free_eqs: VecDeque::new(),
                free_ptes: VecDeque::new(),
                dead_cts: Vec::new(),
                acs: Vec::new(),
                vf_lac,
                reservations: Vec::new(),
                freed: false,
            },
        );
        if let Some(group) = self.groups.get_mut(svc) {
            group.lnis += 1;
        }
        self.file_mut(caller.file)?.lnis.insert(id);
        Ok(id)
    }

    /// The LNI of a handle, if it belongs to the file.
    pub(super) fn lni_of(&self, file: u32, id: u32) -> Result<&Lni, Errno> {
        self.lnis
            .get(id)
            .filter(|lni| lni.file == file && !lni.freed)
            .ok_or(Errno::EINVAL)
    }

    /// LNI_FREE: EBUSY while it has objects. With busy queues it succeeds, and the cleanup does
    /// the rest.
    pub(super) fn lni_free(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        if self.lni_of(file, id)?.objects > 0 {
            return Err(Errno::EBUSY);
        }
        self.file_mut(file)?.lnis.remove(&id);
        self.end_reservations(id);
        if let Some(lni) = self.lnis.get_mut(id) {
            lni.freed = true;
            if let Some(rgid) = lni.wrong_rgid {
                self.hazard(HazardKind::WrongRgid { lni: id, rgid });
            }
        }
        if !self.lni_end(id) {
            self.pending_lnis.push(id);
            self.cleanup_scheduled = true;
        }
        Ok(())
    }

    /// Gives back all that a freed LNI holds, if its queues are quiet.
    fn lni_end(&mut self, id: u32) -> bool {
        self.finalize_cqs(id);
        let quiet = |lni: &Lni| lni.freed_cqs.is_empty();
        if !self.lnis.get(id).is_some_and(quiet) {
            return false;
        }
        let Some(lni) = self.lnis.remove(id) else {
            return true;
        };
        self.end_eqs(&lni);
        self.end_ptes(&lni);
        self.end_cts(&lni);
        self.end_acs(&lni);
        self.rgids.leave(lni.rgid);
        if let Some(group) = self.groups.get_mut(lni.svc) {
            group.lnis = group.lnis.saturating_sub(1);
        }
        self.lni_ids.free(id);
        true
    }

    /// Tries again to end the LNIs that wait for it.
    pub(super) fn end_pending_lnis(&mut self) {
        let pending = std::mem::take(&mut self.pending_lnis);
        for id in pending {
            if !self.lni_end(id) {
                self.pending_lnis.push(id);
            }
        }
    }

    /// The cleanup that runs every second while LNIs wait for it.
    pub(super) fn tick(&mut self) -> bool {
        if !std::mem::take(&mut self.cleanup_scheduled) {
            return false;
        }
        self.end_pending_lnis();
        self.cleanup_scheduled = !self.pending_lnis.is_empty();
        true
    }

    /// Charges a unit to the service of an LNI.
    pub(super) fn charge(&mut self, svc: u32, slot: super::Slot) -> Result<(), Errno> {
        let group = self.groups.get_mut(svc).ok_or(Errno::EINVAL)?;
        if !group.enabled {
            return Err(Errno::EKEYREVOKED);
        }
        self.accounting.charge(&mut group.entries, slot)
    }

    /// Gives a unit back.
    pub(super) fn refund(&mut self, svc: u32, slot: super::Slot) {
        if let Some(group) = self.groups.get_mut(svc) {
            self.accounting.refund(&mut group.entries, slot);
        }
    }

    /// One more object keeps an LNI.
    pub(super) fn hold_lni(&mut self, id: u32) {
        if let Some(lni) = self.lnis.get_mut(id) {
            lni.objects += 1;
        }
    }

    pub(super) fn unhold_lni(&mut self, id: u32) {
        if let Some(lni) = self.lnis.get_mut(id) {
            lni.objects = lni.objects.saturating_sub(1);
        }
    }
}
