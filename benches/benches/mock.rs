//! The mock as a device: allocating and destroying a service with all rules on, among more and
//! more services, and on several NICs at the same time, without the library.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::sync::Barrier;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use cxi_benches::nic::{Modest, only_on_a_mock};
use cxi_benches::{bare, run};
use cxi_ioctl::Transport;
use cxi_ioctl::abi::service::{
    MEMBER_UID, RSRC_PTE, RSRC_TXQ, SvcAllocCmd, SvcDestroyCmd, SvcFlags,
};
use cxi_mock::{Credentials, InProcess, Nic, NicConfig};

/// As many services as a NIC has numbers for, but one for the series.
const MOST: u32 = 65_000;

/// A service with members, VNIs, traffic classes, limits and reservations.
fn service() -> SvcAllocCmd {
    let mut command = SvcAllocCmd::new();
    let desc = &mut command.svc_desc;
    let flags = SvcFlags::RESTRICTED_MEMBERS
        | SvcFlags::RESTRICTED_VNIS
        | SvcFlags::RESTRICTED_TCS
        | SvcFlags::RESOURCE_LIMITS;
    desc.flags = flags.bits();
    desc.members[0].kind = MEMBER_UID;
    desc.members[0].id = 1000;
    desc.num_vld_vnis = 2;
    desc.vnis[..2].copy_from_slice(&[2000, 2001]);
    desc.tcs = [1, 0, 1, 0, 0];
    for kind in RSRC_PTE..=RSRC_TXQ {
        desc.limits.types[kind].res = 4;
        desc.limits.types[kind].max = 16;
    }
    command
}

/// Allocates and destroys it.
fn cycle(transport: &dyn Transport, allocate: &SvcAllocCmd) {
    let mut response = [0; bare::RESPONSE_ROOM];
    bare::submit(transport, allocate, &mut response).expect("room for one more");
    let mut destroy = SvcDestroyCmd::new();
    let id = response.first_chunk().expect("an id");
    destroy.svc_id = u32::from_ne_bytes(*id);
    bare::submit(transport, &destroy, &mut response).expect("an idle service");
}

fn open() -> InProcess {
    let nic = Nic::new(NicConfig::new()).expect("a mock");
    nic.open().expect("an open file").transport(Credentials::root())
}

fn services(criterion: &mut Criterion) {
    if only_on_a_mock("mock") {
        return;
    }
    let allocate = service();
    let mut group = criterion.benchmark_group("mock");
    for count in run::sizes(&[10_u32, 100, 1000, 10_000, MOST]) {
        let device = cxi_benches::nic::mock().expect("a mock");
        let made = Modest::create(&device, count as usize);
        made.expect("room for them");
        let transport = &**device.transport();
        group.bench_function(BenchmarkId::new("service", count), |bencher| {
            bencher.iter(|| cycle(transport, &allocate));
        });
    }
    group.finish();
}

/// Time from the start of the first of that many threads to the end of the last one, where each
/// does `count` cycles.
fn together(transports: &[InProcess], threads: usize, count: u64) -> Duration {
    let allocate = service();
    let start = Barrier::new(threads);
    let run = |transport: &InProcess| {
        start.wait();
        let began = Instant::now();
        for _ in 0..count {
            cycle(transport, &allocate);
        }
        (began, Instant::now())
    };
    std::thread::scope(|scope| {
        let run = &run;
        let all: Vec<_> = (transports.iter().cycle().take(threads))
            .map(|transport| scope.spawn(move || run(transport)))
            .collect();
        let times = all.into_iter().map(|one| one.join().expect("a thread"));
        let (began, ended) =
            times.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1))).expect("a thread");
        ended.duration_since(began)
    })
}

fn threads(criterion: &mut Criterion) {
    if only_on_a_mock("threads") {
        return;
    }
    let mut group = criterion.benchmark_group("threads");
    for (name, nics, threads) in
        [("1 thread, 1 NIC", 1, 1), ("2 threads, 2 NICs", 2, 2), ("2 threads, 1 NIC", 1, 2)]
    {
        let transports: Vec<_> = (0..nics).map(|_| open()).collect();
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|count| together(&transports, threads, count));
        });
    }
    group.finish();
}

criterion_group!(name = benches; config = run::criterion(); targets = services, threads);
criterion_main!(benches);
