//! A job's services on 1 to 8 NICs, where each command takes 5 ms.
//!
//! The NICs are served at the same time: eight may take at most 1.5 times as long as one. Before
//! the series, that is checked, each by its fastest of five runs. A NIC that is named is the only
//! one, with no delay.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use cxi::{Device, DeviceId};
use cxi_benches::{nic, run};
use cxi_job::limits::{LimitPolicy, Mode};
use cxi_job::{Filter, JobLimits, JobRequest, Node, ReleaseOptions, ReleaseStatus};
use cxi_mock::{Credentials, MockNode, NicConfig};

const COMMAND: Duration = Duration::from_millis(5);
const MOST: f64 = 1.5;

fn slow_node(nics: u8) -> Node {
    let mock = MockNode::with_nics(nics, &NicConfig::new()).expect("a mock node");
    let devices = mock.nics().iter().zip(0..).map(|(nic, number)| {
        nic.faults().delay(None, COMMAND);
        let file = nic.open().expect("an open file");
        let transport = file.transport(Credentials::root());
        Device::with_transport(DeviceId::new(number), Arc::new(transport))
    });
    Node::from_devices(devices)
}

fn request() -> JobRequest {
    let size = 16;
    let limits = JobLimits::planned(LimitPolicy::hpe_recommended(), size, Mode::Strict);
    let vni = nic::vni(0).expect("a VNI");
    let request = JobRequest::builder().uid(nic::USER).vni(vni).limits(limits);
    request.build().expect("a request")
}

fn allocate(node: &Node) -> Duration {
    let request = request();
    let start = Instant::now();
    node.allocate(&request).expect("room for one job");
    start.elapsed()
}

fn release(node: &Node) -> Duration {
    let filter = Filter::vnis([nic::vni(0).expect("a VNI")]).uid(nic::USER);
    let start = Instant::now();
    let release = node.release(&filter, &ReleaseOptions::once());
    let time = start.elapsed();
    assert_eq!(release.status(), ReleaseStatus::Done, "{release}");
    time
}

fn check_ratio() {
    let (one, eight) = (slow_node(1), slow_node(8));
    let fastest = |node: &Node| {
        let runs = (0..5).map(|_| (allocate(node), release(node)));
        runs.reduce(|a, b| (a.0.min(b.0), a.1.min(b.1))).expect("five runs")
    };
    let (one, eight) = (fastest(&one), fastest(&eight));
    for (act, one, eight) in [("allocate", one.0, eight.0), ("release", one.1, eight.1)] {
        let ratio = eight.as_secs_f64() / one.as_secs_f64();
        assert!(
            ratio <= MOST,
            "{act}: {eight:?} on eight NICs, {one:?} on one: {ratio:.2} times as long"
        );
    }
}

fn nodes() -> Vec<(u8, Node)> {
    let Some(id) = nic::named() else {
        return run::sizes(&[1_u8, 2, 4, 8]).map(|nics| (nics, slow_node(nics))).collect();
    };
    run::skip("job on several NICs", format_args!("{id} is one"));
    let node = Node::from_devices(nic::device());
    if let Err(error) = node.allocate(&request()) {
        run::skip("job", error);
        return Vec::new();
    }
    release(&node);
    vec![(1, node)]
}

fn jobs(criterion: &mut Criterion) {
    if nic::named().is_none() && !run::only_tried() {
        check_ratio();
    }
    let mut group = criterion.benchmark_group("job");
    group.sample_size(10);
    for (nics, node) in nodes() {
        group.bench_function(BenchmarkId::new("allocate", nics), |bencher| {
            bencher.iter_custom(|count| {
                let rounds = (0..count).map(|_| {
                    let time = allocate(&node);
                    release(&node);
                    time
                });
                rounds.sum()
            });
        });
        group.bench_function(BenchmarkId::new("release", nics), |bencher| {
            bencher.iter_custom(|count| {
                let rounds = (0..count).map(|_| {
                    allocate(&node);
                    release(&node)
                });
                rounds.sum()
            });
        });
    }
    group.finish();
}

criterion_group!(name = benches; config = run::criterion(); targets = jobs);
criterion_main!(benches);
