//! `cxi service list`.

use cxi::{DeviceId, Member, Resource, Service, VniAccess};
use serde::Serialize;

use super::{Found, Listed};
use crate::exit::Failure;
use crate::node::Node;
use crate::output::table::Columns;
use crate::output::{Report, nics};

/// A service as `--json` shows it.
#[derive(Serialize)]
pub(super) struct OnDevice<T> {
    pub(super) device: DeviceId,
    #[serde(flatten)]
    pub(super) value: T,
}

#[derive(Serialize)]
struct List {
    services: Vec<OnDevice<Listed>>,
}

pub(crate) fn run(node: &Node) -> Result<Report, Failure> {
    let found = super::all(node.devices())?;
    let text = table(&found).render(0);
    let services = found
        .into_iter()
        .map(|(device, value)| OnDevice { device, value })
        .collect();
    Ok(Report::new(text, &List { services }))
}

/// One line for services that are the same on several NICs.
pub(crate) fn table(found: &[Found]) -> Columns {
    let headings = [
        "NICs",
        "Service",
        "State",
        "Who",
        "VNIs",
        "Traffic classes",
        "Limits",
    ];
    let mut table = Columns::new(&headings).right(&[1]);
    for (devices, listed) in nics::merge(found.iter().copied()) {
        let service = &listed.service;
        table.row([
            nics::name(&devices),
            service.id().to_string(),
            state(service),
            who(&listed),
            service.vnis().to_string().replace(',', ", "),
            classes(service),
            limits(service),
        ]);
    }
    table
}

pub(super) fn state(service: &Service) -> String {
    let enabled = if service.is_enabled() {
        "enabled"
    } else {
        "disabled"
    };
    let system = if service.is_system() { ", system" } else { "" };
    format!("{enabled}{system}")
}

/// Who may use it, on which VNIs, and whether it is enabled.
pub(super) fn summary(listed: &Listed) -> String {
    let service = &listed.service;
    format!("{}, {}, {}", who(listed), vnis(service), state(service))
}

pub(crate) fn who(listed: &Listed) -> String {
    match (listed.service.members(), listed.netns) {
        (_, Some(inode)) => Member::NetNs(inode).to_string(),
        (None, _) => "anybody".to_owned(),
        (Some(members), _) if members.is_empty() => "nobody".to_owned(),
        (Some(members), _) => members.to_string(),
    }
}

/// With its noun: `VNI 1024`, `VNIs 1024, 1025`.
pub(crate) fn vnis(service: &Service) -> String {
    match service.vnis() {
        VniAccess::List(list) if list.is_empty() => "no VNI".to_owned(),
        VniAccess::List(list) if list.len() == 1 => format!("VNI {list}"),
        other => format!("VNIs {other}").replace(',', ", "),
    }
}

pub(super) fn classes(service: &Service) -> String {
    match service.traffic_classes() {
        None => "all".to_owned(),
        Some(classes) if classes.is_empty() => "none".to_owned(),
        Some(classes) => classes.to_string().replace(',', ", "),
    }
}

/// What is reserved, as other services cannot have that; the maxima are in `usage`.
fn limits(service: &Service) -> String {
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

/// `1 EQ`, `2 EQs`.
pub(crate) fn amount(count: u16, resource: Resource) -> String {
    let name = resource.to_string();
    let name = if count == 1 {
        name.trim_end_matches('s')
    } else {
        &name
    };
    format!("{count} {name}")
}
