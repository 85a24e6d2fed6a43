//! `cxi explain`.

use clap::Subcommand;
use cxi::{Device, DeviceId, ServiceId, ServiceSpec};
use cxi_job::ProcFs;
use cxi_job::explain::{Explanation, Inquiry};
use serde::Serialize;

use crate::exit::{Failure, of_device};
use crate::node::{Node, changing, reading};
use crate::options::Common;
use crate::output::{Report, nics};
use crate::service::cli::CreateArgs;
use crate::service::create::specification;
use crate::service::{Listed, list};

#[derive(Debug, Subcommand)]
pub(crate) enum ExplainCommand {
    /// Why a service cannot be created: tries to, and destroys it again (needs CAP_SYS_ADMIN)
    Create(Box<CreateArgs>),
    /// Why you cannot use a service: allocates an LNI, and frees it again
    Open {
        /// Service id
        #[arg(value_name = "ID")]
        id: ServiceId,
    },
    /// Why a service cannot be destroyed or disabled: shows who is using it. Changes nothing
    Busy {
        /// Service id
        #[arg(value_name = "ID")]
        id: ServiceId,
    },
}

#[derive(Serialize)]
struct Explained {
    explained: Vec<OnNic>,
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

pub(crate) fn run(command: &ExplainCommand, common: &Common) -> Result<Report, Failure> {
    match command {
        ExplainCommand::Create(arguments) => {
            let spec = specification(arguments)?;
            changing(common, |node| {
                Ok(each(node, |device| create(device, &node.proc(), &spec)))
            })
        }
        ExplainCommand::Open { id } => reading(common, |node| {
            Ok(each(node, |device| open(device, &node.proc(), *id)))
        }),
        ExplainCommand::Busy { id } => reading(common, |node| {
            Ok(each(node, |device| busy(device, &node.proc(), *id)))
        }),
    }
}

/// The obstacle on a NIC, or a text that there is none.
enum Answer {
    Free(String),
    Refused(Failure, Explanation),
    Failed(Failure),
}

fn each(node: &Node, answer: impl Fn(&Device) -> Answer) -> Report {
    let (mut explained, mut refused, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    let mut code = None;
    for device in node.devices() {
        let id = device.id();
        match answer(device) {
            Answer::Free(text) => explained.push(OnNic {
                device: id,
                obstacle: false,
                text,
                explanation: None,
            }),
            Answer::Refused(failure, explanation) => {
                let text = explanation.text();
                refused.push((id, text.clone()));
                code.get_or_insert(failure.kind() as u8);
                explained.push(OnNic {
                    device: id,
                    obstacle: true,
                    text,
                    explanation: Some(explanation),
                });
            }
            Answer::Failed(failure) => {
                code.get_or_insert(failure.kind() as u8);
                failed.push(failure);
            }
        }
    }
    let free = explained.iter().filter(|nic| !nic.obstacle);
    let free = free.map(|nic| (nic.device, nic.text.clone()));
    // The explanation is what was asked for, so it goes to standard output; the exit code tells
    // what it is.
    let text: String = nics::merge(free.chain(refused))
        .into_iter()
        .map(|(devices, text)| format!("{}: {text}\n", nics::name(&devices)))
        .collect();
    Report::new(text, &Explained { explained })
        .with_failures(failed)
        .ending_with(code.unwrap_or(0))
}

fn create(device: &Device, proc: &ProcFs, spec: &ServiceSpec) -> Answer {
    match device.services().create(spec) {
        Ok(id) => match device.services().destroy(id) {
            Ok(()) => Answer::Free(
                "nothing is in the way: the service was created, and destroyed again".to_owned(),
            ),
            Err(error) => Answer::Failed(of_device(&error).hint(format!(
                "Service {id} of {} was created as a test and could not be destroyed.",
                device.id()
            ))),
        },
        Err(error) if error.leftover().is_some() => Answer::Failed(of_device(&error)),
        Err(error) => {
            let inquiry = Inquiry::new(&error).device(device).proc(proc.clone());
            Answer::Refused(of_device(&error), inquiry.spec(spec).explain())
        }
    }
}

fn open(device: &Device, proc: &ProcFs, id: ServiceId) -> Answer {
    match device.alloc_lni(id) {
        Ok(lni) => {
            drop(lni);
            Answer::Free(format!(
                "you can use service {id}: an LNI was allocated, and freed again"
            ))
        }
        Err(error) => {
            let inquiry = Inquiry::new(&error)
                .device(device)
                .proc(proc.clone())
                .service(id);
            Answer::Refused(of_device(&error), inquiry.explain())
        }
    }
}

fn busy(device: &Device, proc: &ProcFs, id: ServiceId) -> Answer {
    let services = device.services();
    let asked = services
        .get(id)
        .and_then(|service| Ok((service, services.usage(id)?)));
    let (service, usage) = match asked {
        Ok(asked) => asked,
        Err(error) => {
            let inquiry = Inquiry::new(&error)
                .device(device)
                .proc(proc.clone())
                .service(id);
            return Answer::Refused(of_device(&error), inquiry.explain());
        }
    };
    let used: Vec<String> = usage
        .reported
        .iter()
        .filter_map(|(resource, count)| {
            let count = (*count).filter(|count| *count > 0)?;
            Some(list::amount(count, resource))
        })
        .collect();
    let used = if used.is_empty() {
        "nothing of it is in use".to_owned()
    } else {
        format!("in use: {}", used.join(", "))
    };
    let users = proc.users_of(device.id()).among(service.members().as_ref());
    Answer::Free(format!(
        "service {id} (for {}, {}): {used}; {users}",
        list::who(&Listed::new(device, service)),
        list::vnis(&service),
    ))
}
