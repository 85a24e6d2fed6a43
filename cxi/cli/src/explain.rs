//! `cxi explain`.

mod network;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use cxi::driver::{DetectedRelease, Driver};
use cxi::{Device, DeviceId, ServiceId, ServiceSpec};
use cxi_job::explain::{Explanation, Inquiry, Program};
use cxi_site::{JobId, ProcFs, durable, printable};
use serde::Serialize;

use crate::errnos::Place;
use crate::exit::{Exit, Failure};
use crate::files::{self, Input, LONGEST};
use crate::node::{Intent, Node, changing, reading};
use crate::options::Common;
use crate::output::{Report, by_nic, wrapped};
use crate::service::change::specification;
use crate::service::cli::CreateArgs;
use crate::service::found::in_use;
use crate::{errnos, job};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ExplainArgs {
    /// A message of any program, an error code such as ENOSPC, -28 or VNI_NOT_FOUND, a file with
    /// messages, or - for standard input
    ///
    /// Without it: why a program of yours has no network. Standard input is read if it has something
    /// within a second.
    #[arg(value_name = "TEXT", conflicts_with_all = ["env", "pid"])]
    text: Vec<String>,
    #[command(flatten)]
    whose: Whose,
    #[command(subcommand)]
    command: Option<ExplainCommand>,
}

/// Process or file whose network is explained, instead of this process's.
#[derive(Debug, Args)]
struct Whose {
    /// Take the environment from a file, as env prints it. Several, one from each node of a job, are
    /// compared
    #[arg(long, value_name = "FILE")]
    env: Vec<PathBuf>,
    /// Take the environment and the user from a running process
    #[arg(long, value_name = "PID", conflicts_with = "env")]
    pid: Option<u32>,
}

#[derive(Debug, Subcommand)]
enum ExplainCommand {
    /// The variables that decide about the network, what each VNI is for, and what libfabric takes.
    /// Looks at no NIC
    Env(Whose),
    /// Explain why a service cannot be created: tries to, and destroys it again (needs
    /// CAP_SYS_ADMIN)
    Create(Box<CreateArgs>),
    /// Explain why you cannot use a service: allocates an LNI, and frees it again
    Open {
        /// Service ID
        #[arg(value_name = "ID")]
        id: ServiceId,
    },
    /// Show the members of a service, its use of resources, and the processes that keep it from
    /// being destroyed or disabled. Changes nothing
    #[command(visible_alias = "service")]
    Busy {
        /// Service ID
        #[arg(value_name = "ID")]
        id: ServiceId,
    },
    /// The state of a job, on this node and on the controller, and the next command for it. Changes
    /// nothing
    Job {
        /// The job
        job: JobId,
    },
}

impl ExplainArgs {
    /// Returns whether it changes nothing, so that it can be repeated.
    pub(crate) fn only_looks(&self) -> bool {
        matches!(self.command, Some(ExplainCommand::Busy { .. } | ExplainCommand::Job { .. }))
    }
}

#[derive(Serialize)]
struct OnNic {
    device: DeviceId,
    /// `true` if there is an obstacle.
    obstacle: bool,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Explanation>,
}

pub(crate) fn run(arguments: &ExplainArgs, common: &Common) -> Result<Report, Failure> {
    let Some(command) = &arguments.command else {
        let text = match arguments.text.as_slice() {
            [] if !arguments.whose.is_this() => None,
            [] => files::waiting(LONGEST)?.filter(|input| !input.text.trim().is_empty()),
            words => Some(pasted(words)?),
        };
        let Some(text) = text else { return network::run(&arguments.whose.programs()?, common) };
        return errnos::explain(&text, &place(common));
    };
    match command {
        ExplainCommand::Env(whose) => Ok(network::environment(&whose.programs()?)),
        ExplainCommand::Create(arguments) => {
            let spec = specification(arguments)?;
            changing(common, |node| Ok(each(node, |device| create(node, device, &spec))))
        }
        ExplainCommand::Open { id } => {
            reading(common, |node| Ok(each(node, |device| open(node, device, *id))))
        }
        ExplainCommand::Busy { id } => {
            reading(common, |node| Ok(each(node, |device| busy(node, device, *id))))
        }
        ExplainCommand::Job { job } => job::explain::run(job, common),
    }
}

impl Whose {
    fn is_this(&self) -> bool {
        self.env.is_empty() && self.pid.is_none()
    }

    /// The programs, each with the name of its node.
    fn programs(&self) -> Result<Vec<(String, Program)>, Failure> {
        let proc = ProcFs::system();
        if let Some(pid) = self.pid {
            let program = Program::running(&proc, pid).map_err(|error| {
                let kind = match error.kind() {
                    io::ErrorKind::PermissionDenied => Exit::NotPermitted,
                    io::ErrorKind::NotFound => Exit::NotFound,
                    _ => Exit::Failed,
                };
                Failure::new(kind, format!("process {pid} cannot be read: {error}"))
            })?;
            return Ok(vec![(format!("process {pid}"), program)]);
        }
        let this = Program::this(&proc);
        if self.env.is_empty() {
            return Ok(vec![("this process".to_owned(), this)]);
        }
        let read = |path: &PathBuf| {
            let program = this.clone().with_file(path).map_err(|error| {
                Failure::bad_input(format!("{}: cannot be read: {error}", path.display()))
            })?;
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            Ok((program.node_name().map_or(stem, str::to_owned), program))
        };
        self.env.iter().map(read).collect()
    }
}

