//! Comparing a pool with what the NICs show.

use super::{Change, Changed, Event, Phase, Timestamp, VniPool};
use crate::{IdSet, JobId, NodeName};

/// The result of comparing a pool with a node's NICs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reconciled {
    /// VNIs that the pool considered free or resting: no job has them, but the node shows them.
    /// They are draining now.
    pub strays: IdSet,
    /// Released jobs that were not waiting for this node, and now are.
    pub waiting_again: Vec<JobId>,
    /// Released jobs that are waiting for this node although it shows none of their VNIs. If no
    /// prolog of theirs can still be running, [`VniPool::confirm`] may be called for them.
    pub unseen: Vec<JobId>,
    /// VNIs that the node shows, and that the pool neither assigns nor excludes.
    pub outside: IdSet,
}

impl VniPool {
    /// Compares the pool with all VNIs of the services on a node's NICs, and marks those that no
    /// live job has as draining.
    ///
    /// A VNI without a job becomes free again when no later call shows it on any node. A released
    /// job whose VNI is seen waits for [`VniPool::confirm`] of that node (again). That a VNI is not
    /// seen does not prove that no prolog is about to make its service.
    ///
    /// ```
    /// use cxi_site::pool::{PoolConfig, Timestamp, VniPool};
    /// use cxi_site::{IdSet, NodeName};
    ///
    /// let mut pool = VniPool::new(PoolConfig::new("1024-1027".parse()?))?;
    /// let node = NodeName::new("node1")?;
    /// let seen = pool.reconcile(&node, &"10,1025".parse()?, Timestamp::from_millis(0));
    /// assert_eq!(seen.result.strays.to_string(), "1025");
    /// assert_eq!(pool.metrics(Timestamp::from_millis(0)).free, 3);
    ///
    /// let later = pool.reconcile(&node, &IdSet::new(), Timestamp::from_millis(5));
    /// assert!(later.event.is_some());
    /// assert_eq!(pool.metrics(Timestamp::from_millis(5)).free, 4);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn reconcile(
        &mut self,
        node: &NodeName,
        seen: &IdSet,
        now: Timestamp,
    ) -> Changed<Reconciled> {
        let unseen = self.unseen(node, seen);
        let (observed, concerned) = self.state.observe(node, seen, now);
        let event = concerned.map(|vnis| {
            let node = node.clone();
            self.sequence = self.sequence.saturating_add(1);
            Event::new(self.sequence, now, Change::Observed { node, vnis })
        });
        let result = Reconciled {
            unseen,
            outside: observed.outside.difference(&self.config().excluded()),
            ..observed
        };
        Changed { result, event }
    }

    fn unseen(&self, node: &NodeName, seen: &IdSet) -> Vec<JobId> {
        let unseen = self.state.jobs.iter().filter(|(_, held)| {
            let waits =
                matches!(&held.phase, Phase::Draining { waiting, .. } if waiting.contains(node));
            waits && !held.vnis.iter().any(|vni| seen.contains(vni.get()))
        });
        let mut unseen: Vec<JobId> = unseen.map(|(job, _)| job.clone()).collect();
        unseen.sort();
        unseen
    }
}
