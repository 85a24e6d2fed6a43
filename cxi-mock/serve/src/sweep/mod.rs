//! Every failure of every command of a program, each on another node: `cxi-mock sweep`.
//!
//! The process that the user started serves no node. For each run, it starts itself again with the
//! same arguments and `--case`; that process serves the node, runs the program and writes what it
//! observed.

mod case;
mod junit;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, io};

use clap::{Args, ValueEnum};
use cxi_mock::{
    Case, Errnos, Failures, Finding, Observed, Pairs, SweepError, SweepOptions, SweepReport,
};
use parking_lot::Mutex;
use serde_json::json;
use tempfile::TempDir;

use super::cluster::MOST_NODES;
use super::error::{Doing as _, EXIT_MISSING, ServeError, print, say, show_progress};
use super::launch::{Program, SELF};
use super::setup::NicArguments;

/// Exit status if there are findings.
const EXIT_FINDINGS: u8 = 1;
/// Time that a node may take in addition to the program and what follows it.
const GRACE: Duration = Duration::from_secs(60);
/// Interval at which a run is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// Files in the directory of a case.
const FAILURES: &str = "failures";
const OBSERVED: &str = "observed.json";
const OUTPUT: &str = "output";

/// A choice of the errnos that commands return.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum ErrnoChoice {
    /// Those of a correct command: full, busy, taken, or the NIC is gone
    #[default]
    Likely,
    /// Every one that the driver of this release can return
    All,
}

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "options of a command")]
pub(crate) struct SweepArguments {
    /// Number of nodes of a cluster for each run; the program runs on n1 and reaches the others by
    /// `cxi-mock rsh` [default: one node that is no cluster]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(MOST_NODES)))]
    nodes: Option<u16>,
    #[command(flatten)]
    nics: NicArguments,
    /// Run programs under your own user ID, without privileges (ordinary users only)
    #[arg(long)]
    as_user: bool,
    /// Errnos that commands return
    #[arg(long, value_enum, default_value_t)]
    errnos: ErrnoChoice,
    /// Also kill the process that sends a command, before and after it
    #[arg(long)]
    kill: bool,
    /// Also carry commands out late
    #[arg(long)]
    delay: bool,
    /// Delay of late commands
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "2s")]
    late: Duration,
    /// Also remove the NIC at a command
    #[arg(long)]
    unplug: bool,
    /// Also run this shell command before a command is carried out, as another process would
    #[arg(long, value_name = "COMMAND")]
    between: Option<String>,
    /// After the single failures, also random pairs of them
    #[arg(long)]
    pairs: bool,
    /// Time for which pairs are tried
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration, default_value = "10m")]
    time: Duration,
    /// Seed of the random choice of pairs
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Only this failure, as it is reported, such as 17:SVC_ALLOC:ENOSPC; several for one run are
    /// joined by +
    #[arg(long, value_name = "FAILURE")]
    only: Vec<Failures>,
    /// Runs at a time [default: number of processors]
    #[arg(long, value_name = "K", default_value_t = 0, hide_default_value = true)]
    jobs: usize,
    /// Time that the program may take, and each command after it
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "60s")]
    timeout: Duration,
    /// Shell command on the node after each run, without failures: what cleans up after the program
    #[arg(long, value_name = "COMMAND")]
    after: Option<String>,
    /// Shell command on the node after that, which must succeed
    #[arg(long, value_name = "COMMAND")]
    check: Option<String>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Also write the report as JUnit's XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Be a run
    #[arg(long, value_name = "DIR", hide = true)]
    case: Option<PathBuf>,
    #[command(flatten)]
    program: Program,
}

