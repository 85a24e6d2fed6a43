//! A site with many nodes, and one whose processes are killed.

use std::convert::Infallible;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use cxi::{Device, Errno, Member, ServiceId, ServiceSpec, Vni};
use cxi_ioctl::{Intercept, Opcode, Transport as _};
use cxi_job::clean::OrphanReason;
use cxi_job::collectives::Certificate;
use cxi_job::durable::FileLock;
use cxi_job::fabric::{
    Credentials as Secrets, FabricManager, HttpAnswer, HttpError, HttpRequest, HttpTransport,
    Method,
};
use cxi_job::owners::OwnedService;
use cxi_job::pool::log::{ChangeError, FileLog, MemoryLog, SharedPool};
use cxi_job::pool::{Phase, PoolConfig, Timestamp};
use cxi_job::settings::{Directories, Settings};
use cxi_job::site::{
    Access, Cleaning, ComputeNode, JobShape, Mismatch, PoolStore, ReserveRequest, ServiceRecords,
    Site, SiteError, StartingJob, Warning, keys,
};
use cxi_job::{ErrorCode, JobId, Node, NodeName, ReleaseOptions, ReleaseStatus};
use cxi_mock::{Credentials, Fault, InProcess, MockNode, NicConfig};
use tempfile::TempDir;

type Pool = Mutex<SharedPool<MemoryLog>>;

fn site(directory: &Path) -> Site {
    site_with(directory, "")
}

fn site_with(directory: &Path, more: &str) -> Site {
    let (place, file) = (directory.display(), directory.join("cxi.toml"));
    let text = format!(
        "wait = \"0s\"\n[node]\nrecords = \"{place}/jobs\"\nservices = \"{place}/services\"\n[controller]\nrecords = \
         \"{place}/decisions\"\nwait = \"0s\"\n{more}"
    );
    fs::write(&file, text).unwrap();
    Site::open(Settings::load(Some(&file)).unwrap()).unwrap()
}

fn pool() -> Pool {
    let config = PoolConfig::new("1024-1099".parse().unwrap());
    let pool = SharedPool::open(MemoryLog::new(), config, "test", 0, Timestamp::now());
    Mutex::new(pool.unwrap())
}

fn job(id: u32) -> JobId {
    JobId::new(&id.to_string()).unwrap()
}

fn reserve(site: &Site, pool: &Pool, id: u32, nodes: &str) -> Result<(), SiteError> {
    let request = ReserveRequest::new(job(id), 1000, nodes.parse().unwrap());
    let done = site.controller(pool)?.reserve(&request)?;
    assert_eq!((done.result.vnis.len(), done.warnings.len()), (1, 0));
    Ok(())
}

fn release(site: &Site, pool: &Pool, id: u32) {
    let done = site.controller(pool).unwrap().release(&job(id), None);
    assert_eq!(done.unwrap().result, [job(id)]);
}

fn compute<'a>(site: &'a Site, mock: &MockNode) -> ComputeNode<'a> {
    let node = Node::from_transports(mock.devices(&Credentials::root()).unwrap());
    let compute = site.node(NodeName::new("n1").unwrap()).unwrap();
    compute.nics(move || Ok(node.clone()))
}

fn starting(id: u32) -> StartingJob {
    StartingJob {
        job: job(id),
        component: None,
        access: None,
        replace: false,
        shape: JobShape { size: Some(1), ..JobShape::default() },
    }
}

#[test]
fn a_thousand_nodes_take_no_lock_and_the_pool_changes_three_times() {
    const NODES: usize = 1_000;
    let (directory, pool) = (TempDir::new().unwrap(), pool());
    let site = site(directory.path());
    let sequence = || pool.lock().unwrap().pool().sequence();
    let before = sequence();
    let all = format!("n[1-{NODES}]");
    reserve(&site, &pool, 1, &all).unwrap();
    assert_eq!(sequence(), before + 1, "one reservation");
    release(&site, &pool, 1);
    assert_eq!(sequence(), before + 2, "one release");
    // A node that needed one of these would wait forever, or fail.
    let lock = FileLock::new(directory.path().join("decisions/.lock"));
    let held = (lock.acquire().unwrap(), pool.lock().unwrap());
    thread::scope(|threads| {
        for first in 1..=8 {
            let (site, pool) = (&site, &pool);
            threads.spawn(move || {
                let controller = site.controller(pool).unwrap();
                for node in (first..=NODES).step_by(8) {
                    let node = NodeName::new(&format!("n{node}")).unwrap();
                    controller.confirm(&job(1), &node).unwrap();
                }
            });
        }
    });
    drop(held);
    assert_eq!(sequence(), before + 2, "nodes change nothing in the pool");
    reserve(&site, &pool, 2, &all).unwrap();
    assert_eq!(sequence(), before + 4, "all have confirmed, and the next job");
    assert!(!directory.path().join("decisions/ended/1").exists());
}

/// In etcd, each change takes some requests.
#[test]
fn a_job_starts_with_two_changes_of_the_pool_however_many_have_ended() {
    let (directory, pool) = (TempDir::new().unwrap(), pool());
    let site = site(directory.path());
    let controller = site.controller(&pool).unwrap();
    for id in 1..=32 {
        reserve(&site, &pool, id, "n1").unwrap();
    }
    for id in 1..=32 {
        release(&site, &pool, id);
    }
    for id in 1..=32 {
        let node = NodeName::new("n1").unwrap();
        controller.confirm(&job(id), &node).unwrap();
    }
    let before = pool.lock().unwrap().pool().sequence();
    reserve(&site, &pool, 33, "n1").unwrap();
    let pool = pool.lock().unwrap();
    assert_eq!(pool.pool().sequence(), before + 2);
    assert_eq!(pool.pool().jobs().count(), 1);
}

/// The controller is removing the job's directory, as all nodes have confirmed, when one of them
/// confirms again.
#[test]
fn a_job_that_is_being_removed_can_be_confirmed_again() {
    let (directory, pool) = (TempDir::new().unwrap(), pool());
    let site = site(directory.path());
    reserve(&site, &pool, 1, "n1").unwrap();
    release(&site, &pool, 1);
    let confirmed = directory.path().join("decisions/ended/1/confirmed");
    fs::remove_dir(confirmed).unwrap();
    let node = NodeName::new("n1").unwrap();
    let controller = site.controller(&pool).unwrap();
    controller.confirm(&job(1), &node).unwrap();
}

