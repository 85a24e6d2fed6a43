//! Prolog and epilog of a job with a record on this node.

use std::thread;
use std::time::{Duration, Instant};

use cxi_job::{Grant, JobId, JobRequest, NodeName, ReleaseReport};

use super::cli::{LockArgs, ServiceArgs, SizeArgs, WhoArgs};
use super::job_node::JobNode;
use super::which::selected;
use super::{controller, epilog, job_request, prolog, rdzv};
use crate::exit::{Exit, Failure};
use crate::network::Network;
use crate::options::Common;
use crate::output::Report;
use crate::records::Reservation;
use crate::records::controller::{Decision, Decisions};
use crate::records::node::{NodeRecord, NodeRecords};
use crate::settings::{self, Settings};

/// How often a prolog looks for the controller's decision.
const POLL: Duration = Duration::from_millis(100);

pub(crate) fn records(settings: &Settings) -> Result<NodeRecords, Failure> {
    let directory = settings.get(&settings::NODE_RECORDS)?;
    Ok(NodeRecords::new(directory, settings.get(&settings::WAIT)?))
}

/// The controller's decisions, if it makes any.
pub(super) fn decisions(settings: &Settings) -> Result<Option<Decisions>, Failure> {
    let directory = settings.get(&settings::CONTROLLER_RECORDS)?;
    Ok(directory.map(Decisions::new))
}

/// What a prolog knows about its job.
pub(super) struct Starting<'a> {
    pub(super) job: &'a JobId,
    pub(super) component: &'a JobId,
    pub(super) who: &'a WhoArgs,
    pub(super) size: &'a SizeArgs,
    pub(super) service: &'a ServiceArgs,
    pub(super) lock: &'a LockArgs,
    pub(super) common: &'a Common,
}

impl Starting<'_> {
    pub(super) fn prolog(self) -> Result<Report, Failure> {
        let settings = &self.common.settings;
        let records = records(settings)?;
        let (decided, reservation) = self.decided()?.unzip();
        let reservation = reservation.flatten();
        let who = decided.as_ref().map(|decision| WhoArgs {
            uid: Some(decision.uid),
            vni: decision.vnis.clone(),
            ..WhoArgs::default()
        });
        let who = who.as_ref().unwrap_or(self.who);
        let network = decided
            .as_ref()
            .map_or_else(Network::default, |decision| decision.network.clone());
        let wants_none = decided
            .as_ref()
            .is_some_and(|decision| decision.vnis.is_empty());
        let request = if wants_none {
            None
        } else {
            Some(job_request::of_arguments(
                who,
                self.size,
                self.service,
                &network,
                settings,
            )?)
        };
        let mut record = NodeRecord {
            job: self.job.clone(),
            members: job_request::members(who).collect(),
            vnis: request.as_ref().map(JobRequest::vnis),
            running: [self.component.clone()].into(),
            decided: decided.is_some(),
            disable_rdzv_get: network.disable_rdzv_get,
            grant: None,
        };
        self.begin(&records, &mut record)?;
        let Some(request) = request else {
            return Ok(Report::new(
                "The job wants no VNI, and gets no service\n",
                &(),
            ));
        };
        match prolog::make(&request, self.lock, self.common) {
            Err(failure) => {
                let left = give_up(&records, self.job, self.component, self.common);
                Err(with_left(failure, left))
            }
            Ok((node, grant)) => {
                let kept = keep(&records, self.job, &grant).and_then(|()| {
                    records.keep_reservation(self.job, who.uid, reservation.as_ref())
                });
                let mut report = prolog::report(&grant)?;
                if network.disable_rdzv_get {
                    report = report.with_warnings(rdzv::disable(&node, &grant));
                }
                let (job, component) = (self.job.clone(), self.component.clone());
                let common = self.common.clone();
                let undo = move || {
                    let mut left = prolog::undo(&node, &grant);
                    left.extend(give_up(&records, &job, &component, &common));
                    left
                };
                match kept {
                    Ok(()) => Ok(report.or_undo(undo)),
                    Err(failure) => Err(with_left(failure, undo())),
                }
            }
        }
    }

    /// The controller's decision with the job's reservation, unless the command line contains one.
    fn decided(&self) -> Result<Option<(Decision, Option<Reservation>)>, Failure> {
        if !self.who.vni.is_empty() || self.who.vni_range.is_some() {
            return Ok(None);
        }
        let settings = &self.common.settings;
        let decisions = controller::decisions(settings)?;
        let wait = settings.get(&settings::WAIT)?;
        let deadline = Instant::now() + wait;
        loop {
            match decisions.find_complete(self.job)? {
                Some(complete) => return Ok(Some(complete)),
                None if Instant::now() < deadline => thread::sleep(POLL),
                None => {
                    let wait = humantime::format_duration(wait);
                    let message = format!(
                        "job {}: the controller decided nothing within {wait}",
                        self.job
                    );
                    return Err(Failure::new(Exit::NotFound, message)
                        .hint("Does its prolog call cxi job reserve, and is controller.records the same there?"));
                }
            }
        }
    }

    /// Writes the record before there is a service, so that none is taken for an orphan.
    fn begin(&self, records: &NodeRecords, record: &mut NodeRecord) -> Result<(), Failure> {
        let held = records.lock()?;
        let before = records.read(self.job)?;
        if let Some(before) = before.as_ref().filter(|before| before.is_same(record)) {
            record.running.extend(before.running.iter().cloned());
            record.grant.clone_from(&before.grant);
            return records.write(record);
        }
        drop(held);
        // The job ran here before with other VNIs, and its end was never reported.
        if let Some(filter) = before.as_ref().and_then(NodeRecord::filter) {
            let retry = self.common.settings.get(&settings::RETRY_BUSY)?;
            let release = epilog::destroy(&filter, retry, self.lock, self.common)?;
            if let Some(failure) = epilog::left(&release, retry).into_iter().next() {
                return Err(failure);
            }
        }
        let _held = records.lock()?;
        records.write(record)
    }
}

