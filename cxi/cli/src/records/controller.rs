//! What the controller decided, in a directory that all nodes read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cxi::Vni;
use cxi_job::durable::{FileLock, LockGuard};
use cxi_job::{JobId, NodeName};
use serde::{Deserialize, Serialize};

use super::{Readers, Reservation, cannot, name_of, names, read, remove, write};
use crate::exit::{Exit, Failure};
use crate::hostlist::HostList;
use crate::network::Network;
use crate::state_file::DECISION;

/// What a job gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Decision {
    pub(crate) job: JobId,
    pub(crate) uid: u32,
    /// None for a job that wants none.
    pub(crate) vnis: Vec<Vni>,
    pub(crate) network: Network,
    /// The job itself, or each component of a heterogeneous job.
    pub(crate) components: BTreeMap<JobId, Component>,
    /// Whether it has a reservation at the fabric manager, or the record of one that says why not:
    /// its nodes wait for that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) collectives: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Component {
    pub(crate) nodes: HostList,
    pub(crate) ended: bool,
}

impl Decision {
    /// Whether anything of the job is to run on a node.
    pub(crate) fn runs_on(&self, node: &NodeName) -> bool {
        let mut running = self
            .components
            .values()
            .filter(|component| !component.ended);
        running.any(|component| component.nodes.contains(node.as_str()))
    }

    pub(crate) fn names(&self, node: &NodeName) -> bool {
        let mut components = self.components.values();
        components.any(|component| component.nodes.contains(node.as_str()))
    }

    pub(crate) fn ended(&self) -> bool {
        self.components.values().all(|component| component.ended)
    }
}

/// The directory.
#[derive(Clone, Debug)]
pub(crate) struct Decisions {
    directory: PathBuf,
}

impl Decisions {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    fn running(&self) -> PathBuf {
        self.directory.join("running")
    }

    fn ended(&self) -> PathBuf {
        self.directory.join("ended")
    }

    /// For the controller: one command at a time, on its machine.
    pub(crate) fn lock(&self, wait: Duration) -> Result<LockGuard, Failure> {
        for directory in [self.running(), self.ended()] {
            fs::create_dir_all(&directory)
                .map_err(|error| cannot(&directory, "be made", &error))?;
        }
        let lock = FileLock::new(self.directory.join(".lock")).wait(wait);
        lock.acquire().map_err(|error| {
            let exit = if error.is_busy() {
                Exit::Busy
            } else {
                Exit::Failed
            };
            Failure::new(exit, error.to_string())
        })
    }

    /// What was decided for a job, until all its nodes have confirmed; `None` before and after.
    pub(crate) fn find(&self, job: &JobId) -> Result<Option<Decision>, Failure> {
        Ok(self.place(job)?.map(|(_, decision)| decision))
    }

    /// What was decided for a job that runs.
    pub(crate) fn find_running(&self, job: &JobId) -> Result<Option<Decision>, Failure> {
        read(
            DECISION,
            &self.running().join(name_of(job)?).join("job.json"),
        )
    }

    /// What a node needs for a job that runs, once all of it is known.
    pub(crate) fn find_complete(
        &self,
        job: &JobId,
    ) -> Result<Option<(Decision, Option<Reservation>)>, Failure> {
        let Some(decision) = self.find_running(job)? else {
            return Ok(None);
        };
        if !decision.collectives {
            return Ok(Some((decision, None)));
        }
        let reservation = self.reservation(job)?;
        Ok(reservation.map(|reservation| (decision, Some(reservation))))
    }

    /// A job that ends in the meantime is first in one directory, then in the other.
    fn place(&self, job: &JobId) -> Result<Option<(PathBuf, Decision)>, Failure> {
        let name = name_of(job)?;
        for directory in [self.running(), self.ended()] {
            let place = directory.join(name);
            if let Some(decision) = read(DECISION, &place.join("job.json"))? {
                return Ok(Some((place, decision)));
            }
        }
        // Nothing is known if the directory is not there: its file system is not mounted.
        File::open(self.running())
            .map(|_| None)
            .map_err(|error| cannot(&self.running(), "be read", &error))
    }

