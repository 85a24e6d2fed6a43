//! The runs of a sweep: which there are, in which order, and what they show.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cxi_ioctl::{DriverRelease, Effect, Errno, Opcode};

use super::judge::{Ended, Finding, FindingKind, Observed, judge};
use super::point::{FailureKind, FailurePoint, Failures};
use super::script::Attempt;
use crate::{Errnos, SplitMix64};

/// Failures of a sweep.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
#[allow(clippy::struct_excessive_bools, reason = "kinds of failures are independent")]
pub struct SweepOptions {
    /// Errnos that commands return.
    pub errnos: Errnos,
    /// The caller is killed before and after commands.
    pub kill: bool,
    /// NICs are removed.
    pub unplug: bool,
    /// Commands are carried out late.
    pub delay: bool,
    /// Another process does something before a command.
    pub between: bool,
    /// After the single failures, pairs.
    pub pairs: Option<Pairs>,
    /// Only these.
    pub only: Vec<Failures>,
    /// Runs at a time; 0 for as many as there are processors.
    pub jobs: usize,
    /// `true` if something cleans up after the program.
    pub cleans_up: bool,
}

/// Random pairs of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pairs {
    /// For how long.
    pub time: Duration,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// A run that has ended, for those who show how far a sweep is.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Case<'a> {
    /// Its failures.
    pub failures: &'a Failures,
    /// Its findings.
    pub findings: &'a [Finding],
    /// Number of runs that have ended.
    pub done: usize,
    /// Number of runs; `None` among pairs.
    pub all: Option<usize>,
}

/// Result of a sweep.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct SweepReport {
    /// The driver.
    pub release: DriverRelease,
    /// The commands of the program without a failure.
    pub commands: Vec<Attempt>,
    /// The runs with failures, in order.
    pub cases: Vec<Failures>,
    /// Those whose failures were not reached: the program sent other commands than before.
    pub missed: Vec<Failures>,
    /// The findings, in order of the runs.
    pub findings: Vec<Finding>,
}

/// Reason for which there is no report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// A run was not possible.
    #[error("{0}")]
    Run(String),
    /// Without a failure, the program fails.
    #[error("without any failure, the program ends with: {0}")]
    Fails(String),
    /// It sends no command.
    #[error("the program sends no command to a NIC: nothing can fail")]
    NoCommands,
    /// A failure that was asked for does not occur.
    #[error("{failures} does not occur: {why}")]
    NoSuchFailure {
        /// The failure.
        failures: Failures,
        /// The command that is there instead.
        why: String,
    },
}

impl SweepReport {
    /// Fails a test with the findings, if there are any.
    ///
    /// # Panics
    ///
    /// There are findings.
    #[track_caller]
    pub fn expect_no_findings(&self) {
        assert!(self.findings.is_empty(), "{self}");
    }
}

/// The findings as a table, and how many runs there were.
impl fmt::Display for SweepReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> =
            self.findings.iter().map(|finding| finding.failures.to_string()).collect();
        let width = names.iter().map(String::len).max().unwrap_or_default();
        for (finding, name) in self.findings.iter().zip(&names) {
            writeln!(f, "{name:width$}  {:12}  {}", finding.kind, finding.text)?;
            if !matches!(finding.ended, Ended::Success) {
                writeln!(f, "{:width$}  {:12}  it says: {}", "", "", one_line(&finding.ended))?;
            }
        }
        let (commands, cases) = (self.commands.len(), self.cases.len());
        write!(f, "{commands} commands, {cases} runs with failures")?;
        if !self.missed.is_empty() {
            write!(f, " (of which {} reached none)", self.missed.len())?;
        }
        write!(f, ", {} findings", self.findings.len())
    }
}

