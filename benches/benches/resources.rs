//! One allocation and its free among more and more objects of the same kind. If the time is not
//! constant, something looks at all of them.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use cxi::lni::{EventQueueOptions, MapOptions, PtOptions, TgqOptions, TxqOptions};
use cxi::{DeviceMemory, Limit, Limits, Resource, TrafficClass};
use cxi_benches::nic::{self, Modest, Result, Workplace, device, vni};
use cxi_benches::run;

/// Measures `once` among 10, 100, 1,000 and `most` objects that `keep` made.
fn flat<T>(
    criterion: &mut Criterion,
    name: &str,
    most: u32,
    keep: impl Fn(&Workplace) -> Result<T>,
    once: impl Fn(&Workplace) -> Result<()>,
) {
    let mut group = criterion.benchmark_group("resources");
    let mut counts = vec![10_u32, 100, 1000];
    counts.retain(|count| *count < most);
    counts.push(most);
    for count in run::sizes(&counts) {
        let place = Workplace::new();
        let kept = place.and_then(|place| {
            let kept: Result<Vec<T>> = (0..count).map(|_| keep(&place)).collect();
            Ok((place, kept?))
        });
        // What was made goes before its LNI.
        let (place, _kept) = match kept {
            Ok(kept) => kept,
            Err(error) if nic::named().is_some() => {
                run::skip(format_args!("{name} among {count}"), error);
                continue;
            }
            Err(error) => panic!("{name} among {count}: {error}"),
        };
        group.bench_function(BenchmarkId::new(name, count), |bencher| {
            bencher.iter(|| once(&place).expect("room for one more"));
        });
    }
    group.finish();
}

/// Objects that are freed when they are dropped.
fn object<T>(
    criterion: &mut Criterion,
    name: &str,
    most: u32,
    make: impl Fn(&Workplace) -> Result<T>,
) {
    flat(criterion, name, most, &make, |place| make(place).map(black_box).map(drop));
}

fn queues(criterion: &mut Criterion) {
    let vni = vni(0).expect("a VNI");
    object(criterion, "TXQ", 1023, |place| {
        let profile = place.lni().alloc_cp(vni, TrafficClass::BestEffort)?;
        Ok(place.lni().alloc_txq(&profile, &TxqOptions::new(64))?)
    });
    object(criterion, "TGQ", 511, |place| Ok(place.lni().alloc_tgq(&TgqOptions::new(64))?));
    object(criterion, "EQ", 2046, |place| {
        Ok(place.lni().alloc_eq(&EventQueueOptions::new(4096))?)
    });
}

fn portals(criterion: &mut Criterion) {
    object(criterion, "PTE", 2046, |place| {
        Ok(place.lni().alloc_pte(PtOptions::IS_MATCHING, None)?)
    });
    let vni = vni(0).expect("a VNI");
    object(criterion, "domain", 509, |place| Ok(place.lni().alloc_domain(vni, None)?));
}

fn memory(criterion: &mut Criterion) {
    let memory = Arc::new(DeviceMemory::new(4096).expect("a page"));
    // The first mapping takes an address context, which the others share.
    object(criterion, "MD", 10_000, |place| {
        Ok(place.lni().map_memory(&memory, &MapOptions::new())?)
    });
    object(criterion, "wait object", 1000, |place| Ok(place.lni().alloc_wait()?));
}

/// An LNI has an RGID and, with its first mapping, its own address context. A counter gives
/// its number back with its LNI only, so the LNI is part of the cycle.
fn lnis(criterion: &mut Criterion) {
    object(criterion, "LNI", 200, |place| Ok(place.device.alloc_lni(place.service)?));
    let memory = Arc::new(DeviceMemory::new(4096).expect("a page"));
    object(criterion, "LNI and AC", 200, |place| {
        let lni = place.device.alloc_lni(place.service)?;
        Ok(lni.map_memory(&memory, &MapOptions::new())?)
    });
    flat(
        criterion,
        "LNI and CT",
        2046,
        |place| Ok(place.lni().alloc_ct()?),
        |place| {
            let lni = place.device.alloc_lni(place.service)?;
            lni.alloc_ct()?;
            Ok(())
        },
    );
}

fn services(criterion: &mut Criterion) {
    let builder = nic::spec().vni(vni(999).expect("a VNI"));
    let modest = builder.clone().limits(Limits::default()).build();
    let modest = modest.expect("a specification");
    let limits = Limits::none()
        .with(Resource::Les, Limit::exactly(64))
        .with(Resource::Tles, Limit::exactly(8));
    let pools = builder.limits(limits).build();
    let pools = pools.expect("a specification");
    let mut group = criterion.benchmark_group("resources");
    for count in run::sizes(&[10_u32, 100, 1000, 10_000]) {
        let device = device().expect("a NIC");
        let _made = match Modest::create(&device, count as usize) {
            Ok(made) => made,
            Err(error) if nic::named().is_some() => {
                run::skip(format_args!("services among {count}"), error);
                continue;
            }
            Err(error) => panic!("{count} services: {error}"),
        };
        for (name, spec) in [("service", &modest), ("service with LEs and TLEs", &pools)] {
            group.bench_function(BenchmarkId::new(name, count), |bencher| {
                let services = device.services();
                bencher.iter(|| {
                    let id = services.create(spec).expect("room for one more");
                    services.destroy(id).expect("an idle service");
                });
            });
        }
    }
    group.finish();
}

criterion_group!(
    name = benches;
    config = run::criterion();
    targets = queues, portals, memory, lnis, services
);
criterion_main!(benches);
