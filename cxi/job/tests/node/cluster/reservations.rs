//! Reservations of the controller and the processes of jobs at the fabric manager.

use cxi_site::{JobId, NodeName};

use super::{FABRIC_MANAGER, Job, Scene, step};

impl Scene {
    /// A job's processes make and delete trees, and its steps end.
    pub(super) fn collectives(&mut self) {
        let with = |(_, job): &(&JobId, &Job)| !job.ended && job.reservation.is_some();
        let with: Vec<JobId> = self.jobs.iter().filter(with).map(|(id, _)| id.clone()).collect();
        if with.is_empty() {
            return;
        }
        let id = with[self.roll(with.len())].clone();
        let job = &self.jobs[&id];
        let reservation = job.reservation.clone().unwrap();
        let nodes = job.nodes.iter().filter_map(|at| self.cluster.node(*at));
        let nics: Vec<u32> = nodes.flat_map(|node| node.addresses()).collect();
        let made = self.site.make_tree(&reservation, &nics, job.vni);
        self.trees += u32::from(made.is_some());
        match (made, self.roll(4)) {
            (Some(tree), 0) => self.site.delete_tree(&reservation, tree),
            (_, 1) => {
                let _ = self.client.end_step(&id, &step());
            }
            _ => {}
        }
    }

    /// Releases the reservation of a job that has ended, if it gets through.
    pub(super) fn release(&mut self, id: &JobId) {
        if !self.jobs[id].reserved || self.client.release(id).is_err() {
            return;
        }
        let job = self.jobs.get_mut(id).unwrap();
        job.reserved = false;
        if let Some(reservation) = job.reservation.take() {
            // A process that has not been killed yet.
            let late = self.site.make_tree(&reservation, &[0x101], job.vni);
            assert_eq!(late, None);
        }
        self.confirm(id, &NodeName::new(FABRIC_MANAGER).unwrap());
    }

    /// A new controller compares reservations with its jobs, and releases those of no job.
    pub(super) fn recover(&mut self) {
        self.client = self.site.client();
        let living = self.jobs.iter().filter(|(_, job)| !job.ended);
        let reserved = living.filter(|(_, job)| job.reservation.is_some());
        let reserved: Vec<JobId> = reserved.map(|(id, _)| id.clone()).collect();
        for id in reserved {
            // After a restart of the fabric manager it may have another token.
            if let Ok(Some(found)) = self.client.find(&id) {
                self.jobs.get_mut(&id).unwrap().reservation = Some(found.reservation);
            }
        }
        if let Ok(swept) = self.client.sweep(|job| self.jobs.contains_key(job)) {
            let lost = |job: &JobId| job.as_str().starts_with("lost");
            assert!(swept.released.iter().all(lost), "{swept:?}");
            self.swept += u32::try_from(swept.released.len()).unwrap();
        }
    }
}
