//! One run: a node, the program, and what is left afterward.

use std::ffi::OsString;
use std::fs;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use cxi_mock::{Attempt, Ended, FailureKind, Failures, Left, Nic, NicConfig, Observed, Script};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;

use super::{FAILURES, OBSERVED, OUTPUT, SweepArguments};
use crate::cluster::{Cluster, ClusterOptions};
use crate::control::{Control, ControlGuard, Served as _};
use crate::error::{Doing as _, ServeError};
use crate::launch::{self, Launch, Lifeline, NODE_VARIABLE, Signals};
use crate::namespaces::{Namespaces, Variable};
use crate::node::Node;
use crate::order::Order;
use crate::running::{NodeArguments, Running};
use crate::server::Scene;

/// Bytes that are kept of a program's output.
const KEPT: usize = 4000;
/// The number above which an exit status names a signal.
const SIGNALED: u8 = 128;
/// The exit status of a Rust program that panics.
const PANICKED: u8 = 101;
/// Signals that end a program that has a mistake.
const CRASHES: [Signal; 7] = [
    Signal::SIGSEGV,
    Signal::SIGABRT,
    Signal::SIGBUS,
    Signal::SIGILL,
    Signal::SIGFPE,
    Signal::SIGSYS,
    Signal::SIGTRAP,
];

/// Runs the program of a sweep once, with the failures that the directory names.
pub(super) fn run(arguments: SweepArguments, directory: &Path) -> Result<u8, ServeError> {
    // The sweep may be killed, and then nothing of it is to go on.
    set_pdeathsig(Signal::SIGKILL).doing(|| "watch the sweep".to_owned())?;
    let signals = Signals::take()?;
    launch::adopt_orphans()?;
    let text = fs::read_to_string(directory.join(FAILURES)).doing(|| "read the case".to_owned())?;
    let failures: Failures = text.parse().map_err(|error| ServeError::Input(format!("{error}")))?;
    let SweepArguments {
        nodes, nics, as_user, late, timeout, after, check, between, program, ..
    } = arguments;
    fs::create_dir_all(directory.join("node")).doing(|| "make a directory".to_owned())?;
    let control = Control::open(&directory.join("node"))?;
    let stage = match nodes {
        None => Stage::of_node(&NodeArguments::plain(nics, as_user), control)?,
        Some(nodes) => Stage::of_cluster(&ClusterOptions::plain(nodes, nics, as_user), control)?,
    };
    let script = Arc::new(Script::new(failures));
    stage.follow(&script, late, between.as_deref());
    let start = stage.left();
    let runner = Runner { signals, stage: &stage, directory, timeout };
    let status = runner.run(&program.program)?;
    let mut left = stage.left();
    let commands = script.end();
    let output = runner.output();
    let ended = ended(status, &commands, &output);
    let mut wrong = None;
    for (command, option) in [(&after, "--after"), (&check, "--check")] {
        let Some(command) = command else { continue };
        let before = runner.output().len();
        let status = runner.run(&["sh".into(), "-c".into(), command.into()])?;
        let output = runner.output();
        let said = end_of(output.get(before..).unwrap_or_default());
        let why = match status {
            Some(0) => continue,
            Some(status) => format!("{option} ends with exit status {status}: {said}"),
            None => format!("{option} does not end in time: {said}"),
        };
        wrong = wrong.or(Some(why));
    }
    if after.is_some() {
        left = stage.left();
    }
    let nic = stage.nodes.first().and_then(|node| nics_of(node).into_iter().next());
    let release = nic.map_or_else(|| NicConfig::new().release, |nic| nic.release());
    let output = end_of(&output);
    let observed = Observed { ended, release, start, left, commands, check: wrong, output };
    let write = || "write what was observed".to_owned();
    let bytes = serde_json::to_vec(&observed).doing(write)?;
    fs::write(directory.join(OBSERVED), bytes).doing(write)?;
    Ok(0)
}

/// The nodes of a run.
struct Stage {
    nodes: Vec<Arc<Node>>,
    /// Namespaces of the program; `None` for those of this process.
    place: Option<Arc<Namespaces>>,
    /// Variables of programs' environment.
    variables: Vec<Variable>,
    _kept: (Option<Running>, Option<(Arc<Cluster>, ControlGuard)>),
}

impl Stage {
    fn of_node(arguments: &NodeArguments, control: Control) -> Result<Self, ServeError> {
        let running = arguments.start(Some(control))?;
        let nodes = vec![Arc::clone(running.node())];
        let variables = running.variables();
        Ok(Self { nodes, place: None, variables, _kept: (Some(running), None) })
    }

