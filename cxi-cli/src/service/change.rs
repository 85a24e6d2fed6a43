//! `cxi service destroy`, `enable` and `disable`.

use std::time::Duration;

use cxi::{Device, DeviceId, ServiceId};
use serde::Serialize;

use crate::exit::{Exit, Failure, of_device};
use crate::node::Node;
use crate::output::{Report, nics};

#[derive(Clone, Copy, Serialize)]
struct Done {
    device: DeviceId,
    service: ServiceId,
}

pub(crate) fn destroy(node: &Node, ids: &[ServiceId], wait: u32) -> Report {
    #[derive(Serialize)]
    struct Destroyed {
        destroyed: Vec<Done>,
    }
    let (done, failures) = for_each(node, ids, |device, id| {
        let services = device.services();
        if wait == 0 {
            services.destroy(id)
        } else {
            services.destroy_when_idle(id, Duration::from_secs(wait.into()))
        }
    });
    let failures = failures
        .into_iter()
        .map(|failure| match failure.kind() {
            Exit::Busy if wait == 0 => {
                failure.hint("--wait SECONDS tries until it is idle; ending its processes helps.")
            }
            _ => failure,
        })
        .collect();
    let text = told("Destroyed", &done);
    Report::new(text, &Destroyed { destroyed: done }).with_failures(failures)
}

pub(super) fn set_enabled(node: &Node, ids: &[ServiceId], enabled: bool) -> Report {
    #[derive(Serialize)]
    struct Changed {
        #[serde(skip_serializing_if = "Option::is_none")]
        enabled: Option<Vec<Done>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        disabled: Option<Vec<Done>>,
    }
    let (done, failures) = for_each(node, ids, |device, id| {
        device.services().set_enabled(id, enabled)
    });
    let text = told(if enabled { "Enabled" } else { "Disabled" }, &done);
    let changed = Changed {
        enabled: enabled.then(|| done.clone()),
        disabled: (!enabled).then_some(done),
    };
    Report::new(text, &changed).with_failures(failures)
}

/// Goes on after a failure: what can be done is done.
fn for_each(
    node: &Node,
    ids: &[ServiceId],
    change: impl Fn(&Device, ServiceId) -> cxi::Result<()>,
) -> (Vec<Done>, Vec<Failure>) {
    let mut done = Vec::new();
    let mut failures = Vec::new();
    for &service in ids {
        for device in node.devices() {
            match change(device, service) {
                Ok(()) => done.push(Done {
                    device: device.id(),
                    service,
                }),
                Err(error) => failures.push(of_device(&error)),
            }
        }
    }
    (done, failures)
}

fn told(what: &str, done: &[Done]) -> String {
    let merged = nics::merge(done.iter().map(|done| (done.device, done.service)));
    merged
        .iter()
        .map(|(devices, service)| format!("{what} service {service} on {}\n", nics::name(devices)))
        .collect()
}
