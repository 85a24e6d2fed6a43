//! Instructions of the hot paths, counted under valgrind's callgrind by gungraun.
//!
//! Counts depend on the code, the compiler and the C library, and on nothing else. A limit is the
//! count when it was set, plus a tenth: raise it only with a reason in the commit.
//! Needs the feature `instructions`, valgrind, and `gungraun-runner` of gungraun's version.

#![allow(missing_docs, unused_qualifications, reason = "gungraun's macros make such items")]

use std::hint::black_box;
use std::sync::Arc;

use cxi::lni::{EventQueueOptions, MapOptions};
use cxi::{
    Device, DeviceMemory, Limit, Limits, Lni, Member, Resource, ServiceId, ServiceSpec, Services,
    TrafficClass, TrafficClasses, Vni,
};
use cxi_benches::engine::Program;
use cxi_benches::nic::{Workplace, device, vni};
use cxi_ioctl::Errno;
use cxi_job::environment::SlingshotEnv;
use cxi_job::{Filter, JobRequest, Node, ReleaseOptions, ReleaseStatus};
use cxi_mock::{Credentials, MockNode, NicConfig};
use cxi_site::pool::{PoolConfig, Timestamp, VniPool, VniRequest};
use cxi_site::{IdSet, JobId, NodeName};
use gungraun::prelude::*;
use gungraun::{Callgrind, EventKind};

/// Calls before the count begins.
const WARM: u32 = 20;

/// Calls that are counted, so that occasional work is part of the cost of a call.
const CALLS: u32 = 100;

/// Something to call repeatedly, each time at the same cost.
type Act = Box<dyn FnMut()>;

fn at_most(instructions_per_call: u64) -> LibraryBenchmarkConfig {
    let limit = instructions_per_call * u64::from(CALLS);
    let mut callgrind = Callgrind::default();
    callgrind.hard_limits([(EventKind::Ir, limit)]);
    let mut config = LibraryBenchmarkConfig::default();
    // The C library copies and clears more than this with one instruction that callgrind counts
    // once per byte.
    let without_rep = "glibc.cpu.x86_rep_movsb_threshold=1073741824:\
                       glibc.cpu.x86_rep_stosb_threshold=1073741824";
    config.env("GLIBC_TUNABLES", without_rep);
    config.tool(callgrind);
    config
}

fn warm(act: impl FnMut() + 'static) -> Act {
    let mut act: Act = Box::new(act);
    for _ in 0..WARM {
        act();
    }
    act
}

fn repeat(mut act: Act) -> Act {
    for _ in 0..CALLS {
        act();
    }
    act
}

/// A job's service: one user, one VNI, two classes, limits that fit a NIC often.
fn spec() -> ServiceSpec {
    let limit = Limit::new(2, 64).expect("a limit");
    let limits = [Resource::Txqs, Resource::Tgqs, Resource::Eqs, Resource::Cts]
        .into_iter()
        .fold(Limits::none(), |limits, resource| limits.with(resource, limit));
    let spec = ServiceSpec::builder()
        .member(Member::Uid(0))
        .vni(vni(0).expect("a VNI"))
        .traffic_classes(TrafficClasses::BEST_EFFORT | TrafficClasses::LOW_LATENCY)
        .limits(limits);
    spec.build().expect("a specification")
}

/// Runs `act` on a service of a mock NIC.
fn service(act: impl Fn(&Services, ServiceId, &ServiceSpec) + 'static) -> Act {
    let services = device().expect("a mock").services();
    let spec = spec();
    let id = services.create(&spec).expect("room for a service");
    warm(move || act(&services, id, &spec))
}

/// Runs `act` on an LNI of a mock NIC.
fn below(act: impl Fn(&Lni) + 'static) -> Act {
    let place = Workplace::new().expect("an LNI");
    warm(move || act(place.lni()))
}

fn create_and_destroy(services: Services) -> Act {
    let spec = spec();
    warm(move || {
        let id = services.create(&spec).expect("room for a service");
        services.destroy(id).expect("an idle service");
    })
}

