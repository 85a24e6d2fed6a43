//! Series without a device, and those of a whole job.

use std::hint::black_box;
use std::sync::Arc;

use cxi::{Device, DeviceId, ServiceSpec, Vni};
use cxi_benches::engine::Program;
use cxi_benches::mock::{Result, device, vni};
use cxi_job::environment::SlingshotEnv;
use cxi_job::pool::{PoolConfig, Timestamp, VniPool, VniRequest};
use cxi_job::{Filter, IdSet, JobId, JobRequest, Node, NodeName, ReleaseOptions, ReleaseStatus};
use cxi_mock::{Credentials, MockNode, NicConfig};

use crate::series::{Act, Series};

pub(crate) fn all() -> [Series; 16] {
    [
        Series::new("pool/reserve + release + confirm, half full", pool),
        Series::new("id set/parse", || {
            Ok(Box::new(|| {
                black_box(black_box(IDS).parse::<IdSet>().expect("an id set"));
            }))
        }),
        Series::new("id set/print", || {
            let set: IdSet = IDS.parse()?;
            Ok(Box::new(move || {
                black_box(black_box(&set).to_string());
            }))
        }),
        Series::new("environment/parse, 4 NICs", || {
            Ok(Box::new(|| {
                let value = |name: &str| VARIABLES.iter().find(|(key, _)| *key == name);
                let parsed = SlingshotEnv::parse(|name| Some(black_box(value(name)?).1.into()));
                black_box(parsed.expect("what a scheduler sets"));
            }))
        }),
        Series::new("service/to specification", specification),
        Series::new("engine/put of 8 bytes", || put(8, 1)),
        Series::new("engine/put of 8 bytes, 10,000 regions", || {
            again(Program::new(8, 1).with_regions(MANY))
        }),
        Series::new("engine/region add + remove, 10 regions", || region(10)),
        Series::new("engine/region add + remove, 10,000 regions", || {
            region(MANY)
        }),
        Series::new("engine/message of 64 bytes, 2 entries", || put(64, 2)),
        Series::new("engine/message of 64 bytes, 100 entries", || put(64, 100)),
        Series::new("engine/message of 64 bytes, 10,000 entries", || {
            put(64, 10_000)
        }),
        Series::new("engine/message of 64 bytes, 10,000 wildcards", || {
            again(Program::with_wildcards(64, 10_000))
        }),
        Series::new("job/allocate + release, 1 NIC", || job(1)),
        Series::new("job/allocate + release, 4 NICs", || job(4)).with_threads(),
        Series::new("job/allocate + release, 8 NICs", || job(8)).with_threads(),
    ]
}

fn put(bytes: u32, entries: u16) -> Result<Act> {
    again(Program::new(bytes, entries))
}

// What the other series return, too.
#[allow(clippy::unnecessary_wraps)]
fn again(mut program: Program) -> Result<Act> {
    Ok(Box::new(move || program.put()))
}

/// Adds a region beside others.
#[allow(clippy::unnecessary_wraps)]
fn region(others: u32) -> Result<Act> {
    let mut program = Program::new(8, 1).with_regions(others);
    Ok(Box::new(move || program.add_and_remove_region()))
}

/// Regions that a program with much memory has.
const MANY: u32 = 10_000;

const IDS: &str = "1024-2047,3000,4000-5000,60000-65535";

const VARIABLES: [(&str, &str); 4] = [
    ("SLINGSHOT_VNIS", "4034,4035"),
    ("SLINGSHOT_DEVICES", "cxi0,cxi1,cxi2,cxi3"),
    ("SLINGSHOT_SVC_IDS", "11,11,12,11"),
    ("SLINGSHOT_TCS", "0xa"),
];

fn pool() -> Result<Act> {
    const VNIS: u32 = 4096;
    let mut pool = VniPool::new(PoolConfig::new(format!("1024-{}", 1023 + VNIS).parse()?))?;
    let (one, node) = (VniRequest::vnis(1), NodeName::new("node1")?);
    let nodes = [node.clone()];
    let now = Timestamp::from_millis;
    for number in 0..VNIS / 2 {
        let _ = pool.reserve(&JobId::new(&format!("old{number}"))?, &one, now(0))?;
    }
    let new = JobId::new("new")?;
    Ok(Box::new(move || {
        black_box(pool.reserve(&new, &one, now(0)).expect("a VNI").vnis);
        pool.release(&new, &nodes, now(1)).expect("released");
        pool.confirm(&new, &node, now(2)).expect("confirmed");
    }))
}

fn specification() -> Result<Act> {
    let services = device()?.services();
    let spec = ServiceSpec::builder()
        .member(cxi::Member::Uid(1000))
        .vni(vni()?)
        .limits(cxi::Limits::default())
        .build()?;
    let id = services.create(&spec)?;
    let service = services.get(id)?;
    Ok(Box::new(move || {
        let spec = ServiceSpec::try_from(black_box(&service));
        black_box(spec.expect("a specification"));
    }))
}

fn job(nics: u8) -> Result<Act> {
    let mock = MockNode::with_nics(nics, &NicConfig::new())?;
    let mut devices = Vec::new();
    for (nic, number) in mock.nics().iter().zip(0..) {
        let file = nic.open()?.transport(Credentials::root());
        devices.push(Device::with_transport(
            DeviceId::new(number),
            Arc::new(file),
        ));
    }
    let node = Node::from_devices(devices);
    let vni = Vni::new(4034)?;
    let request = JobRequest::builder().uid(1000).vni(vni).build()?;
    Ok(Box::new(move || {
        black_box(node.allocate(&request).expect("room for a job"));
        let filter = Filter::vnis([vni]).uid(1000);
        let release = node.release(&filter, &ReleaseOptions::once());
        assert_eq!(release.status(), ReleaseStatus::Done, "{release}");
    }))
}
