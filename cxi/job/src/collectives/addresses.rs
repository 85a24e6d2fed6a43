//! How many multicast addresses a job gets.

/// Why the number of addresses cannot be computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressesError {
    /// One of the numbers is 0.
    #[error("{what} is 0")]
    Zero {
        /// Which one.
        what: &'static str,
    },
    /// The smallest job is larger than the system.
    #[error("a job of at least {min_job_nodes} nodes does not fit a system of {system_nodes}")]
    JobTooLarge {
        /// Nodes of the smallest job.
        min_job_nodes: u32,
        /// Nodes of the system.
        system_nodes: u32,
    },
}

/// Returns how many multicast addresses each job gets, as HPE recommends. Of `total` addresses, one
/// job gets its share of a system full of smallest jobs, divided among the jobs of a node and
/// rounded down: `(total / (system / smallest)) / jobs`.
///
/// 0 means that there are too few for every such job to have one. Each NIC can be the root of only
/// one tree, so more addresses than the job has NICs are useless.
///
/// ```
/// use cxi_job::collectives::addresses_per_job;
///
/// // El Capitan: 4086 addresses, 11136 nodes, jobs of 64 nodes and more, one job on a node.
/// assert_eq!(addresses_per_job(4086, 11136, 64, 1)?, 23);
/// assert_eq!(addresses_per_job(4086, 11136, 64, 2)?, 11);
/// # Ok::<(), cxi_job::collectives::AddressesError>(())
/// ```
///
/// # Errors
/// [`AddressesError`]: a number is 0, or the smallest job is larger than the system.
pub fn addresses_per_job(
    total: u32,
    system_nodes: u32,
    min_job_nodes: u32,
    jobs_per_node: u32,
) -> Result<u32, AddressesError> {
    for (number, what) in [
        (system_nodes, "the size of the system"),
        (min_job_nodes, "the size of the smallest job"),
        (jobs_per_node, "the number of jobs on a node"),
    ] {
        if number == 0 {
            return Err(AddressesError::Zero { what });
        }
    }
    if min_job_nodes > system_nodes {
        return Err(AddressesError::JobTooLarge {
            min_job_nodes,
            system_nodes,
        });
    }
    // One division at the end: intermediate rounding would change the result.
    let share = u64::from(total) * u64::from(min_job_nodes);
    let addresses = share / u64::from(system_nodes) / u64::from(jobs_per_node);
    Ok(u32::try_from(addresses).unwrap_or(total))
}
