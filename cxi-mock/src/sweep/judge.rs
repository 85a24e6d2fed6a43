//! Judges a program by a run with failures.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use cxi_ioctl::{DriverRelease, Effect, Object, Opcode};

use super::point::{FailureKind, Failures};
use super::script::Attempt;
use crate::Nic;

/// The end of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Ended {
    /// It did what it was to do, or says so.
    Success,
    /// It says that it failed, and why.
    Failure(String),
    /// It was killed by the script.
    Killed,
    /// It panicked, or a signal ended it.
    Crash(String),
    /// It did not end in time.
    Hung,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success => f.write_str("success"),
            Self::Failure(why) => f.write_str(why),
            Self::Killed => f.write_str("killed"),
            Self::Crash(how) => write!(f, "crash: {how}"),
            Self::Hung => f.write_str("did not end"),
        }
    }
}

/// Things on a NIC that outlive commands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Left {
    /// Number of the node, from 0.
    pub node: u16,
    /// Number of the NIC.
    pub nic: u16,
    /// The services, without the default one.
    pub services: Vec<u32>,
    /// VNIs that are taken: the first one, and the bits that are ignored.
    pub vnis: BTreeSet<(u32, u32)>,
    /// LNIs, including those that wait for their queues to become quiet.
    pub lnis: u32,
    /// The NIC has been removed.
    pub removed: bool,
}

impl Left {
    /// Looks at each NIC of a node.
    #[must_use]
    pub fn of_node(node: u16, nics: &[Arc<Nic>]) -> Vec<Self> {
        let of_nic = |(number, nic): (u16, &Arc<Nic>)| {
            let state = nic.state();
            let groups = state.rgroups.iter().filter(|group| group.has_svc && group.id != 1);
            let services = groups.map(|group| group.id).collect();
            let vnis = state.rx_profiles.iter().map(|profile| (profile.vni, profile.ignore));
            Self {
                node,
                nic: number,
                services,
                vnis: vnis.collect(),
                lnis: state.stats.lni + state.lni_cleanups_pending,
                removed: nic.faults().is_unplugged(),
            }
        };
        (0..).zip(nics).map(of_nic).collect()
    }
}

/// A run of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Observed {
    /// Its end.
    pub ended: Ended,
    /// The driver.
    pub release: DriverRelease,
    /// Things on the NICs before.
    pub start: Vec<Left>,
    /// Things on the NICs afterward.
    pub left: Vec<Left>,
    /// Its commands.
    pub commands: Vec<Attempt>,
    /// The message of the user's check, if it fails.
    pub check: Option<String>,
    /// The end of what it printed.
    pub output: String,
}

/// A mistake of a program that met a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum FindingKind {
    /// It claims success, although something of what it does without a failure was not done: a
    /// service is missing, or a command that changes something did not succeed as often as it
    /// should. A command that is repeated until it succeeds is none.
    Swallowed,
    /// Services are left that were not there before the program failed, or that it leaves only with
    /// a failure. Nobody is blamed where the only failure is that of SVC_DESTROY and the program
    /// says that it failed, or where the program itself was killed and nothing cleans up after it.
    ServiceLeft,
    /// A VNI is taken although the service is gone.
    VniLeft,
    /// An LNI is still allocated after the program has ended.
    LniLeft,
    /// It does not end in time.
    Hung,
    /// It panics, or a signal ends it.
    Crash,
    /// The check of the user fails.
    Check,
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Swallowed => "swallowed",
            Self::ServiceLeft => "service left",
            Self::VniLeft => "VNI left",
            Self::LniLeft => "LNI left",
            Self::Hung => "hung",
            Self::Crash => "crash",
            Self::Check => "check",
        })
    }
}

/// A failure that a program does not cope with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Finding {
    /// The fewest failures that show it, which repeat it.
    pub failures: Failures,
    /// The mistake.
    pub kind: FindingKind,
    /// The same, in detail.
    pub text: String,
    /// The end of the program.
    pub ended: Ended,
    /// The end of what it printed.
    pub output: String,
}

/// Compares a run with the one without failures. Nothing is found if no failure was reached.
pub(super) fn judge(fine: &Observed, seen: &Observed, cleans_up: bool) -> Vec<Finding> {
    let mut found: Vec<(FindingKind, String)> = Vec::new();
    let hits: Vec<&Attempt> = seen.commands.iter().filter(|it| it.failure.is_some()).collect();
    if hits.is_empty() {
        return Vec::new();
    }
    match &seen.ended {
        Ended::Hung => found.push((FindingKind::Hung, "it does not end in time".to_owned())),
        Ended::Crash(how) => found.push((FindingKind::Crash, how.clone())),
        Ended::Success | Ended::Failure(_) | Ended::Killed => {}
    }
    let succeeded = seen.ended == Ended::Success;
    for (index, left) in seen.left.iter().enumerate() {
        // Nothing can be done about a NIC that is gone.
        if left.removed {
            continue;
        }
        let expected = if succeeded || cleans_up { &fine.left } else { &seen.start };
        if let Some(expected) = expected.get(index) {
            found.extend(left_on(left, expected, &hits, succeeded, cleans_up));
        }
        let usual = fine.left.get(index);
        if usual.is_some_and(|usual| left.lnis > usual.lnis) {
            let text = format!("{} has {}", place(left), count(left.lnis, "LNI"));
            found.push((FindingKind::LniLeft, text));
        }
    }
    if succeeded {
        found.extend(swallowed(fine, seen, cleans_up));
    }
    if let Some(why) = &seen.check {
        found.push((FindingKind::Check, why.clone()));
    }
    let hit = hits.iter().filter_map(|hit| hit.failure.clone());
    let failures = Failures(hit.collect());
    let finding = |(kind, text)| Finding {
        failures: failures.clone(),
        kind,
        text,
        ended: seen.ended.clone(),
        output: seen.output.clone(),
    };
    found.into_iter().map(finding).collect()
}

