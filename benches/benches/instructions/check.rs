//! Counts beside those that are stored.

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use cxi_benches::instructions::Counts;
use cxi_benches::mock::Result;

use crate::count;
use crate::series::Series;

/// A count may be so much above the stored one, in percent.
const MORE: f64 = 2.0;

const RENEW: &str = "cargo bench -p cxi-benches --bench instructions -- --renew";

/// Counts, compares and reports; or stores what was counted.
pub(crate) fn check(all: &[Series], whole: bool, renew: bool) -> Result<ExitCode> {
    let Some(valgrind) = count::valgrind() else {
        println!("skipped: valgrind is not installed");
        return Ok(ExitCode::SUCCESS);
    };
    let conditions = conditions();
    let stored = Counts::stored();
    if whole
        && !renew
        && let Ok(stored) = &stored
        && let Some(other) = difference(&stored.conditions, &conditions)
    {
        println!("skipped: {other}");
        return Ok(ExitCode::SUCCESS);
    }
    println!("{} series under {valgrind}", all.len());
    let instructions = count_all(all)?;
    if renew {
        if !whole {
            return Err("--renew is for all series: leave the name out".into());
        }
        let counts = Counts {
            conditions,
            instructions,
        };
        println!("stored in {}", counts.store()?.display());
        return Ok(ExitCode::SUCCESS);
    }
    Ok(report(all, &stored?.instructions, &instructions, whole))
}

/// What counts depend on beside the code.
fn conditions() -> BTreeMap<String, String> {
    let libc = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let libc = libc.map_or_else(
        |_| "not glibc".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    );
    [
        ("rustc", env!("BUILT_BY")),
        ("target", env!("BUILT_FOR")),
        ("profile", env!("BUILT_AS")),
        ("rustflags", env!("BUILT_WITH")),
        ("libc", libc.as_str()),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// Says what is not as it was when the counts were stored.
fn difference(
    stored: &BTreeMap<String, String>,
    here: &BTreeMap<String, String>,
) -> Option<String> {
    let none = String::new();
    here.iter().find_map(|(name, here)| {
        let stored = stored.get(name).unwrap_or(&none);
        (stored != here).then(|| {
            format!(
                "the stored counts are for {name} '{stored}', this is '{here}': counts of two of \
                 them cannot be compared (to store those of this one: {RENEW})"
            )
        })
    })
}

/// Counts every series, as many at a time as there are processors.
fn count_all(all: &[Series]) -> Result<BTreeMap<String, u32>> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    let workers = thread::available_parallelism()?.get();
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(series) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let count =
                        count::count(series).map_err(|error| format!("{}: {error}", series.name));
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    results.push(count.map(|count| (series.name.clone(), count)));
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(results
        .into_iter()
        .collect::<std::result::Result<_, String>>()?)
}

fn report(
    all: &[Series],
    stored: &BTreeMap<String, u32>,
    counted: &BTreeMap<String, u32>,
    whole: bool,
) -> ExitCode {
    let mut bad = Vec::new();
    let mut fewer = 0;
    for series in all {
        let (name, now) = (&series.name, counted[&series.name]);
        let Some(before) = stored.get(name).copied() else {
            println!("{now:>10}         {name}");
            bad.push(format!("{name}: no count is stored, {now} counted"));
            continue;
        };
        let change = 100.0 * (f64::from(now) / f64::from(before) - 1.0);
        println!("{now:>10} {change:>+6.1} % {name}");
        if change > MORE {
            bad.push(format!(
                "{name}: {before} instructions a call are stored, {now} counted: more than \
                 {MORE} % above; where they go: callgrind_annotate {}",
                count::profile(series).display()
            ));
        } else if change < -MORE {
            fewer += 1;
        }
    }
    if whole {
        let gone = stored.keys().filter(|name| !counted.contains_key(*name));
        bad.extend(
            gone.map(|name| format!("{name}: a count is stored, and there is no such series")),
        );
    }
    if fewer > 0 {
        println!("{fewer} series take fewer instructions than stored: keep that with {RENEW}");
    }
    for text in &bad {
        println!("error: {text}");
    }
    if bad.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("If that is meant, store the new counts: {RENEW}");
    ExitCode::FAILURE
}
