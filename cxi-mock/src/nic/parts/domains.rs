//! Domains: the VNI and PID by which a target is reached.

use std::collections::BTreeMap;

use cxi_ioctl::Errno;

use super::objects::{Object, Objects};
use super::vnis::PidsOf;
use crate::data_path::pid_granule;

/// A domain; PtlTEs that are mapped into it are its users.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Domain {
    pub(crate) vni: u16,
    pub(crate) pid: u32,
    pub(crate) pids: PidsOf,
}

/// All domains.
#[derive(Clone, Debug)]
pub(crate) struct Domains {
    pub(crate) objects: Objects<Domain>,
    by_pid: BTreeMap<(u16, u32), u32>,
    pid_bits: u32,
}

impl Domains {
    pub(crate) fn new(pid_bits: u32) -> Self {
        Self { objects: Objects::new(1, u32::MAX), by_pid: BTreeMap::new(), pid_bits }
    }

    /// Returns the number of PIDs. The highest number stands for any.
    pub(crate) fn pid_count(&self) -> u32 {
        (1 << self.pid_bits) - 1
    }

    /// PtlTE offsets for each PID.
    pub(crate) fn pid_granule(&self) -> u32 {
        pid_granule(self.pid_bits)
    }

    /// Returns whether a domain of any profile has this PID of this VNI.
    pub(crate) fn has(&self, vni: u16, pid: u32) -> bool {
        self.by_pid.contains_key(&(vni, pid))
    }

    pub(crate) fn add(&mut self, owner: (u32, u32), domain: Domain) -> Result<u32, Errno> {
        let id = self.objects.add(owner, domain)?;
        self.by_pid.insert((domain.vni, domain.pid), id);
        Ok(id)
    }

    /// As [`Objects::remove`].
    pub(crate) fn remove(&mut self, file: u32, id: u32) -> Result<Object<Domain>, Errno> {
        let domain = self.objects.remove(file, id)?;
        self.by_pid.remove(&(domain.vni, domain.pid));
        Ok(domain)
    }

    /// Returns whether a domain has PIDs of that profile or VNI.
    pub(crate) fn any_of(&self, pids: PidsOf) -> bool {
        self.objects.iter().any(|(_, domain)| domain.pids == pids)
    }
}
