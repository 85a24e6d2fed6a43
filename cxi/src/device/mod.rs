//! An open NIC.

mod probe;
mod quirks;

use std::borrow::Cow;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use cxi_ioctl::{
    CommandError, DevProperties, Errno, LniAllocForm, Opcode, SafeCommand, Transport,
    dev_properties, execute,
};

use crate::driver::{Capabilities, Driver, Quirks};
use crate::error::{Error, ErrorKind, Result};
use crate::sysfs::{NicDirectory, Sysfs};
use crate::{DeviceId, Host, ResourceMap};

/// An open NIC. A clone is the same open file; dropping the last one closes it.
///
/// Objects allocated below an LNI keep the file open. Services belong to the NIC and are not
/// affected. A device can be used from several threads at once.
///
/// ```
/// use cxi::{Device, Resource};
/// use cxi_mock::{Nic, NicConfig};
///
/// let nic = Nic::new(NicConfig::new())?;
/// let device = Device::cxi0(nic.root()?);
/// assert_eq!(device.totals()?[Resource::Txqs], 1024);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Device {
    open: Arc<Open>,
    pub(crate) accepted: Quirks,
}

#[derive(Debug)]
struct Open {
    id: DeviceId,
    transport: Arc<dyn Transport>,
    directory: Option<NicDirectory>,
    properties: OnceLock<DevProperties>,
    driver: OnceLock<Driver>,
    lni_form: LniAllocForm,
    /// Number of services when they were last listed.
    services: AtomicUsize,
}

impl Device {
    /// Opens `/dev/cxiN`.
    ///
    /// Needs read and write access to the device node, which everyone has by default.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Open`]: there is no such device (ENOENT), no access to it (EACCES), or it has
    /// been removed (EIO).
    #[doc(alias = "cxil_open_device")]
    pub fn open(id: DeviceId) -> Result<Self> {
        Host::system().open(id)
    }

    /// Wraps another transport as the device `cxi0`: the NIC of an example or a test that has only one.
    #[must_use]
    pub fn cxi0(transport: impl Transport + 'static) -> Self {
        Self::with_transport(DeviceId::new(0), transport)
    }

    /// Wraps another transport: a mock, or a decorator around the real one.
    #[must_use]
    pub fn with_transport(id: DeviceId, transport: impl Transport + 'static) -> Self {
        Self::new(id, Arc::new(transport), None)
    }

    /// The same NIC behind another transport, such as a `Trace` or `Record` of `cxi-ioctl` around
    /// [its own](Self::transport).
    #[must_use]
    pub fn behind(&self, transport: impl Transport + 'static) -> Self {
        Self {
            accepted: self.accepted,
            ..Self::new(self.id(), Arc::new(transport), self.open.directory.clone())
        }
    }

    /// As [`with_transport`](Self::with_transport), with a sysfs tree (`/sys`) for what the driver
    /// does not answer.
    #[must_use]
    pub fn with_sysfs(
        id: DeviceId,
        transport: impl Transport + 'static,
        sysfs: impl AsRef<Path>,
    ) -> Self {
        Self::new(
            id,
            Arc::new(transport),
            Some(NicDirectory::new(&Sysfs::in_directory(sysfs.as_ref()), id)),
        )
    }

    pub(crate) fn new(
        id: DeviceId,
        transport: Arc<dyn Transport>,
        directory: Option<NicDirectory>,
    ) -> Self {
        Self {
            open: Arc::new(Open {
                id,
                transport,
                directory,
                properties: OnceLock::new(),
                driver: OnceLock::new(),
                lni_form: LniAllocForm::new(),
                services: AtomicUsize::new(0),
            }),
            accepted: Quirks::empty(),
        }
    }

    /// Returns the number of this NIC.
    #[must_use]
    pub fn id(&self) -> DeviceId {
        self.open.id
    }

    /// Returns whether it is a virtual function; `None` if sysfs does not show it. Reads sysfs, and sends
    /// no command.
    #[must_use]
    pub fn is_virtual_function(&self) -> Option<bool> {
        self.directory().and_then(NicDirectory::virtual_function)
    }