#[test]
fn a_failed_prolog_leaves_no_record_and_says_what_kind_of_failure_it_was() {
    let (directory, pool) = (TempDir::new().unwrap(), pool());
    let site = site(directory.path());
    let mock = MockNode::with_nics(2, &NicConfig::new()).unwrap();
    let node = compute(&site, &mock);
    let unmounted = node.prolog(&starting(1)).unwrap_err();
    assert_eq!(unmounted.code(), ErrorCode::Failed, "{unmounted}");
    reserve(&site, &pool, 1, "n1").unwrap();
    let undecided = node.prolog(&starting(2)).unwrap_err();
    assert_eq!(undecided.code(), ErrorCode::NotFound, "{undecided}");
    mock.nics()[1].faults().inject(Fault::shortage(cxi::Resource::Txqs, 0));
    let full = node.prolog(&starting(1)).unwrap_err();
    assert_eq!(full.code(), ErrorCode::NotEnough, "{full}");
    assert!(node.list().unwrap().0.is_empty());
    assert_eq!(mock.nics()[0].state().svc_count, 1);
    let missing = node.environment(&job(1), None).unwrap_err();
    assert_eq!(missing.code(), ErrorCode::NotFound, "{missing}");
}

#[test]
fn a_controller_that_another_one_replaced_says_so() {
    let (directory, log) = (TempDir::new().unwrap(), MemoryLog::new());
    let lead = |epoch| {
        let config = PoolConfig::new("1024-1099".parse().unwrap());
        SharedPool::open(log.clone(), config, "test", epoch, Timestamp::now()).unwrap()
    };
    let first = Mutex::new(lead(1));
    let _second = lead(2);
    let error = reserve(&site(directory.path()), &first, 1, "n[1-2]").unwrap_err();
    let SiteError::PoolStore { source, .. } = error else { panic!("{error}") };
    let error: &ChangeError<Infallible> = source.downcast_ref().unwrap();
    assert!(error.is_deposed(), "{error}");
}

#[test]
fn the_files_of_a_mock_node_are_next_to_its_state() {
    let directory = TempDir::new().unwrap();
    let state = directory.path().join("node.json");
    let directories = Directories::of_mock(&state);
    let settings = Settings::load_for_mock(None, directories).unwrap();
    let files = directory.path().join("node.json.d");
    for key in keys::ALL.iter().copied() {
        let (value, _) = settings.text(key);
        let (here, machine) = (Path::new(&value), Settings::default().text(key).0);
        assert!(!here.is_absolute() || here.starts_with(&files), "{value}");
        if machine.starts_with('/') {
            assert!(here.starts_with(&files), "{}: {value}", key.name());
        }
    }
    let site = Site::open(settings).unwrap();
    let mock = MockNode::with_nics(1, &NicConfig::new()).unwrap();
    let access = Access {
        members: vec![Member::Uid(1000)],
        vnis: vec![Vni::new(1024).unwrap()],
        vni_range: None,
    };
    let job = StartingJob { access: Some(access), ..starting(1) };
    let _ = compute(&site, &mock).prolog(&job).unwrap();
    assert!(files.join("jobs/1.json").exists());
}

/// A fabric manager that has a reservation for every job, and notes how long it may take.
#[derive(Debug, Default)]
struct Asked(Mutex<Vec<(Method, Duration)>>);

impl HttpTransport for Asked {
    fn send(&self, request: &HttpRequest<'_>, may: Duration) -> Result<HttpAnswer, HttpError> {
        self.0.lock().unwrap().push((request.method, may));
        let body = br#"{"sessionToken": "secret", "mcastLimit": 4}"#.to_vec();
        Ok(HttpAnswer { status: 200, body })
    }
}

#[test]
fn the_start_of_a_job_waits_for_the_fabric_manager_as_long_as_is_set_and_its_end_longer() {
    let (directory, pool) = (TempDir::new().unwrap(), pool());
    let collectives = "[collectives]\ntrees = 4\nwait = \"200ms\"\n";
    let site = site_with(directory.path(), collectives);
    let password = directory.path().join("passwd");
    fs::write(&password, "secret").unwrap();
    fs::set_permissions(&password, Permissions::from_mode(0o600)).unwrap();
    let asked = Arc::new(Asked::default());
    let manager = FabricManager::new(
        "https://fm.example",
        "alpha".parse().unwrap(),
        Secrets::basic(Some(directory.path())),
        asked.clone(),
        Certificate::System,
    );
    let controller = site.controller(&pool).unwrap().fabric_manager(manager);
    let request = ReserveRequest::new(job(1), 1000, "n[1-2]".parse().unwrap());
    let done = controller.reserve(&request).unwrap();
    assert!(done.result.collectives && done.warnings.is_empty());
    let done = controller.release(&job(1), None).unwrap();
    assert!(done.warnings.is_empty());
    let asked = asked.0.lock().unwrap();
    let [(Method::Get, start), (Method::Delete, end)] = asked[..] else { panic!("{asked:?}") };
    assert!(start <= Duration::from_millis(200), "{start:?}");
    assert!(end > Duration::from_secs(4), "{end:?}");
}

/// A pool whose process is killed before each change, or after it.
#[derive(Debug)]
struct Killed<'a> {
    pool: &'a Pool,
    after: bool,
}

impl PoolStore for Killed<'_> {
    fn change(&self, wait: Duration, act: &mut cxi_job::site::Act<'_>) -> Result<(), SiteError> {
        if self.after {
            self.pool.change(wait, act)?;
        }
        Err(SiteError::PoolStore {
            code: ErrorCode::Failed,
            errno: Errno::EIO,
            source: "killed".into(),
        })
    }
}

#[test]
fn a_controller_that_is_killed_leaves_no_vni_for_two_jobs() {
    let (directory, pool) = (TempDir::new().unwrap(), pool());
    let site = site(directory.path());
    let mock = MockNode::with_nics(1, &NicConfig::new()).unwrap();
    for after in [false, true] {
        let killed = || site.controller(Killed { pool: &pool, after }).unwrap();
        let request = ReserveRequest::new(job(1), 1000, "n1".parse().unwrap());
        killed().reserve(&request).unwrap_err();
        reserve(&site, &pool, 1, "n1").unwrap();
        assert_eq!(pool.lock().unwrap().pool().jobs().count(), 1);
        let node = compute(&site, &mock);
        let _ = node.prolog(&starting(1)).unwrap();
        killed().release(&job(1), None).unwrap_err();
        // The decision has moved, so a cleanup of the node would destroy its services, and its VNI is
        // no other job's before they are gone.
        let controller = site.controller(&pool).unwrap();
        let again = controller.release(&job(1), None).unwrap();
        assert_eq!((again.result.len(), again.warnings.len()), (0, 0));
        let early = reserve(&site, &pool, 1, "n1").unwrap_err();
        assert_eq!(early.code(), ErrorCode::Busy, "{early}");
        let report = node.epilog(&job(1), None, &ReleaseOptions::once()).unwrap();
        assert_eq!(report.status(), ReleaseStatus::Done);
        killed().collect().unwrap_err();
        assert!(site.controller(&pool).unwrap().collect().unwrap().is_empty());
        assert_eq!(pool.lock().unwrap().pool().jobs().count(), 0);
    }
}

