//! A site in a directory, and its jobs.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use cxi::{Device, Member, Vni};
use cxi_job::Node;
use cxi_job::cluster::{
    Access, ComputeNode, JobShape, ReserveRequest, Site, SiteError, StartingJob,
};
use cxi_mock::{Credentials, MockNode};
use cxi_site::pool::log::{MemoryLog, SharedPool};
use cxi_site::pool::{PoolConfig, Timestamp};
use cxi_site::settings::Settings;
use cxi_site::{JobId, NodeName};
use tempfile::TempDir;

pub(crate) type Pool = Mutex<SharedPool<MemoryLog>>;

pub(crate) fn site(directory: &Path) -> Site {
    site_with(directory, "")
}

pub(crate) fn site_with(directory: &Path, more: &str) -> Site {
    let (place, file) = (directory.display(), directory.join("cxi.toml"));
    let text = format!(
        "wait = \"0s\"\n[node]\nrecords = \"{place}/jobs\"\nservices = \"{place}/services\"\n[controller]\nrecords = \
         \"{place}/decisions\"\nwait = \"0s\"\n{more}"
    );
    fs::write(&file, text).unwrap();
    Site::open(Settings::load(Some(&file)).unwrap()).unwrap()
}

pub(crate) fn pool() -> Pool {
    let config = PoolConfig::new("1024-1099".parse().unwrap());
    let pool = SharedPool::open(MemoryLog::new(), config, "test", 0, Timestamp::now());
    Mutex::new(pool.unwrap())
}

pub(crate) fn job(id: u32) -> JobId {
    JobId::new(id.to_string()).unwrap()
}

pub(crate) fn reserve(site: &Site, pool: &Pool, id: u32, nodes: &str) -> Result<(), SiteError> {
    let request = ReserveRequest::new(job(id), 1000, nodes.parse().unwrap());
    let done = site.controller(pool)?.reserve(&request)?;
    assert_eq!((done.result.vnis.len(), done.warnings.len()), (1, 0));
    Ok(())
}

pub(crate) fn release(site: &Site, pool: &Pool, id: u32) {
    let done = site.controller(pool).unwrap().release(&job(id), None);
    assert_eq!(done.unwrap().result, [job(id)]);
}

pub(crate) fn compute<'a>(site: &'a Site, mock: &MockNode) -> ComputeNode<'a> {
    let node = Node::from_transports(mock.devices(&Credentials::root()).unwrap());
    let compute = site.node(NodeName::new("n1").unwrap()).unwrap();
    compute.nics(move || Ok(node.clone()))
}

pub(crate) fn starting(id: u32) -> StartingJob {
    let mut starting = StartingJob::new(job(id));
    starting.shape = JobShape::of_size(1);
    starting
}

/// The services that are not the default one's.
pub(crate) fn services(mock: &MockNode) -> Vec<(u32, u32)> {
    let all = mock.nics().iter().enumerate().flat_map(|(nic, mock)| {
        let device = Device::cxi0(mock.root().unwrap());
        let services = device.services().list().unwrap().into_iter();
        let ids = services.map(|service| service.id()).filter(|id| !id.is_default());
        ids.map(|id| (u32::try_from(nic).unwrap(), id.get())).collect::<Vec<_>>()
    });
    all.collect()
}

/// A site, and a node of it with a number of NICs.
pub(crate) fn place(nics: u8) -> (TempDir, Site, MockNode, Pool) {
    let directory = TempDir::new().unwrap();
    let site = site(directory.path());
    (directory, site, cxi_test_kit::node(nics), pool())
}

/// A job of a user who has asked for a VNI without the controller.
pub(crate) fn of_user(id: u32, uid: u32, vni: u16) -> StartingJob {
    let mut starting = starting(id);
    starting.access = Some(Access::new([Member::Uid(uid)], [Vni::new(vni).unwrap()]));
    starting
}
