//! `cxi demo`: an allocation for a job from start to finish.

use std::sync::Arc;

use cxi::lni::{CountingEvent, Txq, TxqOptions};
use cxi::{
    Device, DeviceId, Limit, Limits, Lni, Member, Resource, ServiceId, ServiceSpec, TrafficClass,
    TrafficClasses, Vni, VniAccess,
};
use cxi_mock::Credentials;
use serde::Serialize;

use crate::exit::{Exit, Failure, of_device};
use crate::node::Node;
use crate::options::Common;
use crate::output::{HEADING, Report, nics};
use crate::service::{change, create, list, usage};

const JOB_USER: u32 = 1000;
const OTHER_USER: u32 = 2000;
const JOB_VNI: u16 = 1024;
/// More than the job has reserved, so that it also uses some of the shared part.
const QUEUES: usize = 20;
const COUNTERS: usize = 4;

#[derive(Serialize)]
struct Transcript {
    mock: bool,
    steps: Vec<Step>,
}

#[derive(Serialize)]
struct Step {
    title: String,
    text: String,
}

impl Transcript {
    fn step(&mut self, title: impl Into<String>, text: impl Into<String>) {
        self.steps.push(Step {
            title: title.into(),
            text: text.into(),
        });
    }

    fn into_report(self) -> Report {
        let mut text = String::new();
        for (number, step) in (0..).zip(&self.steps) {
            let Step { title, text: body } = step;
            text += &match number {
                0 => format!("{HEADING}{title}{HEADING:#}\n"),
                _ => format!("\n{HEADING}{number}. {title}{HEADING:#}\n"),
            };
            for line in body.lines() {
                text += format!("   {line}").trim_end();
                text.push('\n');
            }
        }
        Report::new(text, &self)
    }
}

pub(crate) fn run(common: &Common) -> Result<Report, Failure> {
    if common.device.is_some() || matches!(common.mock, Some(Some(_))) {
        return Err(Failure::bad_input(
            "demo works on all NICs of a temporary mock node: leave out --device and the state file",
        ));
    }
    let node = Node::throwaway(common)?;
    let mut transcript = Transcript {
        mock: true,
        steps: Vec::new(),
    };
    play(&node, &mut transcript)?;
    Ok(transcript.into_report())
}

fn play(node: &Node, transcript: &mut Transcript) -> Result<(), Failure> {
    let ids: Vec<_> = node.devices().iter().map(Device::id).collect();
    let release = node.mock_nics().first().map(|nic| nic.config().release);
    transcript.step(
        format!("A mock node with {}", nics::name(&ids)),
        format!(
            "No hardware is touched: this program simulates the NICs and their driver{}.",
            release.map_or_else(String::new, |release| format!(" ({release})"))
        ),
    );

    let created = create::run(node, &job_service()?)?;
    transcript.step(
        format!("The scheduler gives a job of user {JOB_USER} VNI {JOB_VNI} on every NIC"),
        created.text(),
    );
    transcript.step("These services exist now", list::run(node)?.text());

    let services = job_services(node)?;
    let processes = start_job(node, &services)?;
    let numbers: Vec<_> = processes
        .iter()
        .map(|process| format!("LNI {} on {}", process.lni.id(), process.lni.device().id()))
        .collect();
    transcript.step(
        "The job starts and opens the NICs; another user may not",
        format!(
            "user {JOB_USER}: has {}\nuser {OTHER_USER}: {}",
            numbers.join(", "),
            refusal_of_other_user(node, &services)?
        ),
    );
    let ids: Vec<_> = services.iter().map(|(_, id)| *id).collect();
    transcript.step("What the job has", usage::run(node, &ids)?.text());

    let refusal = match create::run(node, &too_large()?) {
        Err(refusal) => refusal.to_string(),
        Ok(_) => return Err(unexpected("a service that is too large was created")),
    };
    transcript.step(
        "Another job asks for more than is left, and learns what is short",
        refusal,
    );

    let busy = destroy(node, &services);
    drop(processes);
    let done = destroy(node, &services);
    transcript.step(
        "The job is over: its service can be destroyed once its last process is gone",
        format!("while the job runs: {busy}\nafterwards: {done}"),
    );
    transcript.step("Nothing of it is left", list::run(node)?.text());
    Ok(())
}