    /// The transport that carries commands to it, for commands that this crate does not offer.
    #[must_use]
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.open.transport
    }

    /// The open device node, for polling or passing on; `None` where there is none, as for an
    /// in-process mock.
    #[must_use]
    pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.open.transport.file()
    }

    /// Returns how much the NIC has of each resource in total; LEs for each processing element.
    ///
    /// Queries the driver once (GET_DEV_PROPERTIES).
    ///
    /// # Errors
    ///
    /// EIO if the device has been removed.
    pub fn totals(&self) -> Result<ResourceMap<u16>> {
        let rsrcs = self.properties()?.info.rsrcs;
        Ok(ResourceMap::from(rsrcs.types.map(|limit| limit.max)))
    }

    /// Returns whether both are the same open file, so that handles of one are valid for the other.
    pub(crate) fn same_file(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.open, &other.open)
    }

    pub(crate) fn directory(&self) -> Option<&NicDirectory> {
        self.open.directory.as_ref()
    }

    pub(crate) fn lni_form(&self) -> &LniAllocForm {
        &self.open.lni_form
    }

    /// Returns the number of services when they were listed last, so that a list takes one command.
    pub(crate) fn services_expected(&self) -> usize {
        self.open.services.load(Ordering::Relaxed)
    }

    /// Remembers how many services there are.
    pub(crate) fn services_seen(&self, count: usize) {
        self.open.services.store(count, Ordering::Relaxed);
    }

    /// The first answer to GET_DEV_PROPERTIES, for properties that do not change.
    pub(crate) fn properties(&self) -> Result<&DevProperties> {
        self.try_properties().map_err(|error| self.refused(error, |_| None))
    }

    /// As [`properties`](Self::properties), with the transport's own error.
    pub(crate) fn try_properties(&self) -> std::result::Result<&DevProperties, CommandError> {
        if let Some(properties) = self.open.properties.get() {
            return Ok(properties);
        }
        let properties = dev_properties(self.transport())?;
        Ok(self.open.properties.get_or_init(|| properties))
    }

    /// The driver, detected at the first call.
    pub(crate) fn known_driver(&self, find: impl FnOnce() -> Result<Driver>) -> Result<&Driver> {
        if let Some(driver) = self.already_known_driver() {
            return Ok(driver);
        }
        let driver = find()?;
        Ok(self.open.driver.get_or_init(|| driver))
    }

    /// The driver, if it has been detected.
    pub(crate) fn already_known_driver(&self) -> Option<&Driver> {
        self.open.driver.get()
    }

    pub(crate) fn fresh_properties(&self) -> Result<DevProperties> {
        dev_properties(self.transport()).map_err(|error| self.refused(error, |_| None))
    }

    /// Returns the capabilities that the form of the properties proves: everything since SHS 13.1,
    /// or nothing. [`driver`](Self::driver) knows more and sends more than this one command.
    pub(crate) fn proven_capabilities(&self) -> Result<Capabilities> {
        let is_long_form = self.properties()?.nid_configured.is_some();
        Ok(if is_long_form { Capabilities::FROM_13_1 } else { Capabilities::empty() })
    }

    /// Sends a command.
    pub(crate) fn execute<C: SafeCommand>(
        &self,
        command: &C,
    ) -> std::result::Result<C::Response, CommandError> {
        execute(self.transport(), command)
    }

    /// Sends a command; `explain` says what a refusal means.
    pub(crate) fn call<C: SafeCommand>(
        &self,
        command: &C,
        explain: impl FnOnce(Errno) -> Option<ErrorKind>,
    ) -> Result<C::Response> {
        self.execute(command).map_err(|error| self.refused(error, explain))
    }

    /// An error for a request that cannot be valid, and is not sent.
    pub(crate) fn invalid(&self, opcode: Opcode, what: impl Into<Cow<'static, str>>) -> Error {
        self.error(ErrorKind::InvalidInput(what.into()), Errno::EINVAL, opcode)
    }

    /// An error during a command.
    pub(crate) fn error(&self, kind: ErrorKind, errno: Errno, opcode: Opcode) -> Error {
        Error::new(kind, errno).during(opcode).on(self.id())
    }

    pub(crate) fn refused(
        &self,
        error: CommandError,
        explain: impl FnOnce(Errno) -> Option<ErrorKind>,
    ) -> Error {
        Error::refused(error, explain).on(self.id())
    }
}
