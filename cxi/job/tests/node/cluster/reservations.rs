//! What the controller and the processes of jobs do at the fabric manager.

use std::time::Duration;

use cxi_job::fabric::TreeRequest;
use cxi_job::{JobId, NodeName};

use super::{FABRIC_MANAGER, Job, Scene, step};

impl Scene {
    /// A job's processes make and delete trees, and its steps end.
    pub(super) fn collectives(&mut self) {
        let with = |(_, job): &(&JobId, &Job)| !job.ended && job.reservation.is_some();
        let with: Vec<JobId> = self
            .jobs
            .iter()
            .filter(with)
            .map(|(id, _)| id.clone())
            .collect();
        if with.is_empty() {
            return;
        }
        let id = with[self.roll(with.len())].clone();
        let job = &self.jobs[&id];
        let session = self.site.session(job.reservation.as_ref().unwrap());
        let nodes = job.nodes.iter().filter_map(|at| self.cluster.node(*at));
        let nics: Vec<u32> = nodes.flat_map(|node| node.addresses()).collect();
        let made = session.create_tree(&TreeRequest {
            step: &step(),
            nics: &nics,
            vni: job.vni,
            timeout: Duration::from_secs(20),
        });
        self.trees += u32::from(made.is_ok());
        match (made, self.roll(4)) {
            (Ok(tree), 0) => {
                let _ = session.delete_tree(tree.id);
            }
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
            let late = self.site.session(&reservation).create_tree(&TreeRequest {
                step: &step(),
                nics: &[0x101],
                vni: job.vni,
                timeout: Duration::from_secs(1),
            });
            assert!(late.is_err(), "{late:?}");
        }
        self.confirm(id, &NodeName::new(FABRIC_MANAGER).unwrap());
    }

    /// A new controller compares reservations with its jobs, and releases those of no job.
    pub(super) fn recover(&mut self) {
        self.client = self.site.client();
        let living = self.jobs.iter().filter(|(_, job)| !job.ended);
        let kept = living.filter_map(|(id, job)| Some((id.clone(), job.reservation.clone()?)));
        let kept: Vec<_> = kept.collect();
        if let Ok(found) = self.client.recover(&kept) {
            let count = found.same.len() + found.renewed.len() + found.missing.len();
            assert_eq!(count, kept.len());
            for (id, reservation) in found.renewed {
                self.jobs.get_mut(&id).unwrap().reservation = Some(reservation);
            }
        }
        if let Ok(swept) = self.client.sweep(|job| self.jobs.contains_key(job)) {
            let lost = |job: &JobId| job.as_str().starts_with("lost");
            assert!(swept.released.iter().all(lost), "{swept:?}");
            self.swept += u32::try_from(swept.released.len()).unwrap();
        }
    }
}
