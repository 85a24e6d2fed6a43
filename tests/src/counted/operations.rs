//! The counted calls, and the cost of each.

use cxi::TrafficClass;

use super::Scene;

type Done = Result<(), Box<dyn std::error::Error>>;

/// A call of the safe library.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Its name.
    pub name: &'static str,
    /// The number of system calls that it makes when it is repeated.
    pub system_calls: usize,
    /// `true` if it then allocates on the heap.
    pub allocates: bool,
    run: fn(&mut Scene) -> Done,
}

impl Operation {
    /// Makes the call.
    ///
    /// # Errors
    ///
    /// The library's error.
    pub fn run(&self, scene: &mut Scene) -> Result<(), String> {
        (self.run)(scene).map_err(|error| format!("{}: {error}", self.name))
    }
}

/// All counted calls. In this order, they leave the NIC unchanged.
pub const OPERATIONS: &[Operation] = &[
    // open
    operation("Device::open", 1, true, |scene| {
        // It must not be dropped before counting ends.
        scene.opened.push(scene.host.open(scene.device.id())?);
        Ok(())
    }),
    // one directory opened, checked, read to its end and closed; /dev is not listed
    operation("Host::device_ids", 5, true, |scene| {
        scene.host.device_ids()?;
        Ok(())
    }),
    // two commands, two links, two checks for existence, and two files opened, read and closed
    operation("Device::info", 12, true, |scene| {
        scene.device.info()?;
        Ok(())
    }),
    operation("Device::totals", 0, false, |scene| {
        scene.device.totals()?;
        Ok(())
    }),
    operation("Services::create", 1, false, |scene| {
        scene.service = Some(scene.device.services().create(&scene.spec)?);
        Ok(())
    }),
    operation("Services::list", 1, true, |scene| {
        scene.device.services().list()?;
        Ok(())
    }),
    operation("Services::usage_all", 1, true, |scene| {
        scene.device.services().usage_all()?;
        Ok(())
    }),
    operation("Services::get", 1, false, |scene| {
        let service = made(scene.service)?;
        scene.device.services().get(service)?;
        Ok(())
    }),
    operation("Services::usage", 1, false, |scene| {
        let service = made(scene.service)?;
        scene.device.services().usage(service)?;
        Ok(())
    }),
    // The service is read first, because changing some services would do damage in the driver.
    operation("Services::set_enabled", 2, false, |scene| {
        let service = made(scene.service)?;
        scene.device.services().set_enabled(service, true)?;
        Ok(())
    }),
    operation("Services::update", 2, false, |scene| {
        let service = made(scene.service)?;
        scene.device.services().update(service, &scene.spec)?;
        Ok(())
    }),
    operation("Device::alloc_lni", 1, true, |scene| {
        scene.lni = Some(scene.device.alloc_lni(made(scene.service)?)?);
        Ok(())
    }),
    // For the first profile of an LNI, the library checks first whether its service has the VNI.
    operation("Lni::alloc_cp", 2, true, |scene| {
        let lni = made(scene.lni.as_ref())?;
        scene.profile = Some(lni.alloc_cp(scene.vni, TrafficClass::BestEffort)?);
        Ok(())
    }),
    operation("CommunicationProfile::close", 1, false, |scene| {
        made(scene.profile.take())?.close()?;
        Ok(())
    }),
    operation("Lni::close", 1, false, |scene| {
        made(scene.lni.take())?.close()?;
        Ok(())
    }),
    // The data path: neither makes a system call.
    operation("TransmitQueue::post", 0, false, |scene| {
        scene.run(true);
        made(scene.messages.as_mut())?.post()?;
        Ok(())
    }),
    operation("Events::drain", 0, false, |scene| {
        made(scene.messages.as_mut())?.complete()?;
        scene.run(false);
        Ok(())
    }),
    operation("Services::destroy", 2, false, |scene| {
        scene.device.services().destroy(made(scene.service.take())?)?;
        Ok(())
    }),
];

const fn operation(
    name: &'static str,
    system_calls: usize,
    allocates: bool,
    run: fn(&mut Scene) -> Done,
) -> Operation {
    Operation { name, system_calls, allocates, run }
}

/// Returns the object of an earlier operation.
fn made<T>(thing: Option<T>) -> Result<T, &'static str> {
    thing.ok_or("an earlier operation is missing")
}
