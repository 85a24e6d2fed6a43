//! A node, its site and everyone who works on it, in process.

use std::any::Any;
use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use cxi::{
    Clock, Device, DeviceId, Limit, Limits, Member, Resource, Service, ServiceId, ServiceSpec, Vni,
};
use cxi_cni::{Call, Plugin};
use cxi_job::cluster::{
    Access, Cleaning, ComputeNode, Controller, JobShape, ReserveRequest, ServiceRecords, Site,
    StartingJob,
};
use cxi_job::owners::OwnedService;
use cxi_job::{Node, ReleaseOptions};
use cxi_mock::MockNode;
use cxi_site::durable::fault;
use cxi_site::pool::log::{FileLog, SharedPool};
use cxi_site::pool::{PoolConfig, Timestamp};
use cxi_site::proc::ProcFs;
use cxi_site::settings::Settings;
use cxi_site::{FileLock, JobId, NodeName};
use cxi_test_kit::{Pod, node};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::hands::{Hands, Process};
use crate::model::{Made, Model, Owner, Place, Seen, Who};
use crate::step::{Act, Damage, FIRST, JOBS, Looks, Mishap, OWN_JOBS, OWN_VNI, POOL, Step};

const NICS: u8 = 2;
/// The longest that a process may wait: it has to wait for nobody but an unfinished service.
const LONGEST: Duration = Duration::from_secs(2);
/// The same on a slow machine, where nothing is to be waited for.
const SLOWEST: Duration = Duration::from_secs(60);

type Outcome = Result<(), String>;

/// Everything there is.
#[derive(Debug)]
pub(crate) struct World {
    directory: TempDir,
    site: Site,
    pods: Arc<Vec<Pod>>,
    mock: Mutex<MockNode>,
    model: Mutex<Model>,
    copy: Mutex<Option<Vec<u8>>>,
    /// `true` if the pool may have jobs that nobody knows any more.
    restored: Mutex<bool>,
}

/// A NIC that nobody else can change until it has been seen.
pub(crate) struct Watched<'a> {
    model: MutexGuard<'a, Model>,
    nic: u32,
    device: Device,
    who: Who,
    act: u32,
}

impl Watched<'_> {
    pub(crate) fn see(mut self) {
        let services = self.device.services();
        let now: Vec<_> = services
            .list()
            .unwrap()
            .into_iter()
            .map(|service| {
                let listed = service.members().is_none_or(|members| !members.is_empty());
                Seen { service, usable: listed || services.netns(service.id()).unwrap().is_some() }
            })
            .collect();
        self.model.observe(self.nic, &now, self.who, self.act);
    }
}

fn job_id(job: u32) -> JobId {
    JobId::new(job.to_string()).unwrap()
}