/// Services and VNIs that are left on a NIC.
fn left_on(
    left: &Left,
    expected: &Left,
    hits: &[&Attempt],
    succeeded: bool,
    cleans_up: bool,
) -> Option<(FindingKind, String)> {
    let more = left.services.len().saturating_sub(expected.services.len());
    if more == 0 {
        let vnis: Vec<String> = left
            .vnis
            .difference(&expected.vnis)
            .map(|(vni, ignored)| match ignored {
                0 => vni.to_string(),
                _ => format!("{vni} to {}", vni | ignored),
            })
            .collect();
        // With as many services, it may only have other VNIs than those at the start.
        let taken = !vnis.is_empty() && left.services.is_empty();
        let text = format!("VNI {} stays taken on {}", vnis.join(", "), place(left));
        return taken.then_some((FindingKind::VniLeft, text));
    }
    let is_blameless = |hit: &&&Attempt| {
        let kind = hit.failure.as_ref().map(|failure| failure.kind);
        match kind {
            Some(FailureKind::KillBefore | FailureKind::KillAfter) => true,
            Some(FailureKind::Errno(_)) => hit.opcode == Opcode::SVC_DESTROY,
            _ => false,
        }
    };
    let blameless = hits.iter().filter(is_blameless).count();
    let was_killed = hits.iter().any(|hit| {
        let kind = hit.failure.as_ref().map(|failure| failure.kind);
        matches!(kind, Some(FailureKind::KillBefore | FailureKind::KillAfter))
    });
    let excused = blameless == hits.len() && (was_killed || more <= blameless);
    if excused && !succeeded && !cleans_up {
        return None;
    }
    let new: Vec<String> = left
        .services
        .iter()
        .filter(|id| !expected.services.contains(id))
        .map(ToString::to_string)
        .collect();
    let which = if new.is_empty() { String::new() } else { format!(" ({})", new.join(", ")) };
    let left_behind = format!("{}{which} left on {}", count(more as u64, "service"), place(left));
    Some((FindingKind::ServiceLeft, left_behind))
}

/// Finds something that was not done although the program claims success.
fn swallowed(fine: &Observed, seen: &Observed, cleans_up: bool) -> Option<(FindingKind, String)> {
    let missing = seen.left.iter().zip(&fine.left).find_map(|(left, usual)| {
        let missing = usual.services.len().saturating_sub(left.services.len());
        (missing > 0 && !cleans_up).then(|| {
            format!(
                "it claims success, but {} lacks {}",
                place(left),
                count(missing as u64, "service")
            )
        })
    });
    let (usual, done) = (successes(fine), successes(seen));
    let less = || {
        usual.iter().find_map(|((node, nic, opcode), times)| {
            let done = done.get(&(*node, *nic, *opcode)).copied().unwrap_or_default();
            (done < *times).then(|| {
                format!(
                    "it claims success, but {opcode} succeeded {} on {} instead of {}",
                    times_in_words(done),
                    device(*node, *nic),
                    times_in_words(*times),
                )
            })
        })
    };
    let text = missing.or_else(less)?;
    Some((FindingKind::Swallowed, text))
}

/// Counts the successes of commands whose failure cannot be ignored.
fn successes(run: &Observed) -> BTreeMap<(u16, u16, Opcode), u64> {
    let mut counts = BTreeMap::new();
    for it in run.commands.iter().filter(|it| it.errno.is_none()) {
        // What is freed with the file anyway need not be freed before.
        let matters = matches!(
            it.opcode.effect(),
            Some(Effect::Makes(_) | Effect::Changes | Effect::Frees(Object::Service))
        );
        if matters {
            *counts.entry((it.node, it.nic, it.opcode)).or_default() += 1;
        }
    }
    counts
}

fn place(left: &Left) -> String {
    device(left.node, left.nic)
}

fn device(node: u16, nic: u16) -> String {
    match node {
        0 => format!("cxi{nic}"),
        _ => format!("cxi{nic} of n{}", node + 1),
    }
}

fn count(count: impl Into<u64>, what: &str) -> String {
    let count = count.into();
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

fn times_in_words(times: u64) -> String {
    match times {
        0 => "never".to_owned(),
        1 => "once".to_owned(),
        more => format!("{more} times"),
    }
}