fn one_line(text: &impl fmt::Display) -> String {
    text.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Counts the commands of a program, runs it with every failure, and says what that shows.
///
/// `execute` runs it once; `progress` is called after each run with failures.
pub(super) fn run(
    options: &SweepOptions,
    execute: impl Fn(&Failures) -> Result<Observed, SweepError> + Sync,
    progress: impl Fn(Case<'_>) + Sync,
) -> Result<SweepReport, SweepError> {
    let fine = execute(&Failures::default())?;
    match (&fine.ended, &fine.check) {
        (Ended::Success, None) => {}
        (Ended::Success, Some(check)) => {
            return Err(SweepError::Fails(format!("a check that fails: {check}")));
        }
        (ended, _) => return Err(SweepError::Fails(ended.to_string())),
    }
    if fine.commands.is_empty() {
        return Err(SweepError::NoCommands);
    }
    let singles = if options.only.is_empty() {
        let points = fine.commands.iter().flat_map(|it| points(options, fine.release, it));
        points.map(|point| Failures(vec![point])).collect()
    } else {
        options.only.clone()
    };
    let sweep = Sweep { options, fine, execute, progress, done: AtomicUsize::new(0) };
    let all = Some(singles.len());
    let runs = sweep.each(&singles, |failures| sweep.case(failures, all))?;
    let mut report = SweepReport {
        release: sweep.fine.release,
        commands: sweep.fine.commands.clone(),
        cases: singles,
        missed: Vec::new(),
        findings: Vec::new(),
    };
    for (failures, run) in report.cases.iter().zip(&runs) {
        let reached = run.seen.commands.iter().filter(|it| it.failure.is_some()).count();
        if reached < failures.0.len() {
            if !options.only.is_empty() {
                let why = nearby(failures, &run.seen);
                return Err(SweepError::NoSuchFailure { failures: failures.clone(), why });
            }
            report.missed.push(failures.clone());
        }
        report.findings.extend(run.findings.iter().cloned());
    }
    if options.only.iter().any(|failures| failures.0.len() > 1) {
        report.findings = sweep.shrink(report.findings)?;
    }
    if let Some(pairs) = options.pairs.filter(|_| options.only.is_empty()) {
        let (cases, findings) = sweep.pairs(pairs, &report.cases, &runs)?;
        report.cases.extend(cases);
        report.findings.extend(findings);
    }
    Ok(report)
}

/// The ways in which a command can fail.
fn points(options: &SweepOptions, release: DriverRelease, it: &Attempt) -> Vec<FailurePoint> {
    let effect = it.opcode.effect();
    // EINVAL of a command that only names an object says that there is none. No driver says so of an
    // object that exists, and whoever believes it makes no mistake.
    let names_object = matches!(effect, Some(Effect::Frees(_)))
        || matches!(it.opcode, Opcode::SVC_GET | Opcode::SVC_RSRC_GET);
    let lies = |errno: Errno| names_object && errno == Errno::EINVAL && it.errno.is_none();
    let errnos = options.errnos.of(it.opcode, release).into_iter();
    // What fails anyway does not fail with the same errno.
    let errnos = errnos.filter(|errno| it.errno != Some(*errno) && !lies(*errno));
    let mut kinds: Vec<FailureKind> = errnos.map(FailureKind::Errno).collect();
    // Only these two keep what they made if their answer does not reach the caller.
    let is_kept = matches!(it.opcode, Opcode::SVC_ALLOC | Opcode::DOMAIN_RESERVE);
    let changes = !matches!(effect, Some(Effect::Reads) | None);
    let more = [
        (FailureKind::Lost, is_kept && options.errnos == Errnos::All),
        (FailureKind::KillBefore, options.kill),
        // After a query, it is the same as before the next command.
        (FailureKind::KillAfter, options.kill && changes),
        (FailureKind::Unplug, options.unplug),
        (FailureKind::Delay, options.delay),
        (FailureKind::Between, options.between),
    ];
    kinds.extend(more.into_iter().filter(|(_, wanted)| *wanted).map(|(kind, _)| kind));
    let Attempt { node, nic, number, opcode, .. } = *it;
    kinds.into_iter().map(|kind| FailurePoint { node, nic, number, opcode, kind }).collect()
}

/// Describes the place of a failure that was not reached.
fn nearby(failures: &Failures, seen: &Observed) -> String {
    let reached =
        |point: &&FailurePoint| !seen.commands.iter().any(|it| it.failure.as_ref() == Some(*point));
    let Some(point) = failures.0.iter().find(reached) else { return String::new() };
    let same_nic = |it: &&Attempt| (it.node, it.nic) == (point.node, point.nic);
    let on_nic = seen.commands.iter().filter(same_nic);
    match on_nic.clone().find(|it| it.number == point.number) {
        Some(it) => format!("command {} is {}, not {}", it.number, it.opcode, point.opcode),
        None => format!("that NIC gets {} commands", on_nic.count()),
    }
}

/// A run and what it shows.
struct Run {
    seen: Observed,
    findings: Vec<Finding>,
}

struct Sweep<'a, X, P> {
    options: &'a SweepOptions,
    fine: Observed,
    execute: X,
    progress: P,
    done: AtomicUsize,
}

impl<X, P> Sweep<'_, X, P>
where
    X: Fn(&Failures) -> Result<Observed, SweepError> + Sync,
    P: Fn(Case<'_>) + Sync,
{
    fn case(&self, failures: &Failures, all: Option<usize>) -> Result<Run, SweepError> {
        let seen = (self.execute)(failures)?;
        let findings = judge(&self.fine, &seen, self.options.cleans_up);
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        (self.progress)(Case { failures, findings: &findings, done, all });
        Ok(Run { seen, findings })
    }

    /// Several at a time; the results are in the order of the cases.
    fn each<T: Send>(
        &self,
        cases: &[Failures],
        act: impl Fn(&Failures) -> Result<T, SweepError> + Sync,
    ) -> Result<Vec<T>, SweepError> {
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let results = Mutex::new(BTreeMap::new());
        thread::scope(|scope| {
            for _ in 0..self.jobs().min(cases.len()) {
                scope.spawn(|| {
                    while !failed.load(Ordering::Relaxed) {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(failures) = cases.get(index) else { break };
                        let result = act(failures);
                        failed.fetch_or(result.is_err(), Ordering::Relaxed);
                        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                        results.insert(index, result);
                    }
                });
            }
        });
        results.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
    }

    fn jobs(&self) -> usize {
        match self.options.jobs {
            0 => thread::available_parallelism().map_or(1, usize::from),
            jobs => jobs,
        }
    }

    /// Leaves out of each finding what it does not need.
    fn shrink(&self, findings: Vec<Finding>) -> Result<Vec<Finding>, SweepError> {
        let mut shrunk = Vec::new();
        for mut finding in findings {
            let mut index = 0;
            while finding.failures.0.len() > 1 && index < finding.failures.0.len() {
                let mut fewer = finding.failures.clone();
                fewer.0.remove(index);
                let run = self.case(&fewer, None)?;
                let same = run.findings.into_iter().find(|it| it.kind == finding.kind);
                match same.filter(|it| it.failures == fewer) {
                    Some(same) => finding = same,
                    None => index += 1,
                }
            }
            if !shrunk.contains(&finding) {
                shrunk.push(finding);
            }
        }
        Ok(shrunk)
    }

    /// Random pairs: the second failure is at a command that the program sends after the first one,
    /// and so perhaps in order to undo what it did.
    fn pairs(
        &self,
        pairs: Pairs,
        singles: &[Failures],
        runs: &[Run],
    ) -> Result<(Vec<Failures>, Vec<Finding>), SweepError> {
        let end = Instant::now() + pairs.time;
        let mut dice = SplitMix64::new(pairs.seed);
        let (mut cases, mut findings) = (Vec::new(), Vec::new());
        let mut known = BTreeSet::new();
        while Instant::now() < end {
            let batch: Vec<Failures> = (0..self.jobs() * 8)
                .filter_map(|_| self.pair(&mut dice, singles, runs))
                .filter(|pair| known.insert(pair.clone()))
                .take(self.jobs())
                .collect();
            // All there are have been tried.
            if batch.is_empty() {
                break;
            }
            for run in self.each(&batch, |failures| self.case(failures, None))? {
                findings.extend(run.findings);
            }
            cases.extend(batch);
        }
        // What one failure alone shows has been reported.
        let alone = |point: &FailurePoint, kind: FindingKind| {
            let single = singles.iter().position(|single| single.0 == [point.clone()]);
            let run = single.and_then(|index| runs.get(index));
            run.is_some_and(|run| run.findings.iter().any(|finding| finding.kind == kind))
        };
        findings.retain(|finding| {
            finding.failures.0.len() > 1
                && !finding.failures.0.iter().any(|point| alone(point, finding.kind))
        });
        let findings = self.shrink(findings)?;
        Ok((cases, findings))
    }

    fn pair(&self, dice: &mut SplitMix64, singles: &[Failures], runs: &[Run]) -> Option<Failures> {
        let first = roll(dice, runs.len())?;
        let (failures, run) = (singles.get(first)?, runs.get(first)?);
        let commands = &run.seen.commands;
        let after = commands.iter().position(|it| it.failure.is_some())? + 1;
        let second = commands.get(after + roll(dice, commands.len() - after)?)?;
        let kinds = points(self.options, self.fine.release, second);
        let second = kinds.get(roll(dice, kinds.len())?)?;
        let mut pair = failures.clone();
        pair.0.push(second.clone());
        Some(pair)
    }
}

/// A number below `sides`, if there is one.
fn roll(dice: &mut SplitMix64, sides: usize) -> Option<usize> {
    let sides = u64::try_from(sides).ok()?;
    usize::try_from(dice.draw().checked_rem(sides)?).ok()
}

impl SweepOptions {
    /// Runs a sweep of a program that somebody else executes, such as on a served node; see
    /// [`sweep`](super::sweep) for programs in this process. The caller attaches a
    /// [`Script`](super::Script) with the failures that it gets, and returns what it observed.
    ///
    /// # Errors
    ///
    /// The first error of `execute`; the program fails without any failure; a failure of
    /// [`only`](Self::only) does not occur.
    pub fn run(
        &self,
        execute: impl Fn(&Failures) -> Result<Observed, SweepError> + Sync,
        progress: impl Fn(Case<'_>) + Sync,
    ) -> Result<SweepReport, SweepError> {
        run(self, execute, progress)
    }
}
