//! Assigning NICs to processes.

use super::Node;
use crate::IdSet;
use cxi::DeviceId;

impl Node {
    /// The usable NICs closest to a set of CPUs, by number: those close to most of them.
    ///
    /// If none is close to any of the CPUs, or sysfs reports nothing, all usable NICs are equally
    /// close.
    #[must_use]
    pub fn closest(&self, cpus: &IdSet) -> Vec<DeviceId> {
        let shared = |near: &IdSet| near.intersection(cpus).len();
        let most = self.usable().map(|nic| shared(nic.cpus())).max();
        let closest = self.usable().filter(|nic| Some(shared(nic.cpus())) == most);
        closest.map(super::NodeNic::id).collect()
    }

    /// Assigns a NIC to each of this many processes, in turn. Empty if no NIC is usable.
    #[must_use]
    pub fn round_robin(&self, ranks: usize) -> Vec<DeviceId> {
        let nics: Vec<DeviceId> = self.usable().map(super::NodeNic::id).collect();
        nics.iter().copied().cycle().take(ranks).collect()
    }

    /// Assigns a NIC to each process, given its CPUs: of the [`closest`](Self::closest) NICs, the
    /// one with the fewest processes so far. Empty if no NIC is usable.
    #[must_use]
    pub fn closest_for_ranks(&self, ranks: &[IdSet]) -> Vec<DeviceId> {
        let mut plan: Vec<DeviceId> = Vec::with_capacity(ranks.len());
        for cpus in ranks {
            let users = |nic: &DeviceId| plan.iter().filter(|taken| *taken == nic).count();
            plan.extend(self.closest(cpus).into_iter().min_by_key(users));
        }
        plan
    }
}
