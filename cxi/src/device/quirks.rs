//! Commands that are not sent, and why.

use std::borrow::Cow;

use cxi_ioctl::{DriverRelease, Errno, Opcode};

use crate::Device;
use crate::driver::{Capabilities, DetectedRelease, Driver, Quirks};
use crate::error::{Error, ErrorKind, Result};

impl Device {
    /// Returns the same open file with permission to send commands on which this driver may do
    /// damage.
    ///
    /// Without it such commands fail with [`ErrorKind::Quirk`], and nothing is sent. [`Quirks`]
    /// describes what may happen.
    ///
    /// ```
    /// # use cxi::{Device, DriverRelease};
    /// # use cxi_mock::{Nic, NicConfig};
    /// use cxi::driver::Quirks;
    /// use cxi::{ErrorKind, ServiceSpec};
    ///
    /// # let nic = Nic::new(NicConfig::new().release(DriverRelease::Shs12_0))?;
    /// # let device = Device::cxi0(nic.root()?);
    /// let any_vni = ServiceSpec::builder().unrestricted_vnis().build()?;
    /// let error = device.services().create(&any_vni).unwrap_err();
    /// assert!(matches!(error.kind(), ErrorKind::Quirk { .. }));
    /// let device = device.allow_quirks(Quirks::OPEN_VNIS);
    /// device.services().create(&any_vni)?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn allow_quirks(mut self, quirks: Quirks) -> Self {
        self.accepted |= quirks;
        self
    }

    /// Returns whether the driver may have this quirk, and it has not been allowed.
    pub(crate) fn threatens(&self, quirk: Quirks) -> Result<bool> {
        Ok(!self.allows_quirks(quirk) && self.driver()?.quirks().contains(quirk))
    }

    /// Returns whether a quirk has been allowed, or the driver is known not to have it. Sends
    /// nothing, so `false` only means that a closer look is needed.
    pub(crate) fn is_known_safe(&self, quirk: Quirks) -> bool {
        let known = self.already_known_driver();
        self.allows_quirks(quirk) || known.is_some_and(|driver| !driver.quirks().contains(quirk))
    }

    /// Returns whether these quirks have been allowed ([`Self::allow_quirks`]).
    #[must_use]
    pub fn allows_quirks(&self, quirk: Quirks) -> bool {
        self.accepted.contains(quirk)
    }

    /// Refuses a command on which this driver may do damage.
    pub(crate) fn guard(&self, quirk: Quirks, opcode: Opcode) -> Result<()> {
        if self.threatens(quirk)? {
            return Err(self.quirk(quirk, opcode));
        }
        Ok(())
    }

    pub(crate) fn quirk(&self, quirk: Quirks, opcode: Opcode) -> Error {
        let has = self.detected_release();
        self.error(ErrorKind::Quirk { quirk, has }, Errno::EOPNOTSUPP, opcode)
    }

    /// Refuses what this driver is not known to support.
    pub(crate) fn needs(&self, capability: Capabilities, opcode: Opcode) -> Result<()> {
        if self.driver()?.can(capability) {
            return Ok(());
        }
        Err(self.unsupported(capability.to_string(), capability.since(), opcode))
    }

    pub(crate) fn unsupported(
        &self,
        what: impl Into<Cow<'static, str>>,
        needs: DriverRelease,
        opcode: Opcode,
    ) -> Error {
        let unsupported =
            ErrorKind::Unsupported { what: what.into(), needs, has: self.detected_release() };
        self.error(unsupported, Errno::EOPNOTSUPP, opcode)
    }

    fn detected_release(&self) -> DetectedRelease {
        self.driver().map_or(DetectedRelease::Unknown, Driver::detected_release)
    }
}
