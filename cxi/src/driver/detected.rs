//! The detected driver release.

use std::fmt;

use cxi_ioctl::DriverRelease;

/// Release that a driver behaves like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DetectedRelease {
    /// Exactly this one.
    Release(DriverRelease),
    /// One of these, which cannot be distinguished.
    Between {
        /// The oldest that it may be.
        oldest: DriverRelease,
        /// The newest that it may be.
        newest: DriverRelease,
    },
    /// Like no release that this library knows.
    Unknown,
}

impl DetectedRelease {
    /// The result if these releases, oldest first, are possible.
    pub(super) fn of(candidates: &[DriverRelease]) -> Self {
        match (candidates.first(), candidates.last()) {
            (Some(oldest), Some(newest)) if oldest == newest => Self::Release(*oldest),
            (Some(&oldest), Some(&newest)) => Self::Between { oldest, newest },
            _ => Self::Unknown,
        }
    }

    /// The release, if only one is possible.
    #[must_use]
    pub const fn release(self) -> Option<DriverRelease> {
        match self {
            Self::Release(release) => Some(release),
            _ => None,
        }
    }

    /// The oldest and the newest possible release.
    #[must_use]
    pub const fn bounds(self) -> Option<(DriverRelease, DriverRelease)> {
        match self {
            Self::Release(release) => Some((release, release)),
            Self::Between { oldest, newest } => Some((oldest, newest)),
            Self::Unknown => None,
        }
    }

    /// Returns whether this release is possible.
    #[must_use]
    pub fn may_be(self, release: DriverRelease) -> bool {
        self.bounds().is_some_and(|(oldest, newest)| (oldest..=newest).contains(&release))
    }
}

impl fmt::Display for DetectedRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let between = |oldest: DriverRelease, newest: DriverRelease| {
            let neighbours =
                DriverRelease::ALL.windows(2).any(|pair| pair == [oldest, newest].as_slice());
            let word = if neighbours { "or" } else { "to" };
            format!("{oldest} {word} {newest}")
        };
        match *self {
            Self::Release(release) => release.fmt(f),
            Self::Between { oldest, newest } => f.pad(&between(oldest, newest)),
            Self::Unknown => f.pad("unknown"),
        }
    }
}
