//! What a clean-up found and did.

use std::fmt;

use crate::release::ReleaseReport;
#[cfg(doc)]
use cxi::driver::Quirks;
use cxi::{DeviceId, ServiceId};

/// What a clean-up found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct CleanReport {
    /// The services that jobs left behind.
    pub orphans: Vec<Verdict<OrphanReason>>,
    /// All other services.
    pub kept: Vec<Verdict<KeepReason>>,
    /// What became of the orphans, and the NICs that could not be queried; `None` for a dry run.
    pub release: Option<ReleaseReport>,
}

/// The verdict on one service, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Verdict<R> {
    /// The NIC.
    pub device: DeviceId,
    /// The service.
    pub service: ServiceId,
    /// The service in words: `service 5 (uid 5588, VNI 1024)`.
    pub name: String,
    /// Why it is destroyed or kept.
    pub reason: R,
}

/// Why a service is cleaned up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum OrphanReason {
    /// One of its VNIs is in the pool, and no live job has it.
    InPool,
    /// It was abandoned before it had a VNI.
    Unfinished,
}

/// Why a service is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum KeepReason {
    /// It is the default service.
    Default,
    /// It is a system service.
    System,
    /// It belongs to a live job.
    Live,
    /// None of its VNIs is in the pool.
    OutsidePool,
    /// It has no VNI yet, and may still be in the making.
    Unfinished,
    /// The driver refused its VNI range, and destroying it may make the kernel use memory that it
    /// has freed; see [`Quirks::REFUSED_RANGE`].
    RangeRefused,
}

impl fmt::Display for CleanReport {
    /// One line for each service: what became of it or, for a dry run, what would. A clean-up also has
    /// a line for each NIC that failed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(release) = &self.release {
            return release.fmt(f);
        }
        let orphans = self.orphans.iter();
        let orphans = orphans.map(|orphan| format!("Would destroy {orphan}"));
        let kept = self.kept.iter().map(|kept| format!("Keeps {kept}"));
        let lines: Vec<String> = orphans.chain(kept).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl fmt::Display for OrphanReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InPool => "its VNI is in the pool, and no live job has it",
            Self::Unfinished => "it was abandoned before it had a VNI",
        })
    }
}

impl fmt::Display for KeepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "it is the default service",
            Self::System => "it is a system service",
            Self::Live => "it belongs to a live job",
            Self::OutsidePool => "none of its VNIs is in the pool",
            Self::Unfinished => "it has no VNI yet, and may still be in the making",
            Self::RangeRefused => {
                "the driver refused its VNI range, and destroying it may make the kernel use memory \
                 that it has freed: destroy it by hand if another service was in the way; otherwise \
                 leave it until the driver is reloaded"
            }
        })
    }
}

impl<R: fmt::Display> fmt::Display for Verdict<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.device, self.name, self.reason)
    }
}
