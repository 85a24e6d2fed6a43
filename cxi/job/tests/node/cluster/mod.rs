//! Jobs that come and go on a cluster, with services on nodes and multicast trees of a fabric
//! manager, while nodes die and boot, NICs disappear, requests get lost, and controller and fabric
//! manager restart: in the end nothing is left, and nothing was ever used twice. More of it with
//! `CXI_TEST_FULL=1`.

mod fabric_manager;
mod reservations;

use std::collections::{BTreeMap, BTreeSet};

use cxi::Vni;
use cxi_fabric_manager::Forget;
use cxi_job::{Filter, JobRequest, ReleaseOptions, ReleaseStatus};
use cxi_mock::{MockCluster, NicConfig};
use cxi_site::collectives::Reservation;
use cxi_site::fabric::FabricManager;
use cxi_site::pool::log::{MemoryLog, SharedPool};
use cxi_site::pool::{PoolConfig, Timestamp, VniPool, VniRequest};
use cxi_site::{JobId, NodeName, StepId};
use cxi_test_kit::{Random, full};

use crate::support::{node, user_services};
use fabric_manager::Site;

const NODES: usize = 4;
const NICS: u8 = 2;
const JOBS: usize = 64;
/// Fewer than there are jobs, so that each VNI is reused often.
const VNIS: &str = "1024-1039";
/// Multicast trees of a job.
const TREES: u32 = 2;
/// Confirms, as nodes do, that it has nothing of a job any more.
const FABRIC_MANAGER: &str = "fabric-manager";

fn config() -> PoolConfig {
    PoolConfig::new(VNIS.parse().unwrap())
}

fn name(node: usize) -> NodeName {
    NodeName::new(format!("n{node}")).unwrap()
}

/// A job, as its nodes know it.
struct Job {
    vni: Vni,
    /// Nodes on which its services may be.
    nodes: BTreeSet<usize>,
    /// The fabric manager may have a reservation of it.
    reserved: bool,
    /// Reservation of which its processes know.
    reservation: Option<Reservation>,
    ended: bool,
}

impl Job {
    /// Returns the nodes that have to confirm that nothing is left.
    fn confirming(&self) -> Vec<NodeName> {
        let nodes = self.nodes.iter().copied().map(name);
        nodes.chain([NodeName::new(FABRIC_MANAGER).unwrap()]).collect()
    }
}

struct Scene {
    cluster: MockCluster,
    log: MemoryLog,
    epoch: u64,
    controller: SharedPool<MemoryLog>,
    site: Site,
    client: FabricManager,
    jobs: BTreeMap<JobId, Job>,
    started: usize,
    now: u64,
    dice: Random,
    deaths: u32,
    restarts: u32,
    trees: u32,
    swept: u32,
}

impl Scene {
    fn new(seed: u64) -> Self {
        let log = MemoryLog::new();
        let site = Site::new(seed);
        Self {
            client: site.client(),
            site,
            cluster: MockCluster::with_nics(4, NICS, &NicConfig::new()).unwrap(),
            controller: SharedPool::open(log.clone(), config(), "0", 1, Timestamp::default())
                .unwrap(),
            log,
            epoch: 1,
            jobs: BTreeMap::new(),
            started: 0,
            now: 0,
            dice: Random::new(seed),
            deaths: 0,
            restarts: 0,
            trees: 0,
            swept: 0,
        }
    }

    fn roll(&mut self, sides: usize) -> usize {
        self.dice.below(sides)
    }

    fn now(&mut self) -> Timestamp {
        self.now += 1;
        Timestamp::from_millis(self.now)
    }

    /// VNIs that services of a node show.
    fn shown(&self, at: usize) -> BTreeSet<Vni> {
        if !self.cluster.is_up(at) {
            return BTreeSet::new();
        }
        let services = user_services(&self.cluster.node(at).unwrap());
        let vnis =
            services.iter().flat_map(|(_, service)| service.vnis().iter().collect::<Vec<_>>());
        vnis.collect()
    }

