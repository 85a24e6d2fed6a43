//! Makers of services, as everyone sees who watches the node: the driver's lists before and after each
//! command, and what the schedulers were told. It knows no record.

use std::collections::{BTreeMap, BTreeSet};

use cxi::{Service, VniAccess};

/// A service by NIC and number.
pub(crate) type Place = (u32, u32);

/// Sender of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Who {
    Prolog { job: u32, replace: bool },
    Epilog(u32),
    Clean { foreign: bool, none_live: bool },
    Admin,
    Foreign,
    Pod(usize),
}

/// Owner of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Job(u32),
    /// A job made it, and nothing says so any more.
    Lost(u32),
    Admin,
    Foreign,
    Pod(usize),
}

/// A service of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) service: Service,
    /// `true` if it admits anybody.
    pub(crate) usable: bool,
}

/// Record that was lost during a prolog of the job, which may have written it again.
const NAMED_AGAIN: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) owner: Owner,
    pub(crate) service: Service,
    pub(crate) usable: bool,
    /// In which act it was made.
    pub(crate) act: u32,
    /// `true` once that act has ended well: before that, nothing may say whose it is.
    pub(crate) settled: bool,
    /// The act in which its record was lost, or [`NAMED_AGAIN`].
    pub(crate) lost: u32,
}

impl Made {
    fn has(&self, vnis: &[u16]) -> bool {
        match self.service.vnis() {
            VniAccess::Unrestricted => false,
            own => own.iter().any(|vni| vnis.contains(&vni.get())),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) there: BTreeMap<Place, Made>,
    /// The jobs that the node has started, and that nobody has ended.
    pub(crate) runs: BTreeSet<u32>,
    /// The VNIs of the jobs that the controller has, until somebody ends them.
    pub(crate) held: BTreeMap<u32, Vec<u16>>,
    /// The last VNIs of each job.
    pub(crate) last: BTreeMap<u32, Vec<u16>>,
    /// Service that an administrator names.
    pub(crate) named: Option<Place>,
    pub(crate) act: u32,
    /// The first act of this step.
    pub(crate) step: u32,
    /// When each job was last ended by somebody.
    pub(crate) ended: BTreeMap<u32, u32>,
    /// The jobs whose end the node has confirmed.
    pub(crate) confirmed: BTreeSet<u32>,
    /// The first harm that was done.
    pub(crate) harm: Option<String>,
}

impl Model {
    pub(crate) fn harm(&mut self, what: String) {
        self.harm.get_or_insert(what);
    }

    /// Takes note of what a NIC has after a command.
    pub(crate) fn observe(&mut self, nic: u32, now: &[Seen], who: Who, act: u32) {
        let of_nic = self.there.range((nic, 0)..=(nic, u32::MAX));
        let gone: Vec<Place> = of_nic
            .map(|(place, _)| *place)
            .filter(|(_, id)| !now.iter().any(|seen| seen.service.id().get() == *id))
            .collect();
        for place in gone {
            if let Some(made) = self.there.remove(&place)
                && !self.may_destroy(who, act, place, &made)
            {
                self.harm(format!("{who:?} destroys {place:?} of {:?}", made.owner));
            }
        }
        for Seen { service, usable } in now.iter().filter(|seen| !seen.service.id().is_default()) {
            let owner = match who {
                Who::Prolog { job, .. } => Owner::Job(job),
                Who::Admin => Owner::Admin,
                Who::Pod(pod) => Owner::Pod(pod),
                // The others make none; if they did, nobody could destroy it.
                Who::Foreign | Who::Epilog(_) | Who::Clean { .. } => Owner::Foreign,
            };
            self.there
                .entry((nic, service.id().get()))
                .and_modify(|made| (made.service, made.usable) = (*service, *usable))
                .or_insert(Made {
                    owner,
                    service: *service,
                    usable: *usable,
                    act,
                    settled: false,
                    lost: 0,
                });
        }
    }