impl SweepArguments {
    pub(crate) fn run(self) -> Result<u8, ServeError> {
        if let Some(directory) = self.case.clone() {
            return case::run(self, &directory);
        }
        let junit = self.junit.as_deref().map(create).transpose()?;
        let runs = Runs::new(&self)?;
        let progress = |case: Case<'_>| {
            for Finding { failures, kind, text, .. } in case.findings {
                show_progress(format_args!(""));
                say(format_args!("{failures}: {kind}: {text}"));
            }
            let (done, failures) = (case.done, case.failures);
            match case.all {
                Some(all) => show_progress(format_args!("Run {done} of {all}: {failures}")),
                None => show_progress(format_args!("Run {done}: {failures}")),
            }
        };
        let report = self.options().run(|failures| runs.execute(failures), progress);
        show_progress(format_args!(""));
        let report = match report {
            Ok(report) => report,
            Err(error) => {
                return Err(runs.missing().unwrap_or(ServeError::Input(error.to_string())));
            }
        };
        if let Some((path, mut file)) = junit {
            let written = file.write_all(junit::of(&report).as_bytes());
            written.doing(|| format!("write {}", path.display()))?;
        }
        self.print(&report);
        Ok(if report.findings.is_empty() { 0 } else { EXIT_FINDINGS })
    }

    fn options(&self) -> SweepOptions {
        let mut options = SweepOptions::default();
        options.errnos = match self.errnos {
            ErrnoChoice::Likely => Errnos::Likely,
            ErrnoChoice::All => Errnos::All,
        };
        options.kill = self.kill;
        options.delay = self.delay;
        options.unplug = self.unplug;
        options.between = self.between.is_some();
        options.pairs = self.pairs.then_some(Pairs { time: self.time, seed: self.seed });
        options.only.clone_from(&self.only);
        options.jobs = self.jobs;
        options.cleans_up = self.after.is_some();
        options
    }

    fn print(&self, report: &SweepReport) {
        if self.json {
            return print(&json!(report));
        }
        let mut text = report.to_string();
        if !report.findings.is_empty() {
            text.push_str("\nRepeat one with --only, such as --only ");
            text.push_str(&report.findings[0].failures.to_string());
        }
        let _ = writeln!(io::stdout(), "{text}");
    }
}

/// Creates a file before the sweep, which may take long.
fn create(path: &Path) -> Result<(PathBuf, File), ServeError> {
    let file = File::create(path).doing(|| format!("write {}", path.display()))?;
    Ok((path.to_owned(), file))
}

/// Runs of the program, each in a process of its own.
struct Runs {
    directory: TempDir,
    arguments: Vec<OsString>,
    time: Duration,
    count: AtomicU64,
    missing: Mutex<Option<String>>,
}

impl Runs {
    fn new(arguments: &SweepArguments) -> Result<Self, ServeError> {
        let directory = tempfile::Builder::new().prefix("cxi-mock-sweep.").tempdir();
        let commands =
            [&arguments.after, &arguments.check, &arguments.between].into_iter().flatten().count();
        // Each of them has as much time as the program.
        let time = arguments.timeout * (1 + u32::try_from(commands).unwrap_or_default())
            + arguments.late
            + GRACE;
        Ok(Self {
            directory: directory.doing(|| "make a directory for the runs".to_owned())?,
            arguments: env::args_os().skip(2).collect(),
            time,
            count: AtomicU64::new(0),
            missing: Mutex::default(),
        })
    }

    /// The thing that the machine lacks, if there is no report for that reason.
    fn missing(&self) -> Option<ServeError> {
        let said = self.missing.lock().take()?;
        let (what, how) = said.split_once('\n').unwrap_or((&said, ""));
        Some(ServeError::missing(what.trim_start_matches("cxi-mock: "), how.trim()))
    }

    fn execute(&self, failures: &Failures) -> Result<Observed, SweepError> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let directory = self.directory.path().join(number.to_string());
        let run = || -> io::Result<(Option<ExitStatus>, String)> {
            fs::create_dir_all(directory.join("tmp"))?;
            fs::write(directory.join(FAILURES), failures.to_string())?;
            let output = File::create(directory.join(OUTPUT))?;
            let mut child = Command::new(SELF)
                .arg0("cxi-mock")
                .arg("sweep")
                .arg("--case")
                .arg(&directory)
                .args(&self.arguments)
                .env("TMPDIR", directory.join("tmp"))
                .stdin(Stdio::null())
                .stdout(output.try_clone()?)
                .stderr(output)
                .spawn()?;
            let status = wait(&mut child, self.time)?;
            let said = fs::read(directory.join(OUTPUT))?;
            Ok((status, case::end_of(&said)))
        };
        let failed = |why: String| SweepError::Run(format!("cannot run the program: {why}"));
        let (status, said) = run().map_err(|error| failed(error.to_string()))?;
        let observed = fs::read(directory.join(OBSERVED));
        let _ = fs::remove_dir_all(&directory);
        match (status, observed) {
            (Some(_), Ok(observed)) => {
                serde_json::from_slice(&observed).map_err(|error| failed(error.to_string()))
            }
            (None, _) => Err(failed(format!("{failures}: the node did not end"))),
            (Some(status), Err(_)) => {
                if status.code() == Some(EXIT_MISSING.into()) {
                    *self.missing.lock() = Some(said.clone());
                }
                Err(failed(said))
            }
        }
    }
}

/// Waits for a process, and kills it if it takes too long.
fn wait(child: &mut Child, time: Duration) -> io::Result<Option<ExitStatus>> {
    let end = Instant::now() + time;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() > end {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(LOOK);
    }
}