fn job_service() -> Result<ServiceSpec, Failure> {
    let limits = [
        (Resource::Ptes, 48, 256),
        (Resource::Txqs, 16, 128),
        (Resource::Tgqs, 8, 64),
        (Resource::Eqs, 16, 128),
        (Resource::Cts, 8, 64),
        (Resource::Les, 128, 4096),
        (Resource::Tles, 8, 8),
        (Resource::Acs, 16, 64),
    ];
    service(JOB_USER, JOB_VNI, &limits)
}

fn too_large() -> Result<ServiceSpec, Failure> {
    let limits = [(Resource::Ptes, 64, 256), (Resource::Txqs, 1020, 1020)];
    service(OTHER_USER, JOB_VNI + 1, &limits)
}

fn service(uid: u32, vni: u16, limits: &[(Resource, u16, u16)]) -> Result<ServiceSpec, Failure> {
    let wrong = |error: &dyn std::error::Error| unexpected(&error.to_string());
    let mut all = Limits::none();
    for &(resource, reserved, max) in limits {
        all[resource] = Limit::new(reserved, max).map_err(|error| wrong(&error))?;
    }
    let builder = ServiceSpec::builder()
        .member(Member::Uid(uid))
        .vni(Vni::new(vni).map_err(|error| wrong(&error))?)
        .traffic_classes(TrafficClasses::LOW_LATENCY | TrafficClasses::BEST_EFFORT)
        .limits(all);
    builder.build().map_err(|error| wrong(&error))
}

/// The services other than the default ones.
fn job_services(node: &Node) -> Result<Vec<(DeviceId, ServiceId)>, Failure> {
    Ok(crate::service::all(node.devices())?
        .iter()
        .map(|(device, listed)| (*device, listed.service.id()))
        .filter(|(_, id)| !id.is_default())
        .collect())
}

/// A process of the job with what it has allocated on a NIC.
struct Process {
    lni: Lni,
    _queues: Vec<Txq>,
    _counters: Vec<CountingEvent>,
}

fn work(device: &Device, service: ServiceId) -> cxi::Result<Process> {
    let lni = device.alloc_lni(service)?;
    let vnis = device.services().get(service)?.vnis();
    let profile = match vnis {
        VniAccess::List(list) => list.iter().next(),
        _ => None,
    }
    .map(|vni| lni.alloc_cp(vni, TrafficClass::BestEffort))
    .transpose()?;
    let queues = profile
        .iter()
        .flat_map(|profile| (0..QUEUES).map(|_| lni.alloc_txq(profile, &TxqOptions::new(256))))
        .collect::<cxi::Result<_>>()?;
    let counters = (0..COUNTERS)
        .map(|_| lni.alloc_ct())
        .collect::<cxi::Result<_>>()?;
    Ok(Process {
        lni,
        _queues: queues,
        _counters: counters,
    })
}

fn start_job(node: &Node, services: &[(DeviceId, ServiceId)]) -> Result<Vec<Process>, Failure> {
    services
        .iter()
        .map(|(device, service)| {
            let device = open_as(node, *device, JOB_USER)?;
            work(&device, *service).map_err(|error| of_device(&error))
        })
        .collect()
}

fn refusal_of_other_user(
    node: &Node,
    services: &[(DeviceId, ServiceId)],
) -> Result<String, Failure> {
    let Some((device, service)) = services.first() else {
        return Err(unexpected("there is no service"));
    };
    match open_as(node, *device, OTHER_USER)?.alloc_lni(*service) {
        Err(error) => Ok(error.to_string()),
        Ok(_) => Err(unexpected("another user was let in")),
    }
}

fn open_as(node: &Node, id: DeviceId, uid: u32) -> Result<Device, Failure> {
    let found = (0..)
        .zip(node.mock_nics())
        .find(|(number, _)| *number == id.number());
    let Some((_, nic)) = found else {
        return Err(unexpected("a NIC is missing"));
    };
    let file = nic
        .open()
        .map_err(|errno| unexpected("a NIC cannot be opened").errno(errno))?;
    let transport = Arc::new(file.transport(Credentials::user(uid, uid)));
    Ok(Device::with_transport(id, transport))
}

/// The text for the first NIC where it does not work, or for all if it does.
fn destroy(node: &Node, services: &[(DeviceId, ServiceId)]) -> String {
    let mut ids: Vec<_> = services.iter().map(|(_, id)| *id).collect();
    ids.dedup();
    let report = change::destroy(node, &ids, 0);
    report
        .failures()
        .first()
        .map_or_else(|| report.text().trim_end().to_owned(), Failure::message)
}

fn unexpected(what: &str) -> Failure {
    Failure::new(Exit::Failed, format!("the demo went wrong: {what}"))
}
