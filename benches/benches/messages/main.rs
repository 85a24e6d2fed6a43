//! Messages between processes of a served node, next to a lower bound: two processes that write into
//! each other's memory (`process_vm_writev`).
//!
//! This program starts a node and runs itself on it; there it starts itself again, as the peer of
//! each series.

#![allow(missing_docs, reason = "a benchmark has no users")]

mod peer;

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use cxi_benches::run;
use peer::{Peer, Puts, WORD, Writes};

/// Part of this program: unset at the start; then it measures, or is a peer.
const PART: &str = "CXI_BENCH_MESSAGES";
const MEASURE: &str = "measure";
const LINE: usize = 64;
const LARGE: usize = 1 << 20;

fn main() -> ExitCode {
    let part = std::env::var(PART).unwrap_or_default();
    if part == MEASURE {
        let mut criterion = run::criterion();
        let measured = measure(&mut criterion);
        criterion.final_summary();
        return ended(measured);
    }
    if !part.is_empty() {
        return ended(peer::run(&part));
    }
    let open = ["--set", "disable_default_svc=0"];
    run::on_a_node("messages", &open, (PART, MEASURE))
}

fn ended(done: Result<(), peer::Problem>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            let _ = writeln!(std::io::stderr(), "messages: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn measure(criterion: &mut Criterion) -> Result<(), peer::Problem> {
    // The way there and back.
    let mut group = criterion.benchmark_group("round trip");
    for bytes in run::sizes(&[LINE as u64, 4096, LARGE as u64]) {
        let bytes = usize::try_from(bytes)?;
        let mut writes = Writes::new(bytes)?;
        group.bench_function(BenchmarkId::new("process_vm_writev", bytes), |b| {
            b.iter(|| writes.exchange());
        });
        drop(writes);
        let mut puts = Puts::new("puts", bytes)?;
        group.bench_function(BenchmarkId::new("mock", bytes), |b| {
            b.iter(|| puts.exchange().expect("an answer"));
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("stream");
    group.throughput(Throughput::Bytes(LARGE as u64));
    let writes = Writes::new(LARGE)?;
    group.bench_function("process_vm_writev", |b| b.iter(|| writes.write()));
    drop(writes);
    let mut puts = Puts::new("sink", LARGE)?;
    group.bench_function("mock", |b| {
        b.iter_custom(|count| timed(|| puts.stream(count).expect("all puts end")));
    });
    drop(puts);
    group.finish();

    processes(criterion, "processes", WORD, &[1, 8, 64])?;
    processes(criterion, "copies", LARGE, &[1, 2, 4])
}

/// Messages of processes that send to themselves at the same time, by the number of processes.
fn processes(
    criterion: &mut Criterion,
    name: &str,
    bytes: usize,
    numbers: &[u64],
) -> Result<(), peer::Problem> {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Bytes(bytes as u64));
    for processes in run::sizes(numbers) {
        let mut peers = Vec::new();
        for _ in 0..processes {
            peers.push(Peer::start("alone", &[&bytes])?.0);
        }
        // The number of messages that all of them send together.
        group.bench_function(BenchmarkId::new("message", processes), |b| {
            b.iter_custom(|count| {
                let each = count.div_ceil(processes);
                timed(|| {
                    for peer in &mut peers {
                        peer.say(each).expect("the peer runs");
                    }
                    for peer in &mut peers {
                        peer.hear().expect("the peer has sent");
                    }
                })
            });
        });
    }
    group.finish();
    Ok(())
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}
