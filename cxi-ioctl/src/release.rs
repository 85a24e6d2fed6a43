//! The driver releases whose interface is known.

use std::fmt;

/// A release of the Slingshot Host Software, by the behaviour of its `cxi_ss1` driver.
///
/// Releases are ordered by age. There is no version in the kernel interface: this enum names
/// recorded behaviour, it does not come out of a device. A new release is a variant that every
/// table of what releases do has to have a line for, and so a new version of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DriverRelease {
    /// SHS 12.0
    Shs12_0,
    /// SHS 13.0
    Shs13_0,
    /// SHS 13.1
    Shs13_1,
    /// SHS 14.0.0
    Shs14_0_0,
    /// SHS 14.0.1
    Shs14_0_1,
    /// The driver's development branch, mid-2026
    Main,
}

impl DriverRelease {
    /// All releases, oldest first.
    pub const ALL: [Self; 6] = [
        Self::Shs12_0,
        Self::Shs13_0,
        Self::Shs13_1,
        Self::Shs14_0_0,
        Self::Shs14_0_1,
        Self::Main,
    ];

    /// The name as files and command lines spell it, such as `shs-14.0.1`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shs12_0 => "shs-12.0",
            Self::Shs13_0 => "shs-13.0",
            Self::Shs13_1 => "shs-13.1",
            Self::Shs14_0_0 => "shs-14.0.0",
            Self::Shs14_0_1 => "shs-14.0.1",
            Self::Main => "main",
        }
    }

    /// The first opcode number that this release does not know.
    #[must_use]
    pub const fn opcode_max(self) -> u32 {
        match self {
            Self::Shs12_0 | Self::Shs13_0 => 77,
            Self::Shs13_1 => 84,
            Self::Shs14_0_0 | Self::Shs14_0_1 => 86,
            Self::Main => 110,
        }
    }
}

impl fmt::Display for DriverRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A release name that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown driver release '{0}': expected one of shs-12.0, shs-13.0, shs-13.1, shs-14.0.0, shs-14.0.1, main"
)]
pub struct UnknownRelease(String);

impl std::str::FromStr for DriverRelease {
    type Err = UnknownRelease;

    /// Reads a [`DriverRelease::name`]; the prefix `shs-` may be left out.
    fn from_str(text: &str) -> Result<Self, UnknownRelease> {
        Self::ALL
            .into_iter()
            .find(|release| {
                let name = release.name();
                text == name || name.strip_prefix("shs-") == Some(text)
            })
            .ok_or_else(|| UnknownRelease(text.to_owned()))
    }
}
