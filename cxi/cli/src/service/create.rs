//! `cxi service create`.

use cxi::{Device, Limits, Member, ServiceId, ServiceSpec};
use serde::Serialize;

use super::change::Changed;
use super::cli::{CreateArgs, SpecArgs};
use super::{Listed, list};
use crate::exit::{Failure, of_device};
use crate::node::Node;
use crate::output::{Report, nics};
use crate::spec_file;

/// The request of the command line.
pub(crate) fn specification(arguments: &CreateArgs) -> Result<ServiceSpec, Failure> {
    match &arguments.from {
        Some(_) if arguments.spec != SpecArgs::default() => Err(Failure::bad_input(
            "--from cannot be combined with options that describe the service: the file says \
             it all",
        )),
        Some(path) => spec_file::read(path),
        None => from_options(&arguments.spec),
    }
}

fn from_options(options: &SpecArgs) -> Result<ServiceSpec, Failure> {
    let mut builder = ServiceSpec::builder()
        .system(options.system)
        .enabled(!options.disabled)
        .exclusive_cp(options.exclusive_cp);
    if let Some(count) = options.lnis_per_rgid {
        builder = builder.lnis_per_rgid(count);
    }
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
            Failure::bad_input("no VNIs: expected --vni, or --vni-range for a block")
        }
        error => Failure::bad_input(error.to_string()),
    })
}

pub(crate) fn run(node: &Node, spec: &ServiceSpec) -> Result<Report, Failure> {
    #[derive(Serialize)]
    struct Created {
        created: Vec<Changed>,
    }
    let mut made: Vec<(&Device, ServiceId)> = Vec::new();
    for device in node.devices() {
        match device.services().create(spec) {
            Ok(id) => made.push((device, id)),
            Err(error) => return Err(undo(of_device(&error), &made)),
        }
    }
    let ids = made.iter().map(|(device, id)| (device.id(), *id));
    let mut text = String::new();
    for (devices, id) in nics::merge(ids.clone()) {
        text += &format!("Created service {id} on {}", nics::name(&devices));
        let first = made.iter().find(|(_, other)| *other == id);
        if let Some((device, id)) = first
            && let Ok(service) = device.services().get(*id)
        {
            text += &format!(": for {}", list::summary(&Listed::new(device, service)));
        }
        text.push('\n');
    }
    let created = ids
        .map(|(device, service)| Changed { device, service })
        .collect();
    Ok(Report::new(text, &Created { created }))
}

/// Destroys what was made before a failure, the last first, and reports what is left.
fn undo(mut failure: Failure, made: &[(&Device, ServiceId)]) -> Failure {
    let mut undone = Vec::new();
    for (device, id) in made.iter().rev() {
        match device.services().destroy(*id) {
            Ok(()) => undone.push(device.id()),
            Err(error) => {
                let left = format!("Service {id} of {} is left: {error}", device.id());
                failure = failure.hint(left);
            }
        }
    }
    if undone.is_empty() {
        return failure;
    }
    undone.reverse();
    failure.hint(format!(
        "What had been created on {} was destroyed again.",
        nics::name(&undone)
    ))
}
