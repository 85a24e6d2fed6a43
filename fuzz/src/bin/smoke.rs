//! Runs the fuzz targets on a stable toolchain: inputs that once failed, then seeds, then mutations.
//!
//! See `fuzz/README.md`.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line program")]

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use cxi_fuzz::mutate::Changes;
use cxi_fuzz::{TARGETS, Target, corpus, target};

const USAGE: &str = "\
usage: smoke [SECONDS] [TARGET...]       run these targets, or all, for so long each
       smoke --repeat FILE TARGET        run one input
       smoke --export DIRECTORY [TARGET...] write the seeds to DIRECTORY/TARGET, for cargo-fuzz
variables: CXI_FUZZ_SECONDS, CXI_FUZZ_SEED (the same number, the same changes)";

/// Far longer than any input takes: one that takes longer hangs.
const HANGS: Duration = Duration::from_secs(60);

/// Targets that run at once; more would not be faster on a small machine.
const AT_ONCE: usize = 2;

/// Inputs that changes start from.
const POOL: usize = 2048;

type Failure = (Vec<u8>, String);

/// Work of a worker, for the thread that supervises it.
type Busy = Mutex<Option<(Target, Instant, Vec<u8>)>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs an input; says what it does with memory, or what went wrong.
fn once(target: Target, input: &[u8]) -> Result<(u64, u64), String> {
    let mut result = Ok(());
    let memory = allocation_counter::measure(|| {
        result = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    });
    if result.is_err() {
        return Err("panicked".to_owned());
    }
    if memory.bytes_max > target.memory {
        let (held, most) = (memory.bytes_max, target.memory);
        return Err(format!("held {held} bytes at once, at most {most} expected"));
    }
    Ok((memory.count_total, memory.bytes_total))
}

fn hold(target: Target, time: Duration, seed: u64, busy: &Busy) -> Result<usize, Failure> {
    let run = |input: &[u8]| {
        *lock(busy) = Some((target, Instant::now(), input.to_vec()));
        let ran = once(target, input);
        *lock(busy) = None;
        ran.map_err(|reason| (input.to_vec(), reason))
    };
    let unreadable = |error: std::io::Error| (Vec::new(), format!("no seeds: {error}"));
    for (_, input) in corpus::regressions(target).map_err(unreadable)? {
        run(&input)?;
    }
    let mut pool = corpus::seeds(target).map_err(unreadable)?;
    pool.push(Vec::new());
    // An input with a new pattern of allocations has probably reached new code.
    let mut heaps = HashSet::new();
    for input in &pool {
        heaps.insert(run(input)?);
    }
    let mut changes = Changes::new(seed);
    let begin = Instant::now();
    let mut runs = pool.len();
    while begin.elapsed() < time {
        let mut input = pool[changes.below(pool.len())].clone();
        let other = &pool[changes.below(pool.len())];
        changes.change(&mut input, other, target.longest);
        let is_new = heaps.insert(run(&input)?);
        if is_new && pool.len() < POOL {
            pool.push(input);
        } else if is_new {
            let at = changes.below(POOL);
            pool[at] = input;
        }
        runs += 1;
    }
    Ok(runs)
}

fn failed(target: Target, input: &[u8], reason: &str) {
    println!("{}: {reason}", target.name);
    match corpus::keep(target, input) {
        Ok(path) => println!(
            "  again: cargo run --profile fuzz --package cxi-fuzz --bin smoke -- --repeat {} {}",
            path.display(),
            target.name
        ),
        Err(error) => println!("  the input cannot be kept: {error}: {input:02x?}"),
    }
}

/// Runs targets, two at a time, and supervises them.
fn run_all(targets: &[Target], time: Duration, seed: u64) -> ExitCode {
    println!("CXI_FUZZ_SEED={seed}");
    let next = AtomicUsize::new(0);
    let failures = AtomicUsize::new(0);
    let busy: [Busy; AT_ONCE] = [const { Mutex::new(None) }; AT_ONCE];
    let work = |busy: &Busy| {
        while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
            match hold(*target, time, seed, busy) {
                Ok(runs) => println!("{}: {runs} inputs", target.name),
                Err((input, reason)) => {
                    failures.fetch_add(1, Ordering::Relaxed);
                    failed(*target, &input, &reason);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = busy.iter().map(|busy| scope.spawn(|| work(busy))).collect();
        while !workers.iter().all(ScopedJoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(100));
            for one in &busy {
                if let Some((target, since, input)) = &*lock(one)
                    && since.elapsed() > HANGS
                {
                    failed(*target, input, "does not end");
                    std::process::exit(1);
                }
            }
        }
    });
    match failures.into_inner() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn repeat(file: &str, name: &str) -> Result<(), String> {
    let target = target(name).ok_or_else(|| format!("no target '{name}'"))?;
    let input = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
    let (count, bytes) = once(target, &input)?;
    println!("{name}: {file}: no failure, {count} allocations of {bytes} bytes");
    Ok(())
}

fn export(directory: &str, targets: &[Target]) -> Result<(), String> {
    for target in targets {
        let directory = Path::new(directory).join(target.name);
        let count = corpus::export(*target, &directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
        println!("{}: {count} inputs", directory.display());
    }
    Ok(())
}

fn chosen(names: &[&str]) -> Result<Vec<Target>, String> {
    if names.is_empty() {
        return Ok(TARGETS.to_vec());
    }
    let find = |name: &&str| target(name).ok_or_else(|| format!("no target '{name}'"));
    names.iter().map(find).collect()
}

fn variable(name: &str) -> Result<Option<u64>, String> {
    let text = std::env::var(name).ok();
    let number =
        |text: String| text.parse().map_err(|_| format!("{name}={text}: expected a number"));
    text.map(number).transpose()
}

fn start(arguments: &[&str]) -> Result<ExitCode, String> {
    match arguments {
        ["--help" | "-h", ..] => println!("{USAGE}"),
        ["--repeat", file, name] => repeat(file, name)?,
        ["--export", directory, names @ ..] => export(directory, &chosen(names)?)?,
        [option, ..] if option.starts_with('-') => return Err(USAGE.to_owned()),
        others => {
            let given = others.first().and_then(|text| text.parse().ok());
            let names = &others[usize::from(given.is_some())..];
            let seconds = given.or(variable("CXI_FUZZ_SECONDS")?).unwrap_or(20);
            let seed = variable("CXI_FUZZ_SEED")?.unwrap_or(1);
            let time = Duration::from_secs(seconds);
            return Ok(run_all(&chosen(names)?, time, seed));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    start(&arguments).unwrap_or_else(|message| {
        eprintln!("{message}");
        ExitCode::FAILURE
    })
}
