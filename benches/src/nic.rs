//! The NIC to measure on: a mock, or the one that is named.
//!
//! On a named NIC the caller needs CAP_SYS_ADMIN in the initial user namespace for the series that
//! make services. They use VNIs from 64,200 on. What they make is gone when they end, also when
//! they panic.

use std::sync::LazyLock;
use std::time::Duration;

use crate::mock::{self, Result};
use crate::run::skip;
use cxi::{Device, DeviceId, Limits, Lni, ServiceId, ServiceSpec, Vni};

/// The variable that names a NIC.
const VARIABLE: &str = "CXI_BENCH_DEVICE";

/// How long a NIC may take to clean up after an LNI.
const IDLE: Duration = Duration::from_secs(10);

/// The NIC that is named, if one is.
///
/// # Panics
///
/// The name is none.
#[must_use]
pub fn named() -> Option<DeviceId> {
    static NAMED: LazyLock<Option<DeviceId>> = LazyLock::new(|| {
        let name = std::env::var(VARIABLE).ok()?;
        let id = name.parse();
        Some(id.unwrap_or_else(|error| panic!("{VARIABLE}={name}: {error}")))
    });
    *NAMED
}

/// Whether a benchmark of the mock itself has to be left out, as a NIC is named; says so.
#[must_use]
pub fn only_on_a_mock(series: &str) -> bool {
    let named = named();
    if let Some(id) = named {
        skip(series, format_args!("it measures the mock, not {id}"));
    }
    named.is_some()
}

/// The NIC, opened: the named one, or a mock of its own as root.
///
/// # Errors
///
/// It cannot be opened.
pub fn device() -> Result<Device> {
    match named() {
        Some(id) => Ok(Device::open(id)?),
        None => mock::device(),
    }
}

/// The VNI of a benchmark's service. On a NIC each has its own, as some drivers want it; a mock
/// takes one VNI for more services than there are VNIs.
///
/// # Errors
///
/// None.
pub fn vni(service: u16) -> Result<Vni> {
    let number = if named().is_some() { service } else { 0 };
    Ok(Vni::new(64_200 + number)?)
}

/// Services without a reservation and without pools: as many fit a NIC as it has numbers.
#[derive(Debug)]
pub struct Modest(Vec<(Device, ServiceId)>);

impl Modest {
    /// Makes that many. Disabled ones take no slot of the VNI table, which has 256.
    ///
    /// # Errors
    ///
    /// The device's.
    pub fn create(device: &Device, count: usize) -> Result<Self> {
        let mut made = Self(Vec::new());
        for number in 1..=count {
            let vni = vni(u16::try_from(number % 1000)?)?;
            let spec = ServiceSpec::builder().vni(vni).limits(Limits::default());
            let id = device.services().create(&spec.enabled(false).build()?)?;
            made.0.push((device.clone(), id));
        }
        Ok(made)
    }
}

impl Modest {
    /// The first of them.
    #[must_use]
    pub fn first(&self) -> Option<ServiceId> {
        self.0.first().map(|(_, id)| *id)
    }
}

impl Drop for Modest {
    fn drop(&mut self) {
        // A mock goes with its services.
        if named().is_some() {
            self.0.drain(..).for_each(|(device, id)| end(&device, id));
        }
    }
}

/// An LNI of an unlimited service of its own.
#[derive(Debug)]
pub struct Workplace {
    /// The NIC.
    pub device: Device,
    /// The service.
    pub service: ServiceId,
    lni: Option<Lni>,
}

impl Workplace {
    /// Makes the service and the LNI.
    ///
    /// # Errors
    ///
    /// The device's.
    pub fn new() -> Result<Self> {
        let device = device()?;
        let spec = ServiceSpec::builder().vni(vni(0)?).build()?;
        let service = device.services().create(&spec)?;
        let mut place = Self {
            device,
            service,
            lni: None,
        };
        place.lni = Some(place.device.alloc_lni(service)?);
        Ok(place)
    }

    /// The LNI.
    ///
    /// # Panics
    ///
    /// Never: it is there as long as this is.
    #[must_use]
    pub fn lni(&self) -> &Lni {
        self.lni.as_ref().expect("an LNI")
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        self.lni.take();
        end(&self.device, self.service);
    }
}

/// Destroys a service, or says that it stays.
fn end(device: &Device, service: ServiceId) {
    if let Err(error) = device.services().destroy_when_idle(service, IDLE) {
        skip(format_args!("the end of service {service}"), error);
    }
}