/// The services of a NIC with room for one more only, or with ten thousand.
fn full() -> Services {
    let services = device().expect("a mock").services();
    let none = Limit::new(0, 0).expect("a limit");
    let mut last = None;
    for number in 0..10_000 {
        let spec = ServiceSpec::builder()
            .vni(Vni::new(2000 + number).expect("a VNI"))
            .limits(Limits::none().with(Resource::Tles, none))
            .enabled(false);
        match (services.create(&spec.build().expect("a service")), last) {
            (Ok(id), _) => last = Some(id),
            (Err(error), Some(last)) if error.errno() == Errno::ENOSPC => {
                services.destroy(last).expect("an idle service");
                break;
            }
            (Err(error), _) => panic!("{error}"),
        }
    }
    services
}

fn list_of_64() -> Act {
    let services = device().expect("a mock").services();
    // The default service is one of them.
    for _ in 1..64 {
        services.create(&spec()).expect("room for a service");
    }
    warm(move || {
        let list = services.list().expect("a list");
        assert_eq!(list.len(), 64);
    })
}

#[library_benchmark]
#[bench::create_destroy(args = (create_and_destroy(device().unwrap().services())), config = at_most(9_450))]
#[bench::create_destroy_on_a_full_nic(args = (create_and_destroy(full())), config = at_most(16_700))]
#[bench::get(args = (service(|services, id, _| {
    black_box(services.get(id).expect("a service"));
})), config = at_most(1_300))]
#[bench::usage(args = (service(|services, id, _| {
    black_box(services.usage(id).expect("a service"));
})), config = at_most(1_500))]
#[bench::enable(args = (service(|services, id, _| {
    services.set_enabled(id, true).expect("an idle service");
})), config = at_most(2_450))]
#[bench::update(args = (service(|services, id, spec| {
    services.update(id, spec).expect("an idle service");
})), config = at_most(3_700))]
#[bench::list_of_64(args = (list_of_64()), config = at_most(19_200))]
fn services(act: Act) -> Act {
    repeat(act)
}

fn alloc_lni(then: impl Fn(&Lni) + 'static) -> Act {
    let place = Workplace::new().expect("a service");
    warm(move || then(&place.device.alloc_lni(place.service).expect("an LNI")))
}

fn map_memory() -> Act {
    let memory = Arc::new(DeviceMemory::new(4096).expect("a page"));
    below(move |lni| {
        let md = lni.map_memory(&memory, &MapOptions::new());
        black_box(md.expect("a mapping"));
    })
}

#[library_benchmark]
#[bench::lni(args = (alloc_lni(|_| ())), config = at_most(3_900))]
#[bench::lni_and_8_pids(args = (alloc_lni(|lni| {
    black_box(lni.reserve_pids(vni(0).expect("a VNI"), None, 8).expect("PIDs"));
})), config = at_most(13_600))]
#[bench::lni_and_ct(args = (alloc_lni(|lni| {
    black_box(lni.alloc_ct().expect("a counter"));
})), config = at_most(10_700))]
#[bench::cp(args = (below(|lni| {
    let vni = vni(0).expect("a VNI");
    black_box(lni.alloc_cp(vni, TrafficClass::BestEffort).expect("a CP"));
})), config = at_most(5_600))]
#[bench::domain(args = (below(|lni| {
    black_box(lni.alloc_domain(vni(0).expect("a VNI"), None).expect("a domain"));
})), config = at_most(4_050))]
#[bench::eq(args = (below(|lni| {
    black_box(lni.alloc_eq(&EventQueueOptions::new(4096)).expect("an event queue"));
})), config = at_most(11_600))]
#[bench::md(args = (map_memory()), config = at_most(5_200))]
fn alloc_and_free(act: Act) -> Act {
    repeat(act)
}

fn program(mut program: Program) -> Act {
    warm(move || program.put())
}

fn region(others: u32) -> Act {
    let mut program = Program::new(8, 1).with_regions(others);
    warm(move || program.add_and_remove_region())
}

