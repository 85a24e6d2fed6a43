//! A mock NIC to measure on.

use std::error::Error;

use cxi::{Device, Lni, ServiceId, ServiceSpec, Vni};
use cxi_mock::{Nic, NicConfig};

/// Anything that can go wrong on the way to a measurement.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The VNI that everything here uses.
///
/// # Errors
///
/// None.
pub fn vni() -> Result<Vni> {
    Ok(Vni::new(1024)?)
}

/// A mock NIC, opened by root.
///
/// # Errors
///
/// The mock's, on start.
pub fn device() -> Result<Device> {
    let nic = Nic::new(NicConfig::new())?;
    Ok(Device::from(nic.root()?))
}

/// An LNI of an unlimited service of its own.
///
/// # Errors
///
/// The device's.
pub fn lni(device: &Device) -> Result<(ServiceId, Lni)> {
    let service = device
        .services()
        .create(&ServiceSpec::builder().vni(vni()?).build()?)?;
    Ok((service, device.alloc_lni(service)?))
}
