//! Names of a cluster's reservations.

use std::fmt;
use std::str::FromStr;

use crate::JobId;

/// A cluster's name in front of its reservations: `alpha` in `alpha-17`.
///
/// Several schedulers use one fabric manager, and each deletes what its own jobs left behind. So
/// the name of a reservation says without doubt whose it is: everything before the *last* `-` is
/// the cluster. `alpha` has `alpha-17`; it has neither `alpha1-17` nor `alpha-beta-17`, which is
/// `alpha-beta`'s. A job id with a `-` cannot be reserved for. This is the form that Slurm uses,
/// read strictly.
///
/// ```
/// use cxi_site::JobId;
/// use cxi_site::fabric::ClusterName;
///
/// let alpha: ClusterName = "alpha".parse()?;
/// assert_eq!(alpha.reservation(&JobId::new("17")?)?.to_string(), "alpha-17");
/// assert!(alpha.reservation(&JobId::new("beta-17")?).is_err());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterName(JobId);

/// Reason for which a text is not the name of a cluster, or a job's reservation cannot have a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterNameError {
    /// The name is invalid.
    #[error("invalid cluster name: {0}")]
    Name(#[from] crate::NameError),
    /// The name would change the path of requests.
    #[error("invalid cluster name {0:?}: expected none of '/' and '#'")]
    Path(String),
    /// The reservation could be read as another cluster's.
    #[error("job id {0} cannot be part of a reservation's name: expected no '-', '/' or '#'")]
    Job(JobId),
}

impl FromStr for ClusterName {
    type Err = ClusterNameError;

    fn from_str(name: &str) -> Result<Self, ClusterNameError> {
        if name.contains(['/', '#']) {
            return Err(ClusterNameError::Path(name.to_owned()));
        }
        Ok(Self(JobId::new(name)?))
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ClusterName {
    /// The name of a job's reservation.
    ///
    /// # Errors
    /// [`ClusterNameError`]: the job id has a character that would make the name ambiguous, or is too
    /// long.
    pub fn reservation(&self, job: &JobId) -> Result<JobId, ClusterNameError> {
        if job.as_str().contains(['-', '/', '#']) {
            return Err(ClusterNameError::Job(job.clone()));
        }
        Ok(JobId::new(format!("{self}-{job}"))?)
    }

    /// The job of this cluster that a reservation is for; `None` if it belongs to another cluster.
    pub(super) fn job(&self, reservation: &str) -> Option<JobId> {
        let (cluster, job) = reservation.rsplit_once('-')?;
        let job = JobId::new(job).ok()?;
        (cluster == self.0.as_str() && !job.as_str().contains(['/', '#'])).then_some(job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_is_that_of_the_whole_name_before_the_last_hyphen() {
        let alpha: ClusterName = "alpha".parse().unwrap();
        assert_eq!(alpha.job("alpha-17"), Some(JobId::new("17").unwrap()));
        for others in ["alpha1-17", "alpha-beta-17", "alpha", "-17", "alpha-"] {
            assert_eq!(alpha.job(others), None, "{others}");
        }
    }
}
