//! `cxi service usage`.

use cxi::{Device, DeviceId, ResourceMap, ServiceId, Usage};
use serde::Serialize;

use super::{Listed, list};
use crate::exit::{Failure, of_device};
use crate::node::Node;
use crate::output::bar::Palette;
use crate::output::table::Columns;
use crate::output::{HEADING, Report, nics};

const BAR_WIDTH: usize = 32;

/// How much of one resource a service has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Amounts {
    /// `None` where the driver does not report it.
    pub(crate) in_use: Option<u16>,
    pub(crate) reserved: u16,
    pub(crate) max: u16,
}

#[derive(Serialize)]
struct Entry {
    device: DeviceId,
    service: ServiceId,
    tle_pool: u32,
    resources: ResourceMap<Amounts>,
}

#[derive(Serialize)]
struct List {
    usage: Vec<Entry>,
}

pub(crate) fn run(node: &Node, ids: &[ServiceId]) -> Result<Report, Failure> {
    let measured = measure(node.devices(), ids)?;
    let text = bars(&measured, Palette::of_locale());
    let usage = measured
        .into_iter()
        .map(
            |(
                device,
                Measured {
                    listed,
                    tle_pool,
                    resources,
                },
            )| Entry {
                device,
                service: listed.service.id(),
                tle_pool,
                resources,
            },
        )
        .collect();
    Ok(Report::new(text, &List { usage }))
}

/// A service with its usage.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Measured {
    pub(crate) listed: Listed,
    tle_pool: u32,
    pub(crate) resources: ResourceMap<Amounts>,
}

/// Reads the usage of the services of these ids, or of all.
pub(crate) fn measure(
    devices: &[Device],
    ids: &[ServiceId],
) -> Result<Vec<(DeviceId, Measured)>, Failure> {
    let found = super::chosen(devices, ids)?;
    let mut measured = Vec::new();
    for device in devices {
        let usage = device
            .services()
            .usage_all()
            .map_err(|error| of_device(&error))?;
        for (_, listed) in found.iter().filter(|(id, _)| *id == device.id()) {
            let id = listed.service.id();
            // A service that has gone since it was listed has nothing in use.
            if let Some(usage) = usage.iter().find(|usage| usage.service == id) {
                measured.push((device.id(), Measured::new(listed, usage)));
            }
        }
    }
    Ok(measured)
}

impl Measured {
    fn new(listed: &Listed, usage: &Usage) -> Self {
        let limits = listed.service.limits();
        Self {
            listed: *listed,
            tle_pool: usage.tle_pool,
            resources: limits.map(|resource, limit| Amounts {
                in_use: usage.reported[resource],
                reserved: limit.reserved(),
                max: limit.max(),
            }),
        }
    }
}

/// A block for each service; services that are the same on several NICs share one.
pub(crate) fn bars(measured: &[(DeviceId, Measured)], palette: Palette) -> String {
    let mut text = String::new();
    for (
        devices,
        Measured {
            listed, resources, ..
        },
    ) in nics::merge(measured.iter().copied())
    {
        let id = listed.service.id();
        let title = format!("Service {id} on {}", nics::name(&devices));
        text += &format!("{HEADING}{title}{HEADING:#}: {}\n", list::summary(&listed));
        text += &block(&resources, palette);
        text.push('\n');
    }
    if !text.is_empty() {
        text += &palette.legend();
        text.push('\n');
    }
    text
}

fn block(resources: &ResourceMap<Amounts>, palette: Palette) -> String {
    let mut table = Columns::new(&["Resource", "In use", "Reserved", "Max", ""]).right(&[1, 2, 3]);
    let mut none = Vec::new();
    for (resource, amounts) in resources.iter() {
        if amounts.max == 0 && amounts.in_use.unwrap_or_default() == 0 {
            none.push(resource.to_string());
            continue;
        }
        table.row([
            resource.to_string(),
            amounts
                .in_use
                .map_or_else(|| "-".to_owned(), |count| count.to_string()),
            amounts.reserved.to_string(),
            amounts.max.to_string(),
            palette.bar(
                BAR_WIDTH,
                amounts.in_use.unwrap_or_default().into(),
                amounts.reserved.into(),
                amounts.max.into(),
            ),
        ]);
    }
    let mut text = table.render(2);
    if !none.is_empty() {
        text += &format!("  Not available: {}\n", none.join(", "));
    }
    text
}
