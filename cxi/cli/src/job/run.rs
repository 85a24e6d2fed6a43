//! `cxi job run`: makes services, runs a program, destroys the services.

use std::env;
use std::io::{self, IsTerminal as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use cxi::Vni;
use cxi_job::pool::{PoolConfig, Timestamp, VniPool, VniRequest};
use cxi_job::{Filter, Grant, IdSet, JobId, JobRequest, NodeName, ReleaseOptions};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use super::cli::RunArgs;
use super::epilog;
use super::job_node::{JobNode, Paused};
use super::progress::Progress;
use super::{job_request, prolog};
use crate::exit::{Exit, Failure, of_device};
use crate::network::Network;
use crate::options::Common;
use crate::output::{Report, print_failures};

/// How often to check on a program that was asked to end.
const POLL: Duration = Duration::from_millis(10);

pub(super) fn run(arguments: &RunArgs, common: &Common) -> Result<Report, Failure> {
    // From here on these signals do not end this process, so that everything that was made is
    // destroyed.
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGCHLD])
        .map_err(|error| Failure::new(Exit::Failed, format!("signals: {error}")))?;
    let uid = arguments
        .uid
        .unwrap_or_else(|| nix::unistd::geteuid().as_raw());
    let (grant, node) = services_on(arguments, uid, common)?;
    let ended = match asked_to_end(&mut signals) {
        Some(signal) => Ok(Ended::code(128 + signal)),
        None => program(arguments, uid, &grant, &mut signals, common.json),
    };
    let left = services_off(&grant, node, arguments, common);
    let code = match ended {
        Ok(Ended { code }) => code,
        Err(failure) => {
            // First why it did not run, then what is left.
            print_failures(&left, common.json);
            return Err(failure);
        }
    };
    Ok(Report::verbatim(String::new())
        .with_failures(left)
        .ending_with(code))
}

struct Ended {
    code: u8,
}

impl Ended {
    fn code(code: i32) -> Self {
        Self {
            code: u8::try_from(code).unwrap_or(u8::MAX),
        }
    }

    fn of(status: ExitStatus) -> Self {
        let by_signal = status.signal().map(|signal| 128 + signal);
        Self::code(status.code().or(by_signal).unwrap_or(1))
    }
}

fn services_on(arguments: &RunArgs, uid: u32, common: &Common) -> Result<(Grant, Paused), Failure> {
    let node = JobNode::locked(common, &arguments.lock)?;
    let vnis = if arguments.vni.is_empty() {
        vec![unused_vni(&node)?]
    } else {
        arguments.vni.clone()
    };
    let builder = JobRequest::builder().uid(uid).vnis(vnis);
    // Existing services are not adopted: they would be destroyed with this job's.
    let (size, service) = (&arguments.size, &arguments.service);
    let request = job_request::finish(
        builder.adopt(false),
        size,
        service,
        &Network::default(),
        &common.settings,
    )?;
    let result = node.nics.allocate(&request);
    node.save()?;
    let grant = result.map_err(|error| prolog::failure(&error))?;
    Ok((grant, node.pause()))
}

/// A VNI that no service of this node has.
fn unused_vni(node: &JobNode) -> Result<Vni, Failure> {
    let mut seen = IdSet::new();
    for device in node.nics.nics().iter().filter_map(|nic| nic.device()) {
        let services = device.services().list();
        for service in services.map_err(|error| of_device(&error))? {
            seen.extend(service.vnis().iter().map(Vni::get));
        }
    }
    let refused = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::NotEnough, format!("no VNI for the program: {error}"))
            .hint("Name one with --vni.")
    };
    let mut usable = IdSet::new();
    usable.insert_range(1024..=u16::MAX);
    let mut pool = VniPool::new(PoolConfig::new(usable)).map_err(|error| refused(&error))?;
    let (this, job) = (NodeName::new("node"), JobId::new("run"));
    let (this, job) = (
        this.map_err(|error| refused(&error))?,
        job.map_err(|error| refused(&error))?,
    );
    let at = Timestamp::default();
    let _ = pool.reconcile(&this, &seen, at);
    let reserved = pool.reserve(&job, &VniRequest::vnis(1), at);
    let reserved = reserved.map_err(|error| refused(&error))?;
    let first = reserved.vnis.iter().next();
    first.ok_or_else(|| refused(&"the pool is empty"))
}