fn uid_of(job: u32) -> u32 {
    1000 + job % 2
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl World {
    pub(crate) fn new(pods: &Arc<Vec<Pod>>) -> Arc<Self> {
        // Nothing here has to survive a real crash.
        let memory = Path::new("/dev/shm");
        let directory =
            if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }.unwrap();
        let (place, file) = (directory.path().display(), directory.path().join("cxi.toml"));
        let settings = format!(
            "wait = \"0s\"\n[node]\nrecords = \"{place}/run/jobs\"\nservices = \
             \"{place}/run/services\"\n[controller]\nrecords = \"{place}/decisions\"\nwait = \
             \"0s\"\n"
        );
        fs::write(&file, settings).unwrap();
        fs::create_dir(directory.path().join("run")).unwrap();
        let site = Site::open(Settings::load(Some(&file)).unwrap()).unwrap();
        Arc::new(Self {
            directory,
            site,
            pods: Arc::clone(pods),
            mock: Mutex::new(node(NICS)),
            model: Mutex::default(),
            copy: Mutex::default(),
            restored: Mutex::new(false),
        })
    }

    fn run(&self) -> PathBuf {
        self.directory.path().join("run")
    }

    fn pool_file(&self) -> PathBuf {
        self.directory.path().join("pool.json")
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap()
    }

    /// Keeps the others away from a NIC's services while they are changed and looked at.
    pub(crate) fn watch(&self, nic: u32, process: &Process) -> Watched<'_> {
        let device = self.device(nic);
        Watched { model: self.model(), nic, device, who: process.who, act: process.act }
    }

    /// A NIC in the hands of somebody who does not act.
    fn device(&self, nic: u32) -> Device {
        let mock = self.mock.lock().unwrap();
        let file = mock.nics()[nic as usize].root().unwrap();
        Device::with_transport(DeviceId::new(nic), file)
    }

    fn hands(&self, process: &Arc<Process>) -> Vec<(u32, Hands)> {
        let mock = self.mock.lock().unwrap();
        let nics = (0..).zip(mock.nics());
        nics.map(|(nic, mock)| {
            let process = Arc::clone(process);
            (nic, Hands { file: mock.root().unwrap(), nic, process })
        })
        .collect()
    }

    fn node(&self, process: &Arc<Process>) -> Node {
        let lock = FileLock::new(self.directory.path().join("node.lock")).wait(Duration::ZERO);
        Node::from_transports(self.hands(process)).with_lock(lock).with_proc(ProcFs::none())
    }

    fn devices(&self, process: &Arc<Process>) -> Vec<Device> {
        let hands = self.hands(process).into_iter();
        hands.map(|(nic, hands)| Device::with_transport(DeviceId::new(nic), hands)).collect()
    }

    fn compute<'a>(&'a self, process: &'a Arc<Process>, clock: &Arc<Time>) -> ComputeNode<'a> {
        let node = self.site.node(NodeName::new("n1").unwrap()).unwrap();
        let clock: Arc<dyn Clock> = Arc::<Time>::clone(clock);
        node.clock(clock).nics(move || Ok(self.node(process)))
    }

    /// Does something with the controller, as a process of its own does.
    fn control<T>(
        &self,
        act: impl FnOnce(&Controller<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        let vnis = format!("{FIRST}-{}", FIRST + POOL - 1);
        let config = PoolConfig::new(vnis.parse().unwrap());
        let log = FileLog::new(&self.pool_file()).wait(Duration::ZERO);
        let pool = SharedPool::open(log, config, "storm", 0, Timestamp::now()).map_err(text)?;
        let pool = Mutex::new(pool);
        let controller = self.site.controller(&pool).map_err(text)?;
        act(&controller.clock(Arc::new(Time::default())))
    }

    /// One step, and what everyone sees after it.
    pub(crate) fn step(world: &Arc<Self>, step: &Step) -> Outcome {
        {
            let mut model = world.model();
            model.step = model.act + 1;
        }
        let _ = Self::perform(world, &step.act, step.mishap.as_ref());
        let mut model = world.model();
        let confirmed = world.confirmed();
        model.confirms(confirmed);
        model.harm.take().map_or(Ok(()), Err)
    }

    /// The jobs whose end this node has confirmed.
    fn confirmed(&self) -> BTreeSet<u32> {
        let is = |job: &u32| {
            ["running", "ended"].iter().any(|state| {
                let path = format!("decisions/{state}/{job}/confirmed/n1");
                self.directory.path().join(path).exists()
            })
        };
        (1..=JOBS).filter(is).collect()
    }

    /// Does what a step says, as a process that may be stopped.
    pub(crate) fn perform(world: &Arc<Self>, act: &Act, mishap: Option<&Mishap>) -> Outcome {
        let who = match act {
            Act::Prolog { job, replace, .. } => Who::Prolog { job: *job, replace: *replace },
            Act::Epilog(job) => Who::Epilog(*job),
            Act::Clean { foreign, none_live, .. } => {
                Who::Clean { foreign: *foreign, none_live: *none_live }
            }
            Act::AdminMake { .. } | Act::AdminDestroy(_) | Act::AdminOrders(_) => Who::Admin,
            Act::PodAdd(pod) | Act::PodDel(pod) => Who::Pod(*pod),
            _ => Who::Foreign,
        };
        let number = {
            let mut model = world.model();
            model.act += 1;
            model.act
        };
        let process = Process::new(world, who, number, mishap.cloned());
        let (clock, begun) = (Arc::new(Time::default()), Instant::now());
        let of_files = Arc::clone(&process);
        let done = catch_unwind(AssertUnwindSafe(|| {
            fault::during(move || of_files.before_change(), || world.act(act, &process, &clock))
        }));
        let mut model = world.model();
        if let Who::Prolog { job, .. } = who {
            model.names_again(job, number);
        }
        if clock.now() > LONGEST || begun.elapsed() > SLOWEST {
            let (waited, took) = (clock.now(), begun.elapsed());
            model.harm(format!("{act:?} waits for {waited:?}, and takes {took:?}"));
        }
        match done {
            Ok(outcome) => {
                if outcome.is_ok() {
                    model.settle(number);
                }
                outcome
            }
            Err(_) if process.is_dead() => Err("killed".to_owned()),
            Err(panic) => {
                let what = said(&*panic);
                model.harm(format!("{act:?} panics: {what}"));
                Err(what)
            }
        }
    }

    fn act(&self, act: &Act, process: &Arc<Process>, clock: &Arc<Time>) -> Outcome {
        match act {
            Act::Reserve(job) => self.reserve(*job),
            Act::Prolog { job, size, replace } => {
                self.prolog(*job, *size, *replace, process, clock)
            }
            Act::Epilog(job) => {
                self.model().ends_here(*job);
                let node = self.compute(process, clock);
                let report = node.epilog(&job_id(*job), None, &options(clock)).map_err(text)?;
                report.code().map_or(Ok(()), |code| Err(format!("{code:?}: {report}")))
            }
            Act::Release(job) => {
                self.model().ends(*job);
                let released = |controller: &Controller<'_>| {
                    controller.release(&job_id(*job), None).map(drop).map_err(text)
                };
                self.control(released)
            }
            Act::Sweep => {
                let live = self.model().held.keys().map(|job| job_id(*job)).collect();
                let swept = |controller: &Controller<'_>| {
                    let swept = controller.sweep::<cxi_job::cluster::SiteError>(|| Ok(live));
                    swept.map(drop).map_err(text)
                };
                self.control(swept)
            }
            Act::Clean { foreign, none_live, dry_run } => {
                if *none_live && !dry_run {
                    self.model().runs.clear();
                }
                let mut cleaning =
                    Cleaning::new(format!("{FIRST}-{}", OWN_VNI + 1).parse().unwrap());
                cleaning.foreign = *foreign;
                cleaning.none_live = *none_live;
                cleaning.dry_run = *dry_run;
                let node = self.compute(process, clock);
                node.clean(&cleaning, &options(clock)).map(drop).map_err(text)
            }
            Act::ForeignMake { nic, uid, vni, looks } => {
                self.foreign(*nic, *uid, *vni, *looks, process)
            }
            Act::ForeignDestroy(which) => {
                self.destroy(self.which(*which, |owner| owner == Owner::Foreign), process)
            }
            Act::AdminMake { uid, vni } => self.admin(*uid, *vni, process),
            Act::AdminDestroy(which) => {
                self.destroy(self.which(*which, |owner| owner == Owner::Admin), process)
            }
            Act::AdminOrders(which) => self.destroy(self.which(*which, |_| true), process),
            Act::PodAdd(pod) => self.pod("ADD", *pod, process),
            Act::PodDel(pod) => self.pod("DEL", *pod, process),
            Act::Reboot { keeps_records } => self.reboot(*keeps_records),
            Act::CopyPool => {
                *self.copy.lock().unwrap() = fs::read(self.pool_file()).ok();
                Ok(())
            }
            Act::RestorePool => {
                if let Some(copy) = &*self.copy.lock().unwrap() {
                    fs::write(self.pool_file(), copy).map_err(text)?;
                    *self.restored.lock().unwrap() = true;
                }
                Ok(())
            }
            Act::LosePool => fs::remove_file(self.pool_file()).map_err(text),
            Act::BreakRecord(job, damage) => {
                let path = self.run().join(format!("jobs/{job}.json"));
                damaged(&path, *damage)?;
                self.model().lose(|owner| owner == *job);
                Ok(())
            }
            Act::BreakServiceRecord(which, damage) => {
                // That of a service: what else is there is of no use to anybody.
                let others = |owner| matches!(owner, Owner::Admin | Owner::Pod(_));
                let Some((nic, id)) = self.which(*which, others) else { return Ok(()) };
                damaged(&self.run().join(format!("services/cxi{nic}-{id}.json")), *damage)
            }
            Act::LoseRecords => {
                let lost = fs::remove_dir_all(self.run().join("jobs"));
                self.model().lose(|_| true);
                lost.map_err(text)
            }
        }
    }

    fn which(&self, number: usize, of: impl Fn(Owner) -> bool) -> Option<Place> {
        let places = self.model().places(of);
        (!places.is_empty()).then(|| places[number % places.len()])
    }

    fn reserve(&self, job: u32) -> Outcome {
        let decision = self.control(|controller| {
            let request = ReserveRequest::new(job_id(job), uid_of(job), "n1".parse().unwrap());
            Ok(controller.reserve(&request).map_err(text)?.result)
        })?;
        let vnis: Vec<u16> = decision.vnis.iter().map(|vni| vni.get()).collect();
        self.model().gives(job, &vnis);
        Ok(())
    }

    fn prolog(
        &self,
        job: u32,
        size: u32,
        replace: bool,
        process: &Arc<Process>,
        clock: &Arc<Time>,
    ) -> Outcome {
        let mut starting = StartingJob::new(job_id(job));
        starting.access = OWN_JOBS.contains(&job).then(|| {
            let vni = Vni::new(OWN_VNI + (job % 2) as u16).unwrap();
            Access::new([Member::Uid(uid_of(job))], [vni])
        });
        starting.shape = JobShape::of_size(size);
        starting.shape.no_tles = true;
        starting.replace = replace;
        if replace {
            // Its earlier run may end with this.
            self.model().runs.remove(&job);
        }
        self.compute(process, clock).prolog(&starting).map_err(text)?;
        self.model().starts(job, process.act);
        Ok(())
    }

    fn foreign(
        &self,
        nic: u32,
        uid: u32,
        vni: u16,
        looks: Looks,
        process: &Arc<Process>,
    ) -> Outcome {
        let vni = Vni::new(vni).unwrap();
        let mut spec = ServiceSpec::builder().member(Member::Uid(uid)).vni(vni);
        match looks {
            Looks::Unlimited => {}
            Looks::Small => {
                let limits = Limits::none().with(Resource::Txqs, Limit::exactly(3));
                spec = spec.limits(limits);
            }
            Looks::Twin => {
                let model = self.model();
                let twin = |made: &&Made| {
                    matches!(made.owner, Owner::Job(job) if model.runs.contains(&job))
                        && made.service.members().is_some_and(|all| all.contains(Member::Uid(uid)))
                        && made.service.vnis().iter().any(|own| own == vni)
                };
                let of_nic = model.there.range((nic, 0)..=(nic, u32::MAX)).map(|(_, made)| made);
                let Some(twin) = of_nic.into_iter().find(twin) else { return Ok(()) };
                let service: Service = twin.service;
                if let Some(classes) = service.traffic_classes() {
                    spec = spec.traffic_classes(classes);
                }
                spec = spec.limits(service.limits());
            }
        }
        let spec = spec.build().map_err(text)?;
        let device = &self.devices(process)[nic as usize];
        device.services().create(&spec).map(drop).map_err(text)
    }

    fn destroy(&self, place: Option<Place>, process: &Arc<Process>) -> Outcome {
        let Some((nic, id)) = place else { return Ok(()) };
        self.model().named = place;
        let device = &self.devices(process)[nic as usize];
        let id = ServiceId::new(id).unwrap();
        device.services().destroy(id).map_err(text)?;
        if matches!(process.who, Who::Admin) {
            let records = ServiceRecords::of(self.site.settings()).map_err(text)?;
            records.remove(device.id(), id).map_err(text)?;
        }
        Ok(())
    }

    /// As `cxi service create` does it.
    fn admin(&self, uid: u32, vni: u16, process: &Arc<Process>) -> Outcome {
        let spec = ServiceSpec::builder().member(Member::Uid(uid)).vni(Vni::new(vni).unwrap());
        let spec = spec.build().map_err(text)?;
        let records = ServiceRecords::of(self.site.settings()).map_err(text)?;
        for device in self.devices(process) {
            let id = device.services().create(&spec).map_err(text)?;
            let made = OwnedService::of(device.id(), &device.services().get(id).map_err(text)?);
            if let Err(error) = records.add(made, "an administrator") {
                let _ = device.services().destroy(id);
                return Err(text(error));
            }
        }
        Ok(())
    }

    fn pod(&self, command: &str, pod: usize, process: &Arc<Process>) -> Outcome {
        let Some(found) = self.pods.get(pod) else { return Ok(()) };
        let config = json!({
            "cniVersion": "1.1.0",
            "name": "blue",
            "type": "cxi-cni",
            "cxi": {
                "vnis": {"source": "static", "vnis": [1050]},
                "retryBusySeconds": 0,
                "stateDir": self.run().join("cni"),
            },
        });
        let (netns, container) = (found.netns().display().to_string(), format!("pod{pod}"));
        let variable = |name: &str| {
            let value = match name {
                "CNI_COMMAND" => command,
                "CNI_CONTAINERID" => &container,
                "CNI_IFNAME" => "eth0",
                "CNI_NETNS" => &netns,
                _ => return None,
            };
            Some(value.to_owned())
        };
        match Call::parse(&variable, &config.to_string()).map_err(text)? {
            Call::Network(command, config) => {
                let plugin = Plugin::new(self.node(process), &config).map_err(text)?;
                plugin.answer(&command).map(drop).map_err(text)
            }
            Call::Version(_) => Ok(()),
        }
    }

    fn reboot(&self, keeps_records: bool) -> Outcome {
        *self.mock.lock().unwrap() = node(NICS);
        {
            let mut model = self.model();
            model.there.clear();
            model.runs.clear();
        }
        for name in ["jobs", "services", "cni"] {
            let directory = self.run().join(name);
            if !keeps_records {
                let _ = fs::remove_dir_all(&directory);
                continue;
            }
            for path in files(&directory) {
                let read = fs::read_to_string(&path).map_err(text)?;
                let Ok(mut value) = serde_json::from_str::<Value>(&read) else { continue };
                if let Some(boot) = value.pointer_mut("/record/boot") {
                    *boot = "another".into();
                }
                fs::write(&path, value.to_string()).map_err(text)?;
            }
        }
        Ok(())
    }

    /// Nothing goes wrong any more, and everyone ends what they have: nothing may be left.
    pub(crate) fn calm(world: &Arc<Self>) -> Outcome {
        let act = |act: &Act| {
            let done = Self::perform(world, act, None);
            world.model().harm.take().map_or(Ok(()), Err)?;
            done.map_err(|error| format!("at last, {act:?} fails: {error}"))
        };
        let clean = |foreign| Act::Clean { foreign, none_live: false, dry_run: false };
        while world.which(0, |owner| owner == Owner::Foreign).is_some() {
            act(&Act::ForeignDestroy(0))?;
        }
        while world.which(0, |owner| owner == Owner::Admin).is_some() {
            act(&Act::AdminDestroy(0))?;
        }
        for pod in 0..world.pods.len() {
            act(&Act::PodDel(pod))?;
        }
        for job in (1..=JOBS).chain(OWN_JOBS) {
            // The controller first: a node does not confirm what still runs elsewhere.
            if job <= JOBS {
                act(&Act::Release(job))?;
            }
            act(&Act::Epilog(job))?;
        }
        act(&clean(false))?;
        if let Some((place, made)) =
            world.model().there.iter().find(|(_, made)| !matches!(made.owner, Owner::Lost(_)))
        {
            return Err(format!("at last, {place:?} of {:?} is left", made.owner));
        }
        act(&clean(true))?;
        if let Some((place, made)) = world.model().there.iter().next() {
            return Err(format!("at last, {place:?} of {:?} is left", made.owner));
        }
        act(&clean(false))?;
        let left = world.control(|controller| {
            let _ = controller.collect().map_err(text)?;
            Ok(controller.list().map_err(text)?.len())
        })?;
        if left > 0 {
            return Err(format!("at last, the controller has {left} jobs"));
        }
        for name in ["jobs", "services", "cni"] {
            let left = files(&world.run().join(name));
            if let Some(path) = left.first() {
                return Err(format!("at last, {} is left", path.display()));
            }
        }
        if !*world.restored.lock().unwrap() {
            let log = FileLog::new(&world.pool_file());
            let config = PoolConfig::new("1".parse().unwrap());
            if world.pool_file().exists()
                && let Ok(pool) = SharedPool::open(log, config, "storm", 0, Timestamp::now())
                && pool.pool().jobs().count() > 0
            {
                return Err(format!("at last, the pool has {} jobs", pool.pool().jobs().count()));
            }
        }
        Ok(())
    }
}

fn options(clock: &Arc<Time>) -> ReleaseOptions<'_> {
    ReleaseOptions::once().clock(&**clock)
}

/// The records in a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|kind| kind == "json")).collect();
    paths.sort();
    paths
}

fn damaged(path: &Path, damage: Damage) -> Outcome {
    let text_of = fs::read(path).map_err(text)?;
    let text_of = match damage {
        Damage::Empty => &[],
        Damage::CutOff => &text_of[..text_of.len() / 2],
        Damage::Garbage => b"\0\xff{]".as_slice(),
    };
    fs::write(path, text_of).map_err(text)
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "something".to_owned())
}

/// A clock on which waiting takes no time.
#[derive(Debug, Default)]
pub(crate) struct Time(Mutex<Duration>);

impl Clock for Time {
    fn now(&self) -> Duration {
        *self.0.lock().unwrap()
    }

    fn sleep(&self, time: Duration) {
        *self.0.lock().unwrap() += time;
    }
}
