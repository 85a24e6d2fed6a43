//! What is not sent, and why.

use cxi_ioctl::{Errno, Opcode, Release};

use super::{Capabilities, Guess, Hazards};
use crate::Device;
use crate::error::{Error, ErrorKind, Result};

impl Device {
    /// The same open file, with leave to send what this driver may answer with damage.
    ///
    /// Without it such commands are [`ErrorKind::Hazard`] and nothing is sent. What may happen is
    /// described at each of [`Hazards`].
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use cxi::{Device, DeviceId, Release};
    /// # use cxi_mock::{Credentials, Nic, NicConfig};
    /// use cxi::driver::Hazards;
    /// use cxi::{ErrorKind, ServiceSpec};
    ///
    /// # let nic = Nic::new(NicConfig::new().release(Release::Shs12_0))?;
    /// # let file = nic.open()?.transport(Credentials::root());
    /// # let device = Device::with_transport(DeviceId::new(0), Arc::new(file));
    /// let any_vni = ServiceSpec::builder().unrestricted_vnis().build()?;
    /// let error = device.services().create(&any_vni).unwrap_err();
    /// assert!(matches!(error.kind(), ErrorKind::Hazard { .. }));
    /// let device = device.accepting(Hazards::OPEN_VNIS);
    /// device.services().create(&any_vni)?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn accepting(mut self, hazards: Hazards) -> Self {
        self.accepted |= hazards;
        self
    }

    /// Whether the driver may have this hazard, and nobody accepted it.
    pub(crate) fn threatens(&self, hazard: Hazards) -> Result<bool> {
        Ok(!self.accepts(hazard) && self.driver()?.hazards().contains(hazard))
    }

    /// Whether a hazard was accepted, or the driver is known not to have it. Asks nothing, so no
    /// only means that a closer look is due.
    pub(crate) fn is_known_safe(&self, hazard: Hazards) -> bool {
        let known = self.already_known_driver();
        self.accepts(hazard) || known.is_some_and(|driver| !driver.hazards().contains(hazard))
    }

    /// Whether these hazards were accepted ([`Self::accepting`]).
    #[must_use]
    pub fn accepts(&self, hazard: Hazards) -> bool {
        self.accepted.contains(hazard)
    }

    /// Refuses a command that this driver may answer with damage.
    pub(crate) fn guard(&self, hazard: Hazards, opcode: Opcode) -> Result<()> {
        if self.threatens(hazard)? {
            return Err(self.hazard(hazard, opcode));
        }
        Ok(())
    }

    pub(crate) fn hazard(&self, hazard: Hazards, opcode: Opcode) -> Error {
        let has = self.guess();
        Error::new(ErrorKind::Hazard { hazard, has }, Errno::EOPNOTSUPP)
            .during(opcode)
            .on(self.id())
    }

    /// Refuses what this driver is not known to do; `since` is the first release that does.
    pub(crate) fn needs(
        &self,
        capability: Capabilities,
        what: &'static str,
        since: Release,
        opcode: Opcode,
    ) -> Result<()> {
        if self.driver()?.can(capability) {
            return Ok(());
        }
        Err(self.unsupported(what, since, opcode))
    }

    pub(crate) fn unsupported(&self, what: &'static str, needs: Release, opcode: Opcode) -> Error {
        let has = self.guess();
        Error::new(
            ErrorKind::Unsupported { what, needs, has },
            Errno::EOPNOTSUPP,
        )
        .during(opcode)
        .on(self.id())
    }

    fn guess(&self) -> Guess {
        self.driver().map_or(Guess::Unknown, super::Driver::guess)
    }
}
