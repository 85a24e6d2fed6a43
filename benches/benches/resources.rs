//! One allocation and its free, beside more and more objects of the same kind: flat, or the mock
//! has a rule that looks at all of them.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use cxi::lni::{EventQueueOptions, MapOptions, PtOptions, TgqOptions, TxqOptions};
use cxi::{Device, DeviceMemory, Lni, TrafficClass};
use cxi_benches::mock::{Result, device, lni, modest, vni};

/// Measures `once` beside 10, 100, 1,000 and `most` objects that `keep` made.
fn flat<T>(
    criterion: &mut Criterion,
    name: &str,
    most: usize,
    keep: impl Fn(&Lni) -> Result<T>,
    once: impl Fn(&Device, &Lni) -> Result<()>,
) {
    let mut group = criterion.benchmark_group(name);
    for count in [10, 100, 1000, most]
        .into_iter()
        .filter(|count| *count <= most)
    {
        let device = device().expect("a mock");
        let (_, lni) = lni(&device).expect("an LNI");
        let kept: Result<Vec<T>> = (0..count).map(|_| keep(&lni)).collect();
        let kept = kept.expect("room for them");
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter(|| once(&device, &lni).expect("room for one more"));
        });
        drop(kept);
    }
    group.finish();
}

fn queues(criterion: &mut Criterion) {
    let vni = vni().expect("a VNI");
    let txq = |lni: &Lni| -> Result<_> {
        let profile = lni.alloc_cp(vni, TrafficClass::BestEffort)?;
        Ok(lni.alloc_txq(&profile, &TxqOptions::new(64))?)
    };
    flat(criterion, "TXQ", 1023, txq, |_, lni| {
        txq(lni).map(black_box).map(drop)
    });
    let tgq = |lni: &Lni| -> Result<_> { Ok(lni.alloc_tgq(&TgqOptions::new(64))?) };
    flat(criterion, "TGQ", 511, tgq, |_, lni| {
        tgq(lni).map(black_box).map(drop)
    });
    let eq = |lni: &Lni| -> Result<_> { Ok(lni.alloc_eq(&EventQueueOptions::new(4096))?) };
    flat(criterion, "EQ", 2046, eq, |_, lni| {
        eq(lni).map(black_box).map(drop)
    });
}

fn portals(criterion: &mut Criterion) {
    let pte = |lni: &Lni| -> Result<_> { Ok(lni.alloc_pte(PtOptions::IS_MATCHING, None)?) };
    flat(criterion, "PTE", 2046, pte, |_, lni| {
        pte(lni).map(black_box).map(drop)
    });
    let vni = vni().expect("a VNI");
    let domain = |lni: &Lni| -> Result<_> { Ok(lni.alloc_domain(vni, None)?) };
    flat(criterion, "domain", 509, domain, |_, lni| {
        domain(lni).map(black_box).map(drop)
    });
}

fn memory(criterion: &mut Criterion) {
    let memory = Arc::new(DeviceMemory::new(4096).expect("a page"));
    let map = |lni: &Lni| -> Result<_> { Ok(lni.map_memory(&memory, &MapOptions::new())?) };
    flat(criterion, "MD", 10_000, map, |_, lni| {
        map(lni).map(black_box).map(drop)
    });
    // A counter gives its number back with its LNI only, so the LNI is part of the cycle.
    let counter = |lni: &Lni| -> Result<_> { Ok(lni.alloc_ct()?) };
    flat(criterion, "LNI and CT", 2046, counter, |device, lni| {
        let own = device.alloc_lni(lni.service())?;
        own.alloc_ct()?;
        Ok(())
    });
}

fn services(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("service");
    for count in [10, 100, 1000, 10_000] {
        let device = device().expect("a mock");
        let services = device.services();
        let spec = modest().and_then(|spec| Ok(spec.enabled(false).build()?));
        let spec = spec.expect("a specification");
        for _ in 0..count {
            services.create(&spec).expect("room for it");
        }
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter(|| {
                let id = services.create(&spec).expect("room for one more");
                services.destroy(id).expect("an idle service");
            });
        });
    }
    group.finish();
}

criterion_group!(benches, queues, portals, memory, services);
criterion_main!(benches);
