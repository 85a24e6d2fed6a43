//! Instructions a call of the hot paths, counted under valgrind and compared with those stored in
//! `benches/instructions.toml`: more than 2 % above them is a failure.
//!
//! ```text
//! cargo bench -p cxi-benches --bench instructions              check all series
//! cargo bench -p cxi-benches --bench instructions -- mock/     print those whose name has this
//! cargo bench -p cxi-benches --bench instructions -- --renew   store what was counted
//! ```

#![allow(clippy::print_stdout, reason = "a program that reports")]

mod canned;
mod check;
mod count;
mod operations;
mod pure;
mod series;

use std::process::ExitCode;

use cxi_benches::mock::Result;
use series::Act;

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(code) => code,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: impl Iterator<Item = String>) -> Result<ExitCode> {
    let (mut bench, mut renew, mut count_one, mut part) = (false, false, false, None);
    for argument in arguments {
        match argument.as_str() {
            "--bench" => bench = true,
            "--renew" => renew = true,
            "--count" => count_one = true,
            _ if argument.starts_with('-') => {
                return Err(format!("unknown option {argument}: expected --renew").into());
            }
            _ => part = Some(argument),
        }
    }
    let mut all = series::all();
    if count_one {
        let found = all
            .iter()
            .find(|series| Some(&series.name) == part.as_ref());
        count::run(found.ok_or("no such series")?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let whole = part.is_none();
    all.retain(|series| part.as_ref().is_none_or(|part| series.name.contains(part)));
    if !bench {
        // `cargo test --benches`: whether they run is all that is asked.
        for series in &all {
            series.prepare().map(|mut act| act())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    check::check(&all, whole, renew)
}

/// What is counted: from here to [`finished`].
#[inline(never)]
fn counted(calls: u32, act: &mut Act) {
    for _ in 0..calls {
        act();
    }
}

#[inline(never)]
fn finished() {
    std::hint::black_box(());
}
