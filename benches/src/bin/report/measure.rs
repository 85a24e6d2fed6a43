//! Runs the benchmarks, and counts system calls.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use cxi_tests::counted::{self, Place, Uncounted};

use super::tables::Counts;

/// The benchmarks, in the order of the document.
const BENCHES: [&str; 11] = [
    "command",
    "list",
    "open",
    "mock",
    "engine",
    "resources",
    "vni_pool",
    "replay",
    "job",
    "served",
    "messages",
];

/// Runs every benchmark; the figures go to `home`, where nothing older stays.
pub(crate) fn all(home: &Path) -> Result<(), String> {
    if home.exists() {
        fs::remove_dir_all(home).map_err(|error| format!("{}: {error}", home.display()))?;
    }
    let failed = |name: &str| format!("the benchmark {name} failed: nothing was written");
    if !bench(&["--no-run"], home)? {
        return Err("the benchmarks do not build".to_owned());
    }
    for name in BENCHES {
        if bench(&["--bench", name], home)? {
            continue;
        }
        let _ = writeln!(std::io::stderr(), "{name} failed and is run once more");
        if !bench(&["--bench", name], home)? {
            return Err(failed(name));
        }
    }
    Ok(())
}

fn bench(arguments: &[&str], home: &Path) -> Result<bool, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["bench", "--quiet", "--package", "cxi-benches"])
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("CRITERION_HOME", home)
        // The document is about the mock.
        .env_remove("CXI_BENCH_DEVICE");
    let status = command
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    Ok(status.success())
}

/// The system calls of each counted call, or why this machine lets nobody count them.
pub(crate) fn system_calls() -> Result<Counts, String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(program);
    child.arg(super::ACT);
    match counted::count(child, Place::Files(directory.path())) {
        Err(Uncounted::Failed(why)) => Err(format!("system calls were not counted: {why}")),
        counts => Ok(counts),
    }
}