#[library_benchmark]
#[bench::put_of_8_bytes(args = (program(Program::new(8, 1))), config = at_most(8_000))]
#[bench::put_among_10_000_regions(args = (program(Program::new(8, 1).with_regions(10_000))), config = at_most(8_500))]
#[bench::region_among_10(args = (region(10)), config = at_most(1_850))]
#[bench::region_among_10_000(args = (region(10_000)), config = at_most(5_100))]
#[bench::message_of_2_entries(args = (program(Program::new(64, 2))), config = at_most(8_100))]
#[bench::message_of_10_000_entries(args = (program(Program::new(64, 10_000))), config = at_most(9_050))]
#[bench::message_of_10_000_wildcards(args = (program(Program::with_wildcards(64, 10_000))), config = at_most(127_500))]
fn engine(act: Act) -> Act {
    repeat(act)
}

const IDS: &str = "1024-2047,3000,4000-5000,60000-65535";

const VARIABLES: [(&str, &str); 4] = [
    ("SLINGSHOT_VNIS", "4034,4035"),
    ("SLINGSHOT_DEVICES", "cxi0,cxi1,cxi2,cxi3"),
    ("SLINGSHOT_SVC_IDS", "11,11,12,11"),
    ("SLINGSHOT_TCS", "0xa"),
];

fn parse_environment() {
    let value = |name: &str| VARIABLES.iter().find(|(key, _)| *key == name);
    let parsed = SlingshotEnv::parse(|name| Some(black_box(value(name)?).1.into()));
    black_box(parsed.expect("what a scheduler sets"));
}

fn print_ids() -> Act {
    let set: IdSet = IDS.parse().expect("an id set");
    warm(move || drop(black_box(black_box(&set).to_string())))
}

fn half_full_pool() -> Act {
    const VNIS: u32 = 4096;
    let vnis = format!("1024-{}", 1023 + VNIS).parse().expect("an id set");
    let mut pool = VniPool::new(PoolConfig::new(vnis)).expect("a pool");
    let (one, node) = (VniRequest::vnis(1), NodeName::new("node1").expect("a name"));
    let nodes = [node.clone()];
    let now = Timestamp::from_millis;
    for number in 0..VNIS / 2 {
        let job = JobId::new(format!("old{number}")).expect("a job id");
        let _ = pool.reserve(&job, &one, now(0)).expect("a VNI");
    }
    let new = JobId::new("new").expect("a job id");
    warm(move || {
        black_box(pool.reserve(&new, &one, now(0)).expect("a VNI").result);
        let _ = pool.release(&new, &nodes, now(1)).expect("released");
        let _ = pool.confirm(&new, &node, now(2)).expect("confirmed");
    })
}

/// With one NIC, no thread is started.
fn allocate_and_release() -> Act {
    let mock = MockNode::with_nics(1, &NicConfig::new()).expect("a node");
    let devices = mock.nics().iter().map(|nic| {
        let file = nic.open().expect("an open file");
        let file = file.transport(Credentials::root());
        Device::cxi0(Arc::new(file))
    });
    let node = Node::from_devices(devices);
    let vni = Vni::new(4034).expect("a VNI");
    let request = JobRequest::builder().uid(1000).vni(vni).build();
    let request = request.expect("a request");
    warm(move || {
        black_box(node.allocate(&request).expect("room for a job"));
        let filter = Filter::vnis([vni]).uid(1000);
        let release = node.release(&filter, &ReleaseOptions::once());
        assert_eq!(release.status(), ReleaseStatus::Done, "{release}");
    })
}

#[library_benchmark]
#[bench::pool_half_full(args = (half_full_pool()), config = at_most(9_300))]
#[bench::parse_ids(args = (warm(|| {
    black_box(black_box(IDS).parse::<IdSet>().expect("an id set"));
})), config = at_most(7_500))]
#[bench::print_ids(args = (print_ids()), config = at_most(11_600))]
#[bench::parse_environment(args = (warm(parse_environment)), config = at_most(8_250))]
#[bench::allocate_and_release(args = (allocate_and_release()), config = at_most(34_000))]
fn job(act: Act) -> Act {
    repeat(act)
}

library_benchmark_group!(name = hot_paths, benchmarks = [services, alloc_and_free, engine, job]);
main!(library_benchmark_groups = hot_paths);
