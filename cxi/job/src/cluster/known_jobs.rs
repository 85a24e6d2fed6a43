//! The knowledge of a node by its records: the owner of each service, and the jobs that live.

use std::collections::BTreeSet;

use cxi::{DeviceId, Service};

use super::SiteError;
use super::decisions::Decisions;
use super::job_records::{JobRecord, JobRecords};
use super::service_records::ServiceRecords;
use super::store::RecordError;
use crate::Node;
use crate::owners::{self, Begun, Maker, OwnedService, Owners};
use crate::release::{FailedNic, Outcome, Released, overlaps};
use cxi_site::{IdSet, JobId, NodeName};

/// The services that have to do with a job.
pub(super) struct Sorted {
    /// Services that it made.
    pub(super) own: Vec<(DeviceId, Service)>,
    /// Services that others made, with one of its VNIs.
    pub(super) others: Vec<Released>,
    /// Services of other jobs.
    pub(super) of_jobs: Vec<(JobId, OwnedService)>,
    /// `true` if another job has one of its VNIs.
    pub(super) shared: bool,
    /// The NICs that could not be asked.
    pub(super) nics: Vec<FailedNic>,
}

/// The jobs that a node knows of.
#[derive(Debug)]
pub(super) struct KnownJobs {
    pub(super) name: NodeName,
    pub(super) records: JobRecords,
    pub(super) services: ServiceRecords,
    pub(super) decisions: Option<Decisions>,
}

impl KnownJobs {
    /// Sorts this node's services of a job from others that have one of its VNIs.
    pub(super) fn sort(&self, node: &Node, record: &JobRecord) -> Result<Sorted, SiteError> {
        let (services, nics) = node.list_services();
        let services: Vec<(DeviceId, Service)> =
            services.into_iter().map(|(device, service)| (device.id(), service)).collect();
        let owners = self.owners(false, Some(record))?;
        let vnis = record.vni_set();
        let (own, others, of_jobs) = Default::default();
        let mut sorted = Sorted { own, others, of_jobs, shared: false, nics };
        for ((device, service), maker) in services.iter().zip(owners.of(&services)) {
            if let Some(Maker::Job { job, .. }) = maker {
                if *job == record.job {
                    sorted.own.push((*device, *service));
                    continue;
                }
                sorted.of_jobs.push((job.clone(), OwnedService::of(*device, service)));
            }
            match maker {
                _ if service.id().is_default() || !overlaps(service.vnis(), &vnis) => {}
                // Steps share a VNI with their job: it is not free as long as one has it.
                Some(Maker::Job { .. }) => sorted.shared = true,
                maker => {
                    let outcome = Outcome::Foreign { reason: owners::reason(maker) };
                    sorted.others.push(Released::new(*device, service, outcome));
                }
            }
        }
        Ok(sorted)
    }

    pub(super) fn lives(&self, record: &JobRecord, none_live: bool) -> Result<bool, SiteError> {
        if none_live || record.running.is_empty() {
            return Ok(false);
        }
        match &self.decisions {
            Some(decisions) if record.decided => {
                let decision = decisions.find(&record.job)?;
                Ok(decision.is_some_and(|decision| decision.runs_on(&self.name)))
            }
            _ => Ok(true),
        }
    }

    /// Refuses VNIs that a live job of other users has: their programs could communicate. Steps share the
    /// VNIs of their job.
    pub(super) fn shares_no_vni(&self, record: &JobRecord) -> Result<(), SiteError> {
        let vnis = record.vni_set();
        for other in self.records.all()?.0 {
            let shared = other.vni_set().intersection(&vnis);
            if other.members == record.members || shared.is_empty() || !other.is_of_this_boot() {
                continue;
            }
            if self.lives(&other, false)? {
                let (job, members) = (other.job.clone(), other.request_members());
                return Err(SiteError::SharedVnis { vnis: shared, job, members });
            }
        }
        Ok(())
    }

    /// Brings the records of other jobs up to date, on NICs where a prolog of this job is about to make a
    /// service: what a killed prolog made there has a name from now on, it will make no more, and what is
    /// gone has none, because its number may be used again. Otherwise two would have begun a service that
    /// only one of them made. Needs the node's lock, and that of the records.
    pub(super) fn settle_others(
        &self,
        job: &JobId,
        begun: &[Begun],
        made: &[(JobId, OwnedService)],
    ) -> Result<(), SiteError> {
        let on = |device: DeviceId| begun.iter().find(|begun| begun.device == device);
        let is_gone = |one: &OwnedService| {
            on(one.device).is_some_and(|begun| !begun.before.contains(&one.service))
        };
        for mut other in self.records.all()?.0.into_iter().filter(|other| other.job != *job) {
            let before = (other.made.clone(), other.begun.clone());
            for (job, one) in made {
                if *job == other.job
                    && on(one.device).is_some()
                    && !other.names(one.device, one.service)
                {
                    other.name(one.clone());
                }
            }
            other.made.retain(|one| !is_gone(one));
            other.begun.retain(|begun| on(begun.device).is_none());
            if (&before.0, &before.1) != (&other.made, &other.begun) {
                self.records.write(&other)?;
            }
        }
        Ok(())
    }

    /// The jobs that have ended, and that this node has not confirmed.
    pub(super) fn ended(&self, none_live: bool) -> Result<Vec<JobRecord>, SiteError> {
        let (records, _) = self.records.all()?;
        let recorded: BTreeSet<JobId> = records.iter().map(|record| record.job.clone()).collect();
        let mut ended = Vec::new();
        for record in records {
            if !self.lives(&record, none_live)? {
                ended.push(record);
            }
        }
        let Some(decisions) = &self.decisions else { return Ok(ended) };
        for job in decisions.ended_jobs()? {
            if !recorded.contains(&job)
                && !decisions.has_confirmed(&job, &self.name)?
                && let Some(record) = self.forgotten(&job)?
            {
                ended.push(record);
            }
        }
        Ok(ended)
    }

    /// The VNIs of the jobs that live.
    pub(super) fn live_vnis(&self, none_live: bool) -> Result<IdSet, SiteError> {
        let mut live = IdSet::new();
        for record in self.records.all()?.0 {
            if self.lives(&record, none_live)? {
                live = live.union(&record.vni_set());
            }
        }
        Ok(live)
    }

    /// Returns the makers of this node's services according to records; with one that replaces its
    /// job's.
    pub(super) fn owners(
        &self,
        none_live: bool,
        own: Option<&JobRecord>,
    ) -> Result<Owners, SiteError> {
        let mut claims = self.services.claims()?;
        for record in self.records.all()?.0 {
            if own.is_none_or(|own| own.job != record.job) {
                claims.push(record.claim(self.lives(&record, none_live)?));
            }
        }
        claims.extend(own.map(|own| own.claim(false)));
        Ok(Owners(claims))
    }

    /// A job's record. One that cannot be used is put aside, and what it named is nobody's.
    pub(super) fn record(&self, job: &JobId) -> Result<Option<JobRecord>, SiteError> {
        match self.records.read(job) {
            Err(error @ RecordError::Invalid { .. }) => {
                JobRecords::set_aside(&error)?;
                Ok(None)
            }
            read => Ok(read?),
        }
    }

    /// A job that was on this node, by the controller's decision.
    pub(super) fn forgotten(&self, job: &JobId) -> Result<Option<JobRecord>, SiteError> {
        let Some(decisions) = &self.decisions else { return Ok(None) };
        let decision = decisions.find(job)?;
        Ok(decision
            .filter(|decision| decision.is_on(&self.name))
            .map(|decision| JobRecord::of_decision(&decision)))
    }
}
