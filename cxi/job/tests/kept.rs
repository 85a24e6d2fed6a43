//! Whatever a daemon keeps in a struct can be kept there, and be used by all of its threads.
#![forbid(unsafe_code)]

use std::sync::Mutex;

use cxi_job::cluster::{
    Cleaned, Cleaning, ComputeNode, Controller, Decision, JobShape, NetworkOptions, PoolStore,
    ReserveRequest, ServiceRecords, Site, SiteError, Started, StartingJob, StepEnvironment,
};
use cxi_job::{
    AllocateError, AuditOptions, CleanPolicy, Explanation, Filter, Grant, JobLimits, JobRequest,
    JobRequestBuilder, Node, NodeNic, ReleaseOptions, ReleaseReport, SlingshotEnv,
};
use cxi_site::pool::log::{FileLog, SharedPool};
use cxi_site::settings::{NODE_LOCK, Settings, SettingsError, Source};
use cxi_site::{FileLock, JobId, NodeName, ProcFs, StepId, TenantName, VniPool};

/// A daemon of a scheduler, on a node and at the controller.
#[allow(dead_code, reason = "it is compiled, and never run")]
struct Daemon {
    node: ComputeNode<'static>,
    controller: Controller<'static>,
    nics: cxi::Device,
    running: Vec<(JobId, Grant)>,
}

const fn kept<T: Send + Sync + 'static>() {}

const _: () = {
    kept::<Daemon>();
    kept::<(Site, Settings, SettingsError, SiteError, ServiceRecords)>();
    kept::<(Cleaned, Cleaning, Decision, JobShape, NetworkOptions, ReserveRequest)>();
    kept::<(Started, StartingJob, StepEnvironment)>();
    kept::<(Mutex<SharedPool<FileLog>>, Box<dyn PoolStore>, VniPool)>();
    kept::<(Node, NodeNic, ProcFs, FileLock)>();
    kept::<(Grant, JobRequest, JobRequestBuilder, JobLimits, SlingshotEnv)>();
    kept::<(JobId, NodeName, StepId, TenantName, Filter)>();
    kept::<(AllocateError, Explanation, ReleaseReport, ReleaseOptions<'static>)>();
    kept::<(CleanPolicy<'static>, AuditOptions<'static>)>();
    kept::<(cxi::Device, cxi::FoundDevice, cxi::Host, cxi::Services, cxi::ScopedService, cxi::Error)>(
    );
    kept::<(cxi::ServiceSpec, cxi::Service, cxi::Usage, cxi::DeviceInfo)>();
};

/// A node outlives the site that it was made of: it needs nothing of it.
#[test]
fn a_node_outlives_its_site() {
    let site = Site::open(Settings::default()).unwrap();
    let node = site.node(NodeName::new("n1").unwrap()).unwrap();
    drop(site);
    let opened = node.nics(|| Ok(Node::from_devices([])));
    let status = std::thread::spawn(move || opened.foreign().map(|foreign| foreign.len()));
    assert_eq!(status.join().unwrap().unwrap(), 0);
}

/// The test runs once more as a program whose environment has a setting.
#[test]
fn the_environment_is_that_of_the_time_when_settings_were_loaded() {
    const TEST: &str = "the_environment_is_that_of_the_time_when_settings_were_loaded";
    if std::env::var_os("CXI_LOCK").is_none() {
        let program = std::env::current_exe().unwrap();
        let output = std::process::Command::new(program)
            .args(["--exact", TEST])
            .env("CXI_LOCK", "/run/other.lock")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cxi.toml");
    std::fs::write(&file, "").unwrap();
    let loaded = Settings::load(Some(&file)).unwrap().text(&NODE_LOCK);
    assert_eq!(loaded, ("/run/other.lock".to_owned(), Source::Variable("CXI_LOCK")));
    // Nothing has been loaded.
    assert_eq!(Settings::default().text(&NODE_LOCK).1, Source::Default);
}
