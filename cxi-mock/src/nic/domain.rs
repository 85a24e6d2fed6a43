//! Domains: a VNI and a PID that targets are reached by.

use std::collections::BTreeMap;

use cxi_ioctl::abi::domain::{
    DomainAllocCmd, DomainAllocResp, DomainFreeCmd, DomainReserveCmd, DomainReserveResp, PID_ANY,
};
use cxi_ioctl::{Errno, Opcode};

use super::cp::valid_vni;
use super::dispatch::Call;
use super::ids::Ids;
use super::pid::{PidTable, Used};
use super::profile::{Lookup, Profile, Rx};
use super::table::Table;
use super::{Caller, Device, descriptor};
use crate::HazardKind;
use crate::rules::{FailedReserve, PrivateRxProfile, VniAuthority};

/// Bits of a PID and its PtlTE offset together.
const INDEX_BITS: u32 = 17;

/// PtlTE offsets for each PID.
pub(super) const fn pid_granule(pid_bits: u32) -> u32 {
    1 << (INDEX_BITS - pid_bits)
}

/// Whose PIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PidsOf {
    /// A receive profile's.
    Profile(u32),
    /// A VNI's, where there are no profiles.
    Vni(u16),
}

impl PidsOf {
    /// The number that the data path has for it.
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::Profile(id) => id,
            Self::Vni(vni) => 1 << 31 | u32::from(vni),
        }
    }
}

/// A domain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Domain {
    pub(crate) file: u32,
    pub(crate) lni: u32,
    pub(crate) vni: u16,
    pub(crate) pid: u32,
    pub(crate) pids: PidsOf,
    /// PtlTEs mapped into it.
    pub(crate) mapped: u32,
}

/// The PIDs of a VNI that is in use, where there are no profiles.
#[derive(Clone, Debug)]
struct VniPids {
    pids: PidTable,
    /// Slot of the VNI table.
    slot: u32,
    users: u32,
}

/// All domains.
#[derive(Clone, Debug)]
pub(crate) struct Domains {
    ids: Ids,
    table: Table<Domain>,
    by_pid: BTreeMap<(u16, u32), u32>,
    by_vni: BTreeMap<u16, VniPids>,
    pid_bits: u32,
}

impl Domains {
    pub(crate) fn new(pid_bits: u32) -> Self {
        Self {
            ids: Ids::new(1, u32::MAX),
            table: Table::default(),
            by_pid: BTreeMap::new(),
            by_vni: BTreeMap::new(),
            pid_bits,
        }
    }

    pub(crate) fn count(&self) -> u32 {
        self.table.count()
    }

    /// PIDs there are; the highest number stands for any.
    pub(crate) fn pid_count(&self) -> u32 {
        (1 << self.pid_bits) - 1
    }