/// The work of a controller that is killed between two system calls is finished by the next.
#[test]
fn what_a_killed_controller_leaves_is_finished() {
    let (directory, pool) = (TempDir::new().unwrap(), pool());
    let site = site(directory.path());
    let controller = site.controller(&pool).unwrap();
    let decisions = directory.path().join("decisions");
    let jobs = || pool.lock().unwrap().pool().jobs().count();
    // Before the decision, with VNIs or before it has some: a new attempt, or the end.
    for (in_pool, tries_again) in [(true, true), (true, false), (false, true), (false, false)] {
        reserve(&site, &pool, 1, "n1").unwrap();
        fs::remove_file(decisions.join("running/1/job.json")).unwrap();
        if !in_pool {
            pool.lock().unwrap().cancel(&job(1), Timestamp::now()).unwrap();
        }
        if tries_again {
            reserve(&site, &pool, 1, "n1").unwrap();
            release(&site, &pool, 1);
            controller.confirm(&job(1), &NodeName::new("n1").unwrap()).unwrap();
            assert!(controller.collect().unwrap().is_empty());
        } else {
            let ended = controller.sweep(|| Ok::<_, SiteError>(Vec::new())).unwrap();
            assert!(ended.result.is_empty() && ended.warnings.is_empty());
        }
        assert_eq!(jobs(), 0);
        assert_eq!(fs::read_dir(decisions.join("running")).unwrap().count(), 0);
    }
    // After the decision has moved, and while it is removed.
    reserve(&site, &pool, 1, "n1").unwrap();
    fs::rename(decisions.join("running/1"), decisions.join("ended/1")).unwrap();
    let (listed, missing) = controller.list().unwrap().remove(0);
    assert!(listed.ended() && missing == ["n1"]);
    assert!(controller.collect().unwrap().is_empty());
    assert_eq!(jobs(), 1);
    controller.confirm(&job(1), &NodeName::new("n1").unwrap()).unwrap();
    fs::create_dir_all(decisions.join("ended/2/confirmed")).unwrap();
    assert!(controller.collect().unwrap().is_empty());
    assert_eq!(jobs(), 0);
    assert_eq!(fs::read_dir(decisions.join("ended")).unwrap().count(), 0);
}

/// The services that are not the default one's.
fn services(mock: &MockNode) -> Vec<(u32, u32)> {
    let all = mock.nics().iter().enumerate().flat_map(|(nic, mock)| {
        let device = Device::from(mock.root().unwrap());
        let services = device.services().list().unwrap().into_iter();
        let ids = services.map(|service| service.id()).filter(|id| !id.is_default());
        ids.map(|id| (u32::try_from(nic).unwrap(), id.get())).collect::<Vec<_>>()
    });
    all.collect()
}

/// Somebody else makes a service that looks like the job's, on the first NIC.
fn make_foreign(site: &Site, pool: &Pool, mock: &MockNode) -> u32 {
    let device = Device::from(mock.nics()[0].root().unwrap());
    let vni = site.controller(pool).unwrap().list().unwrap()[0].0.vnis[0];
    let spec = ServiceSpec::builder().member(Member::Uid(1000)).vni(vni);
    device.services().create(&spec.build().unwrap()).unwrap().get()
}

/// Makes a service that looks like the job's in everything.
fn make_twin(mock: &MockNode, id: u32) -> u32 {
    let device = Device::from(mock.nics()[0].root().unwrap());
    let own = device.services().get(ServiceId::new(id).unwrap()).unwrap();
    let spec = ServiceSpec::builder().member(Member::Uid(1000)).vni_access(own.vnis());
    let spec = spec.limits(own.limits()).traffic_classes(own.traffic_classes().unwrap());
    device.services().create(&spec.build().unwrap()).unwrap().get()
}

/// Makes a record what a prolog leaves that was killed before it named its services.
fn kill_before_it_named(directory: &Path, before: [&[u32]; 2]) {
    let path = directory.join("jobs/1.json");
    let text = fs::read_to_string(&path).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let record = &mut value["record"];
    let begun = |nic: usize| {
        let granted = &record["grant"]["services"][nic];
        let terms = serde_json::json!({
            "traffic_classes": granted["traffic_classes"],
            "limits": granted["granted"],
        });
        serde_json::json!({"device": format!("cxi{nic}"), "before": before[nic], "terms": terms})
    };
    record["begun"] = serde_json::json!([begun(0), begun(1)]);
    record["grant"] = serde_json::Value::Null;
    record["made"] = serde_json::json!([]);
    fs::write(&path, value.to_string()).unwrap();
}

