//! Observations of a driver, and the releases that they leave.

use cxi_ioctl::{ByRelease, DriverRelease, Errno, EveryRelease, LniForm};

use super::Capabilities;

/// Property that releases have or lack.
type Columns = ByRelease<bool>;

const YES: bool = true;
const NO: bool = false;

/// GET_DEV_PROPERTIES says whether the NIC address was set.
const LONG_PROPERTIES: Columns = ByRelease([NO, NO, YES, YES, YES, YES, YES]);
/// SVC_GET_EXCLUSIVE_CP exists.
const EXCLUSIVE_CPS: Columns = ByRelease([NO, NO, YES, YES, YES, YES, YES]);
/// SVC_SET_NETNS exists.
const SET_NETNS: Columns = ByRelease([NO, NO, NO, YES, YES, YES, YES]);
/// SVC_IS_PARENT_GET exists.
const PARENT_SERVICES: Columns = ByRelease([NO, NO, NO, NO, NO, NO, YES]);
/// The LEs that the default service uses are "not applicable".
const USAGE_NOT_APPLICABLE: Columns = ByRelease([NO, NO, NO, NO, NO, YES, YES]);
/// sysfs has `properties/ats_enabled`.
const ATS_ENABLED: Columns = ByRelease([NO, NO, NO, NO, NO, YES, YES]);
/// The module has `default_lnis_per_rgid`.
const RGID_PARAMETERS: Columns = ByRelease([NO, NO, YES, YES, YES, YES, YES]);
/// The module has `cass_sl_pml_rec_timeout_ms`.
const RECOVERY_TIMEOUT: Columns = ByRelease([NO, NO, NO, NO, YES, YES, YES]);
/// The module has `rmu_pf_max_clients`.
const MAX_CLIENTS: Columns = ByRelease([NO, NO, NO, NO, NO, YES, YES]);

/// Answer of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Answer {
    /// With success.
    Done,
    /// With this errno.
    Refused(Errno),
    /// With a response of another length than this library knows.
    Malformed,
}

/// Form of GET_DEV_PROPERTIES.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PropertiesForm {
    /// 80 bytes, up to SHS 13.0.
    Short,
    /// 84 bytes, from SHS 13.1 on.
    Long,
    /// Neither.
    Other(Answer),
}

/// Traffic classes that the default service names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DefaultClasses {
    /// None, as SHS 12.0 sets it up.
    None,
    /// The first four, as later drivers set it up.
    FirstFour,
    /// Something else: it was changed, or cannot be read.
    Other,
}

/// Module parameters that sysfs shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Parameters {
    /// `default_lnis_per_rgid`, from SHS 13.1 on.
    pub default_lnis_per_rgid: bool,
    /// `cass_sl_pml_rec_timeout_ms`, from SHS 14.0.1 on.
    pub cass_sl_pml_rec_timeout_ms: bool,
    /// `rmu_pf_max_clients`, newer than SHS 14.0.
    pub rmu_pf_max_clients: bool,
}

/// Observations of a driver. Each observation rules out the releases that it does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Evidence {
    /// The answer to a command that no driver has. If it is not EINVAL, nothing else can be judged.
    pub unknown_command: Answer,
    /// The form of GET_DEV_PROPERTIES.
    pub properties: PropertiesForm,
    /// The traffic classes of the default service (SVC_GET).
    pub default_classes: DefaultClasses,
    /// `true` if the LEs that the default service uses are "not applicable" (SVC_RSRC_GET), as
    /// drivers newer than SHS 14.0 say.
    pub le_usage_not_applicable: Option<bool>,
    /// SVC_GET_EXCLUSIVE_CP of the default service; EINVAL up to SHS 13.0.
    pub exclusive_cp: Answer,
    /// SVC_SET_NETNS of the default service with an id that is refused; EINVAL up to SHS 13.1.
    pub set_netns: Answer,
    /// SVC_IS_PARENT_GET of the default service, which only a driver newer than SHS 14.0 is asked;
    /// EINVAL up to the development branch of July 2026.
    pub is_parent: Option<Answer>,
    /// The form of LNI_ALLOC, if an LNI was allocated before.
    pub lni_form: Option<LniForm>,
    /// The module parameters, if sysfs shows the module.
    pub parameters: Option<Parameters>,
    /// `true` if sysfs has `properties/ats_enabled`, as drivers newer than SHS 14.0 do; `None` if
    /// it has no properties.
    pub ats_enabled: Option<bool>,
    /// `true` if this is a virtual function, if sysfs shows it. With older drivers those do not
    /// answer commands about services.
    pub virtual_function: Option<bool>,
}

impl Evidence {
    /// The releases that fit all observations, oldest first.
    pub(super) fn candidates(&self) -> Vec<DriverRelease> {
        DriverRelease::ALL.into_iter().filter(|release| self.fits(*release)).collect()
    }

