//! Reservations that jobs left behind, and those that a restarted scheduler has recorded.

use super::manager::JOBS;
use super::{FabricError, FabricManager};
use crate::JobId;
use crate::collectives::Reservation;

/// What became of the reservations of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Swept {
    /// Live jobs: their reservations stay.
    pub live: Vec<JobId>,
    /// Jobs that have ended: their reservations are released.
    pub released: Vec<JobId>,
    /// Jobs that have ended, and why their reservations still exist.
    pub failed: Vec<(JobId, FabricError)>,
    /// Reservations of other clusters, and links to other things: left alone.
    pub others: usize,
}

/// The reservations that a restarted scheduler finds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// Jobs whose reservation is as before.
    pub same: Vec<JobId>,
    /// Jobs whose reservation has another token now, which their processes do not have.
    pub renewed: Vec<(JobId, Reservation)>,
    /// Jobs whose reservation has disappeared.
    pub missing: Vec<JobId>,
}

impl FabricManager {
    /// Releases the reservations of jobs of this cluster that have ended. `lives` is called after
    /// the list was read, so that a job that starts in the meantime loses nothing.
    ///
    /// # Errors
    /// [`FabricError`]: the list cannot be read; nothing is released.
    pub fn sweep(&self, mut lives: impl FnMut(&JobId) -> bool) -> Result<Swept, FabricError> {
        let links = self.list(&format!("list the reservations of {}", self.cluster()))?;
        let mut swept = Swept::default();
        for link in links {
            match self.job_of(&link) {
                None => swept.others += 1,
                Some(job) if lives(&job) => swept.live.push(job),
                Some(job) => match self.release(&job) {
                    Ok(_) => swept.released.push(job),
                    Err(error) => swept.failed.push((job, error)),
                },
            }
        }
        Ok(swept)
    }

    /// Compares the reservations that a scheduler has recorded with those of the fabric manager.
    /// Call [`sweep`](Self::sweep) afterwards.
    ///
    /// # Errors
    /// [`FabricError`]: one of them cannot be looked up.
    pub fn recover(&self, kept: &[(JobId, Reservation)]) -> Result<Recovered, FabricError> {
        let mut recovered = Recovered::default();
        for (job, reservation) in kept {
            match self.find(job)? {
                None => recovered.missing.push(job.clone()),
                Some(found) if found.reservation.token() == reservation.token() => {
                    recovered.same.push(job.clone());
                }
                Some(found) => recovered.renewed.push((job.clone(), found.reservation)),
            }
        }
        Ok(recovered)
    }

    fn job_of(&self, link: &str) -> Option<JobId> {
        let name = link.strip_prefix(JOBS)?.strip_prefix('/')?;
        let name = percent_encoding::percent_decode_str(name)
            .decode_utf8()
            .ok()?;
        self.cluster().job(&name)
    }
}
