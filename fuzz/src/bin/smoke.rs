//! Runs every fuzz target for some seconds on a stable toolchain: seeds, and changes of them.
//!
//! `smoke [SECONDS] [TARGET]`; a crash prints the input as hexadecimal digits and the number that
//! makes the run the same again.
#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cxi_fuzz::{TARGETS, Target};

/// A small generator of changes (xorshift64*): the same number, the same run.
struct Changes(u64);

impl Changes {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(number).unwrap_or(0) % below.max(1)
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.next(256)).unwrap_or(0)
    }

    fn change(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        for _ in 0..=self.next(4) {
            let at = self.next(input.len() + 1);
            match self.next(6) {
                0 => input.insert(at, self.byte()),
                1 if at < input.len() => drop(input.remove(at)),
                2 if at < input.len() => input[at] = self.byte(),
                3 if at < input.len() => input[at] ^= 1 << self.next(8),
                4 => input.truncate(at),
                _ => {
                    let from = self.next(other.len() + 1);
                    let piece = &other[from..];
                    input.splice(at..at, piece.iter().copied());
                }
            }
        }
        input.truncate(4096);
    }
}

fn hold(target: Target, time: Duration, start: u64) -> Result<usize, Vec<u8>> {
    let mut corpus = (target.seeds)();
    corpus.push(Vec::new());
    let mut changes = Changes(start);
    let begin = Instant::now();
    let mut runs = 0;
    while begin.elapsed() < time {
        let mut input = corpus[changes.next(corpus.len())].clone();
        let other = corpus[changes.next(corpus.len())].clone();
        if runs >= corpus.len() {
            changes.change(&mut input, &other);
        }
        if catch_unwind(AssertUnwindSafe(|| (target.run)(&input))).is_err() {
            return Err(input);
        }
        // Inputs that were changed before reach deeper; a few of them are kept.
        if corpus.len() < 256 && changes.next(16) == 0 {
            corpus.push(input);
        }
        runs += 1;
    }
    Ok(runs)
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20);
    let only = arguments.next();
    let start = std::env::var("CXI_FUZZ_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0x9E37_79B9_7F4A_7C15);
    let mut code = ExitCode::SUCCESS;
    for target in TARGETS {
        if only.as_deref().is_some_and(|only| only != target.name) {
            continue;
        }
        match hold(target, Duration::from_secs(seconds), start) {
            Ok(runs) => println!("{}: {runs} inputs in {seconds} s", target.name),
            Err(input) => {
                let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
                println!("{}: crashed (CXI_FUZZ_SEED={start}) on {hex}", target.name);
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}
