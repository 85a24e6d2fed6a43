//! How full a pool is.

use std::time::Duration;

use super::partition::Partition;
use super::{Holder, Timestamp, VniPool};
use crate::TenantName;

/// Counts of VNIs in a pool or in one share of it.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// What has been draining longest, and for how long.
    pub oldest_draining: Option<(Holder, Duration)>,
}

impl VniPool {
    /// Counts over the whole pool at `now`.
    #[must_use]
    pub fn metrics(&self, now: Timestamp) -> Metrics {
        let parts = self.state.partitions.iter();
        let mut sum = Metrics {
            total: 0,
            free: 0,
            reserved: 0,
            draining: 0,
            resting: 0,
            outside: 0,
            oldest_draining: self.state.oldest_drain(None, now),
        };
        for part in parts.map(|partition| self.counts(partition, now)) {
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
        Some(self.counts(partition, now))
    }

    fn counts(&self, partition: &Partition, now: Timestamp) -> Metrics {
        let (ready, resting) = self.state.resting_in(partition, now);
        Metrics {
            total: partition.vnis.len(),
            free: partition.free.len() + ready,
            reserved: partition.reserved,
            draining: partition.draining,
            resting,
            outside: 0,
            oldest_draining: self.state.oldest_drain(Some(partition), now),
        }
    }
}