#[test]
fn what_a_killed_prolog_made_is_found_unless_somebody_else_may_have_made_it() {
    let (directory, pool) = (TempDir::new().unwrap(), pool());
    let site = site(directory.path());
    let mock = MockNode::with_nics(2, &NicConfig::new()).unwrap();
    let node = compute(&site, &mock);
    let clean = || node.clean(&Cleaning::default(), &ReleaseOptions::once()).unwrap();
    let confirmed = || directory.path().join("decisions/ended/1/confirmed/n1").exists();

    reserve(&site, &pool, 1, "n1").unwrap();
    node.prolog(&starting(1)).unwrap();
    kill_before_it_named(directory.path(), [&[1], &[1]]);
    // It is repeated, and adopts them.
    let again = node.prolog(&starting(1)).unwrap().grant.unwrap();
    assert!(again.services.iter().all(|entry| entry.adopted));
    // It is not repeated.
    kill_before_it_named(directory.path(), [&[1], &[1]]);
    release(&site, &pool, 1);
    assert_eq!(clean().ended, [job(1)]);
    assert_eq!((services(&mock), confirmed()), (vec![], true));

    // What was there before is not its own, whatever it looks like.
    site.controller(&pool).unwrap().collect().unwrap();
    reserve(&site, &pool, 1, "n1").unwrap();
    let foreign = make_foreign(&site, &pool, &mock);
    let started = node.prolog(&starting(1)).unwrap();
    assert_eq!(started.warnings.len(), 1, "{:?}", started.warnings);
    kill_before_it_named(directory.path(), [&[1, foreign], &[1]]);
    release(&site, &pool, 1);
    assert_eq!(clean().ended, []);
    assert_eq!((services(&mock), confirmed()), (vec![(0, foreign)], false));
    // As soon as it is gone, the VNI is free.
    let device = Device::from(mock.nics()[0].root().unwrap());
    device.services().destroy(ServiceId::new(foreign).unwrap()).unwrap();
    assert_eq!(clean().ended, [job(1)]);
    assert!(confirmed());

    // One that came later may be of either: both are left.
    site.controller(&pool).unwrap().collect().unwrap();
    reserve(&site, &pool, 1, "n1").unwrap();
    let own = node.prolog(&starting(1)).unwrap().grant.unwrap().services[0].service;
    let later = make_twin(&mock, own.get());
    kill_before_it_named(directory.path(), [&[1], &[1]]);
    release(&site, &pool, 1);
    let report = node.epilog(&job(1), None, &ReleaseOptions::once()).unwrap();
    assert_eq!((report.foreign().count(), report.code()), (2, None));
    assert_eq!(services(&mock).len(), 2, "cxi1's is gone, {later}");
    assert!(!confirmed());
    // Only an order takes them.
    assert_eq!(clean().clean.orphans, []);
    let pool_vnis = "1024-1099".parse().unwrap();
    let order = Cleaning { pool: pool_vnis, foreign: true, ..Cleaning::default() };
    let cleaned = node.clean(&order, &ReleaseOptions::once()).unwrap();
    assert_eq!((cleaned.ended, services(&mock), confirmed()), (vec![job(1)], vec![], true));
}

#[test]
fn an_epilog_destroys_what_its_record_names_and_nothing_else() {
    let (directory, pool) = (TempDir::new().unwrap(), pool());
    let site = site(directory.path());
    let mock = MockNode::with_nics(2, &NicConfig::new()).unwrap();
    let node = compute(&site, &mock);
    reserve(&site, &pool, 1, "n1").unwrap();
    node.prolog(&starting(1)).unwrap();
    let foreign = make_foreign(&site, &pool, &mock);
    let report = node.epilog(&job(1), None, &ReleaseOptions::once()).unwrap();
    assert_eq!(services(&mock), [(0, foreign)]);
    let said = report.foreign().next().unwrap().to_string();
    assert_eq!(
        said,
        format!("cxi0: service {foreign} (uid 1000, VNI 1024): left: no record says who made it")
    );
    // The VNI is not free, and a second epilog says so again.
    release(&site, &pool, 1);
    assert!(reserve(&site, &pool, 1, "n1").is_err());
    let report = node.epilog(&job(1), None, &ReleaseOptions::once()).unwrap();
    assert_eq!(report.foreign().count(), 1);
    // Nor is it after the node has lost its records.
    fs::remove_dir_all(directory.path().join("jobs")).unwrap();
    let report = node.epilog(&job(1), None, &ReleaseOptions::once()).unwrap();
    assert_eq!((services(&mock).len(), report.foreign().count()), (1, 1));
    assert!(reserve(&site, &pool, 1, "n1").is_err());
}

#[test]
fn a_prolog_that_fails_does_not_end_the_run_that_it_repeats() {
    let (directory, pool) = (TempDir::new().unwrap(), pool());
    let site = site(directory.path());
    let mock = MockNode::with_nics(2, &NicConfig::new()).unwrap();
    let node = compute(&site, &mock);
    reserve(&site, &pool, 1, "n1").unwrap();
    node.prolog(&starting(1)).unwrap();
    mock.nics()[1].faults().inject(Fault::errno(Errno::EIO).on(Opcode::SVC_LIST_GET));
    node.prolog(&starting(1)).unwrap_err();
    mock.nics()[1].faults().clear();
    let (records, broken) = node.list().unwrap();
    assert_eq!((records.len(), broken.len(), records[0].running.len()), (1, 0, 1));
    node.clean(&Cleaning::default(), &ReleaseOptions::once()).unwrap();
    assert_eq!(services(&mock).len(), 2);
    // Another size is another request: refused, or ordered.
    let shape = JobShape { size: Some(2), ..JobShape::default() };
    let other = StartingJob { shape, ..starting(1) };
    let error = node.prolog(&other).unwrap_err().to_string();
    assert_eq!(
        error,
        "job 1 runs on this node for another request (uid 1000, VNI 1024, size 1); asked for: uid \
         1000, VNI 1024, size 2"
    );
    assert_eq!(services(&mock).len(), 2);
    let replaced = node.prolog(&StartingJob { replace: true, ..other }).unwrap().grant.unwrap();
    assert!(replaced.services.iter().all(|entry| !entry.adopted));
    assert_eq!(services(&mock).len(), 2);
}

/// A pool in a file, of as many VNIs as jobs of the tests want.
fn pool_in(file: &Path, vnis: &str) -> Mutex<SharedPool<FileLog>> {
    let config = PoolConfig::new(vnis.parse().unwrap());
    Mutex::new(SharedPool::open(FileLog::new(file), config, "", 0, Timestamp::now()).unwrap())
}

fn vni_of(site: &Site, pool: &impl PoolStore, id: u32) -> Result<u16, SiteError> {
    let request = ReserveRequest::new(job(id), 1000, "n1".parse().unwrap());
    let done = site.controller(pool)?.reserve(&request)?;
    Ok(done.result.vnis[0].get())
}

/// Ends a job, and confirms that for its node.
fn end(site: &Site, pool: &impl PoolStore, id: u32) {
    let controller = site.controller(pool).unwrap();
    assert_eq!(controller.release(&job(id), None).unwrap().result, [job(id)]);
    controller.confirm(&job(id), &NodeName::new("n1").unwrap()).unwrap();
    assert!(controller.collect().unwrap().is_empty());
}

