//! The calls that are counted, and what each costs.

use cxi::{Device, TrafficClass};

use super::Scene;

/// What a call returned that is to be dropped after the count.
type Kept = Result<Option<Device>, Box<dyn std::error::Error>>;

/// A call of the safe library.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Its name.
    pub name: &'static str,
    /// System calls that it makes when it is made again.
    pub system_calls: usize,
    /// Whether it allocates on the heap then.
    pub allocates: bool,
    run: fn(&mut Scene) -> Kept,
}

impl Operation {
    /// Makes the call; what it returns is to be dropped after the count.
    ///
    /// # Errors
    ///
    /// The library's.
    pub fn run(&self, scene: &mut Scene) -> Result<Option<Device>, String> {
        (self.run)(scene).map_err(|error| format!("{}: {error}", self.name))
    }
}

/// Every call that is counted. In this order they leave the NIC as it was.
pub const OPERATIONS: &[Operation] = &[
    // open
    operation("Device::open", 1, true, |scene| {
        Ok(Some(scene.host.open(scene.device.id())?))
    }),
    // one directory opened, looked at, read to its end and closed; all of /dev is not read
    operation("Host::device_ids", 5, true, |scene| {
        scene.host.device_ids()?;
        Ok(None)
    }),
    // two commands, two links, whether there are two files, and two files opened, read and closed
    operation("Device::info", 12, true, |scene| {
        scene.device.info()?;
        Ok(None)
    }),
    operation("Device::totals", 0, false, |scene| {
        scene.device.totals()?;
        Ok(None)
    }),
    operation("Services::create", 1, false, |scene| {
        scene.service = Some(scene.device.services().create(&scene.spec)?);
        Ok(None)
    }),
    operation("Services::list", 1, true, |scene| {
        scene.device.services().list()?;
        Ok(None)
    }),
    operation("Services::list_into", 1, false, |scene| {
        let services = scene.device.services();
        services.list_into(&mut scene.buffer)?;
        Ok(None)
    }),
    operation("Services::usage_all", 1, true, |scene| {
        scene.device.services().usage_all()?;
        Ok(None)
    }),
    operation("Services::get", 1, false, |scene| {
        let service = made(scene.service)?;
        scene.device.services().get(service)?;
        Ok(None)
    }),
    operation("Services::usage", 1, false, |scene| {
        let service = made(scene.service)?;
        scene.device.services().usage(service)?;
        Ok(None)
    }),
    // A service that the driver cannot take without damage is not touched: it is read first.
    operation("Services::set_enabled", 2, false, |scene| {
        let service = made(scene.service)?;
        scene.device.services().set_enabled(service, true)?;
        Ok(None)
    }),
    operation("Services::update", 2, false, |scene| {
        let service = made(scene.service)?;
        scene.device.services().update(service, &scene.spec)?;
        Ok(None)
    }),
    operation("Device::alloc_lni", 1, true, |scene| {
        scene.lni = Some(scene.device.alloc_lni(made(scene.service)?)?);
        Ok(None)
    }),
    // The first profile of an LNI: whether its service has the VNI is looked at before.
    operation("Lni::alloc_cp", 2, true, |scene| {
        let lni = made(scene.lni.as_ref())?;
        scene.profile = Some(lni.alloc_cp(scene.vni, TrafficClass::BestEffort)?);
        Ok(None)
    }),
    operation("CommunicationProfile::close", 1, false, |scene| {
        made(scene.profile.take())?.close()?;
        Ok(None)
    }),
    operation("Lni::close", 1, false, |scene| {
        made(scene.lni.take())?.close()?;
        Ok(None)
    }),
    // The data path: neither asks the kernel.
    operation("TransmitQueue::post", 0, false, |scene| {
        scene.run(true);
        made(scene.messages.as_mut())?.post()?;
        Ok(None)
    }),
    operation("Events::drain", 0, false, |scene| {
        made(scene.messages.as_mut())?.complete()?;
        scene.run(false);
        Ok(None)
    }),
    operation("Services::destroy", 2, false, |scene| {
        scene
            .device
            .services()
            .destroy(made(scene.service.take())?)?;
        Ok(None)
    }),
];

const fn operation(
    name: &'static str,
    system_calls: usize,
    allocates: bool,
    run: fn(&mut Scene) -> Kept,
) -> Operation {
    Operation {
        name,
        system_calls,
        allocates,
        run,
    }
}

/// What an earlier operation made.
fn made<T>(thing: Option<T>) -> Result<T, &'static str> {
    thing.ok_or("an earlier operation is missing")
}
