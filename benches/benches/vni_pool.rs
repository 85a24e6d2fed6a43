//! The VNI pool, with 64,000 VNIs: a reservation costs the same in an empty pool and in one that is
//! nearly full; the replay of a log is linear in its length.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use cxi_benches::{nic, run};
use cxi_site::pool::{Event, PoolConfig, Timestamp, VniPool, VniRequest};
use cxi_site::{JobId, NodeName};

const VNIS: u32 = 64_000;

fn config() -> PoolConfig {
    let vnis = format!("1024-{}", 1023 + VNIS);
    PoolConfig::new(vnis.parse().expect("an id set"))
}

fn job(number: u32) -> JobId {
    JobId::new(format!("ƒ{number}")).expect("a job id")
}

fn now(number: u32) -> Timestamp {
    Timestamp::from_millis(number.into())
}

/// A pool with `used` VNIs in use, the free ones spread evenly between them.
fn filled(used: u32) -> VniPool {
    let mut pool = VniPool::new(config()).expect("a pool");
    let one = VniRequest::vnis(1);
    for number in 0..VNIS {
        let reserved = pool.reserve(&job(number), &one, now(0));
        black_box(reserved.expect("a VNI").event);
    }
    let keep = |number: u64| number * u64::from(used) / u64::from(VNIS);
    for number in 0..VNIS {
        if keep(u64::from(number) + 1) == keep(number.into()) {
            end(&mut pool, &job(number), None);
        }
    }
    pool
}

fn end(pool: &mut VniPool, job: &JobId, log: Option<&mut Vec<Event>>) {
    let node = NodeName::new("node1").expect("a node name");
    let released = pool.release(job, std::slice::from_ref(&node), now(1));
    let released = released.expect("released").event;
    let confirmed = pool.confirm(job, &node, now(2)).expect("confirmed").event;
    if let Some(log) = log {
        log.extend(released.into_iter().chain(confirmed));
    }
}

fn cycle(c: &mut Criterion) {
    let mut group = c.benchmark_group("vni_pool");
    for used in run::sizes(&[0_u32, 32_000, 60_000, 63_990]) {
        let mut pool = filled(used);
        let new = JobId::new("new").expect("a job id");
        for (kind, request) in [("one", VniRequest::vnis(1)), ("four", VniRequest::vnis(4))] {
            group.bench_function(BenchmarkId::new(kind, used), |b| {
                b.iter(|| {
                    let reserved = pool.reserve(&new, &request, now(0));
                    black_box(reserved.expect("VNIs").result);
                    end(&mut pool, &new, None);
                });
            });
        }
    }
    group.finish();
}

/// A search for a block that is not there looks at every word.
fn block(c: &mut Criterion) {
    let mut pool = filled(32_000);
    let new = JobId::new("new").expect("a job id");
    let mut group = c.benchmark_group("vni_pool");
    for size in [2, 256] {
        group.bench_function(BenchmarkId::new("no block", size), |b| {
            b.iter(|| black_box(pool.reserve(&new, &VniRequest::block(size), now(0)).is_err()));
        });
    }
    group.finish();
}

fn log(events: u32) -> Vec<Event> {
    let mut pool = VniPool::new(config()).expect("a pool");
    let mut log = Vec::new();
    for number in 0..events / 3 {
        let reserved = pool.reserve(&job(number), &VniRequest::vnis(1), now(0));
        log.extend(reserved.expect("a VNI").event);
        // A third of the pool is always in use.
        if let Some(old) = number.checked_sub(VNIS / 3) {
            end(&mut pool, &job(old), Some(&mut log));
        }
    }
    log
}

fn replay(c: &mut Criterion) {
    let mut group = c.benchmark_group("vni_pool log");
    group.sample_size(10);
    for events in run::sizes(&[100_000_u32, 300_000, 1_000_000]) {
        let mut log = log(events + 2 * VNIS);
        log.truncate(events as usize);
        group.throughput(Throughput::Elements(events.into()));
        group.bench_function(BenchmarkId::new("replay", events), |b| {
            b.iter_batched(
                config,
                |config| VniPool::replay(config, &log).expect("a pool"),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

fn pool(c: &mut Criterion) {
    if nic::named().is_some() {
        return run::skip("vni_pool", "a pool has no NIC");
    }
    cycle(c);
    block(c);
    replay(c);
}

criterion_group!(name = benches; config = run::criterion(); targets = pool);
criterion_main!(benches);
