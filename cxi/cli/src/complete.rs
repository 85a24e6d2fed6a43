//! Completion of what is typed: commands and options as they are defined, and values as this machine
//! has them.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use clap::builder::StyledStr;
use clap::{Arg, Command};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use cxi::explain::causes;
use cxi::{Resource, TrafficClass};

use crate::job::list;
use crate::node::{Intent, Node};
use crate::options::Common;
use crate::output::log;
use crate::service::found::{all, summary};
use crate::{app, help};

/// The variable by which a script asks for candidates.
pub(crate) const VARIABLE: &str = "COMPLETE";

/// Answers the script of a shell; `None` if none asks.
pub(crate) fn answer(arguments: &[OsString]) -> Option<ExitCode> {
    env::var_os(VARIABLE)?;
    // Nothing but candidates may be printed.
    log::be_quiet();
    let directory = env::current_dir().ok();
    let engine = CompleteEnv::with_factory(command).var(VARIABLE).bin("cxi").completer("cxi");
    match engine.try_complete(arguments, directory.as_deref()) {
        Ok(true) => Some(ExitCode::SUCCESS),
        Ok(false) => None,
        Err(_) => Some(ExitCode::FAILURE),
    }
}

/// All commands, with the candidates of their values.
fn command() -> Command {
    with_values(help::whole())
}

fn with_values(command: Command) -> Command {
    command.mut_args(with_value).mut_subcommands(with_values)
}

/// The candidates for a value follow from its name in help.
fn with_value(arg: Arg) -> Arg {
    let name = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    let find: fn() -> Vec<Candidate> = match name.as_deref() {
        Some("NICS") => nics,
        Some("ID" | "IDS") => services,
        Some("JOB") => jobs,
        Some("USER" | "UID") => || names_in("/etc/passwd"),
        Some("GROUP") => || names_in("/etc/group"),
        Some("CLASS") => classes,
        Some("RESOURCE=RESERVED:MAX") => resources,
        Some("TEXT") => errnos,
        _ => return arg,
    };
    arg.add(ArgValueCompleter::new(move |typed: &std::ffi::OsStr| {
        matching(typed.to_str().unwrap_or_default(), find())
    }))
}

/// A value, and what it is.
type Candidate = (String, Option<String>);

/// The candidates that go on as the last part of a list does.
fn matching(typed: &str, candidates: Vec<Candidate>) -> Vec<CompletionCandidate> {
    let (before, last) = typed
        .rsplit_once(',')
        .map_or(("", typed), |(_, last)| (&typed[..typed.len() - last.len()], last));
    candidates
        .into_iter()
        .filter(|(value, _)| value.starts_with(last))
        .map(|(value, about)| {
            CompletionCandidate::new(format!("{before}{value}")).help(about.map(StyledStr::from))
        })
        .collect()
}

/// The options of every command of the line that is being typed, as far as values depend on them. An
/// incomplete line names no node.
fn common() -> Option<Common> {
    let named = |word: &OsString| {
        let word = word.to_string_lossy();
        word == "--mock" || word.starts_with("--mock=") || word.starts_with("--config=")
    };
    let line: Vec<OsString> = [OsString::from("cxi")]
        .into_iter()
        .chain(env::args_os().skip(1).filter(named))
        .chain([OsString::from("devices")])
        .collect();
    let mut common = app::parse(&line).ok()?.common;
    common.complete().ok()?;
    Some(common)
}

fn node() -> Option<Node> {
    Node::open(&common()?, Intent::Read).ok()
}

fn nics() -> Vec<Candidate> {
    let node = node();
    let ids = node.iter().flat_map(Node::devices).map(|device| device.id().to_string());
    ids.chain(["all".to_owned()]).map(|name| (name, None)).collect()
}

fn services() -> Vec<Candidate> {
    let found = node().and_then(|node| all(node.devices()).ok()).unwrap_or_default();
    let mut services: Vec<Candidate> = Vec::new();
    for (_, found) in found {
        let id = found.service.id().to_string();
        if !services.iter().any(|(known, _)| *known == id) {
            services.push((id, Some(summary(&found))));
        }
    }
    services
}

fn jobs() -> Vec<Candidate> {
    let Some(common) = common() else { return Vec::new() };
    let here = list::of_node(&common).map(|(jobs, _)| jobs).unwrap_or_default();
    let controlled = list::of_controller(&common).unwrap_or_default();
    let mut jobs: Vec<Candidate> = Vec::new();
    for job in here.iter().chain(&controlled) {
        let id = job.id.to_string();
        if !jobs.iter().any(|(known, _)| *known == id) {
            jobs.push((id, Some(job.words())));
        }
    }
    jobs
}

/// The first field of each line.
fn names_in(file: impl AsRef<Path>) -> Vec<Candidate> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let names = text.lines().filter_map(|line| line.split(':').next());
    names.map(|name| (name.to_owned(), None)).collect()
}

fn classes() -> Vec<Candidate> {
    TrafficClass::ALL.map(|class| (class.to_string(), None)).into()
}

fn resources() -> Vec<Candidate> {
    Resource::ALL.map(|resource| (format!("{resource}=").to_lowercase(), None)).into()
}

fn errnos() -> Vec<Candidate> {
    let mut codes: Vec<Candidate> = Vec::new();
    for cause in causes() {
        let name = cause.code.name();
        if !codes.iter().any(|(known, _)| *known == name) {
            codes.push((name, cause.code.text().map(Into::into)));
        }
    }
    codes
}
