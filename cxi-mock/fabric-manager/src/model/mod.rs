//! The state of a fabric manager: reservations and trees, without I/O, a clock or randomness.

mod refusal;
mod settings;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use refusal::Refusal;
pub(crate) use settings::MOST_ADDRESSES;
pub use settings::Settings;
pub use tree::{NicAddress, Tree, TreeRequest};

/// Reservations of jobs, and their trees.
#[derive(Clone, Debug)]
pub struct Model {
    settings: Settings,
    jobs: BTreeMap<String, Reservation>,
    trees: BTreeMap<u16, Tree>,
    /// IDs that were freed, and when they may be reused.
    resting: BTreeMap<u16, Duration>,
    last_address: Option<u16>,
    /// The VNIs of a job, if they were set.
    vnis: BTreeMap<String, Vec<u16>>,
    /// Number of session tokens that were issued, so that each is unique.
    sessions: u64,
}

/// A job's reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reservation {
    /// The maximum number of trees that the job may have at a time.
    pub limit: u32,
    /// The token with which the job creates and deletes trees.
    pub token: String,
}

/// State that is lost at a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Forget {
    /// Reservations, trees and tokens.
    Everything,
    /// Only the tokens; reservations get new ones.
    Tokens,
    /// Nothing.
    Nothing,
}

/// The reservations and trees, without tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct State {
    /// Reservations by job.
    pub jobs: BTreeMap<String, JobState>,
    /// NICs that are roots, by multicast ID.
    pub roots: BTreeMap<u16, NicAddress>,
}

/// A job in a [`State`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct JobState {
    /// The maximum number of trees at a time.
    pub limit: u32,
    /// Multicast IDs by step.
    pub steps: BTreeMap<String, Vec<u16>>,
}

impl State {
    /// Returns whether there is neither a reservation nor a tree.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.jobs.is_empty() && self.roots.is_empty()
    }
}

impl Model {
    /// A fabric manager without reservations.
    ///
    /// # Errors
    /// [`Refusal::Malformed`]: the settings have no multicast IDs, or IDs above 8191.
    pub fn new(settings: Settings) -> Result<Self, Refusal> {
        let (first, last) = settings.addresses;
        if first > last || last >= MOST_ADDRESSES {
            return Err(Refusal::Malformed(format!(
                "invalid multicast ids {first} to {last}: expected a range within 0 to 8191"
            )));
        }
        Ok(Self {
            settings,
            jobs: BTreeMap::new(),
            trees: BTreeMap::new(),
            resting: BTreeMap::new(),
            last_address: None,
            vnis: BTreeMap::new(),
            sessions: 0,
        })
    }

    /// The settings.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Jobs that have a reservation.
    pub fn jobs(&self) -> impl Iterator<Item = &str> {
        self.jobs.keys().map(String::as_str)
    }

    /// A job's reservation.
    ///
    /// # Errors
    /// [`Refusal::NoSuchJob`].
    pub fn job(&self, job: &str) -> Result<&Reservation, Refusal> {
        self.jobs.get(job).ok_or_else(|| Refusal::NoSuchJob(job.to_owned()))
    }

    /// The tree with this multicast ID.
    #[must_use]
    pub fn tree(&self, id: u16) -> Option<&Tree> {
        self.trees.get(&id)
    }

    /// The job that a session token belongs to.
    #[must_use]
    pub fn session(&self, token: &str) -> Option<&str> {
        let mut jobs = self.jobs.iter();
        let job = jobs.find(|(_, reserved)| reserved.token == token);
        job.map(|(job, _)| job.as_str())
    }

    /// Sets the VNIs of a job. From now on, trees with other VNIs are refused.
    pub fn expect_vnis(&mut self, job: &str, vnis: Vec<u16>) {
        self.vnis.insert(job.to_owned(), vnis);
    }

    /// Reserves trees for a job.
    ///
    /// # Errors
    /// [`Refusal`]: malformed, already reserved, or too many.
    pub fn reserve(&mut self, job: &str, limit: i64) -> Result<&Reservation, Refusal> {
        if job.is_empty() || job.contains('/') {
            return Err(Refusal::Malformed(format!(
                "invalid jobID {job:?}: expected a text without '/'"
            )));
        }
        let least = u32::from(!self.settings.accepts_limit_0);
        let limit = match u32::try_from(limit) {
            Ok(limit) if limit >= least => limit,
            _ => {
                return Err(Refusal::Malformed(format!(
                    "invalid mcastLimit {limit}: expected at least {least}"
                )));
            }
        };
        if self.jobs.contains_key(job) {
            if self.settings.second_reservation_gets_first {
                return self.job(job);
            }
            return Err(Refusal::Exists(job.to_owned()));
        }
        let promised: u64 = self.jobs.values().map(|job| u64::from(job.limit)).sum();
        let left = self.settings.address_count().saturating_sub(promised);
        if !self.settings.overcommits && u64::from(limit) > left {
            return Err(Refusal::Overcommitted(left));
        }
        let token = self.new_token();
        Ok(self.jobs.entry(job.to_owned()).or_insert(Reservation { limit, token }))
    }

