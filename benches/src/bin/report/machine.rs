//! What the figures were measured on.

use std::fs;
use std::process::Command;

use super::results::Results;

/// A list for the document.
pub(crate) fn describe(results: &Results) -> String {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "- processor: {}, {cpus} usable\n- kernel: Linux {}\n- compiler: {}\n- noise: in the \
         middle of all functions the median sample took {:.0} % longer than the fastest",
        processor().unwrap_or_else(|| "unknown".to_owned()),
        // Without what a distribution or a site adds.
        kernel.trim().split(['-', '+']).next().unwrap_or_default(),
        compiler().unwrap_or_else(|| "unknown".to_owned()),
        results.noise() * 100.0,
    )
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn compiler() -> Option<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    // Without hash and date.
    Some(
        text.split_whitespace()
            .take(2)
            .collect::<Vec<_>>()
            .join(" "),
    )
}
