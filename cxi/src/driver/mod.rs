//! Which driver answers, what it can do, and what must not be asked of it.
//!
//! There is no version in the kernel interface. What is known comes from a few commands that
//! change nothing, whoever sends them, and from sysfs where there is one.

mod capabilities;
mod evidence;
mod guard;
mod guess;
mod probe;
mod quirks;

use std::fmt;

use cxi_ioctl::{DriverRelease, LniForm};

use crate::Device;
use crate::error::Result;

pub use capabilities::Capabilities;
pub use evidence::{Answer, DefaultClasses, Evidence, Parameters, PropertiesForm};
pub use guess::DetectedRelease;
pub use quirks::Quirks;

/// What is known about the driver of a NIC.
///
/// ```
/// # use cxi::{Device, DeviceId};
/// # use cxi_mock::{Credentials, Nic, NicConfig};
/// use cxi::DriverRelease;
/// use cxi::driver::{Capabilities, DetectedRelease};
///
/// # let nic = Nic::new(NicConfig::new().release(DriverRelease::Shs13_1))?;
/// # let file = nic.open()?.transport(Credentials::user(1000, 1000));
/// # let device = Device::with_transport(DeviceId::new(0), file);
/// let driver = device.driver()?;
/// assert_eq!(driver.detected_release(), DetectedRelease::Release(DriverRelease::Shs13_1));
/// assert!(driver.can(Capabilities::VNI_RANGES));
/// assert!(!driver.can(Capabilities::NETNS));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Driver {
    guess: DetectedRelease,
    evidence: Evidence,
    capabilities: Capabilities,
    quirks: Quirks,
}

impl Driver {
    /// What the evidence says.
    fn of(evidence: Evidence) -> Self {
        let candidates = evidence.candidates();
        // What tells SHS 12.0 from 13.0 can be changed by an administrator, and what is safe with
        // the one corrupts memory with the other: nothing relies on it being 12.0.
        let relied_on = |release: DriverRelease| {
            candidates.contains(&release)
                || (release == DriverRelease::Shs13_0
                    && candidates.contains(&DriverRelease::Shs12_0))
        };
        let relevant = || {
            DriverRelease::ALL
                .into_iter()
                .filter(|release| relied_on(*release))
        };
        let (capabilities, quirks) = if candidates.is_empty() {
            (evidence.proven(), Quirks::all())
        } else {
            (
                relevant()
                    .map(Capabilities::for_release)
                    .fold(Capabilities::all(), Capabilities::intersection),
                relevant()
                    .map(Quirks::for_release)
                    .fold(Quirks::empty(), Quirks::union),
            )
        };
        Self {
            guess: DetectedRelease::of(&candidates),
            capabilities: capabilities.difference(evidence.unproven()),
            quirks,
            evidence,
        }
    }

    /// Which release it behaves like.
    #[must_use]
    pub fn detected_release(&self) -> DetectedRelease {
        self.guess
    }

    /// What was seen.
    #[must_use]
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// What it can do for certain. What is not here it may or may not be able to do.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Whether it can do all of these for certain.
    #[must_use]
    pub fn can(&self, capabilities: Capabilities) -> bool {
        self.capabilities.contains(capabilities)
    }

    /// What it may answer with damage. What is not here is harmless.
    #[must_use]
    pub fn quirks(&self) -> Quirks {
        self.quirks
    }

    /// Which form of LNI_ALLOC and EQ_ADJUST_RESERVED_FC it understands; `None` if that is only
    /// known after the first LNI.
    #[must_use]
    pub fn lni_form(&self) -> Option<LniForm> {
        let (oldest, newest) = self.guess.bounds()?;
        let form = LniForm::for_release(oldest);
        (form == LniForm::for_release(newest)).then_some(form)
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guess.fmt(f)
    }
}

impl Device {
    /// Finds out which driver this is. Asked once; see [`Driver`].
    ///
    /// Takes no privilege, changes nothing, and gives root and an ordinary user the same. The
    /// commands are GET_DEV_PROPERTIES, one that no driver knows, and SVC_GET, SVC_RSRC_GET,
    /// SVC_GET_EXCLUSIVE_CP and SVC_SET_NETNS for the default service, the last one with an id
    /// that drivers refuse (all ones). While its usage is read the default service counts as in
    /// use: somebody else's command to enable or disable it may answer EBUSY.
    ///
    /// A driver that answers as none that is known gives [`DetectedRelease::Unknown`], and the
    /// [capabilities](Driver::capabilities) that its answers prove.
    ///
    /// # Errors
    ///
    /// EIO if the device has been removed; what says nothing about the driver (EINTR, EAGAIN,
    /// ENOMEM, ENODEV).
    pub fn driver(&self) -> Result<&Driver> {
        self.known_driver(|| probe::evidence(self).map(Driver::of))
    }
}

const _: () = {
    const fn send_sync<T: Send + Sync + 'static>() {}
    send_sync::<Driver>();
};

#[cfg(test)]
mod tests;