    /// Ends steps of a job: frees their trees. Steps without trees are not an error.
    ///
    /// # Errors
    /// [`Refusal::NoSuchJob`].
    pub fn end_steps(&mut self, job: &str, steps: &[String], now: Duration) -> Result<(), Refusal> {
        self.job(job)?;
        let of_steps = |tree: &Tree| steps.contains(&tree.request.step);
        for id in self.ids_of(job, of_steps) {
            self.free(id, now);
        }
        Ok(())
    }

    /// Releases a job's reservation and frees its trees.
    ///
    /// # Errors
    /// [`Refusal::NoSuchJob`].
    pub fn release(&mut self, job: &str, now: Duration) -> Result<Reservation, Refusal> {
        for id in self.ids_of(job, |_| true) {
            self.free(id, now);
        }
        self.jobs.remove(job).ok_or_else(|| Refusal::NoSuchJob(job.to_owned()))
    }

    /// Restarts the fabric manager.
    pub fn restart(&mut self, forget: Forget) {
        match forget {
            Forget::Nothing => {}
            Forget::Everything => {
                self.jobs.clear();
                self.trees.clear();
                self.resting.clear();
            }
            Forget::Tokens => {
                let jobs: Vec<String> = self.jobs.keys().cloned().collect();
                for job in jobs {
                    let token = self.new_token();
                    if let Some(reserved) = self.jobs.get_mut(&job) {
                        reserved.token = token;
                    }
                }
            }
        }
    }

    /// The reservations and trees, without tokens.
    #[must_use]
    pub fn state(&self) -> State {
        let job = |(job, reserved): (&String, &Reservation)| {
            let mut steps: BTreeMap<String, Vec<u16>> = BTreeMap::new();
            for (id, tree) in self.trees_of(job) {
                let step = tree.request.step.clone();
                steps.entry(step).or_default().push(id);
            }
            let limit = reserved.limit;
            (job.clone(), JobState { limit, steps })
        };
        State {
            jobs: self.jobs.iter().map(job).collect(),
            roots: self.trees.iter().map(|(id, tree)| (*id, tree.root)).collect(),
        }
    }

    /// Checks the invariants that hold after every request.
    ///
    /// # Errors
    /// The invariant that is violated.
    pub fn check(&self) -> Result<(), String> {
        let (first, last) = self.settings.addresses;
        let mut roots = BTreeSet::new();
        for (id, tree) in &self.trees {
            let job = &tree.request.job;
            if !(first..=last).contains(id) {
                return Err(format!("multicast id {id} is not one of those configured"));
            }
            if !self.jobs.contains_key(job) {
                return Err(format!("tree {id} belongs to job {job}, which has no reservation"));
            }
            if !tree.request.nics.contains(&tree.root) {
                return Err(format!("the root of tree {id} is not one of its NICs"));
            }
            if !roots.insert(tree.root) {
                return Err(format!("{} is the root of two trees", tree.root));
            }
        }
        let mut tokens = BTreeSet::new();
        for (job, reserved) in &self.jobs {
            let trees = self.trees_of(job).count() as u64;
            if trees > u64::from(reserved.limit) {
                return Err(format!("job {job} has {trees} of {} trees", reserved.limit));
            }
            if !tokens.insert(&reserved.token) {
                return Err(format!("job {job} has the token of another job"));
            }
        }
        Ok(())
    }

    fn trees_of<'a>(&'a self, job: &'a str) -> impl Iterator<Item = (u16, &'a Tree)> {
        let trees = self.trees.iter().map(|(id, tree)| (*id, tree));
        trees.filter(move |(_, tree)| tree.request.job == job)
    }

    fn ids_of(&self, job: &str, which: impl Fn(&Tree) -> bool) -> Vec<u16> {
        self.trees_of(job).filter(|(_, tree)| which(tree)).map(|(id, _)| id).collect()
    }

    fn new_token(&mut self) -> String {
        self.sessions += 1;
        format!("session-{:08}", self.sessions)
    }
}
