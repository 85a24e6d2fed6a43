//! Differences between releases in what a served node shows, besides what the NIC itself answers.

use cxi_ioctl::ByRelease;

const YES: bool = true;
const NO: bool = false;

/// The driver reads the 16 bytes that most commands begin with, even of a shorter one.
pub(crate) const READS_HEADER: ByRelease<bool> = ByRelease([NO, NO, NO, NO, NO, YES, YES]);

/// `properties/ats_enabled` is there.
pub(crate) const SHOWS_ATS: ByRelease<bool> = ByRelease([NO, NO, NO, NO, NO, YES, YES]);

/// `properties/rgids_avail` is there.
pub(crate) const SHOWS_RGIDS: ByRelease<bool> = ByRelease([NO, YES, YES, YES, YES, YES, YES]);

/// An administrator sets the NIC address by `properties/nid`.
pub(crate) const SETS_NID: ByRelease<bool> = ByRelease([NO, NO, YES, YES, YES, YES, YES]);

/// A physical function has a directory of settings for each virtual one.
pub(crate) const HAS_FUNCTION_SETTINGS: ByRelease<bool> = ByRelease([NO, NO, NO, NO, NO, YES, YES]);
