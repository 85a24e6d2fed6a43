//! `cxi service create`, `update`, `destroy`, `enable` and `disable`.

use cxi::driver::Quirks;
use cxi::{Device, DeviceId, Limits, ServiceId, ServiceSpec, Services, SettingChange};
use cxi_job::cluster::{ServiceRecords, SiteError, keys};
use cxi_job::owners::OwnedService;
use cxi_site::IdSet;
use cxi_site::settings::Settings;
use humantime::format_duration;

use super::cli::{CreateArgs, DestroyArgs, SpecArgs, UpdateArgs};
use super::found::{Found, all, by_id, no_service, summary};
use crate::args::once_each;
use crate::exit::{Exit, Failure};
use crate::node::Node;
use crate::output::{Progress, Report, merge, nic_names};
use crate::{audit, spec_file};

/// The specification that the command line describes.
pub(crate) fn specification(arguments: &CreateArgs) -> Result<ServiceSpec, Failure> {
    match &arguments.from {
        Some(_) if arguments.spec != SpecArgs::default() => Err(Failure::bad_input(
            "--from cannot be combined with options that describe the service: the file \
             describes it completely",
        )),
        Some(path) => spec_file::read(path),
        None => from_options(&arguments.spec),
    }
}

fn from_options(options: &SpecArgs) -> Result<ServiceSpec, Failure> {
    let mut builder = ServiceSpec::builder().enabled(!options.disabled);
    for (setting, value) in options.settings.iter() {
        builder = builder.setting(setting, value).map_err(Failure::bad_input)?;
    }
    let access = options.access.access();
    for member in access.members {
        builder = builder.member(member);
    }
    if !access.vnis.is_empty() {
        builder = builder.vnis(access.vnis);
    }
    if let Some(range) = access.vni_range {
        builder = builder.vni_range(range);
    }
    if !options.tc.is_empty() {
        builder = builder.traffic_classes(options.tc.iter().copied().collect());
    }
    if !options.limit.is_empty() {
        let mut limits = Limits::none();
        for (resource, limit) in once_each(&options.limit)? {
            limits[resource] = limit;
        }
        builder = builder.limits(limits);
    }
    builder.build().map_err(|error| match error {
        cxi::InvalidSpec::NoVnis => {
            Failure::bad_input("no VNIs: expected --vni, or --vni-range for a block")
        }
        error => Failure::bad_input(error),
    })
}

pub(super) fn create(
    node: &Node,
    spec: &ServiceSpec,
    settings: &Settings,
) -> Result<Report, Failure> {
    let mut made: Vec<(&Device, ServiceId)> = Vec::new();
    let records = ServiceRecords::of(settings)?;
    for device in node.devices() {
        let services = device.services();
        match services.create(spec) {
            Ok(id) => made.push((device, id)),
            Err(error) => return Err(undo(error.into(), &made, &records)),
        }
    }
    // Without a record it would be nobody's, and a cleanup might be ordered to take it.
    for (device, id) in &made {
        let recorded = device.services().get(*id).map_err(Failure::from).and_then(|service| {
            let made = OwnedService::of(device.id(), &service);
            Ok(records.add(made, "an administrator").map_err(SiteError::from)?)
        });
        if let Err(failure) = recorded {
            return Err(undo(failure, &made, &records));
        }
    }
    let ids: Vec<_> = made.iter().map(|(nic, id)| (nic.id(), *id)).collect();
    let mut text = String::new();
    for (devices, id) in merge(ids.iter().copied()) {
        text += &format!("Created service {id} on {}", nic_names(&devices));
        let first = made.iter().find(|(_, other)| *other == id);
        if let Some((device, id)) = first
            && let Ok(service) = device.services().get(*id)
        {
            text += &format!(": for {}", summary(&Found::new(device, service)));
        }
        text.push('\n');
    }
    let nics = cxi_job::Node::from_devices(node.devices().iter().cloned());
    let warnings = audit::shared_vnis(&nics, &ids).into_iter().chain(in_pool(spec, settings)?);
    Ok(by_id(text, "created", &ids).with_warnings(warnings))
}

/// Says that a scheduler may give a job the VNIs of a service.
fn in_pool(spec: &ServiceSpec, settings: &Settings) -> Result<Option<String>, Failure> {
    let pool = settings.get(&keys::POOL_VNIS)?;
    let vnis: IdSet = spec.vnis().iter().map(cxi::Vni::get).collect();
    let shared = vnis.intersection(&pool);
    let (noun, are, them, others, these) = match shared.len() {
        0 => return Ok(None),
        1 => ("VNI", "is", "it", "a VNI", "this one"),
        _ => ("VNIs", "are", "one", "VNIs", "these"),
    };
    Ok(Some(format!(
        "{noun} {shared} {are} in the scheduler's pool ({pool}): a job may get {them} too, and talk to \
         this service's processes; take {others} outside of the pool, or take {these} out of it \
         (setting pool.vnis)"
    )))
}