/// Returns the facts about this node; there need not be any, because the text may be another
/// node's.
fn place(common: &Common) -> Place {
    let unknown = Place { proc: ProcFs::system(), release: DetectedRelease::Unknown };
    let Ok(node) = Node::open(common, Intent::Read) else { return unknown };
    let driver = node.devices().first().and_then(|device| device.driver().ok());
    let release = driver.map_or(DetectedRelease::Unknown, Driver::detected_release);
    Place { proc: node.proc(), release }
}

/// The text that is to be explained: words, a file or standard input.
fn pasted(words: &[String]) -> Result<Input, Failure> {
    if let [word] = words
        && !errnos::names_one(word)
        // What is there is not known if its file system does not answer: reading says so.
        && (word == "-" || durable::answers(Path::new(word)).is_err() || Path::new(word).is_file())
    {
        return files::read_lossy(Path::new(word), LONGEST);
    }
    let text = words.join(" ");
    let start: String = text.chars().take(72).collect();
    let more = if start.len() < text.len() { "..." } else { "" };
    Ok(Input { name: format!("'{}{more}'", printable(&start)), text })
}

/// The command line with a minus sign for the hyphen of each negative number behind `explain`, so
/// that `-61` is not taken for an option.
pub(crate) fn with_signs(arguments: &[OsString]) -> Vec<OsString> {
    let is_explain = |word: &OsString| word == "explain";
    let explain = arguments.iter().position(is_explain).unwrap_or(arguments.len());
    let sign = |(index, word): (usize, &OsString)| {
        let digits = word.to_str().and_then(|word| word.strip_prefix('-'));
        match digits.filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
            Some(digits) if index > explain => format!("\u{2212}{digits}").into(),
            _ => word.clone(),
        }
    };
    arguments.iter().enumerate().map(sign).collect()
}

/// The command line with a text behind `explain` that starts like a subcommand, such as "service 5
/// is disabled"; `None` if that is not what it is.
pub(crate) fn with_text(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let explain = arguments.iter().position(|word| word == "explain")?;
    let (before, text) = arguments.split_at_checked(explain + 1)?;
    let (options, text): (Vec<_>, Vec<_>) = text.iter().cloned().partition(|word| word == "--json");
    let words: Vec<_> = text.iter().map(|word| word.to_string_lossy()).collect();
    let again = || [before, &options, &["--".into()], &text].concat();
    errnos::names_one(&words.join(" ")).then(again)
}

/// The obstacle on a NIC, or a text that there is none.
enum Answer {
    Free(String),
    Refused(Failure, Explanation),
    Failed(Failure),
}

impl Answer {
    /// Explains why a NIC refuses something about a service.
    fn refused(
        error: cxi::Error,
        node: &Node,
        inquire: impl FnOnce(Inquiry<'_>) -> Explanation,
    ) -> Self {
        let explanation = inquire(Inquiry::new(&error).proc(node.proc()));
        Self::Refused(error.into(), explanation)
    }
}

fn each(node: &Node, answer: impl Fn(&Device) -> Answer) -> Report {
    let (mut explained, mut failed) = (Vec::new(), Vec::new());
    let mut code = None;
    for device in node.devices() {
        let id = device.id();
        match answer(device) {
            Answer::Free(text) => {
                explained.push(OnNic { device: id, obstacle: false, text, explanation: None });
            }
            Answer::Refused(failure, explanation) => {
                code.get_or_insert(failure.kind() as u8);
                explained.push(OnNic {
                    device: id,
                    obstacle: true,
                    text: explanation.text(),
                    explanation: Some(explanation),
                });
            }
            Answer::Failed(failure) => {
                code.get_or_insert(failure.kind() as u8);
                failed.push(failure);
            }
        }
    }
    // The explanation is what was asked for, so it goes to standard output, with the NICs without an
    // obstacle first; the exit code tells what it is.
    let texts = |obstacle| {
        let nics = explained.iter().filter(move |nic| nic.obstacle == obstacle);
        nics.map(|nic| (nic.device, &nic.text))
    };
    let lines = by_nic(texts(false).chain(texts(true))).into_iter();
    let text: String = lines.map(|line| line + "\n").collect();
    Report::of(wrapped(&text), "explained", &explained)
        .with_failures(failed)
        .ending_with(code.unwrap_or(0))
}

fn create(node: &Node, device: &Device, spec: &ServiceSpec) -> Answer {
    match device.services().create(spec) {
        Ok(id) => match device.services().destroy(id) {
            Ok(()) => Answer::Free("OK: a test service was created and removed".to_owned()),
            Err(error) => Answer::Failed(Failure::from(error).hint(format!(
                "Service {id} of {} was created as a test and could not be destroyed.",
                device.id()
            ))),
        },
        Err(error) if error.leftover().is_some() => Answer::Failed(error.into()),
        Err(error) => Answer::refused(error, node, |why| why.device(device).spec(spec).explain()),
    }
}

fn open(node: &Node, device: &Device, id: ServiceId) -> Answer {
    match device.alloc_lni(id) {
        Ok(lni) => {
            drop(lni);
            Answer::Free(format!("you can use service {id}: an LNI was allocated, and freed again"))
        }
        Err(error) => Answer::refused(error, node, |why| why.device(device).service(id).explain()),
    }
}

fn busy(node: &Node, device: &Device, id: ServiceId) -> Answer {
    in_use(node, device, id).map_or_else(
        |error| Answer::refused(error, node, |why| why.device(device).service(id).explain()),
        Answer::Free,
    )
}
