//! A storm that looks for harm on a served node: prologs, epilogs and cleanups of `cxi`, pods of `cxi-cni`,
//! an administrator and another scheduler, in any order, with programs that are killed, records that are
//! lost, and a file system that never answers, on which a program of the node has a file open. Nobody's
//! service is destroyed by another, no two users get one VNI, everything of an ended job or pod goes, and
//! no command outlives its deadline. The storm in process, of `cxi-cni`, has more that can go wrong.
//!
//! A dozen sequences; `CXI_STORM_SEQUENCES` says how many, and `CXI_STORM_SEED` repeats one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, fs};

use cxi_test_kit::{Directory, Random};
use cxi_tests::node::{self, Run as _, Served, client, need_node, printed, server};
use serde_json::{Value, json};

const CXI: &str = env!("CARGO_BIN_EXE_test-cxi");
const CNI: &str = env!("CARGO_BIN_EXE_test-cxi-cni");
const JOBS: usize = 3;
const PODS: usize = 2;
/// VNIs, few, so that two often meet.
const FIRST: usize = 1024;
const VNIS: usize = 4;
/// Deadline of every command.
const DEADLINE: Duration = Duration::from_secs(60);

/// A service by NIC and number.
type Place = (String, u64);
type Harm = Result<(), String>;

/// Act of somebody; where it takes one of several services, an index.
#[derive(Clone, Copy, Debug)]
enum Act {
    Prolog {
        job: usize,
        uid: usize,
        vni: usize,
        replace: bool,
    },
    Epilog(usize),
    PodAdd {
        pod: usize,
        vni: usize,
    },
    PodDel(usize),
    Clean {
        foreign: bool,
        none_live: bool,
    },
    AdminMake {
        uid: usize,
        vni: usize,
    },
    AdminDestroy(usize),
    /// An administrator names a service of anybody.
    AdminOrders(usize),
    ForeignMake {
        nic: usize,
        uid: usize,
        vni: usize,
    },
    ForeignDestroy(usize),
    BreakRecord(usize),
    LoseRecords,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    act: Act,
    /// Its program is killed after this time, unless it has ended.
    killed: Option<Duration>,
}

fn steps(seed: u64) -> Vec<Step> {
    let mut random = Random::new(seed);
    let count = 4 + random.below(8);
    let mut step = || {
        let (job, index) = (random.below(JOBS), random.below(64));
        let (uid, vni) = (1000 + random.below(2), FIRST + random.below(VNIS));
        let pod = random.below(PODS);
        let act = match random.below(29) {
            0..=8 => Act::Prolog { job, uid, vni, replace: random.below(8) == 0 },
            9..=13 => Act::Epilog(job),
            14..=16 => {
                Act::Clean { foreign: random.below(5) == 0, none_live: random.below(8) == 0 }
            }
            17 => Act::AdminMake { uid, vni },
            18 => Act::AdminDestroy(index),
            19 => Act::AdminOrders(index),
            20 | 21 => Act::ForeignMake { nic: random.below(2), uid, vni },
            22 => Act::ForeignDestroy(index),
            23..=25 => Act::PodAdd { pod, vni },
            26 | 27 => Act::PodDel(pod),
            _ if random.below(3) == 0 => Act::LoseRecords,
            _ => Act::BreakRecord(job),
        };
        let micros = u64::try_from(random.below(60_000)).unwrap_or_default();
        let killed = (random.below(3) == 0).then(|| Duration::from_micros(micros));
        Step { act, killed }
    };
    (0..count).map(|_| step()).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Job(usize),
    /// A job made it, and nothing says so any more.
    Lost,
    Pod(usize),
    Admin,
    Foreign,
}

/// A service, as everyone sees it who watches the node.
#[derive(Clone, Copy, Debug)]
struct Made {
    owner: Owner,
    /// The act in which it was made.
    act: usize,
    /// `true` once that act has ended well: before that, nothing may say whose it is.
    settled: bool,
}

