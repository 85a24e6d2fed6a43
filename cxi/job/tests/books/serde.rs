//! Logs and snapshots of a VNI pool as JSON, there and back.

use std::slice;
use std::time::Duration;

use cxi::{DeviceId, ResourceMap};
use cxi_job::limits::{LimitPlan, LimitPolicy, Mode, NicUsage, plan};
use cxi_site::pool::{Event, PoolConfig, Snapshot, Timestamp, VniPool, VniRequest};
use cxi_site::{IdSet, JobId, NodeName, TenantName};
use serde_json::{Value, from_str, from_value, json, to_string, to_value};

fn ids(text: &str) -> IdSet {
    text.parse().unwrap()
}

fn config() -> PoolConfig {
    PoolConfig::new(ids("1024-1099"))
        .exclude(&ids("1030"))
        .rest(Duration::from_millis(1500))
        .tenant(TenantName::new("blue").unwrap(), ids("1090-1099"))
}

/// Something of every kind: reserved, canceled, draining, stray, resting, reconfigured.
fn history() -> (VniPool, Vec<Event>) {
    let mut pool = VniPool::new(config()).unwrap();
    let job = |name: &str| JobId::new(name).unwrap();
    let [n1, n2] = ["n1", "n2"].map(|name| NodeName::new(name).unwrap());
    let at = Timestamp::from_millis;
    let blue = VniRequest::vnis(1).for_tenant(TenantName::new("blue").unwrap());
    let [a, b, c, d] = ["ƒ1", "ƒ2", "ƒ3", "ƒ4"].map(job);
    let [one, three] = [1, 3].map(VniRequest::vnis);
    let excluded = config().exclude(&ids("1050"));
    let log = [
        pool.reserve(&a, &three, at(1)).unwrap().event,
        pool.reserve(&b, &VniRequest::block(8), at(2)).unwrap().event,
        pool.reserve(&c, &blue, at(3)).unwrap().event,
        pool.reserve(&d, &one, at(4)).unwrap().event,
        pool.cancel(&d, at(5)).unwrap().event,
        pool.release(&a, &[n1.clone(), n2], at(6)).unwrap().event,
        pool.confirm(&a, &n1, at(7)).unwrap().event,
        pool.release(&c, &[], at(8)).unwrap().event,
        pool.confirm_all(slice::from_ref(&c), at(9)).unwrap().event,
        pool.reconcile(&n1, &ids("1024,1060"), at(10)).event,
        pool.reconfigure(excluded, at(11)).unwrap().event,
    ];
    (pool, log.into_iter().flatten().collect())
}

#[test]
fn a_log_of_json_lines_makes_the_same_pool() {
    let (pool, log) = history();
    assert_eq!(log.len(), 11);
    let lines: Vec<String> = log.iter().map(|event| to_string(event).unwrap()).collect();
    let read: Vec<Event> = lines.iter().map(|line| from_str(line).unwrap()).collect();
    assert_eq!(read, log);
    assert_eq!(VniPool::replay(config(), &read).unwrap(), pool);
    let first: Value = from_str(&lines[0]).unwrap();
    let reserved = json!({
        "at": 1,
        "change": { "reserved": {
            "job": "ƒ1", "tenant": null, "vnis": { "list": [1024, 1025, 1026] }
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
        from_value::<Snapshot>(value).map(VniPool::restore)
    };
    let error = broken("/config/vnis", json!("1024-")).unwrap_err().to_string();
    assert!(error.contains("byte 5: expected the last id"), "{error}");
    // Some of it is nothing that can be read, some contradicts the rest of the snapshot.
    let block = json!({ "block": { "first": 1033, "last": 1040 } });
    for (path, bad, read) in [
        ("/config/vnis", json!("0-1"), true),
        ("/jobs/ƒ1/vnis", json!({ "list": [0] }), false),
        ("/jobs/ƒ2/vnis", block, false),
        ("/jobs/ƒ1/vnis", json!({ "list": [1, 2, 3, 4, 5] }), true),
        ("/jobs/ƒ1/vnis", json!({ "list": [1060] }), true),
    ] {
        let answer = broken(path, bad.clone());
        assert_eq!(answer.is_ok(), read, "{path} {bad}");
        assert!(answer.is_err() || answer.unwrap().is_err(), "{path} {bad}");
    }
    let mut event = to_value(&log[0]).unwrap();
    event["change"]["reserved"]["job"] = json!("a'b");
    let error = from_value::<Event>(event).unwrap_err().to_string();
    assert!(error.contains("'\\''"), "{error}");
}

#[test]
fn plans_are_data() {
    let nic = NicUsage::new(DeviceId::new(3), ResourceMap::from_fn(|_| 100), Vec::new());
    let (policy, mode) = (LimitPolicy::slurm(), Mode::ScaleBack { floor: 1 });
    let plan = plan(&policy, 64, &nic, mode).unwrap();
    let value = to_value(&plan).unwrap();
    assert_eq!(value["device"], "cxi3");
    assert_eq!(value["limits"]["PTEs"], json!({ "res": 100, "max": 100 }));
    assert_eq!(value["cuts"][0]["reason"], "device_total");
    assert_eq!(from_value::<LimitPlan>(value).unwrap(), plan);
}