#[test]
fn a_pool_that_is_configured_anew_gives_no_recorded_vni_to_another_job() {
    let directory = TempDir::new().unwrap();
    let (site, file) = (site(directory.path()), directory.path().join("pool.json"));
    let vnis = "1024-1029";
    let first = pool_in(&file, vnis);
    for (id, vni) in [(1, 1024), (2, 1025), (3, 1026)] {
        assert_eq!(vni_of(&site, &first, id).unwrap(), vni);
    }
    let _ = site.controller(&first).unwrap().release(&job(2), None).unwrap();
    fs::remove_file(&file).unwrap();

    let anew = pool_in(&file, vnis);
    let given = site.controller(&anew).unwrap().compare().unwrap();
    let given_away = given.iter().filter(|one| matches!(one, Mismatch::GivenAway { .. }));
    assert_eq!((given.len(), given_away.count()), (3, 3), "{given:?}");
    assert!(given.iter().all(Mismatch::is_harmful));
    assert_eq!(vni_of(&site, &anew, 4).unwrap(), 1027);
    // A job that asks again keeps what it has.
    assert_eq!(vni_of(&site, &anew, 1).unwrap(), 1024);
    assert!(site.controller(&anew).unwrap().compare().unwrap().is_empty());
    let metrics = anew.lock().unwrap().pool().metrics(Timestamp::now());
    assert_eq!((metrics.reserved, metrics.draining, metrics.free), (3, 1, 2));
    end(&site, &anew, 1);
    let free = anew.lock().unwrap().pool().metrics(Timestamp::now()).free;
    assert_eq!(free, 3);
    drop(anew);
    // A release is the first thing that a new pool hears of a job: its VNIs drain until the node has
    // confirmed.
    fs::remove_file(&file).unwrap();
    let anew = pool_in(&file, vnis);
    let _ = site.controller(&anew).unwrap().release(&job(3), None).unwrap();
    let held = anew.lock().unwrap().pool().job(&job(3)).cloned().unwrap();
    assert!(matches!(held.phase, Phase::Draining { .. }), "{held:?}");
}

#[test]
fn an_older_copy_of_a_pool_gives_no_recorded_vni_to_another_job() {
    let directory = TempDir::new().unwrap();
    let (site, file) = (site(directory.path()), directory.path().join("pool.json"));
    let copy = directory.path().join("copy.json");
    let pool = pool_in(&file, "1024-1025");
    assert_eq!(vni_of(&site, &pool, 1).unwrap(), 1024);
    fs::copy(&file, &copy).unwrap();
    end(&site, &pool, 1);
    assert_eq!(vni_of(&site, &pool, 2).unwrap(), 1025);
    assert_eq!(vni_of(&site, &pool, 3).unwrap(), 1024);

    // There, job 1 has the VNI of job 3, and that of job 2 is free.
    let copy = pool_in(&copy, "1024-1025");
    let short = vni_of(&site, &copy, 4).unwrap_err();
    assert_eq!(short.code(), ErrorCode::NotEnough, "{short}");
    // The scheduler uses the number again: it does not get the VNI that its namesake had.
    let others = vni_of(&site, &copy, 1).unwrap_err();
    assert_eq!(
        others.to_string(),
        "the pool has VNI 1024 for job 1, and others have VNI 1024, as records say: end what the pool \
         says of it, with a release"
    );
    let controller = site.controller(&copy).unwrap();
    let left = controller.compare().unwrap();
    let vni = Vni::new(1024).unwrap();
    assert_eq!(
        left,
        [
            Mismatch::HeldByOther { job: job(3), vni, holder: job(1) },
            Mismatch::Unrecorded { job: job(1), vnis: vec![vni] },
        ]
    );
    // What an administrator does about it.
    let mut ends = |pool: &mut cxi_job::VniPool, now| Ok(pool.release(&job(1), &[], now)?);
    copy.change(Duration::from_secs(1), &mut ends).unwrap();
    let mut confirms = |pool: &mut cxi_job::VniPool, now| Ok(pool.confirm_all(&[job(1)], now)?);
    copy.change(Duration::from_secs(1), &mut confirms).unwrap();
    let adopted = controller.adopt().unwrap();
    assert_eq!((adopted.jobs, adopted.mismatches), (vec![job(3)], vec![]));
    let short = vni_of(&site, &copy, 4).unwrap_err();
    assert_eq!(short.code(), ErrorCode::NotEnough, "{short}");
    end(&site, &copy, 3);
    assert_eq!(vni_of(&site, &copy, 4).unwrap(), 1024);
}

/// Another job goes on, unless nobody knows which VNIs it must not get.
#[test]
fn a_record_that_cannot_be_read_keeps_its_vnis() {
    let directory = TempDir::new().unwrap();
    let (site, file) = (site(directory.path()), directory.path().join("pool.json"));
    let pool = pool_in(&file, "1024-1029");
    for id in 1..=2 {
        vni_of(&site, &pool, id).unwrap();
    }
    fs::write(directory.path().join("decisions/running/1/job.json"), "").unwrap();
    let request = ReserveRequest::new(job(3), 1000, "n1".parse().unwrap());
    let done = site.controller(&pool).unwrap().reserve(&request).unwrap();
    let [Warning::Job(warning)] = &done.warnings[..] else { panic!("{done:?}") };
    assert!(warning.to_string().contains("the decision is empty"), "{warning}");
    fs::remove_file(&file).unwrap();
    let unknown = vni_of(&site, &pool_in(&file, "1024-1029"), 4).unwrap_err();
    assert!(
        matches!(&unknown, SiteError::UnknownVnis { job: of, .. } if *of == job(1)),
        "{unknown}"
    );
}

/// A record that the crash of a file system has cut off keeps others from starting only if its job's
/// VNIs could be given away.
#[test]
fn a_record_that_is_cut_off_is_named_and_others_start() {
    let directory = TempDir::new().unwrap();
    let (site, file) = (site(directory.path()), directory.path().join("pool.json"));
    let pool = pool_in(&file, "1024-1029");
    let record = |id: u32| directory.path().join(format!("decisions/running/{id}/job.json"));
    assert_eq!(vni_of(&site, &pool, 1).unwrap(), 1024);
    let controller = site.controller(&pool).unwrap();
    let mut request = ReserveRequest::new(job(2), 1000, "n1".parse().unwrap());
    request.vnis = Some(0);
    assert!(controller.reserve(&request).unwrap().result.vnis.is_empty());
    // Nothing is left of the one without VNIs, and the beginning of the other.
    fs::write(record(2), "").unwrap();
    let text = fs::read_to_string(record(1)).unwrap();
    let end = text.find("\"network\"").unwrap();
    fs::write(record(1), &text[..end]).unwrap();
    // Not even the pool knows it any more.
    fs::remove_file(&file).unwrap();
    let pool = pool_in(&file, "1024-1029");
    let request = ReserveRequest::new(job(3), 1000, "n1".parse().unwrap());
    let done = site.controller(&pool).unwrap().reserve(&request).unwrap();
    assert_eq!(done.result.vnis, [Vni::new(1025).unwrap()]);
    let warnings: Vec<_> = done.warnings.iter().map(ToString::to_string).collect();
    assert!(
        warnings.len() == 2
            && warnings[0].contains("running/1/job.json: the decision is cut off")
            && warnings[1].contains("running/2/job.json: the decision is empty"),
        "{warnings:?}"
    );
}

