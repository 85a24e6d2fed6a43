//! A storm that looks for harm: whoever can change services of a node does so in any order, is killed,
//! fails, loses records and pools, and reboots. Nobody's service is destroyed by another, no VNI is used
//! by two users, everything of an ended job goes, and nothing waits for longer than it may.
//!
//! 300 sequences; `CXI_STORM_SEQUENCES` says how many, `CXI_STORM_FAULTS` how many faults are enough, and
//! `CXI_STORM_SEED` repeats one sequence.

mod hands;
mod model;
mod step;
mod world;

use std::env;
use std::fmt::Write as _;
use std::io::{Write as _, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cxi_test_kit::{Pod, skip};
use step::{Dice, PODS, Step};
use world::World;

/// Time between two reports of the long run.
const REPORT: Duration = Duration::from_secs(60);

/// The harm that a sequence does.
fn harm(steps: &[Step], pods: &Arc<Vec<Pod>>) -> Option<String> {
    let world = World::new(pods);
    let run = || {
        steps.iter().try_for_each(|step| World::step(&world, step))?;
        World::calm(&world)
    };
    run().err()
}

/// Number of times that a shorter sequence is tried: what NICs do at the same time is not the same each time.
const TRIES: usize = 3;

/// The shortest part of a sequence that still does harm, and which.
fn shortest(mut steps: Vec<Step>, mut why: String, pods: &Arc<Vec<Pod>>) -> (Vec<Step>, String) {
    let harm = |steps: &[Step]| (0..TRIES).find_map(|_| harm(steps, pods));
    let mut at = 0;
    while at < steps.len() {
        let mut fewer = steps.clone();
        fewer.remove(at);
        let mut calmer = steps.clone();
        let had_mishap = calmer[at].mishap.take().is_some();
        if let Some(harm) = harm(&fewer) {
            (steps, why, at) = (fewer, harm, 0);
        } else if let Some(harm) = had_mishap.then(|| harm(&calmer)).flatten() {
            (steps, why) = (calmer, harm);
        } else {
            at += 1;
        }
    }
    (steps, why)
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn nobody_harms_anybody() {
    let pods: Vec<Pod> = (0..PODS).map_while(|_| Pod::start()).collect();
    if pods.len() < PODS {
        skip("no network namespace can be made here: there are no pods in it");
    }
    let pods = Arc::new(pods);
    let (first, count) = match number("CXI_STORM_SEED") {
        Some(seed) => (seed, 1),
        None => (0, number("CXI_STORM_SEQUENCES").unwrap_or(300)),
    };
    let (next, begun) = (AtomicU64::new(first), Instant::now());
    let most = number("CXI_STORM_FAULTS").unwrap_or(1);
    let found = AtomicU64::new(0);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for thread in 0..threads {
            let (next, found, pods) = (&next, &found, &pods);
            scope.spawn(move || {
                let mut reported = Instant::now();
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= first + count || found.load(Ordering::SeqCst) >= most {
                        break;
                    }
                    let steps = Dice::new(seed).steps();
                    if let Some(why) = harm(&steps, pods) {
                        let (steps, why) = shortest(steps, why, pods);
                        report(seed, &steps, &why);
                        found.fetch_add(1, Ordering::SeqCst);
                    }
                    if thread == 0 && reported.elapsed() > REPORT {
                        reported = Instant::now();
                        let _ =
                            writeln!(stderr(), "{} sequences, {:?}", seed - first, begun.elapsed());
                    }
                }
            });
        }
    });
    let _ = writeln!(stderr(), "{count} sequences took {:?}", begun.elapsed());
    assert_eq!(found.into_inner(), 0, "sequences did harm");
}

/// Says at once what was found, as a long run may be stopped.
fn report(seed: u64, steps: &[Step], why: &str) {
    let mut said = format!("{why}, after:\n");
    for step in steps {
        let _ = writeln!(said, "  {step:?}");
    }
    let command = "cargo test --package cxi-cni --test storm -- --nocapture";
    let _ = writeln!(stderr(), "{said}CXI_STORM_SEED={seed} {command}");
}