    /// PtlTE offsets for each PID.
    pub(crate) fn pid_granule(&self) -> u32 {
        pid_granule(self.pid_bits)
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Domain> {
        self.table.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut Domain> {
        self.table.get_mut(id)
    }
}

impl Device {
    /// The commands for domains.
    pub(super) fn domain_command(
        &mut self,
        opcode: Opcode,
        call: &mut Call<'_>,
    ) -> Result<(), Errno> {
        let file = call.caller.file;
        match opcode {
            Opcode::DOMAIN_RESERVE => {
                let command: DomainReserveCmd = call.command()?;
                let DomainReserveCmd {
                    lni,
                    vni,
                    pid,
                    count,
                    ..
                } = command;
                let pid = self.domain_reserve(&call.caller, lni, vni, pid, count)?;
                call.respond(&DomainReserveResp { pid })
            }
            Opcode::DOMAIN_ALLOC => {
                let DomainAllocCmd { lni, vni, pid, .. } = call.command()?;
                let (domain, pid) = self.domain_alloc(&call.caller, lni, vni, pid)?;
                call.made(domain, &DomainAllocResp { domain, vni, pid })
            }
            Opcode::DOMAIN_FREE => {
                let command: DomainFreeCmd = call.command()?;
                self.domain_free(file, command.domain)
            }
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    /// DOMAIN_ALLOC: a handle and a PID.
    pub(super) fn domain_alloc(
        &mut self,
        caller: &Caller<'_>,
        lni: u32,
        vni: u32,
        pid: u32,
    ) -> Result<(u32, u32), Errno> {
        self.lni_of(caller.file, lni)?;
        let vni = valid_vni(vni)?;
        if pid >= self.domains.pid_count() && pid != PID_ANY {
            return Err(Errno::EINVAL);
        }
        let pids = self.right_to_receive(caller, vni)?;
        let taken = self.take_pid(lni, vni, pid, pids);
        let pid = match taken {
            Ok(pid) => pid,
            Err(errno) => {
                self.drop_pids_user(pids);
                return Err(errno);
            }
        };
        let domain = Domain {
            file: caller.file,
            lni,
            vni,
            pid,
            pids,
            mapped: 0,
        };
        let id = self.domains.ids.alloc().ok_or(Errno::ENOSPC)?;
        self.domains.by_pid.insert((vni, pid), id);
        self.domains.table.put(id, domain);
        let vnis = match pids {
            PidsOf::Profile(rx) => self.rx.get(rx).map(|rx| rx.vni..=rx.last()),
            PidsOf::Vni(vni) => Some(vni..=vni),
        };
        let vnis = vnis.unwrap_or(vni..=vni);
        self.data_path.add_receive_profile(pids.number(), vnis);
        self.file_mut(caller.file)?.domains.insert(id);
        self.hold_lni(lni);
        Ok((id, pid))
    }

    /// Finds or makes what the PIDs of a VNI belong to, for one more user.
    fn right_to_receive(&mut self, caller: &Caller<'_>, vni: u16) -> Result<PidsOf, Errno> {
        if self.rules.vni_authority == VniAuthority::Descriptor {
            return self.use_vni(vni);
        }
        let id = match self.rx.lookup(vni, caller.credentials, &self.rules) {
            Lookup::Found(id) => id,
            Lookup::Refused => return Err(Errno::EPERM),
            Lookup::Unknown => self.private_rx(caller, vni)?,
        };
        if let Some(rx) = self.rx.get_mut(id) {
            rx.users += 1;
        }
        Ok(PidsOf::Profile(id))
    }

    fn private_rx(&mut self, caller: &Caller<'_>, vni: u16) -> Result<u32, Errno> {
        let uid = caller.credentials.uid;
        if uid != 0 && self.rules.private_rx_profile == PrivateRxProfile::Root {
            return Err(Errno::ENOENT);
        }
        let profile = Profile::private(vni, uid, Rx::default());
        let id = self.rx.add(profile, self.rules.vni_exclusivity)?;
        let Some(slot) = self.vni_table.alloc() else {
            self.rx.remove(id);
            return Err(Errno::ENOSPC);
        };
        if let Some(rx) = self.rx.get_mut(id) {
            rx.extra.vni_slot = Some(slot);
        }
        Ok(id)
    }

    fn use_vni(&mut self, vni: u16) -> Result<PidsOf, Errno> {
        if let Some(used) = self.domains.by_vni.get_mut(&vni) {
            used.users += 1;
        } else {
            let slot = self.vni_table.alloc().ok_or(Errno::ENOSPC)?;
            let used = VniPids {
                pids: PidTable::default(),
                slot,
                users: 1,
            };
            self.domains.by_vni.insert(vni, used);
        }
        Ok(PidsOf::Vni(vni))
    }

    fn pids_mut(&mut self, pids: PidsOf) -> Option<&mut PidTable> {
        match pids {
            PidsOf::Profile(id) => self.rx.get_mut(id).map(|rx| &mut rx.extra.pids),
            PidsOf::Vni(vni) => {
                let used = self.domains.by_vni.get_mut(&vni)?;
                Some(&mut used.pids)
            }
        }
    }

    fn drop_pids_user(&mut self, pids: PidsOf) {
        match pids {
            PidsOf::Profile(id) => {
                if let Some(rx) = self.rx.get_mut(id) {
                    rx.users = rx.users.saturating_sub(1);
                    self.remove_rx_if_unused(id);
                }
            }
            PidsOf::Vni(vni) => {
                let Some(used) = self.domains.by_vni.get_mut(&vni) else {
                    return;
                };
                used.users = used.users.saturating_sub(1);
                if used.users == 0
                    && let Some(used) = self.domains.by_vni.remove(&vni)
                {
                    self.vni_table.free(used.slot);
                }
            }
        }
    }

    /// First PID that asking for any does not find.
    fn end_of_any(&self) -> u32 {
        self.domains.pid_count() - u32::from(self.rules.last_pid_not_any)
    }

    fn take_pid(&mut self, lni: u32, vni: u16, pid: u32, of: PidsOf) -> Result<u32, Errno> {
        let end_of_any = self.end_of_any();
        let pids = self.pids_mut(of).ok_or(Errno::EINVAL)?;
        if pid == PID_ANY {
            let found = pids.free_run(0, 1, end_of_any).ok_or(Errno::ENOSPC)?;
            pids.take(found, lni);
            // The driver does not give the PID back when another profile's domain has it.
            if self.domains.by_pid.contains_key(&(vni, found)) {
                return Err(Errno::EEXIST);
            }
            return Ok(found);
        }
        if pids.is_taken(pid) && !pids.is_reserved_for(pid, lni) {
            return Err(Errno::EEXIST);
        }
        if self.domains.by_pid.contains_key(&(vni, pid)) {
            return Err(Errno::EEXIST);
        }
        let used = self.pids_mut(of).map(|pids| pids.take(pid, lni));
        if used == Some(Used::Last) {
            self.end_reservation(lni, of);
        }
        Ok(pid)
    }

    /// DOMAIN_FREE.
    pub(super) fn domain_free(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        let domain = *self.domain_of(file, id)?;
        if domain.mapped > 0 {
            return Err(Errno::EBUSY);
        }
        self.domains.table.remove(id);
        self.domains.by_pid.remove(&(domain.vni, domain.pid));
        self.domains.ids.free(id);
        if let Some(pids) = self.pids_mut(domain.pids) {
            pids.give(domain.pid);
        }
        let shares = |(_, other): (u32, &Domain)| other.pids == domain.pids;
        if !self.domains.table.iter().any(shares) {
            self.data_path.remove_receive_profile(domain.pids.number());
        }
        self.drop_pids_user(domain.pids);
        self.file_mut(file)?.domains.remove(&id);
        self.unhold_lni(domain.lni);
        Ok(())
    }

    /// The domain of a handle, if it belongs to the file.
    pub(super) fn domain_of(&self, file: u32, id: u32) -> Result<&Domain, Errno> {
        self.domains
            .get(id)
            .filter(|domain| domain.file == file)
            .ok_or(Errno::EINVAL)
    }

    /// DOMAIN_RESERVE: the first PID. Never makes a profile.
    pub(super) fn domain_reserve(
        &mut self,
        caller: &Caller<'_>,
        lni: u32,
        vni: u32,
        pid: u32,
        count: u32,
    ) -> Result<u32, Errno> {
        let svc = self.lni_of(caller.file, lni)?.svc;
        let vni = valid_vni(vni)?;
        let pid_count = self.domains.pid_count();
        if count == 0 || count > pid_count || (pid >= pid_count && pid != PID_ANY) {
            return Err(Errno::EINVAL);
        }
        let of = self.right_to_reserve(caller, svc, vni)?;
        let end_of_any = self.end_of_any();
        let pids = self.pids_mut(of).ok_or(Errno::EINVAL)?;
        let found = if pid == PID_ANY {
            pids.free_run(0, count, end_of_any).ok_or(Errno::ENOSPC)
        } else {
            pids.free_run(pid, count, pid_count)
                .filter(|first| *first < pid.saturating_add(count))
                .ok_or(Errno::EEXIST)
        };
        if let Ok(first) = found {
            pids.reserve(lni, first, count);
        } else if self.rules.failed_reserve == FailedReserve::Harmless {
            self.drop_pids_user(of);
            return found;
        } else {
            self.hazard(HazardKind::ReserveOutsideTable { vni: vni.into() });
        }
        if let Some(lni) = self.lnis.get_mut(lni) {
            lni.reservations.push(of);
        }
        found
    }

    fn right_to_reserve(
        &mut self,
        caller: &Caller<'_>,
        svc: u32,
        vni: u16,
    ) -> Result<PidsOf, Errno> {
        if self.rules.vni_authority == VniAuthority::Descriptor {
            let group = self.groups.get(svc).ok_or(Errno::EINVAL)?;
            if !descriptor::has_vni(&group.desc, vni) {
                return Err(Errno::EINVAL);
            }
            return self.use_vni(vni);
        }
        let Lookup::Found(id) = self.rx.lookup(vni, caller.credentials, &self.rules) else {
            return Err(Errno::EINVAL);
        };
        if let Some(rx) = self.rx.get_mut(id) {
            rx.users += 1;
        }
        Ok(PidsOf::Profile(id))
    }

    /// Lets go of a reservation whose last PID is used up.
    fn end_reservation(&mut self, lni: u32, of: PidsOf) {
        let Some(lni) = self.lnis.get_mut(lni) else {
            return;
        };
        if let Some(index) = lni.reservations.iter().position(|there| *there == of) {
            lni.reservations.remove(index);
            self.drop_pids_user(of);
        }
    }

    /// Ends the PID reservations of an LNI.
    pub(super) fn end_reservations(&mut self, lni: u32) {
        let Some(entry) = self.lnis.get_mut(lni) else {
            return;
        };
        for of in std::mem::take(&mut entry.reservations) {
            if let Some(pids) = self.pids_mut(of) {
                pids.release(lni);
            }
            self.drop_pids_user(of);
        }
    }
}
