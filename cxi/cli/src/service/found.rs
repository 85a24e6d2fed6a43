//! The services of NICs, and their description in words.

use cxi::{Device, DeviceId, Member, Resource, Service, ServiceId, Vni, VniAccess};
use cxi_site::IdSet;
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::node::Node;
use crate::output::{Report, nic_names};

/// A service of a NIC, and the namespace whose processes may use it even if a list does not show
/// that.
#[derive(Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Found {
    #[serde(flatten)]
    pub(crate) service: Service,
    /// The network namespace that is its member, by inode number.
    pub(crate) netns: Option<u32>,
}

impl Found {
    /// Queries the network namespace of a service that seems to have no members.
    pub(crate) fn new(device: &Device, service: Service) -> Self {
        let netns = match service.members() {
            Some(members) if members.is_empty() => {
                device.services().netns(service.id()).ok().flatten()
            }
            members => members.and_then(|members| members.netns()),
        };
        Self { service, netns }
    }

    /// Returns whether two services, usually of two NICs, are for the same processes and VNIs.
    pub(super) fn has_same_purpose(&self, other: &Self) -> bool {
        let purpose = |found: &Self| (found.service.members(), found.netns, found.service.vnis());
        purpose(self) == purpose(other)
    }
}

/// All services of the NICs.
pub(crate) fn all(devices: &[Device]) -> Result<Vec<(DeviceId, Found)>, Failure> {
    let mut found = Vec::new();
    for device in devices {
        let services = device.services().list()?.into_iter();
        found.extend(services.map(|service| (device.id(), Found::new(device, service))));
    }
    Ok(found)
}

/// The services with these IDs, or all of them; each ID must exist on at least one NIC.
pub(super) fn chosen(
    devices: &[Device],
    ids: &[ServiceId],
) -> Result<Vec<(DeviceId, Found)>, Failure> {
    let mut found = all(devices)?;
    if ids.is_empty() {
        return Ok(found);
    }
    let missing = |id: &&ServiceId| !found.iter().any(|(_, found)| found.service.id() == **id);
    if let Some(id) = ids.iter().find(missing) {
        return Err(no_service(*id, devices));
    }
    found.retain(|(_, found)| ids.contains(&found.service.id()));
    Ok(found)
}

/// Reports services; as JSON by NIC and id.
pub(crate) fn by_id(text: String, name: &str, services: &[(DeviceId, ServiceId)]) -> Report {
    #[derive(Serialize)]
    struct Id {
        service: ServiceId,
    }
    let services = services.iter().map(|&(device, service)| (device, Id { service }));
    Report::by_device(text, name, &services.collect::<Vec<_>>())
}

/// The VNIs that services name.
pub(crate) fn named_vnis<'a>(services: impl IntoIterator<Item = &'a Service>) -> IdSet {
    let mut named = IdSet::new();
    for service in services {
        named.extend(service.vnis().iter().map(Vni::get));
    }
    named
}

/// The first of these VNIs that no service names.
pub(crate) fn unnamed_vni<'a>(
    vnis: impl IntoIterator<Item = u16>,
    services: impl IntoIterator<Item = &'a Service>,
) -> Option<Vni> {
    let named = named_vnis(services);
    let mut free = vnis.into_iter().filter(|vni| !named.contains(*vni));
    Vni::new(free.next()?).ok()
}

pub(super) fn no_service(id: ServiceId, devices: &[Device]) -> Failure {
    let names: Vec<_> = devices.iter().map(Device::id).collect();
    let message = format!("no service {id} on {}", nic_names(&names));
    Failure::new(Exit::NotFound, message).hint("cxi service list shows the services.")
}

pub(super) fn state(service: &Service) -> String {
    let enabled = if service.is_enabled() { "enabled" } else { "disabled" };
    let system = if service.is_system() { ", system" } else { "" };
    format!("{enabled}{system}")
}

/// Returns the members, the VNIs and the state.
pub(crate) fn summary(found: &Found) -> String {
    let service = &found.service;
    format!("{}, {}, {}", who(found), vnis(service.vnis()), state(service))
}

pub(crate) fn who(found: &Found) -> String {
    match (found.service.members(), found.netns) {
        (_, Some(inode)) => Member::NetNs(inode).to_string(),
        (None, _) => "everyone".to_owned(),
        (Some(members), _) if members.is_empty() => "no one".to_owned(),
        (Some(members), _) => members.to_string(),
    }
}

/// With the noun, as in `VNI 1024` and `VNIs 1024,1025`.
pub(crate) fn vnis(access: VniAccess) -> String {
    match access {
        VniAccess::List(list) if list.is_empty() => "no VNI".to_owned(),
        VniAccess::List(list) if list.len() == 1 => format!("VNI {list}"),
        other => format!("VNIs {other}"),
    }
}

pub(super) fn classes(service: &Service) -> String {
    match service.traffic_classes() {
        None => "all".to_owned(),
        Some(classes) if classes.is_empty() => "none".to_owned(),
        // In the spelling of options and settings.
        Some(classes) => classes.to_string(),
    }
}

/// The reservations, which limit other services; the maxima are in `usage`.
pub(super) fn limits(service: &Service) -> String {
    if !service.is_limited() {
        return "none".to_owned();
    }
    let limits = service.limits();
    let reserved: Vec<_> = limits
        .iter()
        .filter(|(_, limit)| limit.reserved() > 0)
        .map(|(resource, limit)| amount(limit.reserved(), resource))
        .collect();
    if reserved.is_empty() {
        "nothing reserved".to_owned()
    } else {
        format!("{} reserved", reserved.join(", "))
    }
}

/// Returns the members of a service, and the amount of each resource in use.
pub(crate) fn in_use(node: &Node, device: &Device, id: ServiceId) -> cxi::Result<String> {
    let services = device.services();
    let (service, usage) = (services.get(id)?, services.usage(id)?);
    let used: Vec<String> = usage
        .reported
        .iter()
        .filter_map(|(resource, count)| {
            let count = (*count).filter(|count| *count > 0)?;
            Some(amount(count, resource))
        })
        .collect();
    let used = if used.is_empty() {
        "none of its resources are in use".to_owned()
    } else {
        format!("in use: {}", used.join(", "))
    };
    let users = node.proc().users_of(device.id());
    Ok(format!(
        "service {id} (for {}, {}): {used}; {}",
        who(&Found::new(device, service)),
        vnis(service.vnis()),
        users.among(service.members().as_ref())
    ))
}

/// `1 EQ`, `2 EQs`.
pub(crate) fn amount(count: u16, resource: Resource) -> String {
    let name = resource.to_string();
    let name = if count == 1 { name.trim_end_matches('s') } else { &name };
    format!("{count} {name}")
}
