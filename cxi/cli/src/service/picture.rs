//! `cxi service usage --svg`: a picture of who has what of each NIC.

use cxi::{Device, DeviceId, Resource};

use super::found::summary;
use super::show::Measured;
use crate::exit::Failure;
use crate::output::svg::{self, rect, text};
use crate::output::{merge, nic_names};

/// The colors of services, which people with a color vision deficiency can tell apart (Okabe and Ito).
const COLORS: [&str; 7] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442"];
const WIDTH: f64 = 860.0;
/// Start and length of bars; the total is behind them.
const LEFT: f64 = 60.0;
const LONG: f64 = 700.0;
const ROW: f64 = 24.0;
const BAR: f64 = 16.0;

/// One NIC, or several that are the same: a bar for each resource, with a strip for each service, whose
/// solid part is in use and whose pale part is only reserved.
pub(super) fn svg(
    devices: &[Device],
    measured: &[(DeviceId, Measured)],
) -> Result<String, Failure> {
    let mut nics = Vec::new();
    for device in devices {
        let of_device = measured.iter().filter(|(id, _)| *id == device.id());
        let services: Vec<Measured> = of_device.map(|(_, measured)| *measured).collect();
        let totals = device.availability()?.resources.map(|_, level| level.total);
        nics.push((device.id(), (totals, services)));
    }
    let (mut body, mut y) = (String::new(), 8.0);
    for (ids, (totals, services)) in merge(nics) {
        y += ROW;
        text(&mut body, 8.0, y - 7.0, &nic_names(&ids), "bold");
        for (resource, total) in totals.iter() {
            bar(&mut body, y, resource, *total, &services);
            y += ROW;
        }
        for (place, measured) in services.iter().enumerate() {
            let color = COLORS[place % COLORS.len()];
            rect(&mut body, (LEFT, y + 4.0), (12.0, 12.0), color, 1.0, "");
            let name = format!("service {}: {}", measured.service, summary(&measured.found));
            text(&mut body, LEFT + 18.0, y + 14.0, &name, "normal");
            y += ROW;
        }
    }
    text(&mut body, LEFT, y + 14.0, "solid: in use   pale: reserved   gray: free", "normal");
    Ok(svg::whole(WIDTH, y + ROW, &body))
}

fn bar(body: &mut String, y: f64, resource: Resource, total: u16, services: &[Measured]) {
    text(body, 8.0, y + 13.0, &resource.to_string(), "normal");
    rect(body, (LEFT, y), (LONG, BAR), "#dddddd", 1.0, "");
    text(body, LEFT + LONG + 8.0, y + 13.0, &total.to_string(), "normal");
    let length = |count: u16| LONG * f64::from(count) / f64::from(total.max(1));
    let mut x = LEFT;
    for (place, measured) in services.iter().enumerate() {
        let amounts = &measured.resources[resource];
        let used = amounts.in_use.unwrap_or_default();
        let (used, taken) = (used, used.max(amounts.reserved));
        let color = COLORS[place % COLORS.len()];
        let about = format!(
            "service {}: {used} {resource} in use, {} reserved",
            measured.service, amounts.reserved
        );
        // Services may together use more than there seems to be, while others end.
        let room = (LEFT + LONG - x).max(0.0);
        if taken > 0 {
            rect(body, (x, y), (length(taken).min(room), BAR), color, 0.35, &about);
            rect(body, (x, y), (length(used).min(room), BAR), color, 1.0, &about);
        }
        x += length(taken).min(room);
    }
}
