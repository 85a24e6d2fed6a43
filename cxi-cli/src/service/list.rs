//! `cxi service list`.

use cxi::{DeviceId, Service, VniAccess};
use serde::Serialize;

use super::Found;
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
    services: Vec<OnDevice<Service>>,
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
    for (devices, service) in nics::merge(found.iter().copied()) {
        table.row([
            nics::name(&devices),
            service.id().to_string(),
            state(&service),
            who(&service),
            service.vnis().to_string().replace(',', ", "),
            classes(&service),
            limits(&service),
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

pub(crate) fn who(service: &Service) -> String {
    match service.members() {
        None => "anybody".to_owned(),
        Some(members) if members.is_empty() => "nobody".to_owned(),
        Some(members) => members.to_string(),
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

/// Whether something is reserved is what matters in a list; the amounts are in `usage`.
fn limits(service: &Service) -> String {
    if !service.is_limited() {
        return "none".to_owned();
    }
    let limits = service.limits();
    let reserved: Vec<_> = limits
        .iter()
        .filter(|(_, limit)| limit.reserved() > 0)
        .map(|(resource, limit)| format!("{} {resource}", limit.reserved()))
        .collect();
    match reserved.len() {
        0 => "nothing reserved".to_owned(),
        1 | 2 => format!("{} reserved", reserved.join(", ")),
        count => format!("{count} resources reserved"),
    }
}
