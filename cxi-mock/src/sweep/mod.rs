//! Every failure of every command of a program, one after the other.

mod engine;
mod judge;
mod point;
pub(crate) mod script;

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::{Errnos, LoadError, MockNode, NicConfig, NodeSnapshot};

pub use engine::{Case, Pairs, SweepError, SweepOptions, SweepReport};
pub use judge::{Ended, Finding, FindingKind, Left, Observed};
pub use point::{FailureKind, FailurePoint, Failures, InvalidFailure};
pub(crate) use script::Part;
pub use script::{Attempt, Script, Surroundings};

/// Node and failures of a [`sweep`] in this process.
///
/// ```
/// use cxi_mock::{Errnos, NicConfig, SweepConfig};
///
/// let config = SweepConfig::new(NicConfig::new()).nics(2).errnos(Errnos::All).kill(true);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct SweepConfig {
    nics: Vec<NicConfig>,
    start: Option<NodeSnapshot>,
    options: SweepOptions,
}

impl SweepConfig {
    /// A node with one NIC; each command fails with each errno that is likely.
    pub fn new(config: NicConfig) -> Self {
        Self { nics: vec![config], start: None, options: SweepOptions::default() }
    }

    /// As [`new`](Self::new), but each run starts with a node as it is here. That is for what ends a
    /// job: its services are there from the start.
    pub fn starting_with(start: NodeSnapshot) -> Self {
        Self { nics: Vec::new(), start: Some(start), options: SweepOptions::default() }
    }

    /// This many NICs that differ only in their addresses.
    pub fn nics(mut self, count: u8) -> Self {
        if let Some(first) = self.nics.first() {
            self.nics = first.alike(count).collect();
        }
        self
    }

    /// Sets the errnos that commands return.
    pub fn errnos(mut self, errnos: Errnos) -> Self {
        self.options.errnos = errnos;
        self
    }

    /// Also kills the caller at each command, before and after it. The command does not
    /// return then: the program unwinds, and whatever it sends meanwhile has no effect. What it does
    /// to files while it unwinds takes place.
    pub fn kill(mut self, kill: bool) -> Self {
        self.options.kill = kill;
        self
    }

    /// Also removes the NIC at each command, for good.
    pub fn unplug(mut self, unplug: bool) -> Self {
        self.options.unplug = unplug;
        self
    }

    /// Random pairs of these failures, too.
    pub fn pairs(mut self, pairs: Pairs) -> Self {
        self.options.pairs = Some(pairs);
        self
    }

    /// Only these failures, as a report names them.
    pub fn only(mut self, failures: impl IntoIterator<Item = Failures>) -> Self {
        self.options.only = failures.into_iter().collect();
        self
    }

    fn node(&self) -> Result<MockNode, SweepError> {
        match &self.start {
            Some(snapshot) => {
                MockNode::restore(snapshot).map_err(|error| SweepError::Run(error.to_string()))
            }
            None => MockNode::new(self.nics.iter().cloned())
                .map_err(|error: LoadError| SweepError::Run(error.to_string())),
        }
    }
}

