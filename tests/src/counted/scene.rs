//! The environment for the counted calls.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use cxi::lni::CommunicationProfile;
use cxi::{Device, DeviceId, Host, Limits, Lni, ServiceId, ServiceSpec, Vni};
use cxi_ioctl::{CharDev, Intercept, Transport};
use cxi_mock::{Nic, NicConfig};

use super::messages::{Messages, Running};

/// A NIC, and objects on it.
#[derive(Debug)]
pub struct Scene {
    pub(super) host: Host,
    pub(super) device: Device,
    pub(super) opened: Vec<Device>,
    pub(super) spec: ServiceSpec,
    pub(super) vni: Vni,
    pub(super) service: Option<ServiceId>,
    pub(super) lni: Option<Lni>,
    pub(super) profile: Option<CommunicationProfile>,
    pub(super) messages: Option<Messages>,
    /// Declared after everything that needs it, so that it is dropped last.
    running: Option<Running>,
}

/// Wraps the transport of a scene.
pub type Carrier<'a> = &'a dyn Fn(Arc<dyn Transport>) -> Arc<dyn Transport>;

impl Scene {
    /// On the NIC with this name. Needs the privilege to change services.
    pub(super) fn on_node(name: &str) -> Result<Self, String> {
        let id: DeviceId = name.parse().map_err(|error| format!("{name}: {error}"))?;
        let host = Host::system();
        let device = host.open(id).map_err(|error| error.to_string())?;
        Self::on(host, device, None)
    }

    /// On files in a directory that resemble those of the kernel. A file does not respond to commands:
    /// each is written to one and then executed by a mock in this process, without a system call.
    ///
    /// # Errors
    ///
    /// The directory cannot be written.
    pub fn on_files(directory: &Path, carrier: Carrier<'_>) -> Result<Self, String> {
        let (dev, sysfs) = (directory.join("dev"), directory.join("sys"));
        files(&dev, &sysfs).map_err(|error| format!("{}: {error}", directory.display()))?;
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let nic = Nic::new(NicConfig::new()).map_err(|error| text(&error))?;
        let mock = nic.root().map_err(|error| text(&error))?;
        let written = CharDev::open(dev.join("cxi0")).map_err(|error| text(&error))?;
        // Writes each command to a file, and then executes it.
        let transport = Intercept::new(mock, move |mock, mut request| {
            written.submit(request.reborrow())?;
            mock.submit(request)
        });
        let transport = carrier(Arc::new(transport));
        let device = Device::with_sysfs(DeviceId::new(0), transport, &sysfs);
        let running = Running::new(nic);
        Self::on(Host::with_roots(dev, sysfs), device, Some(running))
    }

    fn on(host: Host, device: Device, running: Option<Running>) -> Result<Self, String> {
        let vni = Vni::new(64_100).map_err(|error| error.to_string())?;
        let spec = ServiceSpec::builder().vni(vni).limits(Limits::default());
        let messages = Messages::new(&device).map_err(|error| error.to_string())?;
        let scene = Self {
            host,
            device,
            opened: Vec::new(),
            spec: spec.build().map_err(|error| error.to_string())?,
            vni,
            service: None,
            lni: None,
            profile: None,
            messages: Some(messages),
            running,
        };
        scene.run(false);
        Ok(scene)
    }

    /// Lets the NIC execute commands or not, if it runs in this process.
    pub(super) fn run(&self, wanted: bool) {
        if let Some(running) = &self.running {
            running.run(wanted);
        }
    }
}

impl Drop for Scene {
    /// Destroys everything, even after a failure.
    fn drop(&mut self) {
        drop((self.profile.take(), self.lni.take()));
        self.run(true);
        if let Some(messages) = self.messages.take() {
            messages.end(&self.device);
        }
        drop(self.running.take());
        if let Some(service) = self.service.take() {
            let _ = self.device.services().destroy(service);
        }
    }
}

/// Creates the files of `cxi0` that libraries open and read. The device is a regular file.
///
/// # Errors
///
/// The directories cannot be written.
pub fn files(dev: &Path, sysfs: &Path) -> std::io::Result<()> {
    let function = sysfs.join("devices/pci0000:40/0000:41:00.0");
    let class = sysfs.join("class/cxi_user/cxi0");
    let driver = sysfs.join("bus/pci/drivers/cxi_ss1");
    for directory in [dev, &function, &class, &driver] {
        fs::create_dir_all(directory)?;
    }
    symlink(&function, class.join("device"))?;
    symlink(&driver, function.join("driver"))?;
    fs::write(function.join("numa_node"), "0\n")?;
    fs::write(function.join("local_cpulist"), "0-15\n")?;
    fs::File::create(function.join("resource0"))?.set_len(1 << 31)?;
    fs::write(dev.join("cxi0"), "")
}
