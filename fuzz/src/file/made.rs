//! Files that a mock node and its jobs leave.

use std::sync::Arc;

use cxi::{Device, DeviceId, Vni};
use cxi_ioctl::Record;
use cxi_job::audit::AuditOptions;
use cxi_job::clean::CleanPolicy;
use cxi_job::explain::Inquiry;
use cxi_job::limits::{LimitPolicy, Mode, NicUsage, plan};
use cxi_job::{Filter, JobLimits, JobRequest, NicPolicy, Node, ReleaseOptions};
use cxi_mock::{MockNode, NicConfig};
use cxi_site::pool::{PoolConfig, Timestamp, VniRequest};
use cxi_site::{IdSet, JobId, NodeName, ProcFs, VniPool};
use serde::Serialize;

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Hands out every kind of file, with the byte that says what it is read as.
pub(super) fn all(add: &mut impl FnMut(u8, String)) {
    let mock = MockNode::with_nics(2, &NicConfig::new()).expect("a node");
    let nics = mock.nics().iter().zip(0..);
    let devices = nics.map(|(nic, number)| {
        let file = Arc::new(nic.root().expect("a NIC that is there"));
        Device::with_transport(DeviceId::new(number), file)
    });
    let devices: Vec<Device> = devices.collect();
    job(&Node::from_devices(devices.clone()), add);
    nic(&devices[0], add);
    pool(add);
    add(6, kept("cxi mock node", &mock.snapshot()));
}

fn kept<T: Serialize>(format: &str, value: &T) -> String {
    let value = json(value);
    format!("{{\"format\":\"{format}\",\"version\":1,\"record\":{value}}}")
}

fn job(node: &Node, add: &mut impl FnMut(u8, String)) {
    let limits = JobLimits::planned(LimitPolicy::hpe_recommended(), 8, Mode::BestEffort);
    add(12, json(&(&limits, NicPolicy::AnyUsable(1))));
    let request = JobRequest::builder().uid(1000).limits(limits);
    let request = request.vni(Vni::new(4034).expect("a VNI")).build();
    let grant = node.allocate(&request.expect("a request"));
    let grant = grant.expect("room for a job");
    add(2, json(&grant));
    let options = ReleaseOptions::once();
    let pool: IdSet = [4034].into_iter().collect();
    let mut auditing = AuditOptions::default();
    auditing.pool = Some(pool.clone());
    let audit = node.audit(&auditing);
    add(15, json(&audit));
    add(7, kept("cxi idle services", &audit.observation));
    add(10, json(&audit.observation));
    let policy = CleanPolicy::new(pool).dry_run(true);
    add(16, json(&node.clean(&policy, &options).unwrap()));
    add(17, json(&node.release(&Filter::for_grant(&grant), &options)));
}

fn nic(device: &Device, add: &mut impl FnMut(u8, String)) {
    let services = device.services();
    let record = Arc::new(Record::new(Arc::clone(device.transport())));
    let listed = device.behind(Arc::clone(&record)).services().list();
    assert!(listed.is_ok(), "{listed:?}");
    add(20, json(&record.take()));
    add(13, json(&device.info().expect("info")));
    let usage = services.usage(cxi::ServiceId::DEFAULT).expect("usage");
    let left = device.availability().expect("what is left");
    let reading = "{\"value\":5,\"time\":{\"secs\":7,\"nanos\":9}}";
    add(14, format!("[{},{},{reading}]", json(&usage), json(&left)));
    let missing = cxi::ServiceId::new(77).expect("an id");
    let error = services.get(missing).expect_err("there is none");
    let inquiry = Inquiry::new(&error).proc(ProcFs::with_root("/nonexistent"));
    add(18, json(&inquiry.explain()));
    let usage = NicUsage::read(device).expect("usage");
    for mode in [Mode::Strict, Mode::BestEffort] {
        let (policy, size) = (LimitPolicy::slurm(), 4);
        if let Ok(plan) = plan(&policy, size, &usage, mode) {
            add(19, json(&plan));
        }
        add(11, json(&(policy, size, &usage, mode)));
    }
}

fn pool(add: &mut impl FnMut(u8, String)) {
    let now = Timestamp::from_millis(1_700_000_000_000);
    let config = PoolConfig::new("1024-2047".parse().expect("a set"));
    let part = "1024-1151".parse().expect("a set");
    let config = config.tenant("blue".parse().expect("a name"), part);
    let mut pool = VniPool::new(config).expect("a pool");
    let node: NodeName = "node-1".parse().expect("a name");
    let mut events = Vec::new();
    for (name, request) in
        [("1", VniRequest::vnis(2)), ("2", VniRequest::block(16)), ("3", VniRequest::vnis(1))]
    {
        let job: JobId = name.parse().expect("a name");
        let reserved = pool.reserve(&job, &request, now).expect("room");
        events.extend(reserved.event);
        if name != "3" {
            let released = pool.release(&job, std::slice::from_ref(&node), now);
            events.extend(released.expect("a job").event);
        }
        if name == "2" {
            events.extend(pool.confirm(&job, &node, now).expect("a job").event);
        }
    }
    for event in &events {
        add(9, json(event));
    }
    add(4, events.iter().map(|event| json(event) + "\n").collect());
    add(8, json(&pool.snapshot()));
    let saved = pool.save(now).expect("a pool").event;
    let config = pool.record_config(now).expect("a pool").event;
    add(5, format!("{}\n{}\n", json(&saved), json(&config)));
}