/// Runs a program once to count its commands, and then once for each command and each way in which
/// it can fail, each time on another node. The program opens the NICs itself and returns whether it
/// did what it was to do. What it returns, and what it leaves on the NICs, shows whether it can cope
/// with the failure; see [`FindingKind`] for what counts as a finding.
///
/// The program runs in several threads, so it must not depend on anything but the node. Commands are
/// counted on each NIC, so it may use NICs in parallel.
///
/// ```
/// use cxi_ioctl::abi::service::{SvcAllocCmd, SvcDestroyCmd};
/// use cxi_ioctl::{CommandError, execute};
/// use cxi_mock::{MockNode, NicConfig, SweepConfig, sweep};
///
/// fn prolog(node: &MockNode) -> Result<(), CommandError> {
///     let files: Vec<_> = node.nics().iter().map(|nic| nic.root().unwrap()).collect();
///     let mut made = Vec::new();
///     for file in &files {
///         match execute(file, &SvcAllocCmd::new()) {
///             Ok(response) => made.push((file, response.svc_id)),
///             Err(error) => {
///                 for (file, service) in made {
///                     execute(file, &SvcDestroyCmd::of(service))?;
///                 }
///                 return Err(error);
///             }
///         }
///     }
///     Ok(())
/// }
///
/// let config = SweepConfig::new(NicConfig::new()).nics(2);
/// let report = sweep(&config, prolog)?;
/// report.expect_no_findings();
///
/// // Without the cleanup, a service is left on cxi0 if there is none on cxi1.
/// fn careless(node: &MockNode) -> Result<(), CommandError> {
///     node.nics()
///         .iter()
///         .try_for_each(|nic| execute(&nic.root().unwrap(), &SvcAllocCmd::new()).map(drop))
/// }
/// let report = sweep(&config, careless)?;
/// assert_eq!(report.findings[0].failures.to_string(), "cxi1:1:SVC_ALLOC:EIO");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`SweepError`]: the driver does not load, the program fails without any failure, or a failure of
/// [`SweepConfig::only`] does not occur.
pub fn sweep<E: Display>(
    config: &SweepConfig,
    program: impl Fn(&MockNode) -> Result<(), E> + Sync,
) -> Result<SweepReport, SweepError> {
    run(config, program, None::<&fn(&MockNode, &Ended) -> Result<(), String>>)
}

/// As [`sweep`]; after each run, `check` sees the node, on which nothing fails any more, and how the
/// program ended. It may clean up, as the next program at that node does: only what is left then
/// counts. What it returns as an error is a finding.
///
/// # Errors
///
/// As [`sweep`]; or the check fails without any failure.
pub fn sweep_with<E: Display, F: Display>(
    config: &SweepConfig,
    program: impl Fn(&MockNode) -> Result<(), E> + Sync,
    check: impl Fn(&MockNode, &Ended) -> Result<(), F> + Sync,
) -> Result<SweepReport, SweepError> {
    run(config, program, Some(&check))
}

fn run<E: Display, F: Display>(
    config: &SweepConfig,
    program: impl Fn(&MockNode) -> Result<(), E> + Sync,
    check: Option<&(impl Fn(&MockNode, &Ended) -> Result<(), F> + Sync)>,
) -> Result<SweepReport, SweepError> {
    let options = SweepOptions { cleans_up: check.is_some(), ..config.options.clone() };
    let execute = |failures: &Failures| {
        let node = config.node()?;
        let start = Left::of_node(0, node.nics());
        let script = Arc::new(Script::new(failures.clone()));
        script.attach(0, node.nics());
        let ended = ended(&script, || program(&node));
        let mut left = Left::of_node(0, node.nics());
        let commands = script.end();
        // The next program has another NIC in place of a removed one, or none; then nothing of it
        // is left.
        let checked = check.and_then(|check| failure(|| check(&node, &ended)));
        if check.is_some() {
            left = Left::of_node(0, node.nics());
        }
        let release = node.nics().first().map_or_else(|| NicConfig::new().release, |n| n.release());
        Ok(Observed {
            ended,
            release,
            start,
            left,
            commands,
            check: checked,
            output: String::new(),
        })
    };
    engine::run(&options, execute, |_| {})
}

/// Runs a program, which may be killed in the middle, to its end.
fn ended<E: Display>(script: &Script, program: impl FnOnce() -> Result<(), E>) -> Ended {
    match catch_unwind(AssertUnwindSafe(program)) {
        // Whatever the other threads of a killed program make of it.
        _ if script.has_killed() => Ended::Killed,
        Ok(Ok(())) => Ended::Success,
        Ok(Err(error)) => Ended::Failure(error.to_string()),
        Err(payload) => Ended::Crash(panic_text(&*payload)),
    }
}

/// Returns the reason for which a check fails, if it does.
fn failure<E: Display>(check: impl FnOnce() -> Result<(), E>) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(check)) {
        Ok(result) => result.err().map(|error| error.to_string()),
        Err(payload) => Some(panic_text(&*payload)),
    }
}

fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a text").to_owned()
}