impl Drop for World {
    fn drop(&mut self) {
        for pod in &mut self.pods {
            let _ = pod.kill();
            let _ = pod.wait();
        }
    }
}

/// A node, and what is known of it without its records.
struct World {
    node: Served,
    directory: Directory,
    /// A process in the network namespace of each pod.
    pods: Vec<Child>,
    there: BTreeMap<Place, Made>,
    /// User and VNI of each job that has started and was not ended.
    runs: BTreeMap<usize, (usize, usize)>,
    act: usize,
    /// Each act, how it ended, what was there then and what the records said: a kill hits a program
    /// elsewhere when it is repeated.
    story: String,
}

impl World {
    fn new() -> Self {
        let node = Served::start(&["--nics", "2"]);
        let pod = |_| {
            let mut pod = server(["enter", "--dir", &node.dir(), "--outlive", "--"]);
            pod.args(["unshare", "--net", "sh", "-c", "echo ready; exec sleep 86400"]);
            let mut pod = pod.start();
            node::wait_ready(&mut pod);
            pod
        };
        Self {
            pods: (0..PODS).map(pod).collect(),
            node,
            directory: Directory::new(),
            there: BTreeMap::new(),
            runs: BTreeMap::new(),
            act: 0,
            story: String::new(),
        }
    }