    fn may_destroy(&self, who: Who, act: u32, place: Place, made: &Made) -> bool {
        match (who, made.owner) {
            (Who::Prolog { job, replace }, Owner::Job(owner)) => {
                job == owner && (replace || made.act == act || !self.runs.contains(&job))
            }
            // It still knows what it has just made.
            (Who::Prolog { job, .. }, Owner::Lost(owner)) => {
                job == owner && (made.act == act || made.lost == NAMED_AGAIN)
            }
            (Who::Epilog(job), Owner::Job(owner)) => job == owner,
            // It has read the record before.
            (Who::Epilog(job), Owner::Lost(owner)) => job == owner && made.lost >= act,
            (Who::Clean { none_live, .. }, Owner::Job(owner)) => {
                none_live || !self.runs.contains(&owner)
            }
            (Who::Clean { foreign, none_live, .. }, Owner::Lost(owner)) => {
                let had_read = made.lost >= act && (none_live || !self.runs.contains(&owner));
                foreign || had_read
            }
            (Who::Clean { foreign, .. }, Owner::Foreign) => foreign,
            (Who::Clean { foreign, .. }, Owner::Admin | Owner::Pod(_)) => foreign && !made.settled,
            // A service that a killed ADD has not finished admits nobody, and nothing says whose it is.
            (Who::Pod(pod), Owner::Pod(owner)) => pod == owner || (!made.settled && !made.usable),
            (Who::Foreign, Owner::Foreign) => true,
            (Who::Admin, _) => {
                self.named == Some(place) || (made.owner == Owner::Admin && made.act == act)
            }
            _ => false,
        }
    }

    /// An act has ended well.
    pub(crate) fn settle(&mut self, act: u32) {
        for made in self.there.values_mut().filter(|made| made.act == act) {
            made.settled = true;
        }
    }

    /// A prolog has come to an end: it may have recorded anew what was lost since it began.
    pub(crate) fn names_again(&mut self, job: u32, act: u32) {
        for made in self.there.values_mut() {
            if made.owner == Owner::Lost(job) && made.lost > act {
                made.lost = NAMED_AGAIN;
            }
        }
    }

    /// The places of services of some owners.
    pub(crate) fn places(&self, of: impl Fn(Owner) -> bool) -> Vec<Place> {
        let mine = self.there.iter().filter(|(_, made)| of(made.owner));
        mine.map(|(place, _)| *place).collect()
    }

    /// The records of jobs are gone, or of one.
    pub(crate) fn lose(&mut self, of: impl Fn(u32) -> bool) {
        for made in self.there.values_mut() {
            match made.owner {
                Owner::Job(job) if of(job) => {
                    (made.owner, made.lost) = (Owner::Lost(job), self.act);
                }
                _ => {}
            }
        }
    }

    /// The controller has given VNIs to a job.
    pub(crate) fn gives(&mut self, job: u32, vnis: &[u16]) {
        let others = self.held.iter().filter(|(other, _)| **other != job);
        let taken = others.filter(|(_, held)| held.iter().any(|vni| vnis.contains(vni)));
        let mut harm: Vec<String> = taken
            .map(|(other, _)| format!("job {job} gets {vnis:?}, which job {other} has"))
            .collect();
        for (place, made) in self.there.iter().filter(|(_, made)| made.has(vnis)) {
            let of_other = match made.owner {
                Owner::Job(owner) | Owner::Lost(owner) => owner != job,
                _ => false,
            };
            if of_other && !self.held.contains_key(&job) {
                harm.push(format!("job {job} gets {vnis:?}, for which {place:?} is left"));
            }
        }
        for harm in harm {
            self.harm(harm);
        }
        self.held.insert(job, vnis.to_vec());
        self.last.insert(job, vnis.to_vec());
    }

    /// The node has started a job, unless it was ended since that act began.
    pub(crate) fn starts(&mut self, job: u32, act: u32) {
        if self.ended.get(&job).is_none_or(|ended| *ended < act) {
            self.runs.insert(job);
        }
    }

    /// The node was told that a job has ended.
    pub(crate) fn ends_here(&mut self, job: u32) {
        self.runs.remove(&job);
        self.ended.insert(job, self.act);
    }

    /// The controller was told that a job has ended.
    pub(crate) fn ends(&mut self, job: u32) {
        self.ends_here(job);
        self.held.remove(&job);
    }

    /// The jobs whose end the node has confirmed by now: their VNIs are free here.
    pub(crate) fn confirms(&mut self, jobs: BTreeSet<u32>) {
        let new: Vec<u32> = jobs.difference(&self.confirmed).copied().collect();
        for job in new {
            let vnis = self.last.get(&job).cloned().unwrap_or_default();
            let left = self.there.iter().find(|(_, made)| made.has(&vnis) && made.act < self.step);
            if let Some((place, made)) = left {
                let owner = made.owner;
                self.harm(format!("job {job} is confirmed, and {place:?} of {owner:?} is there"));
            }
        }
        self.confirmed = jobs;
    }
}
