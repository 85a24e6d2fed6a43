//! Detecting the driver's release, what it can do, and which commands it answers with damage.
//!
//! The kernel interface has no version number. What is known comes from a few commands that change
//! nothing, whoever sends them, and from sysfs where available.

/// Defines a set of flags, each with what it is called in messages.
macro_rules! described_flags {
    (
        $(#[$($set_doc:tt)*])*
        pub struct $set:ident, with $separator:literal between {
            $( $(#[$($doc:tt)*])* const $flag:ident = $bit:expr, $words:literal; )*
        }
    ) => {
        bitflags::bitflags! {
            $(#[$($set_doc)*])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
            pub struct $set: u32 {
                $( $(#[$($doc)*])* const $flag = $bit; )*
            }
        }

        impl std::fmt::Display for $set {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let all = [$((Self::$flag, $words)),*].into_iter();
                let words = all.filter(|(flag, _)| self.contains(*flag));
                let words: Vec<_> = words.map(|(_, words)| words).collect();
                f.pad(&words.join($separator))
            }
        }
    };
}

mod capabilities;
mod detected;
mod evidence;
mod quirks;

use std::fmt;

use cxi_ioctl::{DriverRelease, LniForm};

pub use capabilities::Capabilities;
pub use detected::DetectedRelease;
pub use evidence::{Answer, DefaultClasses, Evidence, Parameters, PropertiesForm};
pub use quirks::Quirks;

/// Facts about the driver of a NIC.
///
/// ```
/// # use cxi::Device;
/// # use cxi_mock::{Credentials, Nic, NicConfig};
/// use cxi::DriverRelease;
/// use cxi::driver::{Capabilities, DetectedRelease};
///
/// # let nic = Nic::new(NicConfig::new().release(DriverRelease::Shs13_1))?;
/// # let file = nic.open()?.transport(Credentials::user(1000, 1000));
/// # let device = Device::cxi0(file);
/// let driver = device.driver()?;
/// assert_eq!(driver.detected_release(), DetectedRelease::Release(DriverRelease::Shs13_1));
/// assert!(driver.can(Capabilities::VNI_RANGES));
/// assert!(!driver.can(Capabilities::NETNS));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Driver {
    release: DetectedRelease,
    evidence: Evidence,
    capabilities: Capabilities,
    quirks: Quirks,
}

impl Driver {
    /// Draws the conclusions from the evidence.
    pub(crate) fn of(evidence: Evidence) -> Self {
        let candidates = evidence.candidates();
        // An administrator can change what distinguishes SHS 12.0 from 13.0, and what is safe with
        // 12.0 corrupts memory with 13.0: nothing may rely on it being 12.0.
        let relied_on = |release: DriverRelease| {
            candidates.contains(&release)
                || (release == DriverRelease::Shs13_0
                    && candidates.contains(&DriverRelease::Shs12_0))
        };
        let relevant = || DriverRelease::ALL.into_iter().filter(|release| relied_on(*release));
        let (capabilities, quirks) = if candidates.is_empty() {
            (evidence.proven(), Quirks::all())
        } else {
            (
                relevant()
                    .map(Capabilities::for_release)
                    .fold(Capabilities::all(), Capabilities::intersection),
                relevant().map(Quirks::for_release).fold(Quirks::empty(), Quirks::union),
            )
        };
        Self {
            release: DetectedRelease::of(&candidates),
            capabilities: capabilities.difference(evidence.unproven()),
            quirks,
            evidence,
        }
    }

    /// Returns the release that it behaves like.
    #[must_use]
    pub fn detected_release(&self) -> DetectedRelease {
        self.release
    }

    /// Returns the observations.
    #[must_use]
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// Returns the capabilities that it certainly has. Anything else it may or may not be able to
    /// do.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Returns whether it can certainly do all of these.
    #[must_use]
    pub fn can(&self, capabilities: Capabilities) -> bool {
        self.capabilities.contains(capabilities)
    }

    /// The commands that it may answer with damage. All others are harmless.
    #[must_use]
    pub fn quirks(&self) -> Quirks {
        self.quirks
    }

    /// Returns the form of LNI_ALLOC and EQ_ADJUST_RESERVED_FC that it understands; `None` if that
    /// is unknown until the first LNI is allocated.
    #[must_use]
    pub fn lni_form(&self) -> Option<LniForm> {
        let (oldest, newest) = self.release.bounds()?;
        let form = LniForm::for_release(oldest);
        (form == LniForm::for_release(newest)).then_some(form)
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.release.fmt(f)
    }
}

#[cfg(test)]
mod tests;