/// The scheduler lost its state, and uses its numbers again.
#[test]
fn a_job_number_of_another_user_has_a_code_and_a_way_out() {
    let (directory, pool) = (TempDir::new().unwrap(), pool());
    let site = site(directory.path());
    reserve(&site, &pool, 1, "n1").unwrap();
    let controller = site.controller(&pool).unwrap();
    let request = ReserveRequest::new(job(1), 1001, "n1".parse().unwrap());
    let other = controller.reserve(&request).unwrap_err();
    assert_eq!((other.code(), other.errno()), (ErrorCode::OtherUser, Errno::EEXIST));
    assert_eq!(other.to_string(), "job 1 belongs to uid 1000, not 1001, and has not ended here");
    let _ = controller.release(&job(1), None).unwrap();
    assert_eq!(controller.reserve(&request).unwrap_err().code(), ErrorCode::Busy);
    controller.confirm(&job(1), &NodeName::new("n1").unwrap()).unwrap();
    assert_eq!(controller.reserve(&request).unwrap().result.uid, 1001);
}

#[test]
fn the_start_of_a_job_waits_for_a_lock_as_long_as_is_set() {
    let (directory, pool) = (TempDir::new().unwrap(), pool());
    let file = directory.path().join("start.toml");
    let place = directory.path().display();
    let text =
        format!("wait = \"1m\"\n[controller]\nrecords = \"{place}/decisions\"\nwait = \"300ms\"\n");
    fs::write(&file, text).unwrap();
    let site = Site::open(Settings::load(Some(&file)).unwrap()).unwrap();
    reserve(&site, &pool, 1, "n1").unwrap();
    let _held = FileLock::new(directory.path().join("decisions/.lock")).acquire().unwrap();
    let begins = Instant::now();
    let busy = reserve(&site, &pool, 2, "n1").unwrap_err();
    assert_eq!(busy.code(), ErrorCode::Busy, "{busy}");
    assert!(begins.elapsed() < Duration::from_secs(2), "{:?}", begins.elapsed());
}

#[test]
fn what_comes_after_a_failed_repeat_of_a_prolog_is_not_the_jobs() {
    let (directory, pool) = (TempDir::new().unwrap(), pool());
    let site = site(directory.path());
    let mock = MockNode::with_nics(2, &NicConfig::new()).unwrap();
    let node = compute(&site, &mock);
    reserve(&site, &pool, 1, "n1").unwrap();
    node.prolog(&starting(1)).unwrap();
    let second = Device::from(mock.nics()[1].root().unwrap());
    second.services().destroy(ServiceId::new(2).unwrap()).unwrap();
    let fault = Fault::errno(Errno::EPERM).on(Opcode::SVC_ALLOC);
    mock.nics()[1].faults().inject(fault);
    node.prolog(&starting(1)).unwrap_err();
    mock.nics()[1].faults().clear();
    let foreign = make_foreign(&site, &pool, &mock);
    let report = node.epilog(&job(1), None, &ReleaseOptions::once()).unwrap();
    assert_eq!((report.foreign().count(), services(&mock)), (1, vec![(0, foreign)]));
}

#[test]
fn a_record_of_an_earlier_boot_names_nothing() {
    let (directory, pool) = (TempDir::new().unwrap(), pool());
    let site = site(directory.path());
    let mock = MockNode::with_nics(2, &NicConfig::new()).unwrap();
    let node = compute(&site, &mock);
    reserve(&site, &pool, 1, "n1").unwrap();
    node.prolog(&starting(1)).unwrap();
    let path = directory.path().join("jobs/1.json");
    let text = fs::read_to_string(&path).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["record"]["boot"] = "another".into();
    fs::write(&path, value.to_string()).unwrap();
    // The services that the NICs have now are somebody else's, however much they look like its own.
    let report = node.epilog(&job(1), None, &ReleaseOptions::once()).unwrap();
    assert_eq!((report.foreign().count(), services(&mock).len()), (2, 2));
    // The job that runs again after the reboot owns what it makes.
    fs::write(&path, value.to_string()).unwrap();
    node.prolog(&starting(1)).unwrap();
    assert_eq!(services(&mock).len(), 4);
    node.epilog(&job(1), None, &ReleaseOptions::once()).unwrap();
    assert_eq!(services(&mock).len(), 2);
}

#[test]
fn a_broken_record_of_a_service_still_says_that_it_is_somebodys() {
    let directory = TempDir::new().unwrap();
    let place = directory.path().display().to_string();
    let site = site_with(directory.path(), "");
    let mock = MockNode::with_nics(1, &NicConfig::new()).unwrap();
    let records = ServiceRecords::of(site.settings()).unwrap();
    let device = Device::from(mock.nics()[0].root().unwrap());
    let spec = ServiceSpec::builder().member(Member::Uid(1000)).vni(Vni::new(1024).unwrap());
    let id = device.services().create(&spec.build().unwrap()).unwrap();
    let made = OwnedService::of(device.id(), &device.services().get(id).unwrap());
    records.add(made, "an administrator").unwrap();
    let node = compute(&site, &mock);
    let order = Cleaning { pool: "1024".parse().unwrap(), foreign: true, ..Cleaning::default() };
    let clean = || node.clean(&order, &ReleaseOptions::once()).unwrap().clean.orphans.len();
    assert_eq!(clean(), 0);
    fs::write(format!("{place}/services/cxi0-2.json"), "").unwrap();
    assert_eq!(clean(), 0);
    records.remove(device.id(), id).unwrap();
    assert_eq!(clean(), 1);
}

