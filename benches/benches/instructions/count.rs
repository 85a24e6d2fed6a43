//! Counting under valgrind's callgrind.
//!
//! gungraun does the same and more. Its baselines are valgrind's own files under `target/`, with
//! the absolute paths of one machine in them, and a runner of the very same version has to be
//! installed beside it; here the counts are a file in the repository that a review shows, and all
//! that is needed is valgrind. So this is the little of it that is wanted: this program runs
//! itself under callgrind, once for each series.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use cxi_benches::mock::Result;

use crate::series::Series;

/// Calls before the count begins.
const WARM: u32 = 20;

/// Calls that are counted, so that what happens now and then is part of a call's cost.
const CALLS: u32 = 100;

/// The version of valgrind; `None` without one.
pub(crate) fn valgrind() -> Option<String> {
    let output = Command::new("valgrind").arg("--version").output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| version.trim().to_owned())
}

/// How often a series with threads is counted. The least counts: threads that wait for each other
/// take some more instructions, or not.
const THREADED: u32 = 4;

/// Where callgrind's file of a series is, for `callgrind_annotate`.
pub(crate) fn profile(series: &Series) -> PathBuf {
    let name = series
        .name
        .replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "-");
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.callgrind"))
}

/// Instructions a call of a series.
pub(crate) fn count(series: &Series) -> Result<u32> {
    let runs = if series.threads { THREADED } else { 1 };
    let counts: Vec<u32> = (0..runs)
        .map(|_| count_once(series))
        .collect::<Result<_>>()?;
    Ok(counts.into_iter().min().unwrap_or_default())
}

/// Above these lengths the C library copies and clears memory with one instruction that callgrind
/// counts once for each byte.
const WITHOUT_REP: &str =
    "glibc.cpu.x86_rep_movsb_threshold=1073741824:glibc.cpu.x86_rep_stosb_threshold=1073741824";

/// Counts once, in a process of its own.
///
/// Environment and working directory are the same everywhere: they lie on the stack, and what
/// copies memory looks at addresses. Callgrind itself has no random addresses.
fn count_once(series: &Series) -> Result<u32> {
    let program = std::env::current_exe()?;
    let (directory, name) = (program.parent(), program.file_name());
    let (Some(directory), Some(name)) = (directory, name) else {
        return Err("this program has no path".into());
    };
    let profile = profile(series);
    // The first one counts in one thread alone and keeps the tree of calls; the others count in
    // all threads, and put everything down to one function.
    let part: &[&str] = if series.threads {
        &[
            "--zero-before=instructions::counted",
            "--dump-before=instructions::finished",
        ]
    } else {
        &["--toggle-collect=instructions::counted"]
    };
    let mut out = std::ffi::OsString::from("--callgrind-out-file=");
    out.push(&profile);
    let output = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind"])
        .args(part)
        .arg(out)
        .arg(Path::new(".").join(name))
        .args(["--count", &series.name])
        .current_dir(directory)
        .env_clear()
        .env("GLIBC_TUNABLES", WITHOUT_REP)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    if series.threads {
        // What was written at the program's end is of no use.
        let mut dump = profile.clone().into_os_string();
        dump.push(".1");
        fs::rename(dump, &profile)?;
    }
    Ok(u32::try_from(total(&profile)?.div_ceil(CALLS.into()))?)
}

fn total(profile: &Path) -> io::Result<u64> {
    let text = fs::read_to_string(profile)?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    total.and_then(|total| total.parse().ok()).ok_or_else(|| {
        let text = format!("no total in {}", profile.display());
        io::Error::new(io::ErrorKind::InvalidData, text)
    })
}

/// What runs under valgrind.
pub(crate) fn run(series: &Series) -> Result<()> {
    let mut act = series.prepare()?;
    for _ in 0..WARM {
        act();
    }
    crate::counted(CALLS, &mut act);
    crate::finished();
    Ok(())
}