/// Destroys what was created before a failure, in reverse order, and reports what is left.
fn undo(mut failure: Failure, made: &[(&Device, ServiceId)], records: &ServiceRecords) -> Failure {
    let mut undone = Vec::new();
    for (device, id) in made.iter().rev() {
        match device.services().destroy(*id) {
            Ok(()) => {
                let _ = records.remove(device.id(), *id);
                undone.push(device.id());
            }
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
    failure.hint(format!("What had been created on {} was destroyed again.", nic_names(&undone)))
}

pub(super) fn update(
    node: &Node,
    changes: &UpdateArgs,
    settings: &Settings,
) -> Result<Report, Failure> {
    let records = ServiceRecords::of(settings)?;
    let mut unrecorded = Vec::new();
    let report = for_each(node, &changes.services.ids, "Updated", |device, id| {
        let mut device = device.clone();
        if changes.force {
            device = device.allow_quirks(Quirks::SWITCHED_EXCLUSIVE_CP);
        }
        let applied = apply(&device.services(), id, changes);
        // Even of what is done by half.
        if let Ok(service) = device.services().get(id) {
            let service = OwnedService::of(device.id(), &service);
            unrecorded.extend(records.follow(service).err().map(SiteError::from));
        }
        applied
    })?;
    Ok(report.with_failures(unrecorded.into_iter().map(Failure::from).collect()))
}

fn apply(services: &Services, id: ServiceId, changes: &UpdateArgs) -> cxi::Result<()> {
    let was_enabled = services.get(id)?.is_enabled();
    let enabled = (was_enabled || changes.enable) && !changes.disable;
    for (setting, value) in changes.settings.changed(SettingChange::Always) {
        services.set_setting(id, setting, value)?;
    }
    if let Some(range) = changes.vni_range {
        services.set_vni_range(id, range)?;
    }
    // The driver accepts these only while the service is disabled.
    let mut while_disabled = changes.settings.changed(SettingChange::WhileDisabled).peekable();
    let disabled_for_it =
        was_enabled && (while_disabled.peek().is_some() || changes.netns.is_some());
    if disabled_for_it {
        services.set_enabled(id, false)?;
    }
    let applied = while_disabled
        .try_for_each(|(setting, value)| services.set_setting(id, setting, value))
        .and_then(|()| changes.netns.map_or(Ok(()), |inode| services.set_netns(id, inode)));
    let is_enabled = was_enabled && !disabled_for_it;
    let enabled = if applied.is_ok() { enabled } else { was_enabled };
    let switched = if enabled == is_enabled { Ok(()) } else { services.set_enabled(id, enabled) };
    // The reason why it cannot be changed matters more than the reason why it cannot be enabled again.
    applied.and(switched)
}

pub(super) fn destroy(
    node: &Node,
    arguments: &DestroyArgs,
    settings: &Settings,
) -> Result<Report, Failure> {
    let wait = arguments.wait;
    let records = ServiceRecords::of(settings)?;
    // A record that stays says something about a service that is gone, which is nothing.
    let forget = |device: &Device, id| {
        let _ = records.remove(device.id(), id);
    };
    let report = for_each(node, &arguments.services.ids, "Destroyed", |device, id| {
        if wait.is_zero() {
            return device.services().destroy(id).inspect(|()| forget(device, id));
        }
        Progress::new().tell(format_args!(
            "Waiting for service {id} of {} to be idle, for at most {}",
            device.id(),
            format_duration(wait)
        ));
        device.services().destroy_when_idle(id, wait).inspect(|()| forget(device, id))
    })?;
    Ok(report.explain_failures(|failure| match failure.kind() {
        Exit::Busy if wait.is_zero() => {
            failure.hint("Try again with --wait TIME, or end the processes that use it.")
        }
        _ => failure,
    }))
}

pub(super) fn set_enabled(
    node: &Node,
    ids: &[ServiceId],
    enabled: bool,
) -> Result<Report, Failure> {
    let done = if enabled { "Enabled" } else { "Disabled" };
    for_each(node, ids, done, |device, id| device.services().set_enabled(id, enabled))
}

/// Changes services and reports what was done. Continues after a failure.
fn for_each(
    node: &Node,
    ids: &[ServiceId],
    done: &str,
    mut change: impl FnMut(&Device, ServiceId) -> cxi::Result<()>,
) -> Result<Report, Failure> {
    let found = if node.are_named() { None } else { Some(all(node.devices())?) };
    let mut changed = Vec::new();
    let mut failures = Vec::new();
    for &service in ids {
        let devices = match &found {
            None => Ok(node.devices().iter().collect()),
            Some(found) => with_service(node.devices(), found, service),
        };
        let devices = devices.unwrap_or_else(|failure| {
            failures.push(failure);
            Vec::new()
        });
        for device in devices {
            match change(device, service) {
                Ok(()) => changed.push((device.id(), service)),
                Err(error) => failures.push(error.into()),
            }
        }
    }
    let text: String = merge(changed.iter().copied())
        .iter()
        .map(|(devices, service)| format!("{done} service {service} on {}\n", nic_names(devices)))
        .collect();
    Ok(by_id(text, &done.to_lowercase(), &changed).with_failures(failures))
}

/// The NICs with a service of this ID. Each NIC numbers its services independently, so on another NIC
/// the same ID may be the service of another job. In that case the NICs must be named.
fn with_service<'a>(
    devices: &'a [Device],
    found: &[(DeviceId, Found)],
    id: ServiceId,
) -> Result<Vec<&'a Device>, Failure> {
    let having = found.iter().filter(|(_, found)| found.service.id() == id);
    let having: Vec<_> = having.collect();
    let Some((first, others)) = having.split_first() else { return Err(no_service(id, devices)) };
    if let Some((nic, other)) = others.iter().find(|(_, it)| !it.has_same_purpose(&first.1)) {
        return Err(Failure::bad_input(format!(
            "service {id} is not the same on {} ({}) and {nic} ({})",
            first.0,
            summary(&first.1),
            summary(other)
        ))
        .hint("Name the NICs with --device."));
    }
    let has = |device: &&Device| having.iter().any(|(nic, _)| *nic == device.id());
    Ok(devices.iter().filter(has).collect())
}