    /// A program on the node, as the process itself, so that a kill hits it.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = server(["enter", "--dir", &self.node.dir(), "--outlive", "--", program]);
        command
            .args(arguments)
            .env("CXI_RECORDS", self.directory.join("jobs"))
            .env("CXI_SERVICES", self.directory.join("services"))
            .env("CXI_LOCK", self.directory.join("node.lock"))
            .env("CXI_POOL_FILE", self.directory.join("pool.json"));
        command
    }

    /// Runs a command of `cxi`. Returns its exit code; `None` if it was killed.
    fn cxi(&self, arguments: &[&str], killed: Option<Duration>) -> Result<Option<i32>, String> {
        let mut command = self.command(CXI, arguments);
        command.stdin(Stdio::null());
        Self::ends(command, killed)
    }

    /// Calls the CNI plugin for a pod.
    fn cni(
        &self,
        verb: &str,
        pod: usize,
        vni: usize,
        killed: Option<Duration>,
    ) -> Result<Option<i32>, String> {
        let mut command = self.command(CNI, &[]);
        command
            .env("CNI_COMMAND", verb)
            .env("CNI_CONTAINERID", format!("pod{pod}"))
            .env("CNI_IFNAME", "eth0")
            .env("CNI_NETNS", format!("/proc/{}/ns/net", self.pods[pod].id()));
        let network = json!({
            "cniVersion": "1.1.0", "name": "blue", "type": "cxi-cni",
            "cxi": {"vnis": {"source": "static", "vnis": [vni]}, "stateDir": self.directory.join("pods")},
        });
        let path = self.directory.join("network");
        fs::write(&path, network.to_string()).map_err(|error| error.to_string())?;
        command.stdin(fs::File::open(path).map_err(|error| error.to_string())?);
        Self::ends(command, killed)
    }

    fn ends(mut command: Command, killed: Option<Duration>) -> Result<Option<i32>, String> {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let begun = Instant::now();
        loop {
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                return Ok(status.code());
            }
            let late = begun.elapsed() > DEADLINE;
            if late || killed.is_some_and(|after| begun.elapsed() > after) {
                let _ = child.kill();
                let _ = child.wait();
                return if late { Err(format!("{command:?} never ends")) } else { Ok(None) };
            }
            sleep(Duration::from_millis(1));
        }
    }

    /// The services, once the driver has ended the last command of a program that was killed.
    fn settled(&self) -> Vec<Place> {
        let mut listed = self.listed();
        loop {
            sleep(Duration::from_millis(10));
            let again = self.listed();
            if again == listed {
                return again;
            }
            listed = again;
        }
    }

    fn tell(&mut self, step: Step, code: Option<i32>, now: &[Place]) {
        let _ = writeln!(self.story, "  {step:?}: ends with {code:?}, leaves {now:?}");
        for job in 0..JOBS {
            let record = self.directory.path().join(format!("jobs/{job}.json"));
            if let Ok(record) = fs::read_to_string(record) {
                let record: Value = serde_json::from_str(&record).unwrap_or_default();
                let _ = writeln!(self.story, "    record of job {job}: {record}");
            }
        }
    }

    /// The services of others than the driver.
    fn listed(&self) -> Vec<Place> {
        let list = printed(&self.command(CXI, &["--json", "service", "list"]).run());
        let list: Value = serde_json::from_str(&list).expect("JSON");
        let services = list["services"].as_array().expect("a list").iter();
        let place = |service: &Value| {
            let device = service["device"].as_str().expect("a NIC").to_owned();
            (device, service["id"].as_u64().expect("a number"))
        };
        services.map(place).filter(|(_, id)| *id != 1).collect()
    }

    /// The service that an act means.
    fn place(&self, of: impl Fn(&Made) -> bool, index: usize) -> Option<Place> {
        let places: Vec<&Place> =
            self.there.iter().filter(|(_, made)| of(made)).map(|(place, _)| place).collect();
        (!places.is_empty()).then(|| places[index % places.len()].clone())
    }

    fn step(&mut self, step: Step) -> Harm {
        self.act += 1;
        let mut named = None;
        let code = match step.act {
            Act::Prolog { job, uid, vni, replace } => {
                let (name, uid, vni) = (job.to_string(), uid.to_string(), vni.to_string());
                let which = ["--job", &name, "--uid", &uid, "--vni", &vni];
                let replace: &[&str] = if replace { &["--replace"] } else { &[] };
                let prolog = ["job", "prolog", "--cores=1", "--no-tles"];
                self.cxi(&[&prolog[..], &which, replace].concat(), step.killed)?
            }
            Act::Epilog(job) => self.epilog(job, step.killed)?,
            Act::PodAdd { pod, vni } => self.cni("ADD", pod, vni, step.killed)?,
            Act::PodDel(pod) => self.cni("DEL", pod, FIRST, step.killed)?,
            Act::Clean { foreign, none_live } => {
                let mut clean = vec!["job", "clean", "--pool-vnis=1024-1099"];
                clean.extend(foreign.then_some("--foreign"));
                clean.extend(none_live.then_some("--none-live"));
                self.cxi(&clean, step.killed)?
            }
            Act::AdminMake { uid, vni } => {
                let (uid, vni) = (format!("--uid={uid}"), format!("--vni={vni}"));
                let make = ["service", "create", &uid, &vni, "--limit=txqs=1:1"];
                self.cxi(&make, step.killed)?
            }
            Act::AdminDestroy(index) | Act::AdminOrders(index) => {
                let any = matches!(step.act, Act::AdminOrders(_));
                named = self.place(|made| any || made.owner == Owner::Admin, index);
                let Some((device, id)) = &named else { return Ok(()) };
                self.cxi(&["service", "destroy", &id.to_string(), "-d", device], step.killed)?
            }
            Act::ForeignMake { nic, uid, vni } => {
                let make = ["allocate", &format!("/dev/cxi{nic}"), &vni.to_string()];
                self.command(client(), &[&make[..], &[&uid.to_string()]].concat()).run();
                Some(0)
            }
            Act::ForeignDestroy(index) => {
                let place = self.place(|made| made.owner == Owner::Foreign, index);
                let Some((device, id)) = place else { return Ok(()) };
                let destroy = ["destroy", &format!("/dev/{device}"), &id.to_string()];
                self.command(client(), &destroy).run();
                Some(0)
            }
            Act::BreakRecord(job) => {
                let record = self.directory.path().join(format!("jobs/{job}.json"));
                if record.exists() {
                    fs::write(record, "").map_err(|error| error.to_string())?;
                    self.lose(|of| of == job);
                }
                let _ = writeln!(self.story, "  {step:?}");
                return Ok(());
            }
            Act::LoseRecords => {
                let _ = fs::remove_dir_all(self.directory.join("jobs"));
                self.lose(|_| true);
                let _ = writeln!(self.story, "  {step:?}");
                return Ok(());
            }
        };
        let now = if code.is_none() { self.settled() } else { self.listed() };
        self.tell(step, code, &now);
        self.observe(step.act, named.as_ref(), &now)?;
        self.understand(step.act, code)
    }

    fn epilog(&self, job: usize, killed: Option<Duration>) -> Result<Option<i32>, String> {
        self.cxi(&["job", "epilog", "--job", &job.to_string()], killed)
    }

    /// The records of jobs are gone.
    fn lose(&mut self, of: impl Fn(usize) -> bool) {
        for made in self.there.values_mut() {
            if let Owner::Job(job) = made.owner
                && of(job)
            {
                made.owner = Owner::Lost;
            }
        }
        self.runs.retain(|job, _| !of(*job));
    }

    /// Compares what is there with what was there.
    fn observe(&mut self, act: Act, named: Option<&Place>, now: &[Place]) -> Harm {
        let gone = self.there.iter().filter(|(place, _)| !now.contains(place));
        for (place, made) in gone {
            if !self.may_destroy(act, named == Some(place), made) {
                return Err(format!("{act:?} destroys {place:?} of {:?}", made.owner));
            }
        }
        self.there.retain(|place, _| now.contains(place));
        for place in now.iter().cloned() {
            let owner = match act {
                Act::Prolog { job, .. } => Owner::Job(job),
                Act::PodAdd { pod, .. } => Owner::Pod(pod),
                Act::AdminMake { .. } => Owner::Admin,
                // The others make none; if they did, nobody could destroy it.
                _ => Owner::Foreign,
            };
            let made = Made { owner, act: self.act, settled: false };
            self.there.entry(place).or_insert(made);
        }
        Ok(())
    }

    fn may_destroy(&self, act: Act, named: bool, made: &Made) -> bool {
        match (act, made.owner) {
            (Act::Prolog { job, replace, .. }, Owner::Job(owner)) => {
                job == owner && (replace || !self.runs.contains_key(&job))
            }
            (Act::Epilog(job), Owner::Job(owner)) => job == owner,
            (Act::Clean { none_live, .. }, Owner::Job(owner)) => {
                none_live || !self.runs.contains_key(&owner)
            }
            (Act::Clean { foreign, .. }, Owner::Lost | Owner::Foreign) => foreign,
            (Act::Clean { foreign, .. }, Owner::Admin | Owner::Pod(_)) => foreign && !made.settled,
            // A service that a killed ADD has not finished admits nobody, and nothing says whose it is.
            (Act::PodAdd { pod, .. } | Act::PodDel(pod), Owner::Pod(owner)) => {
                pod == owner || !made.settled
            }
            (Act::AdminDestroy(_) | Act::AdminOrders(_), _) => named,
            (Act::ForeignDestroy(_), owner) => owner == Owner::Foreign,
            _ => false,
        }
    }

    /// Takes note of what a command has said.
    fn understand(&mut self, act: Act, code: Option<i32>) -> Harm {
        if code == Some(0) {
            for made in self.there.values_mut().filter(|made| made.act == self.act) {
                made.settled = true;
            }
        }
        match act {
            Act::Prolog { job, uid, vni, .. } if code == Some(0) => {
                let shares = |(other, (user, used)): (&usize, &(usize, usize))| {
                    *other != job && (*used == vni) && *user != uid
                };
                if let Some((other, _)) = self.runs.iter().find(|run| shares(*run)) {
                    return Err(format!(
                        "job {job} gets VNI {vni}, which job {other} of another user has"
                    ));
                }
                self.runs.insert(job, (uid, vni));
            }
            // Even one that was killed may have ended it, or begun anew.
            Act::Epilog(job) | Act::Prolog { job, replace: true, .. } => {
                self.runs.remove(&job);
            }
            Act::Clean { none_live: true, .. } => self.runs.clear(),
            _ => {}
        }
        Ok(())
    }

    /// Ends everything. Nothing of a job is left then, and an administrator's services are.
    fn calm(&mut self) -> Harm {
        for job in 0..JOBS {
            self.act += 1;
            let code = self.epilog(job, None)?;
            let now = self.listed();
            self.tell(Step { act: Act::Epilog(job), killed: None }, code, &now);
            if !matches!(code, Some(0 | 8)) {
                return Err(format!("the last epilog of job {job} ends with {code:?}"));
            }
            self.observe(Act::Epilog(job), None, &now)?;
            self.runs.remove(&job);
        }
        for pod in 0..PODS {
            self.act += 1;
            let act = Act::PodDel(pod);
            let code = self.cni("DEL", pod, FIRST, None)?;
            let now = self.listed();
            self.tell(Step { act, killed: None }, code, &now);
            if code != Some(0) {
                return Err(format!("the last DEL of pod {pod} ends with {code:?}"));
            }
            self.observe(act, None, &now)?;
        }
        for foreign in [false, true] {
            let last = Act::Clean { foreign, none_live: true };
            self.step(Step { act: last, killed: None })?;
            let is_left = |made: &Made| match made.owner {
                Owner::Job(_) | Owner::Pod(_) => true,
                Owner::Lost => foreign,
                Owner::Admin | Owner::Foreign => false,
            };
            if let Some(place) = self.place(is_left, 0) {
                return Err(format!("{place:?} of {:?} is left", self.there[&place].owner));
            }
        }
        for (device, id) in self.there.keys() {
            self.cxi(&["service", "destroy", &id.to_string(), "-d", device], None)?;
        }
        let left = self.listed();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?} cannot be destroyed")) }
    }

    fn forget(&mut self) {
        for records in ["jobs", "services", "pods"] {
            let _ = fs::remove_dir_all(self.directory.join(records));
        }
        (self.there, self.runs) = (BTreeMap::new(), BTreeMap::new());
        self.story.clear();
    }

    /// Harm that a sequence does to somebody, if it does any.
    fn harm(&mut self, steps: &[Step]) -> Option<String> {
        let steps = steps.iter().try_for_each(|step| self.step(*step));
        let harm = steps.and_then(|()| self.calm()).err();
        let harm = harm.map(|harm| format!("{harm}, after:\n{}", self.story));
        if harm.is_some() {
            *self = Self::new();
        }
        self.forget();
        harm
    }
}