    fn fits(&self, release: DriverRelease) -> bool {
        let is = |seen: Option<bool>, expected: Columns| {
            seen.is_none_or(|seen| seen == expected.at(release))
        };
        let lnis = self.parameters.map(|seen| seen.default_lnis_per_rgid);
        let timeout = self.parameters.map(|seen| seen.cass_sl_pml_rec_timeout_ms);
        let clients = self.parameters.map(|seen| seen.rmu_pf_max_clients);
        let form = LniForm::for_release(release);
        self.unknown_command == Answer::Refused(Errno::EINVAL)
            && self.fits_properties(release)
            && self.fits_default_classes(release)
            && self.fits_exclusive_cp(release)
            && self.fits_set_netns(release)
            && is(self.knows_parents(), PARENT_SERVICES)
            && self.lni_form.is_none_or(|seen| seen == form)
            && is(self.le_usage_not_applicable, USAGE_NOT_APPLICABLE)
            && is(self.ats_enabled, ATS_ENABLED)
            && is(lnis, RGID_PARAMETERS)
            && is(timeout, RECOVERY_TIMEOUT)
            && is(clients, MAX_CLIENTS)
    }

    fn fits_properties(&self, release: DriverRelease) -> bool {
        match self.properties {
            PropertiesForm::Short => !LONG_PROPERTIES.at(release),
            PropertiesForm::Long => LONG_PROPERTIES.at(release),
            PropertiesForm::Other(_) => false,
        }
    }

    /// Only distinguishes 12.0 and 13.0: administrators may change the default service.
    fn fits_default_classes(&self, release: DriverRelease) -> bool {
        match release.every() {
            EveryRelease::Shs12_0 => self.default_classes != DefaultClasses::FirstFour,
            EveryRelease::Shs13_0 => self.default_classes != DefaultClasses::None,
            EveryRelease::Shs13_1
            | EveryRelease::Shs14_0_0
            | EveryRelease::Shs14_0_1
            | EveryRelease::Main2026_07
            | EveryRelease::Main2026_11 => true,
        }
    }

    fn fits_exclusive_cp(&self, release: DriverRelease) -> bool {
        match self.knows_exclusive_cp() {
            Some(knows) => knows == EXCLUSIVE_CPS.at(release),
            None => self.says_nothing(self.exclusive_cp),
        }
    }

    fn fits_set_netns(&self, release: DriverRelease) -> bool {
        match self.knows_netns() {
            Some(knows) => knows == SET_NETNS.at(release),
            None => self.says_nothing(self.set_netns),
        }
    }

    /// Returns whether this is the answer of a virtual function that does not support commands
    /// about services.
    fn says_nothing(&self, answer: Answer) -> bool {
        self.virtual_function != Some(false)
            && matches!(answer, Answer::Refused(Errno::EOPNOTSUPP | Errno::EINVAL))
    }

    fn knows_exclusive_cp(&self) -> Option<bool> {
        match self.exclusive_cp {
            Answer::Done | Answer::Refused(Errno::ENOENT) => Some(true),
            Answer::Refused(Errno::EINVAL) => self.not_known(),
            _ => None,
        }
    }

    fn knows_netns(&self) -> Option<bool> {
        match self.set_netns {
            // Each is the answer of a driver that knows the command: the caller lacks a privilege,
            // the service is open to everyone, it is enabled, or the id is all ones.
            Answer::Refused(Errno::EPERM | Errno::EEXIST | Errno::EBUSY | Errno::EBADR) => {
                Some(true)
            }
            Answer::Refused(Errno::EINVAL) => self.not_known(),
            _ => None,
        }
    }

    fn knows_parents(&self) -> Option<bool> {
        match self.is_parent? {
            Answer::Done => Some(true),
            Answer::Refused(Errno::EINVAL) => self.not_known(),
            _ => None,
        }
    }

    /// Returns the meaning of EINVAL for a service that exists. On a virtual function it may not
    /// exist.
    fn not_known(&self) -> Option<bool> {
        (self.virtual_function != Some(true)).then_some(false)
    }

    /// Returns the capabilities that were probed and not confirmed.
    pub(super) fn unproven(&self) -> Capabilities {
        let probed = Capabilities::EXCLUSIVE_CPS | Capabilities::NETNS;
        (probed | Capabilities::PARENT_SERVICES) - self.confirmed()
    }

    /// Returns the capabilities that probes have confirmed.
    fn confirmed(&self) -> Capabilities {
        let mut confirmed = Capabilities::empty();
        let parents = self.knows_parents() == Some(true);
        confirmed.set(Capabilities::PARENT_SERVICES, parents);
        let profiles = self.knows_exclusive_cp() == Some(true);
        confirmed.set(Capabilities::EXCLUSIVE_CPS, profiles);
        confirmed.set(Capabilities::NETNS, self.knows_netns() == Some(true));
        confirmed
    }

    /// Returns the capabilities that the answers alone prove about a driver that resembles no known
    /// release.
    pub(super) fn proven(&self) -> Capabilities {
        if self.unknown_command != Answer::Refused(Errno::EINVAL) {
            return Capabilities::empty();
        }
        let mut proven = self.confirmed();
        let is_long = self.properties == PropertiesForm::Long;
        proven.set(Capabilities::NID_CONFIGURED, is_long);
        let is_marked = self.le_usage_not_applicable == Some(true);
        proven.set(Capabilities::USAGE_NOT_APPLICABLE, is_marked);
        proven
    }
}
