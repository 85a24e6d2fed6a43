//! The data path in software, next to a copy of the same bytes: an 8-byte put, a 64-byte message
//! that matches the last of some list entries, and 1 MiB.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use cxi_benches::engine::Program;
use cxi_benches::run;

const SMALL: u32 = 8;
const MESSAGE: u32 = 64;
const LARGE: u32 = 1 << 20;

fn moved(c: &mut Criterion) {
    let mut group = c.benchmark_group("engine");
    for bytes in [SMALL, MESSAGE, LARGE] {
        group.throughput(Throughput::Bytes(bytes.into()));
        let (from, mut to) = (vec![1_u8; bytes as usize], vec![0_u8; bytes as usize]);
        group.bench_function(BenchmarkId::new("copy", bytes), |b| {
            b.iter(|| black_box(&mut to).copy_from_slice(black_box(&from)));
        });
        let mut program = Program::new(bytes, 1);
        group.bench_function(BenchmarkId::new("put", bytes), |b| b.iter(|| program.put()));
    }
    group.finish();
}

fn matched(c: &mut Criterion) {
    let mut group = c.benchmark_group("engine_match");
    for entries in run::sizes(&[2_u16, 100, 10_000]) {
        group.throughput(Throughput::Elements(entries.into()));
        let mut program = Program::new(MESSAGE, entries);
        group.bench_function(BenchmarkId::new("message", entries), |b| {
            b.iter(|| program.put());
        });
        let mut program = Program::with_wildcards(MESSAGE, entries);
        group.bench_function(BenchmarkId::new("wildcards", entries), |b| {
            b.iter(|| program.put());
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = run::criterion();
    targets = moved, matched
}
criterion_main!(benches);