#[test]
fn a_record_follows_its_service_and_ends_with_whoever_holds_it() {
    let directory = TempDir::new().unwrap();
    let site = site_with(directory.path(), "");
    let mock = MockNode::with_nics(1, &NicConfig::new()).unwrap();
    let records = ServiceRecords::of(site.settings()).unwrap();
    let device = Device::from(mock.nics()[0].root().unwrap());
    let node = compute(&site, &mock);
    let create = |vni| {
        let spec = ServiceSpec::builder().member(Member::Uid(1000)).vni(Vni::new(vni).unwrap());
        device.services().create(&spec.build().unwrap()).unwrap()
    };
    let owned = |id| OwnedService::of(device.id(), &device.services().get(id).unwrap());
    let order =
        Cleaning { pool: "1024-1030".parse().unwrap(), foreign: true, ..Cleaning::default() };
    let clean = || {
        let cleaned = node.clean(&order, &ReleaseOptions::once()).unwrap().clean;
        cleaned.orphans.iter().map(|orphan| (orphan.service, orphan.reason)).collect::<Vec<_>>()
    };
    // Only the administrator's record is followed.
    let (admin, other) = (create(1024), create(1025));
    records.add(owned(admin), "an administrator").unwrap();
    device.services().set_enabled(admin, false).unwrap();
    for id in [admin, other] {
        let mut changed = owned(id);
        changed.members = None;
        records.follow(changed).unwrap();
    }
    assert_eq!(records.all().unwrap().len(), 1);
    assert_eq!(records.all().unwrap()[0].service.members, None);
    records.follow(owned(admin)).unwrap();
    assert_eq!(clean(), [(other, OrphanReason::InPool)]);

    let program = create(1026);
    let held = records.hold(owned(program), "a program").unwrap();
    assert_eq!(clean(), []);
    drop(held);
    assert_eq!(clean(), [(program, OrphanReason::Ended)]);
    assert_eq!(records.all().unwrap().len(), 1);
}

/// The driver cannot tell a service of the same user and VNI from the job's, but its limits can.
#[test]
fn a_service_on_other_terms_is_not_a_killed_prologs() {
    let (directory, pool) = (TempDir::new().unwrap(), pool());
    let site = site(directory.path());
    let mock = MockNode::with_nics(2, &NicConfig::new()).unwrap();
    let node = compute(&site, &mock);
    reserve(&site, &pool, 1, "n1").unwrap();
    node.prolog(&starting(1)).unwrap();
    let foreign = make_foreign(&site, &pool, &mock);
    kill_before_it_named(directory.path(), [&[1], &[1]]);
    let report = node.epilog(&job(1), None, &ReleaseOptions::once()).unwrap();
    assert_eq!((report.foreign().count(), services(&mock)), (1, vec![(0, foreign)]));
}

/// A service is named as soon as it is made: of a prolog that is killed on its second NIC, nothing is
/// mistaken for another's on the first.
#[test]
fn each_service_is_named_as_soon_as_it_is_made() {
    let (directory, pool) = (TempDir::new().unwrap(), pool());
    let site = site(directory.path());
    let mock = MockNode::with_nics(2, &NicConfig::new()).unwrap();
    let path = directory.path().join("jobs/1.json");
    let seen = Arc::new(Mutex::new(None));
    let files = mock.devices(&Credentials::root()).unwrap().into_iter();
    let nics: Vec<_> = files
        .map(|(number, file)| {
            let (path, seen) = (path.clone(), Arc::clone(&seen));
            let nic = Intercept::new(file, move |file: &InProcess, request| {
                if number == 1 && request.opcode() == Opcode::SVC_ALLOC {
                    let begun = Instant::now();
                    let named = || {
                        let text = fs::read_to_string(&path).unwrap();
                        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
                        value["record"]["made"].as_array().unwrap().len()
                    };
                    while named() == 0 && begun.elapsed() < Duration::from_secs(20) {
                        thread::sleep(Duration::from_millis(1));
                    }
                    *seen.lock().unwrap() = Some(named());
                }
                file.submit(request)
            });
            (number, nic)
        })
        .collect();
    let node = Node::from_transports(nics);
    let compute = site.node(NodeName::new("n1").unwrap()).unwrap().nics(move || Ok(node.clone()));
    reserve(&site, &pool, 1, "n1").unwrap();
    compute.prolog(&starting(1)).unwrap();
    assert_eq!(*seen.lock().unwrap(), Some(1));
}

#[test]
fn a_job_that_is_ended_while_it_starts_leaves_nothing() {
    let (directory, pool) = (TempDir::new().unwrap(), pool());
    let site = Arc::new(site(directory.path()));
    let mock = Arc::new(MockNode::with_nics(2, &NicConfig::new()).unwrap());
    for opcode in [Opcode::SVC_LIST_GET, Opcode::SVC_ALLOC] {
        let files = mock.devices(&Credentials::root()).unwrap().into_iter();
        let once = Arc::new(Mutex::new(true));
        let nics: Vec<_> = files
            .map(|(number, file)| {
                let (site, mock, once) = (Arc::clone(&site), Arc::clone(&mock), Arc::clone(&once));
                let nic = Intercept::new(file, move |file: &InProcess, request| {
                    if request.opcode() == opcode && std::mem::take(&mut *once.lock().unwrap()) {
                        let other = compute(&site, &mock);
                        // The other NIC's service may get its name now, and nothing waits here.
                        let is_busy = |ended: &Result<_, SiteError>| matches!(ended, Err(SiteError::Locked(error)) if error.is_busy());
                        let mut ended = other.epilog(&job(1), None, &ReleaseOptions::once());
                        while is_busy(&ended) {
                            ended = other.epilog(&job(1), None, &ReleaseOptions::once());
                        }
                        ended.unwrap();
                    }
                    file.submit(request)
                });
                (number, nic)
            })
            .collect();
        let node = Node::from_transports(nics);
        let name = NodeName::new("n1").unwrap();
        let starts = site.node(name).unwrap().nics(move || Ok(node.clone()));
        reserve(&site, &pool, 1, "n1").unwrap();
        let refused = starts.prolog(&starting(1)).unwrap_err();
        assert!(matches!(refused, SiteError::EndedMeanwhile(_)), "{refused}");
        assert_eq!(
            (services(&mock), directory.path().join("jobs/1.json").exists()),
            (vec![], false)
        );
    }
}

