//! Domains and reservations of PIDs.

use cxi_ioctl::Errno;
use cxi_ioctl::abi::domain::{DomainAllocCmd, DomainReserveCmd};

use super::file::owned;
use super::profile::vni;
use super::{Model, Values, lowest_free};
use crate::sequence::operation::Caller;

pub const PID_ANY: u32 = 511;
/// Never chosen for a caller that takes any.
const LAST_PID: u32 = 510;

#[derive(Clone, Copy, Debug)]
pub struct Domain {
    pub file: usize,
    pub lni: u32,
    pub profile: u32,
    pub vni: u16,
    pub pid: u32,
}

impl Model {
    pub(super) fn domain_alloc(
        &mut self,
        file: usize,
        caller: Caller,
        asked: &DomainAllocCmd,
    ) -> Values {
        let lni = asked.lni;
        self.lni(file, lni)?;
        if asked.pid > PID_ANY {
            return Err(Errno::EINVAL);
        }
        let vni = vni(asked.vni)?;
        let profile = self.rx.find_or_create(vni, caller)?;
        let (pid, reservation) = self
            .choose_pid(profile, lni, vni, asked.pid)
            .inspect_err(|_| self.rx.sweep(profile))?;
        self.rx.hold(profile);
        match reservation {
            Some(reservation) => self.use_up(lni, pid, reservation),
            None => drop(self.rx.get_mut(profile).taken_pids.insert(pid)),
        }
        let id = lowest_free(1, self.domains.keys().copied());
        let domain = Domain { file, lni, profile, vni, pid };
        self.domains.insert(id, domain);
        Ok(vec![id, asked.vni, pid])
    }

    /// The PID, and the profile and number of the reservation that it is used up of. That may be
    /// another profile that has the VNI.
    fn choose_pid(
        &self,
        profile: u32,
        lni: u32,
        vni: u16,
        pid: u32,
    ) -> Result<(u32, Option<(u32, u32)>), Errno> {
        let (pid, reservation) = if pid == PID_ANY {
            let pid = self.next_pid(profile);
            if pid >= LAST_PID {
                return Err(Errno::ENOSPC);
            }
            (pid, None)
        } else if self.rx.get(profile).taken_pids.contains(&pid) {
            let mut reservations = self.lnis[&lni].reservations.iter().copied();
            let reservation = reservations.find(|(there, reservation)| {
                let there = self.rx.get(*there);
                there.matches(vni) && there.reserved_pids.contains(&(pid, lni, *reservation))
            });
            (pid, Some(reservation.ok_or(Errno::EEXIST)?))
        } else {
            (pid, None)
        };
        if self.pid_is_elsewhere(vni, pid) {
            return Err(Errno::EEXIST);
        }
        Ok((pid, reservation))
    }

    /// A reservation is for the first domain on the PID alone.
    fn use_up(&mut self, lni: u32, pid: u32, (profile, reservation): (u32, u32)) {
        let reserved = &mut self.rx.get_mut(profile).reserved_pids;
        reserved.remove(&(pid, lni, reservation));
        if !reserved.iter().any(|(_, _, other)| *other == reservation) {
            let reservations = &mut self.lni_mut(lni).reservations;
            reservations.retain(|(_, other)| *other != reservation);
            self.rx.release(profile);
        }
    }

    /// The PID that a caller that takes any would get.
    pub fn next_pid(&self, profile: u32) -> u32 {
        lowest_free(0, self.rx.get(profile).taken_pids.iter().copied())
    }

    pub fn pid_is_elsewhere(&self, vni: u16, pid: u32) -> bool {
        self.domains.values().any(|domain| (domain.vni, domain.pid) == (vni, pid))
    }

    pub(super) fn domain_free(&mut self, file: usize, domain: u32) -> Values {
        owned(&self.domains, file, domain)?;
        if self.mappings.values().any(|mapped| mapped.domain == domain) {
            return Err(Errno::EBUSY);
        }
        self.drop_domain(domain);
        Ok(vec![])
    }

    pub(super) fn drop_domain(&mut self, domain: u32) {
        let domain = self.domains.remove(&domain).unwrap();
        let table = self.rx.get_mut(domain.profile);
        table.taken_pids.remove(&domain.pid);
        self.rx.release(domain.profile);
    }

    pub(super) fn domain_reserve(
        &mut self,
        file: usize,
        caller: Caller,
        asked: &DomainReserveCmd,
    ) -> Values {
        let (lni, pid, count) = (asked.lni, asked.pid, asked.count);
        self.lni(file, lni)?;
        if pid > PID_ANY || count == 0 || count > PID_ANY {
            return Err(Errno::EINVAL);
        }
        let found = self.rx.find(vni(asked.vni)?, caller);
        let profile = found.map_err(|_| Errno::EINVAL)?;
        let taken = &self.rx.get(profile).taken_pids;
        let first = if pid == PID_ANY { 0 } else { pid };
        let run = (first..=LAST_PID).find(|start| {
            start + count <= LAST_PID + 1
                && (*start..start + count).all(|pid| !taken.contains(&pid))
        });
        let start = if pid == PID_ANY {
            run.filter(|start| start + count <= LAST_PID).ok_or(Errno::ENOSPC)?
        } else {
            run.filter(|start| *start < pid + count).ok_or(Errno::EEXIST)?
        };
        self.rx.hold(profile);
        self.reservations += 1;
        let reservation = self.reservations;
        let run = start..start + count;
        let table = self.rx.get_mut(profile);
        table.taken_pids.extend(run.clone());
        table.reserved_pids.extend(run.map(|pid| (pid, lni, reservation)));
        let reservations = &mut self.lni(file, lni)?.reservations;
        reservations.push((profile, reservation));
        Ok(vec![start])
    }
}
