//! `cxi job run`: creates services, runs a program, and destroys the services.

use std::ffi::{CString, OsString};
use std::io::{self, IsTerminal as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};
use std::{process, thread};

use cxi::Vni;
use cxi_job::cluster::{HeldRecord, NetworkOptions, ServiceRecords, SiteError};
use cxi_job::{Filter, Grant, JobRequest};
use nix::sys::signal::{self, Signal};
use nix::unistd::{Gid, Pid, Uid, User, getegid, geteuid, initgroups, setgid, setgroups, setuid};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use super::cli::RunArgs;
use super::epilog;
use super::node::JobNode;
use crate::exit::{Exit, Failure};
use crate::files::this_program;
use crate::options::Common;
use crate::output::{Report, joined, print_failures};
use crate::service::found::unnamed_vni;

/// Interval at which a program that was asked to end is checked.
const POLL: Duration = Duration::from_millis(10);

pub(super) fn run(arguments: &RunArgs, common: &Common) -> Result<Report, Failure> {
    // From here on these signals do not end this process, so that it can destroy everything that it
    // creates.
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGCHLD])
        .map_err(|error| Failure::failed(format!("cannot handle signals: {error}")))?;
    let uid = arguments.uid.unwrap_or_else(|| geteuid().as_raw());
    let (grant, node, held) = services_on(arguments, uid, common)?;
    let ended = match asked_to_end(&mut signals) {
        Some(signal) => Ok(exit_code(128 + signal)),
        None => program(arguments, uid, &grant, &mut signals, common.json),
    };
    let left = services_off(&grant, node, arguments, common);
    drop(held);
    let code = match ended {
        Ok(code) => code,
        Err(failure) => {
            // Report first why it did not run, and then what is left.
            print_failures(&left, common.json);
            return Err(failure);
        }
    };
    Ok(Report::verbatim(String::new()).with_failures(left).ending_with(code))
}

fn exit_code(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(u8::MAX)
}

fn exit_code_of(status: ExitStatus) -> u8 {
    let by_signal = status.signal().map(|signal| 128 + signal);
    exit_code(status.code().or(by_signal).unwrap_or(1))
}

fn services_on(
    arguments: &RunArgs,
    uid: u32,
    common: &Common,
) -> Result<(Grant, Option<JobNode>, Vec<HeldRecord>), Failure> {
    let records = ServiceRecords::of(&common.settings)?;
    let node = JobNode::locked(common)?;
    let vnis =
        if arguments.vni.is_empty() { vec![unused_vni(&node)?] } else { arguments.vni.clone() };
    // Do not adopt existing services: they would be destroyed when this job ends.
    let builder = JobRequest::builder().uid(uid).vnis(vnis).adopt(false);
    let shape = arguments.size.shape(&arguments.service)?;
    let request = shape.apply(builder, &NetworkOptions::default(), &common.settings)?;
    let result = node.nics.allocate(&request.build()?);
    node.save()?;
    let grant = result?;
    // If this process is killed, the next cleanup destroys them.
    let maker = format!("cxi job run (process {})", process::id());
    let held = grant.owned().into_iter().map(|service| records.hold(service, &maker));
    match held.collect::<Result<_, _>>() {
        Ok(held) => Ok((grant, node.keep_open(), held)),
        Err(error) => {
            let failure = Failure::from(SiteError::from(error));
            Err(services_off(&grant, node.keep_open(), arguments, common)
                .into_iter()
                .fold(failure, |failure, left| failure.hint(left.message())))
        }
    }
}

