//! Logs and snapshots of a VNI pool as JSON, there and back.

use std::time::Duration;

use cxi::{DeviceId, ResourceMap};
use cxi_job::limits::{LimitPolicy, Mode, Multiplier, NicUsage, plan};
use cxi_job::pool::{Event, PoolConfig, Snapshot, Timestamp, VniPool, VniRequest};
use cxi_job::{IdSet, JobId, NodeName, StepId, TenantName};
use serde_json::{Value, from_str, json, to_string, to_value};

fn ids(text: &str) -> IdSet {
    text.parse().unwrap()
}

fn config() -> PoolConfig {
    PoolConfig::new(ids("1024-1099"))
        .exclude(&ids("1030"))
        .rest(Duration::from_millis(1500))
        .tenant(TenantName::new("blue").unwrap(), ids("1090-1099"))
}

/// Something of every kind: reserved, shared, draining, stray, resting, reconfigured.
fn history() -> (VniPool, Vec<Event>) {
    let mut pool = VniPool::new(config()).unwrap();
    let mut log = Vec::new();
    let job = |name: &str| JobId::new(name).unwrap();
    let [n1, n2] = ["n1", "n2"].map(|name| NodeName::new(name).unwrap());
    let at = Timestamp::from_millis;
    let blue = VniRequest::vnis(1).for_tenant(TenantName::new("blue").unwrap());
    log.extend(
        pool.reserve(&job("ƒ1"), &VniRequest::vnis(3), at(1))
            .unwrap()
            .event,
    );
    log.extend(
        pool.reserve(&job("ƒ2"), &VniRequest::block(8), at(2))
            .unwrap()
            .event,
    );
    log.extend(pool.reserve(&job("ƒ3"), &blue, at(3)).unwrap().event);
    let step = StepId::new("0").unwrap();
    let (one, shared) = (VniRequest::vnis(1), job("ƒ4"));
    log.extend(pool.share(&shared, &step, &one, at(4)).unwrap().event);
    log.extend(pool.reserve(&shared, &one, at(4)).unwrap().event);
    let left = pool.leave(&shared, &step, std::slice::from_ref(&n1), at(5));
    log.extend(left.unwrap().event);
    let released = pool.release(&job("ƒ1"), &[n1.clone(), n2], at(6));
    log.extend(released.unwrap().event);
    log.extend(pool.confirm(&job("ƒ1"), &n1, at(7)).unwrap().event);
    log.extend(pool.release(&job("ƒ3"), &[], at(8)).unwrap().event);
    log.extend(pool.confirm_all(&job("ƒ3"), at(9)).unwrap().event);
    log.extend(pool.reconcile(&n1, &ids("1024,1060"), at(10)).event);
    let changed = pool.reconfigure(config().exclude(&ids("1050")), at(11));
    log.extend(changed.unwrap().event);
    (pool, log)
}

#[test]
fn a_log_of_json_lines_makes_the_same_pool() {
    let (pool, log) = history();
    assert_eq!(log.len(), 12);
    let lines: Vec<String> = log.iter().map(|event| to_string(event).unwrap()).collect();
    let read: Vec<Event> = lines.iter().map(|line| from_str(line).unwrap()).collect();
    assert_eq!(read, log);
    assert_eq!(VniPool::replay(config(), &read).unwrap(), pool);
    let first: Value = from_str(&lines[0]).unwrap();
    let reserved = json!({
        "at": 1,
        "change": { "reserved": {
            "job": "ƒ1", "step": null, "tenant": null, "vnis": { "list": [1024, 1025, 1026] }
        } },
        "sequence": 1
    });
    assert_eq!(first, reserved);
}

#[test]
fn a_snapshot_as_json_makes_the_same_pool() {
    let (pool, _) = history();
    let text = to_string(&pool.snapshot()).unwrap();
    let read: Snapshot = from_str(&text).unwrap();
    assert_eq!(VniPool::restore(read).unwrap(), pool);
    let value: Value = from_str(&text).unwrap();
    assert_eq!(value["version"], 1);
    assert_eq!(value["config"]["vnis"], "1024-1099");
}

#[test]
fn data_from_outside_is_checked() {
    let (pool, log) = history();
    let broken = |path: &str, bad: Value| {
        let mut value = to_value(pool.snapshot()).unwrap();
        *value.pointer_mut(path).unwrap() = bad;
        serde_json::from_value::<Snapshot>(value).map(VniPool::restore)
    };
    assert!(
        broken("/config/vnis", json!("1024-"))
            .unwrap_err()
            .to_string()
            .contains("byte 5: expected the last id")
    );
    assert!(broken("/config/vnis", json!("0-1")).unwrap().is_err());
    assert!(broken("/jobs/ƒ1/vnis", json!({ "list": [0] })).is_err());
    assert!(
        broken(
            "/jobs/ƒ2/vnis",
            json!({ "block": { "first": 1033, "last": 1040 } })
        )
        .is_err()
    );
    assert!(
        broken("/jobs/ƒ1/vnis", json!({ "list": [1, 2, 3, 4, 5] }))
            .unwrap()
            .is_err()
    );
    assert!(
        broken("/jobs/ƒ1/vnis", json!({ "list": [1060] }))
            .unwrap()
            .is_err()
    );
    let mut event = to_value(&log[0]).unwrap();
    event["change"]["reserved"]["job"] = json!("a'b");
    assert!(
        serde_json::from_value::<Event>(event)
            .unwrap_err()
            .to_string()
            .contains("'\\''")
    );
}

#[test]
fn plans_are_data() {
    let nic = NicUsage::new(DeviceId::new(3), ResourceMap::from_fn(|_| 100), Vec::new());
    let plan = plan(
        &LimitPolicy::slurm(),
        Multiplier::Cores(64),
        &nic,
        Mode::ScaleBack { floor: 1 },
    )
    .unwrap();
    let value = to_value(&plan).unwrap();
    assert_eq!(value["device"], "cxi3");
    assert_eq!(value["limits"]["PTEs"], json!({ "res": 100, "max": 100 }));
    assert_eq!(value["cuts"][0]["reason"], "device_total");
    assert_eq!(
        serde_json::from_value::<cxi_job::limits::LimitPlan>(value).unwrap(),
        plan
    );
}