    fn of_cluster(options: &ClusterOptions, control: Control) -> Result<Self, ServeError> {
        let variables = vec![control.variable()];
        let cluster = Cluster::start(options)?;
        let guard = control.serve(Arc::<Cluster>::clone(&cluster))?;
        let place = cluster.namespaces(Some("n1")).map_err(ServeError::Input)?;
        let nodes = cluster.nodes().map_err(ServeError::Input)?;
        let kept = (None, Some((cluster, guard)));
        Ok(Self { nodes, place: Some(place), variables, _kept: kept })
    }

    /// Has all NICs follow a script.
    fn follow(&self, script: &Arc<Script>, late: Duration, between: Option<&str>) {
        for (number, node) in (0..).zip(&self.nodes) {
            script.attach(number, &nics_of(node));
            let removed: Weak<Node> = Arc::downgrade(node);
            let (place, between) = (self.place.clone(), between.map(str::to_owned));
            node.server().scene.get_or_init(|| Scene {
                late,
                unplug: Box::new(move |nic| {
                    let order = Order::Unplug { nic };
                    let _ = removed.upgrade().map(|node| node.execute_order(&order));
                }),
                between: Box::new(move || {
                    if let Some(command) = &between {
                        run_beside(place.clone(), command);
                    }
                }),
            });
        }
    }

    /// Looks at the NICs, after everything that had them open.
    fn left(&self) -> Vec<Left> {
        for node in &self.nodes {
            node.server().close_all();
        }
        let nodes = (0..).zip(&self.nodes);
        nodes.flat_map(|(number, node)| Left::of_node(number, &nics_of(node))).collect()
    }
}

fn nics_of(node: &Node) -> Vec<Arc<Nic>> {
    node.server().physical().map(|function| Arc::clone(&function.nic)).collect()
}

/// Runs another process on the node, and waits for it.
fn run_beside(place: Option<Arc<Namespaces>>, command: &str) {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(Stdio::null());
    let run = move || {
        if place.is_none_or(|place| place.join().is_ok())
            && let Ok(mut child) = shell.spawn()
        {
            // The launcher may collect it first, which ends this, too.
            let _ = child.wait();
        }
    };
    let _ = thread::spawn(run).join();
}

/// Runs programs on the node, with a time limit for each.
struct Runner<'a> {
    signals: Signals,
    stage: &'a Stage,
    directory: &'a Path,
    timeout: Duration,
}

impl Runner<'_> {
    /// The exit status; `None` if the program did not end in time.
    fn run(&self, program: &[OsString]) -> Result<Option<u8>, ServeError> {
        let (lifeline, theirs) = UnixStream::pair().doing(|| "make a timer".to_owned())?;
        let timeout = self.timeout;
        let timer = theirs.try_clone().doing(|| "make a timer".to_owned())?;
        thread::spawn(move || {
            thread::sleep(timeout);
            let _ = timer.shutdown(Shutdown::Both);
        });
        let node = self.stage.place.as_ref().map(|_| (NODE_VARIABLE.into(), "n1".into()));
        let launch = Launch {
            program,
            variables: self.stage.variables.iter().cloned().chain(node).collect(),
            place: self.stage.place.clone(),
            label: None,
        };
        let lifeline = Lifeline { stream: &lifeline, end: "the program takes too long" };
        launch::run_for(&[launch], &self.signals, Some(lifeline))
    }

    /// The output of programs so far.
    fn output(&self) -> Vec<u8> {
        fs::read(self.directory.join(OUTPUT)).unwrap_or_default()
    }
}

/// Interprets an exit status.
fn ended(status: Option<u8>, commands: &[Attempt], output: &[u8]) -> Ended {
    let Some(status) = status else { return Ended::Hung };
    if status == 0 {
        return Ended::Success;
    }
    let kind = |it: &Attempt| it.failure.as_ref().map(|point| point.kind);
    let kills = |kind| matches!(kind, Some(FailureKind::KillBefore | FailureKind::KillAfter));
    let was_killed = commands.iter().map(kind).any(kills);
    let signal = status.checked_sub(SIGNALED).and_then(|number| i32::from(number).try_into().ok());
    match signal {
        Some(Signal::SIGKILL) if was_killed => return Ended::Killed,
        Some(signal) if CRASHES.contains(&signal) => {
            return Ended::Crash(format!("it is ended by {signal}"));
        }
        _ => {}
    }
    let said = end_of(output);
    let last = said.lines().last().unwrap_or_default();
    if status == PANICKED && said.contains("panicked at") {
        return Ended::Crash(format!("it panics: {last}"));
    }
    Ended::Failure(format!("exit status {status}: {last}"))
}

/// The end of what a program printed.
pub(super) fn end_of(output: &[u8]) -> String {
    let from = output.len().saturating_sub(KEPT);
    String::from_utf8_lossy(output.get(from..).unwrap_or_default()).trim().to_owned()
}
