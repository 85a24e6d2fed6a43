//! The driver releases with a known interface.

use std::fmt;

/// One line for each release: its variant and its name.
macro_rules! releases {
    ($($(#[$doc:meta])* $variant:ident $name:literal;)*) => {
        /// A release of the Slingshot Host Software, by the behavior of its `cxi_ss1` driver.
        ///
        /// Releases are ordered by age. The kernel interface has no version number: this enum names
        /// recorded behavior, and is never read from a device. A new release is a new variant, for
        /// which every table of release differences must get a line, and so a new version of this
        /// crate.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(
            feature = "serde",
            derive(serde::Serialize, serde::Deserialize),
            serde(into = "&'static str", try_from = "String")
        )]
        pub enum DriverRelease {
            $($(#[$doc])* $variant,)*
        }

        impl DriverRelease {
            /// All releases, oldest first.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// The name as files and command lines spell it, such as `shs-14.0.1`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

releases! {
    /// SHS 12.0
    Shs12_0 "shs-12.0";
    /// SHS 13.0
    Shs13_0 "shs-13.0";
    /// SHS 13.1
    Shs13_1 "shs-13.1";
    /// SHS 14.0.0
    Shs14_0_0 "shs-14.0.0";
    /// SHS 14.0.1
    Shs14_0_1 "shs-14.0.1";
    /// The driver's development branch, mid-2026
    Main "main";
}

impl fmt::Display for DriverRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<DriverRelease> for &'static str {
    fn from(release: DriverRelease) -> Self {
        release.name()
    }
}

impl TryFrom<String> for DriverRelease {
    type Error = UnknownRelease;

    fn try_from(name: String) -> Result<Self, UnknownRelease> {
        name.parse()
    }
}

/// An unknown release name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown driver release '{0}': expected one of {names}",
    names = DriverRelease::ALL.map(DriverRelease::name).join(", ")
)]
pub struct UnknownRelease(String);

impl std::str::FromStr for DriverRelease {
    type Err = UnknownRelease;

    /// Parses a [`DriverRelease::name`]; the prefix `shs-` is optional.
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
