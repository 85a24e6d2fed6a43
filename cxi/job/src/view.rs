//! View of a NIC: its resources and the services that hold them, read from the NIC.

use super::describe;
use super::limits::{NicUsage, ServiceUsage};
use cxi::error::Result;
use cxi::pools::LE_POOLS;
use cxi::{Device, ResourceMap, Service, ServiceId, Usage};

/// The services of a NIC at one moment, and what they use.
#[derive(Debug, Clone)]
pub(super) struct NicView {
    pub(super) services: Vec<Service>,
    pub(super) usage: NicUsage,
}

impl NicView {
    pub(super) fn read(device: &Device) -> Result<Self> {
        let list = device.services();
        let services = list.list()?;
        let in_use = list.usage_all()?;
        let totals = device.totals()?.map(|_, total| u32::from(total));
        let entries = services.iter().map(|service| entry(service, &in_use));
        let mut usage = NicUsage::new(device.id(), totals, entries.collect());
        usage.le_pool_by_maximum = device.le_pool_by_maximum()?;
        // Where the release is not known: with more of them than pools, only reservations hold one.
        usage.le_pool_by_maximum &= usage.le_pool_holders().count() <= LE_POOLS;
        Ok(Self { services, usage })
    }

    pub(super) fn service(&self, id: ServiceId) -> Option<&Service> {
        self.services.iter().find(|service| service.id() == id)
    }
}

/// Returns whether two services have the same purpose: the same members on the same VNIs.
pub(super) fn has_same_purpose(one: &Service, other: &Service) -> bool {
    one.members() == other.members() && one.vnis() == other.vnis()
}

/// Returns whether an id still belongs to the same service: ids are reused.
pub(super) fn has_same_id_and_purpose(before: &Service, now: &Service) -> bool {
    before.id() == now.id() && has_same_purpose(before, now)
}

fn entry(service: &Service, in_use: &[Usage]) -> ServiceUsage {
    let owner = describe::owner(service);
    let mut entry = ServiceUsage::new(service.id(), service.limits()).owner(owner);
    entry.system = service.is_system();
    let used = in_use.iter().find(|usage| usage.service == service.id());
    entry.in_use = used.map_or_else(ResourceMap::default, |usage| usage.reported);
    entry
}

impl NicUsage {
    /// Reads a NIC's totals, its services and what they use, for planning and forecasts
    /// (SVC_LIST_GET, SVC_RSRC_LIST_GET).
    ///
    /// # Errors
    ///
    /// EIO if the device has been removed.
    pub fn read(device: &Device) -> Result<Self> {
        NicView::read(device).map(|view| view.usage)
    }
}
