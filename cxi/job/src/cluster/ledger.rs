//! The account that a node keeps of a job's services while a prolog makes them.

use std::sync::OnceLock;

use cxi::{Device, DeviceId, Service, ServiceId};

use super::SiteError;
use super::job_records::{JobRecord, JobRecords};
use super::known_jobs::{KnownJobs, Sorted};
use crate::allocate::Ledger;
use crate::owners::{Begun, OwnedService};
use crate::release::FailedNic;
use crate::{Grant, Node};
use cxi_site::JobId;

/// Account of one prolog, in its job's record: what it is about to make, before it makes it, and the name
/// of each service as soon as it is complete. Whenever it is killed, at most one service on each NIC is
/// without a name.
pub(super) struct JobLedger<'a> {
    pub(super) jobs: &'a KnownJobs,
    pub(super) node: &'a Node,
    pub(super) job: &'a JobId,
    pub(super) component: &'a JobId,
    /// Services that are there, once the lock is held.
    pub(super) found: OnceLock<Sorted>,
}

impl Ledger for JobLedger<'_> {
    type Error = SiteError;

    fn look(&self) -> Result<(), SiteError> {
        // Another prolog of this job may have made and named services until the lock was free.
        let record = {
            let _held = self.records().lock()?;
            self.record()?
        };
        let _ = self.found.set(self.jobs.sort(self.node, &record)?);
        Ok(())
    }

    fn owns(&self, device: DeviceId, service: &Service) -> bool {
        let own = self.found.get().map_or(&[][..], |found| &found.own);
        own.iter().any(|(nic, one)| *nic == device && one.id() == service.id())
    }

    fn begin(&self, begun: Vec<Begun>) -> Result<(), SiteError> {
        // A service that the job has there may have no name yet, and would lose its last trace.
        let nics = self.found.get().map_or(&[][..], |found| &found.nics);
        let is_begun = |nic: &&FailedNic| begun.iter().any(|begun| begun.device == nic.device);
        if let Some(nic) = nics.iter().find(is_begun) {
            let FailedNic { device, reason } = nic.clone();
            return Err(SiteError::Unanswered { device, reason });
        }
        let of_jobs = self.found.get().map_or(&[][..], |found| &found.of_jobs);
        let _held = self.records().lock()?;
        self.jobs.settle_others(self.job, &begun, of_jobs)?;
        let mut record = self.record()?;
        if let Some(found) = self.found.get() {
            // What an earlier prolog made without naming it has a name from now on, and what is gone has
            // none. A NIC that could not be asked says nothing.
            let unknown = |device| found.nics.iter().any(|nic| nic.device == device);
            record.made.retain(|made| unknown(made.device));
            record
                .made
                .extend(found.own.iter().map(|(nic, service)| OwnedService::of(*nic, service)));
            record.begun.retain(|earlier| unknown(earlier.device));
        }
        record.begun.extend(begun);
        Ok(self.records().write(&record)?)
    }

    fn made(&self, device: &Device, service: ServiceId) {
        // If it cannot be named now, it is named with all others, or they are destroyed.
        let _ = self.name(device, service);
    }
}

impl JobLedger<'_> {
    fn records(&self) -> &JobRecords {
        &self.jobs.records
    }

    /// The record, as long as nobody has ended what the prolog starts. Needs the lock.
    fn record(&self) -> Result<JobRecord, SiteError> {
        let record = self.records().read(self.job)?;
        let runs = |record: &JobRecord| record.running.contains(self.component);
        record.filter(runs).ok_or_else(|| SiteError::EndedMeanwhile(self.job.clone()))
    }

    fn name(&self, device: &Device, service: ServiceId) -> Result<(), SiteError> {
        // As the driver has it, which is what it is compared with.
        let made = OwnedService::of(device.id(), &device.services().get(service)?);
        let _held = self.records().lock()?;
        // A record that has this number already is of a service that is gone.
        self.jobs.services.remove(made.device, made.service)?;
        let mut record = self.record()?;
        record.name(made);
        Ok(self.records().write(&record)?)
    }

    /// Records what the job got. Needs the lock.
    pub(super) fn close(&self, grant: &Grant) -> Result<(), SiteError> {
        let mut record = self.record()?;
        for entry in &grant.services {
            if !record.names(entry.device, entry.service)
                && let Some(device) = self.node.nic(entry.device).and_then(|nic| nic.device())
            {
                let service = device.services().get(entry.service)?;
                record.name(OwnedService::of(entry.device, &service));
            }
        }
        record.begun.clear();
        record.grant = Some(grant.clone());
        Ok(self.records().write(&record)?)
    }
}
