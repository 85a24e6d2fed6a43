//! The commands for domains and reservations of PIDs.

use cxi_ioctl::Errno;
use cxi_ioctl::abi::domain::{
    DomainAllocCmd, DomainAllocResp, DomainReserveCmd, DomainReserveResp, PID_ANY,
};

use super::profile::valid_vni;
use super::{Call, Caller};
use crate::HazardKind;
use crate::nic::device::Device;
use crate::nic::parts::domains::Domain;
use crate::nic::parts::lnis::Lni;
use crate::nic::parts::vnis::PidsOf;

pub(super) fn domain_reserve(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let pid = device.domain_reserve(&call.caller, call.command()?)?;
    call.respond(&DomainReserveResp { pid })
}

pub(super) fn domain_alloc(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let response = device.domain_alloc(&call.caller, call.command()?)?;
    call.made(response.domain, &response)
}

impl Device {
    fn domain_alloc(
        &mut self,
        caller: &Caller<'_>,
        command: DomainAllocCmd,
    ) -> Result<DomainAllocResp, Errno> {
        let DomainAllocCmd { lni, vni, pid, .. } = command;
        self.lni_of(caller.file, lni)?;
        let vni = valid_vni(vni)?;
        if pid >= self.domains.pid_count() && pid != PID_ANY {
            return Err(Errno::EINVAL);
        }
        let pids = self.vnis.right_to_receive(caller.credentials, vni)?;
        let taken = self.take_pid(lni, vni, pid, pids);
        let pid = taken.inspect_err(|_| self.vnis.drop_pids_user(pids))?;
        let id = self.domains.add((caller.file, lni), Domain { vni, pid, pids })?;
        let vnis = self.vnis.vnis_of(pids).unwrap_or(vni..=vni);
        let engine = &mut self.data_path.state().engine;
        engine.add_receive_profile(pids.number(), vnis);
        self.lnis.live.hold(lni);
        Ok(DomainAllocResp { domain: id, vni: command.vni, pid })
    }

    /// The first PID that a request for any PID does not get.
    fn end_of_any(&self) -> u32 {
        self.domains.pid_count() - u32::from(self.rules.last_pid_not_any)
    }

    fn take_pid(&mut self, lni: u32, vni: u16, pid: u32, of: PidsOf) -> Result<u32, Errno> {
        let end_of_any = self.end_of_any();
        let pids = self.vnis.pids_mut(of).ok_or(Errno::EINVAL)?;
        if pid == PID_ANY {
            let found = pids.free_run(0, 1, end_of_any).ok_or(Errno::ENOSPC)?;
            pids.take(found);
            // The driver keeps the PID taken if another profile's domain has it.
            if self.domains.has(vni, found) {
                return Err(Errno::EEXIST);
            }
            return Ok(found);
        }
        let reservation = if pids.is_taken(pid) {
            Some(self.reservation(lni, vni, pid).ok_or(Errno::EEXIST)?)
        } else {
            None
        };
        if self.domains.has(vni, pid) {
            return Err(Errno::EEXIST);
        }
        match reservation {
            Some(reservation) => self.use_up(lni, pid, reservation),
            None => self.vnis.pids_mut(of).ok_or(Errno::EINVAL)?.take(pid),
        }
        Ok(pid)
    }

    /// The PIDs among which an LNI has reserved one for a VNI. They may be another profile's than
    /// the one that admits the caller now.
    fn reservation(&self, lni: u32, vni: u16, pid: u32) -> Option<PidsOf> {
        let mut reservations = self.lnis.live.get(lni)?.reservations.iter().copied();
        reservations.find(|of| {
            let has_vni = self.vnis.vnis_of(*of).is_some_and(|vnis| vnis.contains(&vni));
            let mut pids = self.vnis.pids(*of).into_iter();
            has_vni && pids.any(|pids| pids.is_reserved_for(pid, lni))
        })
    }

    pub(super) fn domain_free(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        let domain = self.domains.remove(file, id)?;
        if let Some(pids) = self.vnis.pids_mut(domain.pids) {
            pids.give(domain.pid);
        }
        if !self.domains.any_of(domain.pids) {
            let engine = &mut self.data_path.state().engine;
            engine.remove_receive_profile(domain.pids.number());
        }
        self.vnis.drop_pids_user(domain.pids);
        self.lnis.live.release(domain.lni);
        Ok(())
    }

    /// Returns the first PID. Never makes a profile.
    fn domain_reserve(
        &mut self,
        caller: &Caller<'_>,
        command: DomainReserveCmd,
    ) -> Result<u32, Errno> {
        let DomainReserveCmd { lni, pid, count, .. } = command;
        let svc = self.lni_of(caller.file, lni)?.svc;
        let vni = valid_vni(command.vni)?;
        let pid_count = self.domains.pid_count();
        if count == 0 || count > pid_count || (pid >= pid_count && pid != PID_ANY) {
            return Err(Errno::EINVAL);
        }
        let desc = &self.services.get(svc)?.desc;
        let of = self.vnis.right_to_reserve(caller.credentials, desc, vni)?;
        let end_of_any = self.end_of_any();
        let pids = self.vnis.pids_mut(of).ok_or(Errno::EINVAL)?;
        let found = if pid == PID_ANY {
            pids.free_run(0, count, end_of_any).ok_or(Errno::ENOSPC)
        } else {
            // The driver searches from the PID on, and accepts any run that overlaps the requested
            // one.
            pids.free_run(pid, count, pid_count)
                .filter(|first| *first < pid.saturating_add(count))
                .ok_or(Errno::EEXIST)
        };
        if let Ok(first) = found {
            pids.reserve(lni, first, count);
        } else if !self.rules.failed_reserve_corrupts {
            self.vnis.drop_pids_user(of);
            return found;
        } else {
            self.hazard(HazardKind::ReserveOutsideTable { vni: vni.into() });
        }
        if let Some(lni) = self.lnis.live.get_mut(lni) {
            lni.reservations.push(of);
        }
        found
    }

    /// Removes a PID from an LNI's reservation, which ends with its last one.
    fn use_up(&mut self, lni: u32, pid: u32, of: PidsOf) {
        let last = self.vnis.pids_mut(of).is_some_and(|pids| pids.use_up(pid, lni));
        let Some(lni) = self.lnis.live.get_mut(lni).filter(|_| last) else { return };
        if let Some(index) = lni.reservations.iter().position(|there| *there == of) {
            lni.reservations.remove(index);
            self.vnis.drop_pids_user(of);
        }
    }

    /// Ends the PID reservations of an LNI that is freed.
    pub(super) fn end_reservations(&mut self, id: u32, lni: &mut Lni) {
        for of in std::mem::take(&mut lni.reservations) {
            if let Some(pids) = self.vnis.pids_mut(of) {
                pids.release(id);
            }
            self.vnis.drop_pids_user(of);
        }
    }
}
