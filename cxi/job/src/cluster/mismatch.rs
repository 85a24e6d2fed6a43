//! Disagreements of the controller's records and its pool.

use std::collections::BTreeMap;

use cxi::Vni;
use serde::Serialize;

use super::pool_store::Recorded;
use cxi_site::JobId;
use cxi_site::pool::VniPool;

/// A job, or VNI, of which the controller's records and the pool say different things: the pool is an
/// older copy, or a new one, or was changed without the records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "code")]
#[non_exhaustive]
pub enum Mismatch {
    /// A job has VNIs that the pool would give to another one.
    #[error("job {job} has VNI {}, and the pool would give it to another job", list(vnis))]
    GivenAway {
        /// The job.
        job: JobId,
        /// Its VNIs that are free in the pool.
        vnis: Vec<Vni>,
    },
    /// A job has a VNI that another one has in the pool.
    #[error("job {job} has VNI {vni}, and job {holder} has it in the pool")]
    HeldByOther {
        /// The job.
        job: JobId,
        /// The VNI.
        vni: Vni,
        /// The job that has it in the pool.
        holder: JobId,
    },
    /// Two jobs have the same VNI.
    #[error("jobs {first} and {second} have the same VNI {vni}")]
    Twice {
        /// The VNI.
        vni: Vni,
        /// One job.
        first: JobId,
        /// The other.
        second: JobId,
    },
    /// A job has VNIs in the pool, and no record: it may have ended after the pool was copied, or have
    /// been given them with `cxi vni reserve`.
    #[error("job {job} has VNI {} in the pool, and no record", list(vnis))]
    Unrecorded {
        /// The job.
        job: JobId,
        /// Its VNIs in the pool.
        vnis: Vec<Vni>,
    },
    /// The record of a job cannot be used, and the pool does not know the job.
    #[error("the VNIs of job {job} are not known: the pool does not have it, and {reason}")]
    Unknown {
        /// The job.
        job: JobId,
        /// The fault of its record.
        reason: String,
    },
}

fn list(vnis: &[Vni]) -> String {
    let vnis: Vec<String> = vnis.iter().map(ToString::to_string).collect();
    vnis.join(",")
}

impl Mismatch {
    /// Returns whether a VNI is, or may be, given to two jobs.
    #[must_use]
    pub const fn is_harmful(&self) -> bool {
        !matches!(self, Self::Unrecorded { .. })
    }
}

pub(super) fn mismatches(pool: &VniPool, recorded: &Recorded) -> Vec<Mismatch> {
    let mut found = Vec::new();
    let holders: BTreeMap<Vni, &JobId> =
        pool.jobs().flat_map(|(job, held)| held.vnis.iter().map(move |vni| (vni, job))).collect();
    let mut owners: BTreeMap<Vni, &JobId> = BTreeMap::new();
    for (job, vnis) in &recorded.vnis {
        let mut free = Vec::new();
        for vni in vnis {
            match holders.get(vni) {
                None if pool.assigns(*vni) => free.push(*vni),
                Some(holder) if *holder != job => found.push(Mismatch::HeldByOther {
                    job: job.clone(),
                    vni: *vni,
                    holder: (*holder).clone(),
                }),
                _ => {}
            }
            if let Some(first) = owners.insert(*vni, job) {
                let (first, second) = (first.clone(), job.clone());
                found.push(Mismatch::Twice { vni: *vni, first, second });
            }
        }
        if !free.is_empty() {
            found.push(Mismatch::GivenAway { job: job.clone(), vnis: free });
        }
    }
    for (job, reason) in recorded.unusable.iter().filter(|(job, _)| pool.job(job).is_none()) {
        found.push(Mismatch::Unknown { job: job.clone(), reason: reason.clone() });
    }
    let is_recorded = |job: &JobId| {
        recorded.vnis.contains_key(job) || recorded.unusable.iter().any(|(other, _)| other == job)
    };
    let mut unrecorded: Vec<_> = pool.jobs().filter(|(job, _)| !is_recorded(job)).collect();
    unrecorded.sort_by_key(|(job, _)| *job);
    found.extend(unrecorded.into_iter().map(|(job, held)| Mismatch::Unrecorded {
        job: job.clone(),
        vnis: held.vnis.iter().collect(),
    }));
    found
}
