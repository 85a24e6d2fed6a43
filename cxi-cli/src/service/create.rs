//! `cxi service create`.

use cxi::{Device, DeviceId, Limits, Member, ServiceId, ServiceSpec};
use serde::Serialize;

use super::cli::{CreateArgs, SpecArgs};
use super::list;
use crate::exit::{Failure, of_device};
use crate::node::Node;
use crate::output::{Report, nics};
use crate::spec_file;
use crate::wanted::{Unfinished, Wanted};

/// What the command line asks for.
pub(crate) fn wanted(arguments: &CreateArgs) -> Result<Wanted, Failure> {
    let spec = match &arguments.from {
        Some(_) if arguments.spec != SpecArgs::default() => {
            return Err(Failure::bad_input(
                "--from cannot be combined with options that describe the service: the file says \
                 it all",
            )
            .hint("--lnis-per-rgid and --exclusive-cp, which a file cannot say, can be added."));
        }
        Some(path) => spec_file::read(path)?,
        None => from_options(&arguments.spec)?,
    };
    Ok(Wanted {
        spec,
        lnis_per_rgid: arguments.lnis_per_rgid,
        exclusive_cp: arguments.exclusive_cp,
    })
}

fn from_options(options: &SpecArgs) -> Result<ServiceSpec, Failure> {
    let mut builder = ServiceSpec::builder()
        .system(options.system)
        .enabled(!options.disabled);
    let members = options
        .uid
        .iter()
        .map(|uid| Member::Uid(*uid))
        .chain(options.gid.iter().map(|gid| Member::Gid(*gid)))
        .chain(options.netns.map(|netns| Member::NetNs(netns.0)));
    for member in members {
        builder = builder.member(member);
    }
    if !options.vni.is_empty() {
        builder = builder.vnis(options.vni.iter().copied());
    }
    if let Some(range) = options.vni_range {
        builder = builder.vni_range(range);
    }
    if !options.tc.is_empty() {
        builder = builder.traffic_classes(options.tc.iter().copied().collect());
    }
    let mut named = Vec::new();
    let mut limits = Limits::none();
    for given in &options.limit {
        if named.contains(&given.resource) {
            return Err(Failure::bad_input(format!(
                "--limit names {} twice: expected each resource once",
                given.resource
            )));
        }
        named.push(given.resource);
        limits[given.resource] = given.limit;
    }
    if !named.is_empty() {
        builder = builder.limits(limits);
    }
    builder.build().map_err(|error| match error {
        cxi::InvalidSpec::NoVnis => {
            Failure::bad_input("no VNIs: name them with --vni, or a block of them with --vni-range")
        }
        error => Failure::bad_input(error.to_string()),
    })
}

#[derive(Serialize)]
struct Created {
    created: Vec<One>,
}

#[derive(Serialize)]
struct One {
    device: DeviceId,
    service: ServiceId,
}

pub(crate) fn run(node: &Node, wanted: &Wanted) -> Result<Report, Failure> {
    let mut made: Vec<(&Device, ServiceId)> = Vec::new();
    for device in node.devices() {
        match wanted.create(device) {
            Ok(id) => made.push((device, id)),
            Err(Unfinished { made: part, error }) => {
                made.extend(part.map(|id| (device, id)));
                return Err(undo(of_device(&error), &made));
            }
        }
    }
    let ids = made.iter().map(|(device, id)| (device.id(), *id));
    let mut text = String::new();
    for (devices, id) in nics::merge(ids.clone()) {
        text += &format!("Created service {id} on {}", nics::name(&devices));
        let one = made.iter().find(|(_, other)| *other == id);
        if let Some((device, id)) = one
            && let Ok(service) = device.services().get(*id)
        {
            text += &format!(
                ": for {}, {}, {}",
                list::who(&service),
                list::vnis(&service),
                list::state(&service)
            );
        }
        text.push('\n');
    }
    let created = ids
        .map(|(device, service)| One { device, service })
        .collect();
    Ok(Report::new(text, &Created { created }))
}

/// Destroys what was made before a failure, the last first, and says what is left.
fn undo(failure: Failure, made: &[(&Device, ServiceId)]) -> Failure {
    let mut undone = Vec::new();
    let mut told = failure;
    for (device, id) in made.iter().rev() {
        match device.services().destroy(*id) {
            Ok(()) => undone.push(device.id()),
            Err(error) => {
                told = told.hint(format!("Service {id} of {} is left: {error}", device.id()));
            }
        }
    }
    if undone.is_empty() {
        return told;
    }
    undone.reverse();
    told.hint(format!(
        "What had been created on {} was destroyed again.",
        nics::name(&undone)
    ))
}