#[test]
fn the_nics_of_an_epilog_do_not_wait_for_each_other() {
    let (directory, pool) = (TempDir::new().unwrap(), pool());
    let site = site(directory.path());
    let mock = MockNode::with_nics(4, &NicConfig::new()).unwrap();
    let node = Node::from_transports(mock.devices(&Credentials::root()).unwrap());
    let lock = FileLock::new(directory.path().join("node.lock")).wait(Duration::ZERO);
    let node = node.with_lock(lock);
    let name = NodeName::new("n1").unwrap();
    let compute = site.node(name).unwrap().nics(move || Ok(node.clone()));
    for _ in 0..50 {
        reserve(&site, &pool, 1, "n1").unwrap();
        compute.prolog(&starting(1)).unwrap();
        release(&site, &pool, 1);
        let report = compute.epilog(&job(1), None, &ReleaseOptions::once()).unwrap();
        assert_eq!(report.code(), None, "{report}");
        site.controller(&pool).unwrap().collect().unwrap();
    }
}

#[test]
fn a_record_that_is_not_text_is_put_aside_as_any_broken_one() {
    let directory = TempDir::new().unwrap();
    let site = site(directory.path());
    let mock = MockNode::with_nics(1, &NicConfig::new()).unwrap();
    let node = compute(&site, &mock);
    for name in ["jobs", "decisions/running"] {
        fs::create_dir_all(directory.path().join(name)).unwrap();
    }
    let path = directory.path().join("jobs/1.json");
    fs::write(&path, b"\0\xff").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    node.epilog(&job(1), None, &ReleaseOptions::once()).unwrap();
    assert!(!path.exists() && directory.path().join("jobs/1.json.broken").exists());
}

/// A broken record claims a service by number only, and numbers are used again.
#[test]
fn a_broken_record_of_a_service_does_not_take_a_job_its_own() {
    let (directory, pool) = (TempDir::new().unwrap(), pool());
    let site = site(directory.path());
    let mock = MockNode::with_nics(1, &NicConfig::new()).unwrap();
    let node = compute(&site, &mock);
    reserve(&site, &pool, 1, "n1").unwrap();
    let own = node.prolog(&starting(1)).unwrap().grant.unwrap().services[0].service;
    fs::create_dir(directory.path().join("services")).unwrap();
    fs::write(directory.path().join(format!("services/cxi0-{own}.json")), "").unwrap();
    node.epilog(&job(1), None, &ReleaseOptions::once()).unwrap();
    assert_eq!(services(&mock), []);
}

#[test]
fn a_cleanup_forgets_services_that_are_gone() {
    let directory = TempDir::new().unwrap();
    let site = site(directory.path());
    let mock = MockNode::with_nics(1, &NicConfig::new()).unwrap();
    let records = ServiceRecords::of(site.settings()).unwrap();
    let device = Device::from(mock.nics()[0].root().unwrap());
    let make = || {
        let spec = ServiceSpec::builder().member(Member::Uid(1000)).vni(Vni::new(1024).unwrap());
        let id = device.services().create(&spec.build().unwrap()).unwrap();
        let made = OwnedService::of(device.id(), &device.services().get(id).unwrap());
        records.add(made, "an administrator").unwrap();
        id
    };
    let (gone, stays) = (make(), make());
    device.services().destroy(gone).unwrap();
    let node = compute(&site, &mock);
    node.clean(&Cleaning::default(), &ReleaseOptions::once()).unwrap();
    let left: Vec<_> = records.all().unwrap().iter().map(|one| one.service.service).collect();
    assert_eq!(left, [stays]);
}

#[test]
fn a_component_of_another_size_is_told_whose_limits_it_has() {
    let (directory, pool) = (TempDir::new().unwrap(), pool());
    let site = site(directory.path());
    let mock = MockNode::with_nics(1, &NicConfig::new()).unwrap();
    let node = compute(&site, &mock);
    reserve(&site, &pool, 1, "n1").unwrap();
    node.prolog(&starting(1)).unwrap();
    let shape = JobShape { size: Some(2), ..JobShape::default() };
    let second = StartingJob { component: Some(job(2)), shape, ..starting(1) };
    let started = node.prolog(&second).unwrap();
    assert_eq!(
        started.warnings,
        ["2 (size 2) shares the services that were made for 1 (size 1), with their limits"]
    );
}

#[test]
fn a_vni_of_a_live_job_is_not_given_to_another_user() {
    let directory = TempDir::new().unwrap();
    let site = site_with(directory.path(), "");
    let mock = MockNode::with_nics(1, &NicConfig::new()).unwrap();
    let node = compute(&site, &mock);
    let of_user = |id, uid, vni: u16| {
        let vnis = vec![Vni::new(vni).unwrap()];
        let access = Access { members: vec![Member::Uid(uid)], vnis, vni_range: None };
        StartingJob { access: Some(access), ..starting(id) }
    };
    node.prolog(&of_user(1, 1000, 1024)).unwrap();
    let before = services(&mock).len();
    let refused = node.prolog(&of_user(2, 1001, 1024)).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::OtherUser);
    assert_eq!(refused.to_string(), "job 1 of uid 1000 runs on this node with VNI 1024");
    assert_eq!((services(&mock).len(), node.list().unwrap().0.len()), (before, 1));
    // A step of the same user shares it; and it is free again when both have ended.
    node.prolog(&of_user(3, 1000, 1024)).unwrap();
    for id in [1, 3] {
        assert_eq!(node.prolog(&of_user(2, 1001, 1024)).unwrap_err().code(), ErrorCode::OtherUser);
        node.epilog(&job(id), None, &ReleaseOptions::once()).unwrap();
    }
    node.prolog(&of_user(2, 1001, 1024)).unwrap();
}

/// An ID is used again after an administrator has destroyed a job's service by name.
#[test]
fn a_number_that_is_used_again_is_of_its_last_maker() {
    let directory = TempDir::new().unwrap();
    let site = site_with(directory.path(), "");
    let mock = MockNode::with_nics(1, &NicConfig::new()).unwrap();
    let node = compute(&site, &mock);
    let of_user = |id| {
        let vnis = vec![Vni::new(1024).unwrap()];
        let access = Access { members: vec![Member::Uid(1000)], vnis, vni_range: None };
        StartingJob { access: Some(access), ..starting(id) }
    };
    let destroyed = |id| {
        let released = node.epilog(&job(id), None, &ReleaseOptions::once()).unwrap();
        released.services.iter().filter(|one| one.is_gone()).count()
    };
    let first = node.prolog(&of_user(1)).unwrap().grant.unwrap().services[0].service;
    Device::from(mock.nics()[0].root().unwrap()).services().destroy(first).unwrap();
    let second = node.prolog(&of_user(2)).unwrap().grant.unwrap().services[0].service;
    assert_eq!(first, second);
    assert_eq!(destroyed(1), 0);
    assert_eq!(destroyed(2), 1);
}
