//! Services that have been idle for a long time.

use serde::{Deserialize, Serialize};
use std::time::Duration;

use super::{AuditOptions, Code, Finding, Seen};
use crate::describe;
use crate::explain::is_idle;
use cxi::{DeviceId, Members, Service, ServiceId, VniAccess};
use cxi_site::pool::Timestamp;

/// Services that were idle at some moment, and since when. Pass it to the next audit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Observation {
    /// The services that were idle.
    pub idle: Vec<IdleService>,
}

/// A service with nothing in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct IdleService {
    /// The NIC.
    pub device: DeviceId,
    /// The service.
    pub service: ServiceId,
    /// Its members; `None` for everyone.
    pub members: Option<Members>,
    /// Its VNIs.
    pub vnis: VniAccess,
    /// When it was first seen idle.
    pub since: Timestamp,
}

impl IdleService {
    fn is(&self, device: DeviceId, service: &Service) -> bool {
        self.device == device
            && self.service == service.id()
            && self.members == service.members()
            && self.vnis == service.vnis()
    }
}

impl Observation {
    pub(super) fn of(seen: &[Seen], options: &AuditOptions<'_>) -> Self {
        let mut idle = Vec::new();
        for nic in seen {
            for usage in nic.view.usage.services.iter().filter(|usage| is_idle(usage)) {
                let Some(service) = nic.view.service(usage.service) else { continue };
                if service.id().is_default() || service.is_system() {
                    continue;
                }
                let earlier = options.earlier.and_then(|earlier| {
                    let mut idle = earlier.idle.iter();
                    idle.find(|before| before.is(nic.device, service))
                });
                idle.push(IdleService {
                    device: nic.device,
                    service: service.id(),
                    members: service.members(),
                    vnis: service.vnis(),
                    since: earlier.map_or(options.now, |before| before.since),
                });
            }
        }
        Self { idle }
    }
}

pub(super) fn check(
    observation: &Observation,
    seen: &[Seen],
    options: &AuditOptions<'_>,
) -> Vec<Finding> {
    if options.earlier.is_none() {
        return Vec::new();
    }
    let long = observation.idle.iter().filter_map(|idle| {
        let time = options.now.since(idle.since);
        if time.is_zero() || time < options.idle_after {
            return None;
        }
        let nic = seen.iter().find(|nic| nic.device == idle.device)?;
        let service = nic.view.service(idle.service)?;
        let text = format!(
            "{} has nothing in use for {}: if its job has ended, release it",
            describe::service(service),
            words(time)
        );
        Some(Finding::new(Code::Idle, idle.device, Some(idle.service), text))
    });
    long.collect()
}

fn words(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}
