//! Occupancy of a pool.

use serde::Serialize;
use std::time::Duration;

use super::state::{Owner, Partition};
use super::{Holder, Phase, Timestamp, VniPool};
use crate::TenantName;
use cxi::Vni;

/// Counts of VNIs in a pool or in one share of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Metrics {
    /// VNIs that can be assigned at all.
    pub total: usize,
    /// VNIs that can be assigned now.
    pub free: usize,
    /// VNIs that live jobs have.
    pub reserved: usize,
    /// VNIs whose services are not known to be destroyed everywhere.
    pub draining: usize,
    /// VNIs that are resting after their services were destroyed.
    pub resting: usize,
    /// VNIs in use or draining that the configuration no longer contains: they do not return to the
    /// pool. Not included in the other counts.
    pub outside: usize,
    /// The holder that has been draining longest, and for how long. Not serialized, because it is
    /// not a count.
    #[serde(skip)]
    pub oldest_draining: Option<(Holder, Duration)>,
}

impl VniPool {
    /// Counts over the whole pool at `now`, in time linear in the number of VNIs that are not free.
    #[must_use]
    pub fn metrics(&self, now: Timestamp) -> Metrics {
        let mut sum =
            Metrics { oldest_draining: self.oldest_draining(None, now), ..Metrics::default() };
        for partition in &self.state.partitions {
            let part = self.counts(partition, now);
            sum.total += part.total;
            sum.free += part.free;
            sum.reserved += part.reserved;
            sum.draining += part.draining;
            sum.resting += part.resting;
        }
        let held: usize = self.state.jobs.values().map(|held| held.vnis.len()).sum();
        sum.outside = (held + self.state.strays.len()).saturating_sub(sum.reserved + sum.draining);
        sum
    }

    /// Counts over the share of a tenant, or over the common share; `None` if there is no such
    /// tenant.
    #[must_use]
    pub fn part_metrics(&self, tenant: Option<&TenantName>, now: Timestamp) -> Option<Metrics> {
        let partition = self.state.partition(tenant)?;
        Some(Metrics {
            oldest_draining: self.oldest_draining(Some(partition), now),
            ..self.counts(partition, now)
        })
    }

    fn counts(&self, partition: &Partition, now: Timestamp) -> Metrics {
        let mut counts = Metrics {
            total: partition.vnis.len(),
            free: self.state.free_at(partition, now).len(),
            ..Metrics::default()
        };
        for (vni, owner) in &self.state.owners {
            if !partition.vnis.contains(vni.get()) {
                continue;
            }
            match owner {
                Owner::Job(job) => match self.state.jobs.get(job).map(|held| &held.phase) {
                    Some(Phase::Reserved) => counts.reserved += 1,
                    _ => counts.draining += 1,
                },
                Owner::Stray => counts.draining += 1,
                Owner::Resting(_) => counts.resting += 1,
            }
        }
        // Those that have rested long enough are counted as free.
        counts.resting -= counts.free - partition.free.len();
        counts
    }

    fn oldest_draining(
        &self,
        partition: Option<&Partition>,
        now: Timestamp,
    ) -> Option<(Holder, Duration)> {
        let is_here =
            |vni: Vni| partition.is_none_or(|partition| partition.vnis.contains(vni.get()));
        let jobs = self.state.jobs.iter().filter_map(|(job, held)| match held.phase {
            Phase::Draining { since, .. } if held.vnis.iter().any(is_here) => {
                Some((since, Holder::Job(job.clone())))
            }
            _ => None,
        });
        let strays = self.state.strays.iter().filter(|(vni, _)| is_here(**vni));
        let strays = strays.map(|(vni, stray)| (stray.since, Holder::Stray(*vni)));
        let (since, holder) = jobs.chain(strays).min()?;
        Some((holder, now.since(since)))
    }
}
