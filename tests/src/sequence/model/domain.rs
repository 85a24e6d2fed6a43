//! Domains and reservations of PIDs.

use std::collections::BTreeSet;

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
        let pid = self
            .choose_pid(profile, lni, vni, asked.pid)
            .inspect_err(|_| self.rx.sweep(profile))?;
        self.rx.hold(profile);
        let table = self.rx.get_mut(profile);
        table.used_pids.insert(pid);
        // A reservation is for the first domain on the PID alone.
        if let Some((_, reservation)) = table.reserved_pids.remove(&pid)
            && !table.reserved_pids.values().any(|(_, other)| *other == reservation)
        {
            let reservations = &mut self.lni(file, lni)?.reservations;
            reservations.retain(|(_, other)| *other != reservation);
            self.rx.release(profile);
        }
        let id = lowest_free(1, self.domains.keys().copied());
        let domain = Domain { file, lni, profile, vni, pid };
        self.domains.insert(id, domain);
        Ok(vec![id, asked.vni, pid])
    }

    fn choose_pid(&self, profile: u32, lni: u32, vni: u16, pid: u32) -> Result<u32, Errno> {
        let table = self.rx.get(profile);
        let pid = if pid == PID_ANY {
            let pid = lowest_free(0, self.taken_pids(profile));
            if pid >= LAST_PID {
                return Err(Errno::ENOSPC);
            }
            pid
        } else {
            let reserved = table.reserved_pids.get(&pid);
            let of_another = reserved.is_some_and(|(owner, _)| *owner != lni);
            if of_another || table.used_pids.contains(&pid) {
                return Err(Errno::EEXIST);
            }
            pid
        };
        if self.pid_is_elsewhere(vni, pid) {
            return Err(Errno::EEXIST);
        }
        Ok(pid)
    }

    /// The PID that a caller that takes any would get.
    pub fn next_pid(&self, profile: u32) -> u32 {
        lowest_free(0, self.taken_pids(profile))
    }

    pub fn pid_is_elsewhere(&self, vni: u16, pid: u32) -> bool {
        self.domains.values().any(|domain| (domain.vni, domain.pid) == (vni, pid))
    }

    /// PIDs of a table that are not free.
    fn taken_pids(&self, profile: u32) -> BTreeSet<u32> {
        let table = self.rx.get(profile);
        let reserved = table.reserved_pids.keys();
        reserved.chain(&table.used_pids).copied().collect()
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
        table.used_pids.remove(&domain.pid);
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
        let taken = self.taken_pids(profile);
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
        let reserved = (start..start + count).map(|pid| (pid, (lni, reservation)));
        self.rx.get_mut(profile).reserved_pids.extend(reserved);
        let reservations = &mut self.lni(file, lni)?.reservations;
        reservations.push((profile, reservation));
        Ok(vec![start])
    }
}
