//! `cxi service update`, `destroy`, `enable` and `disable`.

use std::time::Duration;

use cxi::driver::Quirks;
use cxi::{Device, DeviceId, ServiceId, Services};
use serde::Serialize;

use super::cli::UpdateArgs;
use crate::args::NetNsArg;
use crate::exit::{Exit, Failure, of_device};
use crate::node::Node;
use crate::output::{Report, nics};

/// A service that a command made, changed or destroyed.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Changed {
    pub(super) device: DeviceId,
    pub(super) service: ServiceId,
}

pub(super) fn update(node: &Node, ids: &[ServiceId], changes: &UpdateArgs) -> Report {
    #[derive(Serialize)]
    struct Updated {
        updated: Vec<Changed>,
    }
    let (updated, failures) = for_each(node, ids, |device, id| {
        if changes.force {
            let device = device.clone().allow_quirks(Quirks::SWITCHED_EXCLUSIVE_CP);
            return apply(&device.services(), id, changes);
        }
        apply(&device.services(), id, changes)
    });
    let text = sentences("Updated", &updated);
    Report::new(text, &Updated { updated }).with_failures(failures)
}

fn apply(services: &Services, id: ServiceId, changes: &UpdateArgs) -> cxi::Result<()> {
    let was_enabled = services.get(id)?.is_enabled();
    let enabled = (was_enabled || changes.enable) && !changes.disable;
    if let Some(count) = changes.lnis_per_rgid {
        services.set_lnis_per_rgid(id, count)?;
    }
    if let Some(range) = changes.vni_range {
        services.set_vni_range(id, range)?;
    }
    // The driver accepts these two only while the service is disabled.
    let disabled_for_it =
        was_enabled && (changes.exclusive_cp.is_some() || changes.netns.is_some());
    if disabled_for_it {
        services.set_enabled(id, false)?;
    }
    let applied = changes
        .exclusive_cp
        .map_or(Ok(()), |exclusive| services.set_exclusive_cp(id, exclusive))
        .and_then(|()| match changes.netns {
            Some(NetNsArg(inode)) => services.set_netns(id, inode),
            None => Ok(()),
        });
    let is_enabled = was_enabled && !disabled_for_it;
    let enabled = if applied.is_ok() {
        enabled
    } else {
        was_enabled
    };
    let switched = if enabled == is_enabled {
        Ok(())
    } else {
        services.set_enabled(id, enabled)
    };
    // Why it cannot be changed matters more than why it cannot be enabled after that.
    applied.and(switched)
}

pub(crate) fn destroy(node: &Node, ids: &[ServiceId], wait: u32) -> Report {
    #[derive(Serialize)]
    struct Destroyed {
        destroyed: Vec<Changed>,
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
                failure.hint("Try again with --wait SECONDS, or end the processes that use it.")
            }
            _ => failure,
        })
        .collect();
    let text = sentences("Destroyed", &done);
    Report::new(text, &Destroyed { destroyed: done }).with_failures(failures)
}

pub(super) fn set_enabled(node: &Node, ids: &[ServiceId], enabled: bool) -> Report {
    #[derive(Serialize)]
    struct Switched {
        #[serde(skip_serializing_if = "Option::is_none")]
        enabled: Option<Vec<Changed>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        disabled: Option<Vec<Changed>>,
    }
    let (done, failures) = for_each(node, ids, |device, id| {
        device.services().set_enabled(id, enabled)
    });
    let text = sentences(if enabled { "Enabled" } else { "Disabled" }, &done);
    let switched = Switched {
        enabled: enabled.then(|| done.clone()),
        disabled: (!enabled).then_some(done),
    };
    Report::new(text, &switched).with_failures(failures)
}

/// Goes on after a failure, and does what can be done.
fn for_each(
    node: &Node,
    ids: &[ServiceId],
    change: impl Fn(&Device, ServiceId) -> cxi::Result<()>,
) -> (Vec<Changed>, Vec<Failure>) {
    let mut done = Vec::new();
    let mut failures = Vec::new();
    for &service in ids {
        for device in node.devices() {
            match change(device, service) {
                Ok(()) => done.push(Changed {
                    device: device.id(),
                    service,
                }),
                Err(error) => failures.push(of_device(&error)),
            }
        }
    }
    (done, failures)
}

fn sentences(what: &str, done: &[Changed]) -> String {
    let merged = nics::merge(done.iter().map(|done| (done.device, done.service)));
    merged
        .iter()
        .map(|(devices, service)| format!("{what} service {service} on {}\n", nics::name(devices)))
        .collect()
}
