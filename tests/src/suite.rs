//! Runs a collection of scenarios.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::archive::File;
use crate::device::Device;
use crate::report::Failure;
use crate::run::run;
use crate::scenario::Scenario;

/// The outcome of a collection.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The number of scenarios that matched their recordings.
    pub passed: usize,
    /// The path and the differences of each scenario that did not match.
    pub failed: Vec<(String, Vec<Failure>)>,
}

impl Summary {
    /// The last line of the output.
    pub fn line(&self) -> String {
        let (passed, failed) = (self.passed, self.failed.len());
        format!("conformance: {passed} passed, {failed} failed")
    }
}

/// Replays each scenario on its own device, in parallel on all processors.
pub fn run_all<D: Device>(files: &[File]) -> Summary {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = run_file::<D>(file);
                    let mut all = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
                    all.push((file.path.clone(), outcome));
                }
            });
        }
    });
    let mut summary = Summary::default();
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.sort_by(|(left, _), (right, _)| left.cmp(right));
    for (path, failures) in outcomes {
        if failures.is_empty() {
            summary.passed += 1;
        } else {
            summary.failed.push((path, failures));
        }
    }
    summary
}

fn run_file<D: Device>(file: &File) -> Vec<Failure> {
    let scenario = match Scenario::parse(&file.json) {
        Ok(scenario) => scenario,
        Err(reason) => return vec![Failure::whole("file", "a scenario", reason)],
    };
    catch_unwind(AssertUnwindSafe(|| run::<D>(&scenario))).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("a panic without a text");
        vec![Failure::whole("device", "no panic", text)]
    })
}
