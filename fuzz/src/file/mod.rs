//! Any file that the library or the command reads: specifications, grants, states, logs, and every
//! type that can be kept as JSON.

mod made;

use std::fmt::Debug;
use std::time::Duration;

use cxi::{Availability, CounterReading, DeviceInfo, ServiceSpec, Usage};
use cxi_cli::read;
use cxi_ioctl::Recording;
use cxi_job::audit::{Audit, Observation};
use cxi_job::clean::CleanReport;
use cxi_job::cluster::store::Format;
use cxi_job::limits::{LimitPlan, LimitPolicy, Mode, NicUsage, forecast, plan};
use cxi_job::{Explanation, Grant, JobLimits, NicPolicy};
use cxi_mock::NodeSnapshot;
use cxi_site::pool::log::{FileLog, SharedPool};
use cxi_site::pool::{Event, PoolConfig, Snapshot, Timestamp, VniRequest};
use cxi_site::{IdSet, VniPool};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::told;

/// Checks that a value that was read and is written is read as the same.
fn round<T: DeserializeOwned + Serialize + PartialEq + Debug>(text: &str) -> Option<T> {
    let value = told(serde_json::from_str::<T>(text))?;
    let written = serde_json::to_string(&value).expect("what was read can be written");
    match serde_json::from_str::<T>(&written) {
        Ok(again) => assert_eq!(again, value, "{written}"),
        Err(error) => panic!("{written}: {error}"),
    }
    Some(value)
}

/// The first byte says how the rest is read.
///
/// # Panics
///
/// When something is not read as it was written, or what was accepted does not work.
pub fn run(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    let text = &*String::from_utf8_lossy(bytes);
    match choice % 22 {
        0 => specification(text),
        1 => drop(round::<ServiceSpec>(text)),
        2 | 3 => {
            if let Some(grant) = round::<Grant>(text) {
                let _ = grant.env();
                let _ = cxi_job::Filter::for_grant(&grant);
            }
        }
        4 => {
            let log = text.lines().map(serde_json::from_str::<Event>);
            if let Ok(events) = log.collect::<Result<Vec<_>, _>>() {
                replayed(&events);
            }
        }
        5 => pool_file(bytes),
        6 => kept::<NodeSnapshot>(read::MOCK_NODE, text),
        7 => kept::<Observation>(read::OBSERVATION, text),
        8 => {
            if let Some(snapshot) = round::<Snapshot>(text) {
                pool(snapshot);
            }
        }
        9 => drop(round::<Event>(text)),
        10 => drop(round::<Observation>(text)),
        11 => {
            if let Some((policy, size, nic, mode)) =
                round::<(LimitPolicy, u32, NicUsage, Mode)>(text)
            {
                planned(&policy, size, &nic, mode);
            }
        }
        12 => drop(round::<(JobLimits, NicPolicy)>(text)),
        13 => drop(round::<DeviceInfo>(text)),
        14 => drop(round::<(Usage, Availability, CounterReading)>(text)),
        15 => drop(round::<Audit>(text)),
        16 => drop(round::<CleanReport>(text)),
        17 => drop(round::<cxi_job::ReleaseReport>(text)),
        18 => drop(round::<Explanation>(text)),
        19 => drop(round::<LimitPlan>(text)),
        21 => check_of_fabric(text),
        _ => drop(round::<Recording>(text)),
    }
}

/// Files that the nodes of a check have written, one a line: the start, and each word of two nodes.
fn check_of_fabric(text: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let names = ["start", "n1.arrival", "n2.arrival", "n1.asked", "n2.asked", "n1.together"];
    for (name, content) in names.iter().zip(text.lines()) {
        let path = directory.path().join(format!("{name}.json"));
        std::fs::write(path, content).expect("a file");
    }
    told(read::check_of_fabric(directory.path()));
}

/// The file of a pool: what is in it can be changed, and is read as the same.
fn pool_file(bytes: &[u8]) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("pool");
    std::fs::write(&path, bytes).expect("a file");
    let now = Timestamp::from_millis(u64::MAX / 2);
    let open = || SharedPool::open_existing(FileLog::new(&path), "", 0);
    let Some(Some(mut pool)) = told(open()) else { return };
    if pool.save(now).is_ok() {
        let again = open().expect("what was written").expect("a pool");
        assert_eq!(again.pool(), pool.pool());
    }
}

fn specification(text: &str) {
    let Some(spec) = told(read::specification(text)) else { return };
    let printed = told(read::print_specification(&spec)).expect("a specification as YAML");
    assert_eq!(read::specification(&printed), Ok(spec), "{printed}");
}

