//! A job's whole life at a site: the controller reserves, a node's prolog makes the services, its epilog
//! destroys them and confirms, and the VNI is free again.
#![allow(clippy::print_stdout)]

use std::fs;
use std::sync::Mutex;

use cxi_job::cluster::{JobShape, ReserveRequest, Site, StartingJob};
use cxi_job::{Node, ReleaseOptions, ReleaseStatus};
use cxi_mock::{Credentials, MockNode, NicConfig};
use cxi_site::pool::log::{MemoryLog, SharedPool};
use cxi_site::pool::{PoolConfig, Timestamp};
use cxi_site::settings::Settings;
use cxi_site::{FileLock, JobId, NodeName};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The settings of all machines of the site: /etc/cxi/cxi.toml.
    let directory = tempfile::tempdir()?;
    let place = directory.path().display();
    let file = directory.path().join("cxi.toml");
    fs::write(
        &file,
        format!(
            "[node]\nrecords = \"{place}/jobs\"\n[controller]\nrecords = \"{place}/decisions\"\n"
        ),
    )?;
    let site = Site::open(Settings::load(Some(&file))?)?;

    // The controller, with its pool. With a `FileLog`, the pool survives it.
    let config = PoolConfig::new("1024-65535".parse()?);
    let pool = SharedPool::open(MemoryLog::new(), config, "controller", 0, Timestamp::now())?;
    let pool = Mutex::new(pool);
    let controller = site.controller(&pool)?;
    let job = JobId::new("4711")?;
    let request = ReserveRequest::new(job.clone(), 1000, "n[1-2]".parse()?);
    println!("{job}: VNIs {:?}", controller.reserve(&request)?.result.vnis);

    // Each node. Without `nics`, it would be the NICs of this machine.
    for name in ["n1", "n2"] {
        let node = nics(&directory.path().join("node.lock"))?;
        let compute = site.node(NodeName::new(name)?)?.nics(move || Ok(node.clone()));
        let mut starting = StartingJob::new(job.clone());
        starting.shape = JobShape::of_size(4);
        let started = compute.prolog(&starting)?;
        println!("{name}: {} services", started.grant.map_or(0, |grant| grant.services.len()));
        for (variable, value) in compute.environment(&job, None)?.set {
            println!("{name}: {variable}={value}");
        }
        if name == "n2" {
            let _ = controller.release(&job, None)?;
        }
        let report = compute.epilog(&job, None, &ReleaseOptions::once())?;
        assert_eq!(report.status(), ReleaseStatus::Done);
    }

    // Both nodes have confirmed.
    controller.collect()?;
    let pool = pool.lock().map_err(|error| error.to_string())?;
    assert!(pool.pool().job(&job).is_none() && controller.list()?.is_empty());
    println!("{job}: its VNI is free again");
    Ok(())
}

fn nics(lock: &std::path::Path) -> Result<Node, Box<dyn std::error::Error>> {
    let files = MockNode::with_nics(2, &NicConfig::new())?.devices(&Credentials::root())?;
    Ok(Node::from_transports(files).with_lock(FileLock::new(lock)))
}

#[test]
fn it_runs() {
    main().unwrap();
}