    /// Says that a node has destroyed the job's services. Again: nothing changes.
    pub(crate) fn confirm(&self, job: &JobId, node: &NodeName) -> Result<(), Failure> {
        let mut attempts = 0;
        loop {
            let Some((place, _)) = self.place(job)? else {
                return Ok(());
            };
            let file = place.join("confirmed").join(node.as_str());
            attempts += 1;
            match File::create(&file) {
                // It has been moved since it was found.
                Err(error) if error.kind() == io::ErrorKind::NotFound && attempts < 3 => {}
                result => {
                    return result
                        .map(|_| ())
                        .map_err(|error| cannot(&file, "be made", &error));
                }
            }
        }
    }

    /// Whether a node has.
    pub(crate) fn has_confirmed(&self, job: &JobId, node: &NodeName) -> Result<bool, Failure> {
        Ok(self
            .place(job)?
            .is_none_or(|(place, _)| place.join("confirmed").join(node.as_str()).exists()))
    }

    /// Writes what was decided. The nodes of a component that begins have confirmed nothing yet.
    pub(crate) fn begin(&self, decision: &Decision, component: &JobId) -> Result<(), Failure> {
        let place = self.running().join(name_of(&decision.job)?);
        let confirmed = place.join("confirmed");
        fs::create_dir_all(&confirmed).map_err(|error| cannot(&confirmed, "be made", &error))?;
        let there: BTreeSet<String> = names(&confirmed)?.into_iter().collect();
        if let (false, Some(component)) = (there.is_empty(), decision.components.get(component)) {
            for node in component
                .nodes
                .names()
                .iter()
                .filter(|node| there.contains(*node))
            {
                let file = confirmed.join(node);
                fs::remove_file(&file).map_err(|error| cannot(&file, "be removed", &error))?;
            }
        }
        write(DECISION, &place.join("job.json"), decision, Readers::All)
    }

    fn reservation_path(&self, job: &JobId) -> Result<PathBuf, Failure> {
        Ok(self.running().join(name_of(job)?).join("reservation.json"))
    }

    /// What a job that runs has at the fabric manager, once that is known.
    pub(crate) fn reservation(&self, job: &JobId) -> Result<Option<Reservation>, Failure> {
        Reservation::read(&self.reservation_path(job)?)
    }

    pub(crate) fn keep_reservation(
        &self,
        job: &JobId,
        reservation: &Reservation,
    ) -> Result<(), Failure> {
        reservation.write(&self.reservation_path(job)?, None)
    }

    /// Takes a decision back that no node has acted on.
    pub(crate) fn take_back(&self, job: &JobId) -> Result<(), Failure> {
        let place = self.running().join(name_of(job)?);
        fs::remove_dir_all(&place).map_err(|error| cannot(&place, "be removed", &error))
    }

    /// Writes what has ended of a job; if all of it has, the nodes find it among those.
    pub(crate) fn end(&self, decision: &Decision) -> Result<(), Failure> {
        let name = name_of(&decision.job)?;
        let (running, ended) = (self.running().join(name), self.ended().join(name));
        write(DECISION, &running.join("job.json"), decision, Readers::All)?;
        if decision.ended() {
            remove(&self.reservation_path(&decision.job)?)?;
            fs::rename(&running, &ended).map_err(|error| cannot(&running, "be moved", &error))?;
        }
        Ok(())
    }

    /// The jobs that run.
    pub(crate) fn jobs_running(&self) -> Result<Vec<JobId>, Failure> {
        jobs_in(&self.running())
    }

    /// The jobs that have ended, and that not all nodes have confirmed.
    pub(crate) fn jobs_ended(&self) -> Result<Vec<JobId>, Failure> {
        jobs_in(&self.ended())
    }

    /// The nodes that have not confirmed yet.
    pub(crate) fn missing(&self, decision: &Decision) -> Result<Vec<String>, Failure> {
        let place = self.ended().join(name_of(&decision.job)?);
        let there: BTreeSet<String> = names(&place.join("confirmed"))?.into_iter().collect();
        let nodes = decision
            .components
            .values()
            .flat_map(|component| component.nodes.names());
        let nodes: BTreeSet<String> = nodes.collect();
        Ok(nodes.difference(&there).cloned().collect())
    }

    /// Forgets a job that has ended.
    pub(crate) fn forget(&self, job: &JobId) -> Result<(), Failure> {
        let place = self.ended().join(name_of(job)?);
        fs::remove_dir_all(&place).map_err(|error| cannot(&place, "be removed", &error))
    }
}

fn jobs_in(directory: &Path) -> Result<Vec<JobId>, Failure> {
    let names = names(directory)?;
    Ok(names
        .iter()
        .filter_map(|name| JobId::new(name).ok())
        .collect())
}
