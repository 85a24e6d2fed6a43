//! A job's prolog and epilog with a pool of VNIs, for one node. On a cluster the pool belongs to the
//! controller, which hears from each node what has become of the services.
#![allow(clippy::print_stdout)]

use std::time::Duration;

use cxi::{Limit, Limits, Resource};
use cxi_job::{Filter, Grant, JobLimits, JobRequest, Node, ReleaseOptions, ReleaseStatus};
use cxi_mock::{Credentials, Fault, MockNode, NicConfig};
use cxi_site::pool::log::{FileLog, SharedPool};
use cxi_site::pool::{PoolConfig, Timestamp, VniRequest};
use cxi_site::{JobId, NodeName};

const UID: u32 = 1000;

struct Agent {
    pool: SharedPool<FileLog>,
    name: NodeName,
    node: Node,
}

impl Agent {
    /// Reserves a VNI and makes a service on each NIC; if that fails, gives back both.
    fn prolog(&mut self, job: &JobId) -> Result<Grant, Box<dyn std::error::Error>> {
        let request = VniRequest::vnis(1);
        let vnis = self.pool.reserve(job, &request, Timestamp::now())?;
        let limits = Limits::none().with(Resource::Txqs, Limit::exactly(128));
        let granted = JobRequest::builder()
            .uid(UID)
            .vnis(vnis.iter())
            .limits(JobLimits::Fixed(limits))
            .build()
            .map_err(Into::into)
            .and_then(|request| Ok(self.node.allocate(&request)?));
        if granted.is_err() {
            self.epilog(job, &Filter::vnis(vnis.iter()).uid(UID))?;
        }
        granted
    }

    fn epilog(&mut self, job: &JobId, services: &Filter) -> Result<(), Box<dyn std::error::Error>> {
        self.pool.release(job, std::slice::from_ref(&self.name), Timestamp::now())?;
        let report = self.node.release(services, &ReleaseOptions::until(Duration::from_secs(5)));
        match report.status() {
            ReleaseStatus::Done | ReleaseStatus::NothingToDo => {
                self.pool.confirm(job, &self.name, Timestamp::now())?;
                Ok(())
            }
            _ => Err(report.to_string().into()),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mock = MockNode::with_nics(2, &NicConfig::new())?;
    let directory = tempfile::tempdir()?;
    let log = FileLog::new(&directory.path().join("pool"));
    let config = PoolConfig::new("1024-65535".parse()?);
    let mut agent = Agent {
        pool: SharedPool::open(log, config, "", 0, Timestamp::now())?,
        name: NodeName::new("node1")?,
        node: Node::from_transports(mock.devices(&Credentials::root())?),
    };

    // A prolog that fails on the second NIC leaves nothing behind.
    mock.nics()[1].faults().inject(Fault::shortage(Resource::Txqs, 96).once());
    let job = JobId::new("4711")?;
    println!("{job}: {}", agent.prolog(&job).unwrap_err());
    assert!(mock.nics().iter().all(|nic| nic.state().svc_count == 1));

    let job = JobId::new("4712")?;
    let grant = agent.prolog(&job)?;
    for (key, value) in grant.env()?.vars() {
        println!("{key}={value}");
    }
    agent.epilog(&job, &Filter::for_grant(&grant))?;
    assert!(mock.nics().iter().all(|nic| nic.state().svc_count == 1));
    println!("{:?}", agent.pool.pool().metrics(Timestamp::now()));
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