/// The same for the files that the command keeps.
fn kept<T: DeserializeOwned + Serialize + PartialEq + Debug>(format: Format, text: &str) {
    let Some(kept) = told(format.parse::<T>(text)) else { return };
    let printed = format.print(&kept).expect("what was read can be written");
    assert_eq!(format.parse::<T>(&printed), Ok(kept), "{printed}");
}

/// A pool that is restored is kept as the same, and works.
fn pool(snapshot: Snapshot) {
    let Some(mut pool) = told(VniPool::restore(snapshot)) else { return };
    let again = VniPool::restore(pool.snapshot()).expect("a pool that was kept");
    assert_eq!(again, pool, "kept as the same");
    used(&mut pool);
}

fn replayed(events: &[Event]) {
    let vnis: IdSet = "1024-2047".parse().expect("a set");
    if let Some(mut pool) = told(VniPool::replay(PoolConfig::new(vnis), events)) {
        used(&mut pool);
    }
}

/// The life of a job in a pool.
fn used(pool: &mut VniPool) {
    let now = Timestamp::from_millis(1_700_000_000_000);
    let later = now + Duration::from_secs(1 << 20);
    let (Ok(job), Ok(node)) = ("job-of-a-test".parse(), "node-1".parse()) else { return };
    let before = pool.metrics(now);
    let _ = format!("{before:?}");
    for request in [VniRequest::vnis(2), VniRequest::block(16)] {
        if pool.reserve(&job, &request, now).is_ok() {
            let _ = pool.cancel(&job, now);
        }
        if let Ok(reserved) = pool.reserve(&job, &request, now) {
            assert!(!reserved.result.is_empty(), "a job got VNIs");
        }
        let _ = pool.release(&job, std::slice::from_ref(&node), now);
        let _ = pool.confirm(&job, &node, now);
    }
    let seen: IdSet = "1,1024-1030,65535".parse().expect("a set");
    let _ = pool.reconcile(&node, &seen, later);
    let jobs: Vec<_> = pool.jobs().map(|(job, _)| job.clone()).collect();
    for job in jobs {
        let _ = pool.confirm_all(&[job], later);
    }
    let again = VniPool::restore(pool.snapshot()).expect("a pool that was kept");
    assert_eq!(&again, pool, "kept as the same");
}

/// A plan keeps to what there is.
fn planned(policy: &LimitPolicy, size: u32, nic: &NicUsage, mode: Mode) {
    if let Some(plan) = told(plan(policy, size, nic, mode)) {
        let _ = forecast(nic, &plan.limits);
    }
}

/// Files as the library and the command write them, and those of the documentation.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    let mut add = |choice: u8, text: String| {
        let mut seed = vec![choice];
        seed.extend(text.into_bytes());
        seeds.push(seed);
    };
    for text in SPECIFICATIONS {
        add(0, text.to_owned());
    }
    add(21, CHECK.to_owned());
    made::all(&mut add);
    seeds
}

/// Two nodes, of which one does not reach the other.
const CHECK: &str = r#"{"session": 1, "nodes": ["n1", "n2", "n3"], "came": ["n1", "n2"]}
{"nics": {"cxi0": {"address": {"nid": 1, "pid": 0, "vni": 1024}}}}
{"nics": {"cxi0": {"address": {"nid": 2, "pid": 0, "vni": 1024}}, "cxi1": {"problem": "no"}}}
{"nics": {"cxi0": {"n2": {"answered": 8, "retries": 1, "least_ns": 900, "median_ns": 950, "problem": null}}}}
{"nics": {"cxi0": {"n1": {"answered": 0, "retries": 9, "least_ns": null, "median_ns": null, "problem": "no answer"}}}}
{"nics": {"cxi0": {"times": {"barrier_ns": 10000, "allreduce_ns": 20000}}}}
"#;

const SPECIFICATIONS: [&str; 3] = [
    "enable: 1\nis_system_svc: false\nrestricted_members: true\nmembers:\n  - {type: uid, id: \
     1000}\n  - {type: gid, id: 100}\nrestricted_vnis: 1\nvnis: [1024, 1025]\nrestricted_tcs: \
     true\ntcs: [BEST_EFFORT, LOW_LATENCY]\nresource_limits: 1\nlimits:\n  - {name: TXQs, res: \
     16, max: 64}\n  - {name: ACs, max: 2}\n",
    "{\n\t\"vni_range\": {\"first\": 1024, \"last\": 1039},\n\t\"limits\": [{\"name\": \"TXQs\", \
     \"max\": 5, \"res\": 2}]\n}\n",
    "vnis: &a [1, 2]\nmembers: []\ntcs: *a\n",
];
