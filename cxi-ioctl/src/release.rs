//! The driver releases with a known interface.

use std::fmt;

/// One line for each release: its variant, its name, and a shorter one.
macro_rules! releases {
    ($($(#[$doc:meta])* $variant:ident $name:literal $short:literal;)*) => {
        /// A release of the Slingshot Host Software, by the behavior of its `cxi_ss1` driver.
        ///
        /// Releases are ordered by age. The kernel interface has no version number: this enum names
        /// recorded behavior, and is never read from a device. A variant is frozen: what a later
        /// driver does differently is a new variant.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(
            feature = "serde",
            derive(serde::Serialize, serde::Deserialize),
            serde(into = "&'static str", try_from = "String")
        )]
        #[non_exhaustive]
        pub enum DriverRelease {
            $($(#[$doc])* $variant,)*
        }

        /// A [`DriverRelease`] for the tables of these crates, which must have a line for each.
        ///
        /// It is no part of the API: a new release adds a variant without a new major version.
        #[doc(hidden)]
        #[derive(Clone, Copy, Debug)]
        #[allow(clippy::exhaustive_enums, reason = "a table without a line must not compile")]
        pub enum EveryRelease {
            $($(#[$doc])* $variant,)*
        }

        impl DriverRelease {
            /// All releases, oldest first.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// The newest release.
            pub const NEWEST: Self = Self::ALL[Self::ALL.len() - 1];

            /// The name as files and command lines spell it, such as `shs-14.0.1`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// A shorter name that is read too, such as `14.0.1`; of a snapshot, the branch from
            /// which it was taken.
            #[must_use]
            pub const fn short_name(self) -> &'static str {
                match self {
                    $(Self::$variant => $short,)*
                }
            }

            #[doc(hidden)]
            #[must_use]
            pub const fn every(self) -> EveryRelease {
                match self {
                    $(Self::$variant => EveryRelease::$variant,)*
                }
            }
        }
    };
}

releases! {
    /// SHS 12.0
    Shs12_0 "shs-12.0" "12.0";
    /// SHS 13.0
    Shs13_0 "shs-13.0" "13.0";
    /// SHS 13.1
    Shs13_1 "shs-13.1" "13.1";
    /// SHS 14.0.0
    Shs14_0_0 "shs-14.0.0" "14.0.0";
    /// SHS 14.0.1
    Shs14_0_1 "shs-14.0.1" "14.0.1";
    /// The driver's development branch as it was in July 2026
    Main2026_07 "main-2026-07" "main";
    /// The driver's development branch as it was public in November 2026, by its header alone
    Main2026_11 "main-2026-11" "2026-11";
}

/// One value for each release, oldest first, for the tables of these crates: a new release does not
/// compile until each has one for it.
///
/// It is no part of the API, as [`EveryRelease`] is not.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "a table without a column must not compile")]
pub struct ByRelease<T>(pub [T; DriverRelease::ALL.len()]);

impl<T: Copy> ByRelease<T> {
    /// The value for a release.
    #[must_use]
    pub const fn at(&self, release: DriverRelease) -> T {
        self.0[release.every() as usize]
    }
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

    /// Parses a [`DriverRelease::name`] or [`DriverRelease::short_name`].
    fn from_str(text: &str) -> Result<Self, UnknownRelease> {
        Self::ALL
            .into_iter()
            .find(|release| text == release.name() || text == release.short_name())
            .ok_or_else(|| UnknownRelease(text.to_owned()))
    }
}
