//! The life of jobs at a site: decisions, waits, and controllers that are killed.

use std::convert::Infallible;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{fs, thread};

use cxi::{Errno, Member, Vni};
use cxi_job::cluster::{Access, PoolStore, ReserveRequest, Site, SiteError, keys};
use cxi_job::{Node, ReleaseOptions, ReleaseStatus};
use cxi_mock::{Credentials, Fault};
use cxi_site::collectives::Certificate;
use cxi_site::durable::FileLock;
use cxi_site::fabric::{
    Credentials as Secrets, FabricManager, HttpAnswer, HttpError, HttpRequest, HttpTransport,
    Method,
};
use cxi_site::pool::log::{ChangeError, MemoryLog, SharedPool};
use cxi_site::pool::{PoolConfig, Timestamp};
use cxi_site::settings::{Directories, Settings};
use cxi_site::{ErrorCode, NodeName};
use tempfile::TempDir;

use crate::support::{
    Pool, compute, job, place, pool, release, reserve, site, site_with, starting,
};

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
                    let node = NodeName::new(format!("n{node}")).unwrap();
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
    let (_directory, site, mock, pool) = place(2);
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
    let mock = cxi_test_kit::node(1);
    let mut job = starting(1);
    job.access = Some(Access::new([Member::Uid(1000)], [Vni::new(1024).unwrap()]));
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
    fn change(&self, wait: Duration, act: &mut cxi_job::cluster::Act<'_>) -> Result<(), SiteError> {
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
    let (_directory, site, mock, pool) = place(1);
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
fn the_nics_of_an_epilog_do_not_wait_for_each_other() {
    let (directory, site, mock, pool) = place(4);
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
