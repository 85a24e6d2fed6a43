//! What a state file holds of a mock node: how its NICs were set up, and their services. Nothing
//! else outlives the process that plays the node.

use std::sync::Arc;

use cxi::{Device, DeviceId, Members, ServiceId, ServiceSpec, VniAccess, VniList};
use cxi_mock::{Credentials, MockNode, Nic, NicConfig};
use serde::{Deserialize, Serialize};

use crate::exit::{Exit, Failure, of_device};
use crate::wanted::Wanted;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodeState {
    nics: Vec<NicState>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NicState {
    config: NicConfig,
    default_service_enabled: bool,
    /// By id.
    services: Vec<Kept>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    id: ServiceId,
    service: Wanted,
}

/// An open file of root.
pub(crate) fn open(id: DeviceId, nic: &Arc<Nic>) -> Result<Device, Failure> {
    let file = nic.open().map_err(|errno| {
        Failure::new(Exit::Failed, format!("{id}: the mock NIC cannot be opened")).errno(errno)
    })?;
    let transport = Arc::new(file.transport(Credentials::root()));
    Ok(Device::with_transport(id, transport))
}

impl NodeState {
    pub(crate) fn of(node: &MockNode) -> Result<Self, Failure> {
        let nics = (0..)
            .zip(node.nics())
            .map(|(number, nic)| {
                let device = open(DeviceId::new(number), nic)?;
                Ok(NicState {
                    config: nic.config().clone(),
                    default_service_enabled: services_enabled(&device)?,
                    services: kept(&device)?,
                })
            })
            .collect::<Result<_, Failure>>()?;
        Ok(Self { nics })
    }

    /// Makes the node again.
    pub(crate) fn restore(self) -> Result<MockNode, String> {
        let mut nics = Vec::new();
        for (number, state) in (0..).zip(self.nics) {
            let id = DeviceId::new(number);
            let nic = Nic::new(state.config).map_err(|error| format!("{id}: {error}"))?;
            let device = open(id, &nic).map_err(|error| error.to_string())?;
            device
                .services()
                .set_enabled(ServiceId::DEFAULT, state.default_service_enabled)
                .map_err(|error| error.to_string())?;
            create_all(&device, &state.services)?;
            nics.push(nic);
        }
        if nics.is_empty() {
            return Err("there is no NIC in it".to_owned());
        }
        Ok(MockNode::of(nics))
    }
}

fn services_enabled(device: &Device) -> Result<bool, Failure> {
    let default = device.services().get(ServiceId::DEFAULT);
    Ok(default.map_err(|error| of_device(&error))?.enabled())
}

fn kept(device: &Device) -> Result<Vec<Kept>, Failure> {
    let services = device.services();
    let mut list = services.list().map_err(|error| of_device(&error))?;
    list.sort_by_key(cxi::Service::id);
    list.iter()
        .filter(|service| !service.id().is_default())
        .map(|service| {
            let id = service.id();
            let spec = ServiceSpec::try_from(service).map_err(|error| {
                Failure::new(
                    Exit::Failed,
                    format!("service {id} cannot be kept: {error}"),
                )
            })?;
            // Drivers that do not know these say so; then there is nothing to keep.
            let service = Wanted {
                spec,
                lnis_per_rgid: services.lnis_per_rgid(id).ok(),
                exclusive_cp: services.exclusive_cp(id).unwrap_or_default(),
            };
            Ok(Kept { id, service })
        })
        .collect()
}

/// The driver gives out the lowest free id, so gaps are filled for the time being.
fn create_all(device: &Device, list: &[Kept]) -> Result<(), String> {
    let filler = filler()?;
    let mut fillers = Vec::new();
    let mut previous = ServiceId::DEFAULT.get();
    for Kept { id, service } in list {
        if id.get() <= previous || id.get() > MOST_SERVICES {
            return Err(format!("{}: service {id} is out of order", device.id()));
        }
        for _ in previous + 1..id.get() {
            let made = device.services().create(&filler);
            fillers.push(made.map_err(|error| error.to_string())?);
        }
        let made = service
            .create(device)
            .map_err(|unfinished| unfinished.error.to_string())?;
        if made != *id {
            return Err(format!("{}: service {id} came out as {made}", device.id()));
        }
        previous = id.get();
    }
    for id in fillers {
        device
            .services()
            .destroy(id)
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Far more than a NIC has ids for, and few enough to fill up.
const MOST_SERVICES: u32 = 1 << 16;

/// A service that takes nothing but an id.
fn filler() -> Result<ServiceSpec, String> {
    ServiceSpec::builder()
        .members(Members::default().iter())
        .vni_access(VniAccess::List(VniList::default()))
        .limits(cxi::Limits::default())
        .build()
        .map_err(|error| error.to_string())
}
