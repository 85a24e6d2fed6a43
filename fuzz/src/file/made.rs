//! Files that a mock node and its jobs leave.

use std::sync::Arc;

use cxi::{Device, DeviceId, Vni};
use cxi_job::audit::AuditOptions;
use cxi_job::clean::CleanPolicy;
use cxi_job::explain::Inquiry;
use cxi_job::limits::{LimitPolicy, Mode, Multiplier, NicUsage, plan};
use cxi_job::pool::{PoolConfig, Timestamp, VniRequest};
use cxi_job::{
    Filter, IdSet, JobLimits, JobRequest, NicPolicy, Node, ProcFs, ReleaseOptions, VniPool,
};
use cxi_mock::{MockNode, NicConfig};
use serde::Serialize;

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Hands out every kind of file, with the byte that says what it is read as.
pub(super) fn all(add: &mut impl FnMut(u8, String)) {
    let Ok(mock) = MockNode::with_nics(2, &NicConfig::new()) else {
        return;
    };
    let devices: Vec<Device> = mock
        .nics()
        .iter()
        .zip(0..)
        .filter_map(|(nic, number)| {
            let file = Arc::new(nic.root().ok()?);
            Some(Device::with_transport(DeviceId::new(number), file))
        })
        .collect();
    job(&Node::from_devices(devices.clone()), add);
    for device in devices.iter().take(1) {
        nic(device, add);
    }
    pool(add);
    add(6, kept("cxi mock node", "node", &mock.snapshot()));
}

fn kept<T: Serialize>(format: &str, member: &str, value: &T) -> String {
    let value = json(value);
    format!("{{\"format\":\"{format}\",\"version\":1,\"{member}\":{value}}}")
}

fn job(node: &Node, add: &mut impl FnMut(u8, String)) {
    let limits = JobLimits::planned(
        LimitPolicy::hpe_recommended(),
        Multiplier::Cores(8),
        Mode::BestEffort,
    );
    add(12, json(&(&limits, NicPolicy::AnyUsable(1))));
    let request = Vni::new(4034).ok().and_then(|vni| {
        let builder = JobRequest::builder().uid(1000).vni(vni);
        builder.limits(limits).build().ok()
    });
    let Some(grant) = request.and_then(|request| node.allocate(&request).ok()) else {
        return;
    };
    add(2, format!("{{\"grant\":{}}}", json(&grant)));
    add(3, json(&grant));
    let options = ReleaseOptions::once();
    let pool: IdSet = [4034].into_iter().collect();
    let audit = node.audit(&AuditOptions::new().pool(pool.clone()));
    add(15, json(&audit));
    add(
        7,
        kept("cxi idle services", "observation", &audit.observation),
    );
    add(10, json(&audit.observation));
    let policy = CleanPolicy::new(pool).dry_run(true);
    add(16, json(&node.clean(&policy, &options).unwrap()));
    add(
        17,
        json(&node.release(&Filter::for_grant(&grant), &options)),
    );
}

fn nic(device: &Device, add: &mut impl FnMut(u8, String)) {
    if let Ok(info) = device.info() {
        add(13, json(&info));
    }
    let usage = device.services().usage(cxi::ServiceId::DEFAULT);
    if let (Ok(usage), Ok(left)) = (usage, device.availability()) {
        let reading = "{\"value\":5,\"time\":{\"secs\":7,\"nanos\":9}}";
        add(14, format!("[{},{},{reading}]", json(&usage), json(&left)));
    }
    let missing = cxi::ServiceId::new(77).map(|id| device.services().get(id));
    if let Ok(Err(error)) = missing {
        let inquiry = Inquiry::new(&error).proc(ProcFs::with_root("/nonexistent"));
        add(18, json(&inquiry.explain()));
    }
    let Ok(usage) = NicUsage::read(device) else {
        return;
    };
    for mode in [Mode::Strict, Mode::BestEffort] {
        let (policy, size) = (LimitPolicy::slurm(), Multiplier::Depth(4));
        if let Ok(plan) = plan(&policy, size, &usage, mode) {
            add(19, json(&plan));
        }
        add(11, json(&(policy, size, &usage, mode)));
    }
}

fn pool(add: &mut impl FnMut(u8, String)) {
    let now = Timestamp::from_millis(1_700_000_000_000);
    let Ok(vnis) = "1024-2047".parse::<IdSet>() else {
        return;
    };
    let mut config = PoolConfig::new(vnis);
    if let (Ok(blue), Ok(part)) = ("blue".parse(), "1024-1151".parse()) {
        config = config.tenant(blue, part);
    }
    let Ok(mut pool) = VniPool::new(config) else {
        return;
    };
    let mut log = String::new();
    let mut note = |event: Option<cxi_job::pool::Event>| {
        if let Some(event) = event {
            add(9, json(&event));
            log += &json(&event);
            log.push('\n');
        }
    };
    for (name, request) in [
        ("1", VniRequest::vnis(2)),
        ("2", VniRequest::block(16)),
        ("3", VniRequest::vnis(1)),
    ] {
        let Ok(job) = name.parse() else { continue };
        note(
            pool.reserve(&job, &request, now)
                .ok()
                .and_then(|reserved| reserved.event),
        );
        if name != "3"
            && let Ok(node) = "node-1".parse()
        {
            note(
                pool.release(&job, std::slice::from_ref(&node), now)
                    .ok()
                    .and_then(|released| released.event),
            );
            if name == "2" {
                note(
                    pool.confirm(&job, &node, now)
                        .ok()
                        .and_then(|confirmed| confirmed.event),
                );
            }
        }
    }
    add(4, log);
    add(8, json(&pool.snapshot()));
    if let (Ok(saved), Ok(config)) = (pool.save(now), pool.record_config(now)) {
        add(
            5,
            format!("{}\n{}\n", json(&saved.event), json(&config.event)),
        );
    }
}