    fn start(&mut self) {
        if self.started == JOBS {
            return;
        }
        let job = JobId::new(format!("job{}", self.started)).unwrap();
        let now = self.now();
        let reserved = self.controller.reserve(&job, &VniRequest::vnis(1), now);
        // All VNIs may be taken.
        let Ok(reserved) = reserved else { return };
        let vni = reserved.iter().next().unwrap();
        for at in 0..NODES {
            assert!(!self.shown(at).contains(&vni), "VNI {vni} is used twice");
        }
        self.started += 1;
        if self.roll(16) == 0 {
            // A controller dies before it has written down for whom it reserves.
            let lost = JobId::new(format!("lost{}", self.started)).unwrap();
            let _ = self.client.reserve(&lost, TREES);
        }
        let offload = self.client.offload(&job, step(), TREES);
        let reservation = offload.ok().map(|env| env.reservation().clone());
        let wanted = 1 + self.roll(NODES);
        let first = self.roll(NODES);
        let mut nodes = BTreeSet::new();
        let mut failed = false;
        for at in (0..wanted).map(|more| (first + more) % NODES) {
            let there = self.cluster.node(at).unwrap();
            if self.roll(20) == 0 {
                // A NIC disappears for the time being.
                there.nics()[1].faults().unplug();
            }
            let request = JobRequest::builder().uid(1000).vni(vni).build().unwrap();
            let up = self.cluster.is_up(at) && !there.nics()[1].faults().is_unplugged();
            failed |= !(up && node(&there).allocate(&request).is_ok());
            nodes.insert(at);
            there.nics()[1].faults().plug();
        }
        let known = Job { vni, nodes, reserved: true, reservation, ended: false };
        self.jobs.insert(job.clone(), known);
        if failed {
            self.end(&job);
        }
    }

    /// Ends a job: its VNIs drain until each of its nodes has confirmed, and the fabric manager.
    fn end(&mut self, job: &JobId) {
        let now = self.now();
        let known = self.jobs.get_mut(job).unwrap();
        let nodes = known.confirming();
        known.ended = true;
        self.controller.release(job, &nodes, now).unwrap();
    }

    /// Nodes that run destroy what jobs that have ended have there, and say so. Reservations are
    /// released.
    fn epilogs(&mut self) {
        let ended = self.jobs.iter().filter(|(_, job)| job.ended);
        let ended: Vec<JobId> = ended.map(|(id, _)| id.clone()).collect();
        for id in ended {
            self.release(&id);
            // It may have been the last to confirm.
            let Some(job) = self.jobs.get(&id) else { continue };
            let nodes: Vec<usize> = job.nodes.iter().copied().collect();
            for at in nodes {
                if !self.cluster.is_up(at) || self.roll(3) == 0 {
                    continue;
                }
                let vni = self.jobs[&id].vni;
                let there = node(&self.cluster.node(at).unwrap());
                let report = there.release(&Filter::vnis([vni]), &ReleaseOptions::once());
                assert!(
                    matches!(report.status(), ReleaseStatus::Done | ReleaseStatus::NothingToDo),
                    "{report:?}"
                );
                self.jobs.get_mut(&id).unwrap().nodes.remove(&at);
                self.confirm(&id, &name(at));
            }
        }
    }

    fn confirm(&mut self, id: &JobId, who: &NodeName) {
        let now = self.now();
        self.controller.confirm(id, who, now).unwrap();
        let job = &self.jobs[id];
        if job.nodes.is_empty() && !job.reserved {
            self.jobs.remove(id);
        }
    }

    /// The controller is another one, and the old one finds out when it wakes up.
    fn restart(&mut self) {
        self.epoch += 1;
        self.restarts += 1;
        let (epoch, now) = (self.epoch, self.now());
        let new = SharedPool::open(self.log.clone(), config(), epoch.to_string(), epoch, now);
        let mut old = std::mem::replace(&mut self.controller, new.unwrap());
        assert_eq!(self.controller.pool().jobs().count(), old.pool().jobs().count());
        let job = JobId::new("late").unwrap();
        let late = old.reserve(&job, &VniRequest::vnis(1), now);
        assert!(late.unwrap_err().is_deposed());
        self.recover();
    }