/// A VNI that no service of this node has.
fn unused_vni(node: &JobNode) -> Result<Vni, Failure> {
    let found = node.nics.services(|_, _| true)?;
    let services = found.iter().map(|(_, service)| service);
    unnamed_vni(1024..=u16::MAX, services).ok_or_else(|| {
        Failure::new(
            Exit::NotEnough,
            "no VNI for the program: services of this node use all VNIs from 1024 on",
        )
        .hint("Name one with --vni.")
    })
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
) -> Result<u8, Failure> {
    let environment = grant.env()?;
    let mut command = Command::new(this_program()?);
    command.args(json.then_some("--json")).args(["job", "become", "--uid"]).arg(uid.to_string());
    if let Some(gid) = arguments.gid {
        command.arg("--gid").arg(gid.to_string());
    }
    command.arg("--").args(&arguments.program);
    environment.set_on(&mut command);
    // On a terminal, the program must be in the foreground, as this process is.
    let own_group = !io::stdin().is_terminal();
    if own_group {
        command.process_group(0);
    }
    let child = command.spawn().map_err(|error| {
        Failure::new(Exit::ProgramNotStarted, format!("the program cannot be started: {error}"))
    })?;
    let watched = Watched { child, own_group };
    watched
        .wait(signals, arguments.grace)
        .map(exit_code_of)
        .map_err(|error| Failure::failed(format!("cannot wait for the program: {error}")))
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
        let Ok(pid) = i32::try_from(self.child.id()) else { return };
        let pid = Pid::from_raw(pid);
        // It may have ended in the meantime.
        let _ =
            if self.own_group { signal::killpg(pid, signal) } else { signal::kill(pid, signal) };
    }
}

/// Destroys the services. Returns a failure for each one that is left.
fn services_off(
    grant: &Grant,
    node: Option<JobNode>,
    arguments: &RunArgs,
    common: &Common,
) -> Vec<Failure> {
    let retry = arguments.retry_busy;
    let node = match node.map_or_else(|| JobNode::locked(common), Ok) {
        Ok(node) => node,
        Err(failure) => {
            let services = grant.services.iter();
            let services =
                services.map(|entry| format!("service {} of {}", entry.service, entry.device));
            return vec![failure.hint(format!("Left behind: {}", joined(services, ", ")))];
        }
    };
    let filter = Filter::for_grant(grant);
    let release = epilog::until(retry, |options| node.nics.release(&filter, options));
    let mut left = epilog::left(&release, retry);
    left.extend(node.save().err());
    let records = ServiceRecords::of(&common.settings);
    let forget = |records: ServiceRecords| {
        for service in release.services.iter().filter(|one| one.is_gone()) {
            records.remove(service.device, service.service)?;
        }
        Ok::<_, SiteError>(())
    };
    left.extend(records.map_err(SiteError::from).and_then(forget).err().map(Failure::from));
    left
}

/// Returns only on failure.
pub(super) fn become_user(uid: u32, gid: Option<u32>, program: &[OsString]) -> Failure {
    if let Err(failure) = change_user(Uid::from_raw(uid), gid.map(Gid::from_raw)) {
        return failure;
    }
    let Some((name, arguments)) = program.split_first() else {
        return Failure::bad_input("no program: expected one after --");
    };
    let error = Command::new(name).args(arguments).exec();
    let exit = match error.kind() {
        io::ErrorKind::NotFound => Exit::ProgramNotFound,
        _ => Exit::ProgramNotStarted,
    };
    Failure::new(exit, format!("{}: {error}", name.display()))
}

fn change_user(uid: Uid, gid: Option<Gid>) -> Result<(), Failure> {
    if uid == geteuid() && gid.is_none_or(|gid| gid == getegid()) {
        return Ok(());
    }
    let user = User::from_uid(uid).ok().flatten();
    let group = match (gid, &user) {
        (Some(gid), _) => gid,
        (None, Some(user)) => user.gid,
        (None, None) => {
            return Err(Failure::bad_input(format!(
                "user {uid} is unknown on this node: name its group with --gid"
            )));
        }
    };
    let groups = match user.and_then(|user| CString::new(user.name).ok()) {
        Some(name) => initgroups(&name, group),
        None => setgroups(&[group]),
    };
    groups.and_then(|()| setgid(group)).and_then(|()| setuid(uid)).map_err(|errno| {
        Failure::new(
            Exit::NotPermitted,
            format!("cannot become user {uid}, group {group}: {}", errno.desc()),
        )
        .hint("Only root can run a program as another user.")
    })
}
