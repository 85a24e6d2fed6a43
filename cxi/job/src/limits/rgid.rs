//! Sharing RGIDs on nodes with more processes than a NIC has RGIDs.

use cxi::{Device, LnisPerRgid};

/// Reason for which no number of LNIs per RGID suits a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RgidError {
    /// There is no NIC.
    #[error("no NIC to share {cpus} processes among")]
    NoNic {
        /// Processes.
        cpus: u32,
    },
    /// There is no free RGID.
    #[error("no free RGID on the NIC: all are taken by other processes")]
    NoRgid,
    /// More than 8 LNIs would have to share an RGID.
    #[error(
        "{cpus} processes on {nics} NICs with {free_rgids} free RGIDs each would need {needed} LNIs per RGID: at most 8 can share one"
    )]
    TooMany {
        /// Processes.
        cpus: u32,
        /// NICs.
        nics: u32,
        /// Free RGIDs on each.
        free_rgids: u32,
        /// LNIs per RGID.
        needed: u64,
    },
}

/// LNIs of a job that share an RGID.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum RgidSharing {
    /// The driver's default.
    #[default]
    Default,
    Exactly(LnisPerRgid),
    /// As many as it takes, of processes spread evenly over this many NICs.
    Spread {
        processes: u32,
        nics: Option<u32>,
    },
}

impl RgidSharing {
    /// The number for a service on one NIC, of the `nics` that the job gets; `None` for the
    /// driver's default.
    pub(crate) fn on(self, device: &Device, nics: usize) -> Result<Option<LnisPerRgid>, RgidError> {
        match self {
            Self::Default => Ok(None),
            Self::Exactly(count) => Ok(Some(count)),
            Self::Spread { processes, nics: over } => {
                let nics = over.unwrap_or(u32::try_from(nics).unwrap_or(u32::MAX));
                let Some(free) = device.free_rgids() else { return Ok(None) };
                let count = lnis_per_rgid(processes, nics, free)?;
                Ok((count.get() > 1).then_some(count))
            }
        }
    }
}

/// Calculates how many LNIs must share an RGID so that each of `cpus` processes, spread over `nics`
/// NICs with `free_rgids` free RGIDs each, gets one: 1 for up to 255 processes on an idle NIC.
///
/// ```
/// use cxi_job::limits::lnis_per_rgid;
///
/// assert_eq!(lnis_per_rgid(128, 4, 255)?.get(), 1);
/// assert_eq!(lnis_per_rgid(300, 1, 252)?.get(), 2);
/// assert!(lnis_per_rgid(300, 1, 30).is_err());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`RgidError`]: no NIC, no free RGID, or more than 8 would have to share.
pub fn lnis_per_rgid(cpus: u32, nics: u32, free_rgids: u32) -> Result<LnisPerRgid, RgidError> {
    if nics == 0 {
        return Err(RgidError::NoNic { cpus });
    }
    if free_rgids == 0 {
        return Err(RgidError::NoRgid);
    }
    let slots = u64::from(nics) * u64::from(free_rgids);
    let needed = u64::from(cpus).div_ceil(slots).max(1);
    let count = u32::try_from(needed).ok();
    count.and_then(|count| LnisPerRgid::new(count).ok()).ok_or(RgidError::TooMany {
        cpus,
        nics,
        free_rgids,
        needed,
    })
}
