//! The account that a node keeps of a job's services while a prolog makes them.

use cxi::{Device, DeviceId, Service, ServiceId};

use super::SiteError;
use super::job_records::{JobRecord, JobRecords};
use crate::allocate::Ledger;
use crate::owners::{Begun, OwnedService};
use crate::{Grant, JobId, Node};

/// Account of one prolog, in its job's record: what it is about to make, before it makes it, and the name
/// of each service as soon as it is complete. Whenever it is killed, at most one service on each NIC is
/// without a name.
pub(super) struct JobLedger<'a> {
    pub(super) records: &'a JobRecords,
    pub(super) job: &'a JobId,
    pub(super) component: &'a JobId,
    /// The services that earlier prologs made.
    pub(super) own: Vec<(DeviceId, Service)>,
    /// The NICs that could not be asked for that.
    pub(super) unknown: Vec<DeviceId>,
}

impl Ledger for JobLedger<'_> {
    type Error = SiteError;

    fn owns(&self, device: DeviceId, service: &Service) -> bool {
        self.own.iter().any(|(nic, one)| *nic == device && one.id() == service.id())
    }

    fn begin(&self, begun: Vec<Begun>) -> Result<(), SiteError> {
        let _held = self.records.lock()?;
        let mut record = self.record()?;
        // What an earlier prolog made without naming it has a name from now on, and what is gone has none.
        record.made.retain(|made| self.unknown.contains(&made.device));
        record.made.extend(self.own.iter().map(|(nic, service)| OwnedService::of(*nic, service)));
        record.begun.retain(|earlier| self.unknown.contains(&earlier.device));
        record.begun.extend(begun);
        Ok(self.records.write(&record)?)
    }

    fn made(&self, device: &Device, service: ServiceId) {
        // If it cannot be named now, it is named with all others, or they are destroyed.
        let _ = self.name(device, service);
    }
}

impl JobLedger<'_> {
    /// The record, as long as nobody has ended what the prolog starts. Needs the lock.
    fn record(&self) -> Result<JobRecord, SiteError> {
        let record = self.records.read(self.job)?;
        let runs = |record: &JobRecord| record.running.contains(self.component);
        record.filter(runs).ok_or_else(|| SiteError::EndedMeanwhile(self.job.clone()))
    }

    fn name(&self, device: &Device, service: ServiceId) -> Result<(), SiteError> {
        // As the driver has it, which is what it is compared with.
        let made = OwnedService::of(device.id(), &device.services().get(service)?);
        let _held = self.records.lock()?;
        let mut record = self.record()?;
        record.name(made);
        Ok(self.records.write(&record)?)
    }

    /// Records what the job got. Needs the lock.
    pub(super) fn close(&self, node: &Node, grant: &Grant) -> Result<(), SiteError> {
        let mut record = self.record()?;
        for entry in &grant.services {
            if !record.names(entry.device, entry.service)
                && let Some(device) = node.nic(entry.device).and_then(|nic| nic.device())
            {
                let service = device.services().get(entry.service)?;
                record.name(OwnedService::of(entry.device, &service));
            }
        }
        record.begun.clear();
        record.grant = Some(grant.clone());
        Ok(self.records.write(&record)?)
    }
}