fn asked_to_end(signals: &mut Signals) -> Option<i32> {
    signals.pending().find(|signal| *signal != SIGCHLD)
}

fn program(
    arguments: &RunArgs,
    uid: u32,
    grant: &Grant,
    signals: &mut Signals,
    json: bool,
) -> Result<Ended, Failure> {
    let environment = grant
        .env()
        .map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    let this = env::current_exe().map_err(|error| {
        Failure::new(Exit::Failed, format!("this program is not found: {error}"))
    })?;
    let mut command = Command::new(this);
    command
        .args(json.then_some("--json"))
        .args(["job", "become", "--uid"])
        .arg(uid.to_string());
    if let Some(gid) = arguments.gid {
        command.arg("--gid").arg(gid.to_string());
    }
    command.arg("--").args(&arguments.program);
    environment.set_on(&mut command);
    // At a terminal, the program must be in the foreground together with this process.
    let own_group = !io::stdin().is_terminal();
    if own_group {
        command.process_group(0);
    }
    let child = command.spawn().map_err(|error| {
        Failure::new(
            Exit::ProgramNotStarted,
            format!("the program cannot be started: {error}"),
        )
    })?;
    let watched = Watched { child, own_group };
    watched
        .wait(signals, arguments.grace)
        .map(Ended::of)
        .map_err(|error| Failure::new(Exit::Failed, format!("the program is lost: {error}")))
}

struct Watched {
    child: Child,
    /// The program leads a process group, which receives the signals.
    own_group: bool,
}

impl Watched {
    fn wait(mut self, signals: &mut Signals, grace: Duration) -> io::Result<ExitStatus> {
        let asked = loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if let Some(signal) = signals.wait().find(|signal| *signal != SIGCHLD) {
                break signal;
            }
        };
        self.pass(asked);
        let deadline = Instant::now() + grace;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            for signal in signals.pending().filter(|signal| *signal != SIGCHLD) {
                self.pass(signal);
            }
            thread::sleep(POLL);
        }
        self.send(Signal::SIGKILL);
        self.child.wait()
    }

    fn pass(&self, signal: i32) {
        // The terminal has already sent these to the program.
        let typed = !self.own_group && matches!(signal, SIGINT | SIGQUIT);
        if let (false, Ok(signal)) = (typed, Signal::try_from(signal)) {
            self.send(signal);
        }
    }

    fn send(&self, signal: Signal) {
        let Ok(pid) = i32::try_from(self.child.id()) else {
            return;
        };
        let pid = Pid::from_raw(pid);
        // It may have ended meanwhile.
        let _ = if self.own_group {
            signal::killpg(pid, signal)
        } else {
            signal::kill(pid, signal)
        };
    }
}

/// Destroys the services; returns what is left, as failures.
fn services_off(grant: &Grant, node: Paused, arguments: &RunArgs, common: &Common) -> Vec<Failure> {
    let retry = arguments.retry_busy;
    let node = match node.resume(common, &arguments.lock) {
        Ok(node) => node,
        Err(failure) => {
            let services: Vec<String> = grant
                .services
                .iter()
                .map(|entry| format!("service {} of {}", entry.service, entry.device))
                .collect();
            return vec![failure.hint(format!("Left behind: {}", services.join(", ")))];
        }
    };
    let progress = Progress::new(common.json);
    let tell = |waiting: &cxi_job::release::Waiting| progress.tell(waiting);
    let options = ReleaseOptions::until(retry).progress(&tell);
    let release = node.nics.release(&Filter::for_grant(grant), &options);
    progress.end();
    let mut left = epilog::left(&release, retry);
    left.extend(node.save().err());
    left
}