fn number(variable: &str) -> Option<u32> {
    env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn nobody_harms_anybody_on_a_node() {
    need_node!(cxi_test_kit::root("have the services of several users"));
    let (first, count) = match number("CXI_STORM_SEED") {
        Some(seed) => (seed, 1),
        None => (0, number("CXI_STORM_SEQUENCES").unwrap_or(12)),
    };
    let dead = Served::start(&[]);
    let mut holder =
        dead.command(&["sh", "-c", "exec 3<>/dev/cxi0; echo ready; exec sleep 86400"]).start();
    node::wait_ready(&mut holder);
    node::kill("STOP", dead.pid());
    let (next, found) = (AtomicU32::new(first), Mutex::new(String::new()));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut world = World::new();
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= first + count || !found.lock().expect("no panic").is_empty() {
                        break;
                    }
                    if let Some(harm) = world.harm(&steps(seed.into())) {
                        let mut found = found.lock().expect("no panic");
                        let _ = writeln!(found, "CXI_STORM_SEED={seed}: {harm}");
                    }
                }
            });
        }
    });
    node::kill("CONT", dead.pid());
    node::kill("KILL", holder.id());
    let _ = holder.wait();
    let ran = next.into_inner().saturating_sub(first).min(count);
    let _ = writeln!(std::io::stderr(), "{ran} sequences took {:?}", begun.elapsed());
    let found = found.into_inner().expect("no panic");
    assert!(found.is_empty(), "{found}");
}