fn with_left(failure: Failure, left: impl IntoIterator<Item = Failure>) -> Failure {
    left.into_iter()
        .fold(failure, |failure, left| failure.hint(left.message()))
}

fn keep(records: &NodeRecords, job: &JobId, grant: &Grant) -> Result<(), Failure> {
    let _held = records.lock()?;
    if let Some(mut record) = records.read(job)? {
        record.grant = Some(grant.clone());
        records.write(&record)?;
    }
    Ok(())
}

/// Takes a component out of its job's record, and removes the record if nothing is left of the job;
/// what is wrong with that.
fn give_up(
    records: &NodeRecords,
    job: &JobId,
    component: &JobId,
    common: &Common,
) -> Option<Failure> {
    let give_up = || {
        let _held = records.lock()?;
        let Some(mut record) = records.read(job)? else {
            return Ok(());
        };
        record.running.remove(component);
        if record.running.is_empty() && nothing_left(&record, common)? {
            return forget(records, &record, common);
        }
        records.write(&record)
    };
    give_up().err()
}

/// Whether this node has no services of a job any more.
pub(super) fn nothing_left(record: &NodeRecord, common: &Common) -> Result<bool, Failure> {
    let Some(filter) = record.filter() else {
        return Ok(true);
    };
    let node = JobNode::open(common, false)?;
    Ok(selected(&node, &filter)?.is_empty())
}

/// Ends a job on this node, or a component of it: by its record, or else by what the controller
/// decided. Nothing is released if neither says anything of the job, or another component still
/// runs here.
pub(super) fn epilog(
    (job, component): (&JobId, &JobId),
    node: &NodeName,
    retry: Duration,
    lock: &LockArgs,
    common: &Common,
) -> Result<ReleaseReport, Failure> {
    let records = records(&common.settings)?;
    let held = records.lock()?;
    let record = match records.read(job)? {
        Some(mut record) => {
            record.running.remove(component);
            records.write(&record)?;
            Some(record)
        }
        None => of_decision(job, node, common)?,
    };
    drop(held);
    let Some(record) = record.filter(|record| record.running.is_empty()) else {
        return Ok(ReleaseReport::default());
    };
    let release = match record.filter() {
        Some(filter) => epilog::destroy(&filter, retry, lock, common)?,
        None => ReleaseReport::default(),
    };
    if epilog::left(&release, retry).is_empty() {
        finish(&records, &record, node, common)?;
    }
    Ok(release)
}

/// A node that was reset has no record, and still must confirm.
fn of_decision(
    job: &JobId,
    node: &NodeName,
    common: &Common,
) -> Result<Option<NodeRecord>, Failure> {
    let Some(decisions) = decisions(&common.settings)? else {
        return Ok(None);
    };
    let decision = decisions.find(job)?.filter(|decision| decision.names(node));
    Ok(decision.map(|decision| NodeRecord::of_decision(&decision)))
}

/// Nothing is left of a job: notifies the controller, and then removes its record.
pub(super) fn finish(
    records: &NodeRecords,
    record: &NodeRecord,
    node: &NodeName,
    common: &Common,
) -> Result<(), Failure> {
    let _held = records.lock()?;
    let now = records.read(&record.job)?;
    // The job may have been started again meanwhile.
    if now.is_some_and(|now| now.running != record.running) {
        return Ok(());
    }
    if let (true, Some(decisions)) = (record.decided, decisions(&common.settings)?) {
        decisions.confirm(&record.job, node)?;
    }
    forget(records, record, common)
}

/// Removes the record of a job of which nothing is left, and what else it changed.
fn forget(records: &NodeRecords, record: &NodeRecord, common: &Common) -> Result<(), Failure> {
    rdzv::restore(records, record, common)?;
    records.remove(&record.job)
}
