//! `cxi explain`.

use clap::{Args, Subcommand};
use cxi::{Device, DeviceId, ServiceId, ServiceSpec};
use cxi_job::JobId;
use cxi_job::explain::{Explanation, Inquiry};
use serde::Serialize;

use crate::exit::Failure;
use crate::node::{Node, changing, reading};
use crate::options::Common;
use crate::output::{Report, by_nic, wrapped};
use crate::service::change::specification;
use crate::service::cli::CreateArgs;
use crate::service::found::in_use;
use crate::{errnos, job};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ExplainArgs {
    /// An errno such as ENOSPC, or a message that names one
    #[arg(required = true, value_name = "TEXT")]
    text: Vec<String>,
    #[command(subcommand)]
    command: Option<ExplainCommand>,
}

#[derive(Debug, Subcommand)]
enum ExplainCommand {
    /// Why a service cannot be created: tries to, and destroys it again (needs CAP_SYS_ADMIN)
    Create(Box<CreateArgs>),
    /// Why you cannot use a service: allocates an LNI, and frees it again
    Open {
        /// Service ID
        #[arg(value_name = "ID")]
        id: ServiceId,
    },
    /// Who may use a service, how much of it is in use, and which processes keep it from being
    /// destroyed or disabled. Changes nothing
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
    /// Whether it changes nothing, so that it can be repeated.
    pub(crate) fn only_looks(&self) -> bool {
        matches!(self.command, Some(ExplainCommand::Busy { .. } | ExplainCommand::Job { .. }))
    }
}

#[derive(Serialize)]
struct OnNic {
    device: DeviceId,
    /// Whether there is an obstacle.
    obstacle: bool,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Explanation>,
}

pub(crate) fn run(arguments: &ExplainArgs, common: &Common) -> Result<Report, Failure> {
    let Some(command) = &arguments.command else { return errnos::explain(&arguments.text) };
    match command {
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

/// The obstacle on a NIC, or a text that there is none.
enum Answer {
    Free(String),
    Refused(Failure, Explanation),
    Failed(Failure),
}

impl Answer {
    /// Why a NIC refuses something about a service.
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
            Ok(()) => Answer::Free(
                "nothing is in the way: the service was created, and destroyed again".to_owned(),
            ),
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
