//! Runner of a series.

use std::fmt;
use std::io::Write;
use std::process::{Command, ExitCode};
use std::time::Duration;

use criterion::Criterion;

use crate::nic;

/// Exit status of a server where the machine lacks something.
const MISSING: i32 = 77;

/// Settings of every series: short, as there are many, and the fastest sample is what counts.
#[must_use]
pub fn criterion() -> Criterion {
    nic::keep_if_asked();
    nic::take_option();
    Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(700))
        .nresamples(2000)
        .configure_from_args()
}

/// Returns whether each series is only to be tried, as by `cargo test`.
#[must_use]
pub fn only_tried() -> bool {
    !std::env::args().any(|argument| argument == "--bench")
}

/// The sizes of a series, smallest first: all of them on a mock, those that leave room for others
/// on a NIC, the smallest where a series is only tried.
pub fn sizes<N: Copy + Into<u64>>(all: &[N]) -> impl Iterator<Item = N> {
    const ON_A_NIC: u64 = 100;
    let count = if only_tried() { 1 } else { all.len() };
    let fits = |size: &N| nic::named().is_none() || (*size).into() <= ON_A_NIC;
    all.iter().copied().take(count).filter(fits)
}

/// Says what is not measured, and why.
pub fn skip(series: impl fmt::Display, why: impl fmt::Display) {
    let _ = writeln!(std::io::stderr(), "SKIPPED {series}: {why}");
}

/// Variable of the process that serves a node.
const NODE: &str = "CXI_BENCH_NODE";

/// Runs this program on a node that it serves itself, in another process, with a variable that says
/// which part it has there.
///
/// # Panics
///
/// This program cannot be started again.
#[must_use]
pub fn on_a_node(series: &str, options: &[&str], part: (&str, &str)) -> ExitCode {
    if std::env::var_os(NODE).is_some() {
        return cxi_mockd::main();
    }
    nic::take_option();
    if nic::only_on_a_mock(series) {
        return ExitCode::SUCCESS;
    }
    let this = std::env::current_exe().expect("this program");
    let mut node = Command::new(&this);
    node.env(NODE, "1").arg("run").args(options);
    let part = format!("{}={}", part.0, part.1);
    node.args(["--", "env", "--unset", NODE, &part]).arg(this);
    node.args(std::env::args_os().skip(1));
    match node.status().expect("this program").code() {
        Some(0) => ExitCode::SUCCESS,
        Some(MISSING) => {
            skip(series, "no node can be served here");
            ExitCode::SUCCESS
        }
        _ => ExitCode::FAILURE,
    }
}