    /// A node dies, and its jobs with it.
    fn kill(&mut self, at: usize) {
        self.deaths += 1;
        self.cluster.kill(at);
        let hit = self.jobs.iter().filter(|(_, job)| !job.ended && job.nodes.contains(&at));
        let hit: Vec<JobId> = hit.map(|(id, _)| id.clone()).collect();
        for id in hit {
            self.end(&id);
        }
    }

    fn step(&mut self) {
        match self.roll(14) {
            0..=3 => self.start(),
            4..=5 if !self.jobs.is_empty() => {
                let at = self.roll(self.jobs.len());
                let (id, job) = self.jobs.iter().nth(at).unwrap();
                let (id, ended) = (id.clone(), job.ended);
                if !ended {
                    self.end(&id);
                }
            }
            6 => self.restart(),
            7 => {
                let at = self.roll(NODES);
                if self.cluster.is_up(at) {
                    self.kill(at);
                } else {
                    self.cluster.boot(at).unwrap();
                }
            }
            8..=9 => self.epilogs(),
            10 if self.roll(4) == 0 => {
                let forget = [Forget::Nothing, Forget::Tokens, Forget::Everything];
                let forget = forget[self.roll(forget.len())];
                self.site.restart(forget);
            }
            _ => self.collectives(),
        }
    }

    /// On each node that runs, services show VNIs of jobs that the controller knows there, and
    /// trees are of such jobs.
    fn check(&self) {
        for at in 0..NODES {
            for vni in self.shown(at) {
                let of = |job: &&Job| job.vni == vni && job.nodes.contains(&at);
                let owners = self.jobs.values().filter(of).count();
                assert_eq!(owners, 1, "VNI {vni} on node {at}");
            }
        }
        let vnis: BTreeSet<_> = self.jobs.values().map(|job| job.vni).collect();
        assert_eq!(vnis.len(), self.jobs.len(), "a VNI has two jobs");
        for (job, vni) in self.site.trees() {
            let known = &self.jobs[&job];
            assert!(known.reserved, "a tree of {job}");
            assert_eq!(vni, u64::from(known.vni.get()));
        }
    }
}

fn step() -> StepId {
    StepId::new("0").unwrap()
}

fn play(seed: u64) -> [u32; 4] {
    let mut scene = Scene::new(seed);
    while scene.started < JOBS {
        scene.step();
        scene.check();
    }
    for at in 0..NODES {
        if !scene.cluster.is_up(at) {
            scene.cluster.boot(at).unwrap();
        }
    }
    let living: Vec<JobId> =
        scene.jobs.iter().filter(|(_, job)| !job.ended).map(|(id, _)| id.clone()).collect();
    for id in living {
        scene.end(&id);
    }
    while !scene.jobs.is_empty() {
        scene.epilogs();
    }
    while !scene.site.api().model().state().is_quiet() {
        scene.recover();
    }
    for at in 0..NODES {
        let there = scene.cluster.node(at).unwrap();
        assert_eq!(user_services(&there), [], "node {at}");
        for nic in there.nics() {
            assert_eq!(nic.hazards(), []);
        }
    }
    let again = SharedPool::open(scene.log, config(), "last", 0, Timestamp::default());
    assert!(again.is_err(), "an epoch went back");
    let pool: &VniPool = scene.controller.pool();
    let metrics = pool.metrics(Timestamp::from_millis(scene.now));
    assert_eq!((metrics.free, metrics.total), (16, 16));
    [scene.deaths, scene.restarts, scene.trees, scene.swept]
}

#[test]
fn nothing_is_left_and_nothing_used_twice() {
    let mut seen = [0; 4];
    for seed in 1..if full() { 400 } else { 9 } {
        for (all, more) in seen.iter_mut().zip(play(seed)) {
            *all += more;
        }
    }
    let [deaths, restarts, trees, swept] = seen;
    assert!(deaths > 20 && restarts > 20 && trees > 100 && swept > 0, "{seen:?}");
}
