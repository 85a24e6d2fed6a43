//! The commands that distinguish drivers. None of them changes anything, whoever sends it.

use cxi_ioctl::abi::service::{
    RSRC_LE, SvcFlags, SvcGetCmd, SvcGetExclusiveCpCmd, SvcIsParentGetCmd, SvcRsrcGetCmd,
    SvcSetNetnsCmd,
};
use cxi_ioctl::{CommandError, Errno, SafeCommand, UnknownCmd};

use crate::driver::{Answer, DefaultClasses, Driver, Evidence, Parameters, PropertiesForm};
use crate::error::Result;
use crate::sysfs::NicDirectory;
use crate::{Device, ServiceId};

/// The default service: it always exists, and cannot be destroyed.
const SERVICE: u32 = ServiceId::DEFAULT.get();

/// "No id" to the kernel. A driver that knows SVC_SET_NETNS refuses it even for a service that
/// could have a namespace, so the command cannot succeed.
const NO_NAMESPACE: u32 = u32::MAX;

/// The driver's value for "not applicable".
const NOT_APPLICABLE: u16 = 0xFFFF;

impl Device {
    /// Detects which driver this is. The driver is queried once; see [`Driver`].
    ///
    /// Needs no privilege, changes nothing, and has the same result for root and an ordinary user.
    /// The commands are GET_DEV_PROPERTIES, one that no driver knows, and SVC_GET, SVC_RSRC_GET,
    /// SVC_GET_EXCLUSIVE_CP and SVC_SET_NETNS for the default service, the last one with an id
    /// that drivers refuse (all ones); a driver newer than SHS 14.0 also gets SVC_IS_PARENT_GET. While its usage is read, the default service counts as in
    /// use: another process's command to enable or disable it may fail with EBUSY.
    ///
    /// For a driver that behaves like no known release, the result is
    /// [`DetectedRelease::Unknown`](crate::driver::DetectedRelease::Unknown), with the
    /// [capabilities](Driver::capabilities) that its answers prove.
    ///
    /// # Errors
    ///
    /// EIO if the device has been removed; errors that say nothing about the driver (EINTR,
    /// EAGAIN, ENOMEM, ENODEV).
    pub fn driver(&self) -> Result<&Driver> {
        self.known_driver(|| evidence(self).map(Driver::of))
    }
}

/// Queries the driver, and sysfs if there is one.
fn evidence(device: &Device) -> Result<Evidence> {
    let directory = device.directory();
    let le_usage_not_applicable = le_usage(device)?;
    // No released driver has the command, so those are not asked.
    let is_newer = le_usage_not_applicable == Some(true);
    let is_parent = is_newer.then(|| answer(device, &SvcIsParentGetCmd::of(SERVICE)));
    Ok(Evidence {
        unknown_command: answer(device, &UnknownCmd::new())?,
        properties: properties(device)?,
        default_classes: default_classes(device)?,
        le_usage_not_applicable,
        is_parent: is_parent.transpose()?,
        exclusive_cp: answer(device, &SvcGetExclusiveCpCmd::of(SERVICE))?,
        set_netns: answer(device, &SvcSetNetnsCmd::of(SERVICE, NO_NAMESPACE))?,
        lni_form: device.lni_form().known(),
        parameters: directory.and_then(parameters),
        ats_enabled: directory.and_then(NicDirectory::ats_enabled),
        virtual_function: directory.and_then(NicDirectory::virtual_function),
    })
}

/// Returns the fact about the driver that an error reveals, or the error itself if it reveals
/// nothing.
fn judge(device: &Device, error: CommandError) -> Result<Answer> {
    match error {
        CommandError::Refused { errno, .. } if passing(errno) => {
            Err(device.refused(error, |_| None))
        }
        CommandError::Refused { errno, .. } => Ok(Answer::Refused(errno)),
        _ => Ok(Answer::Malformed),
    }
}

/// Returns whether an errno is temporary, or means that the device is gone.
fn passing(errno: Errno) -> bool {
    matches!(errno, Errno::EINTR | Errno::EAGAIN | Errno::ENOMEM | Errno::EIO | Errno::ENODEV)
}

fn answer<C: SafeCommand>(device: &Device, command: &C) -> Result<Answer> {
    match device.execute(command) {
        Ok(_) => Ok(Answer::Done),
        Err(error) => judge(device, error),
    }
}

fn properties(device: &Device) -> Result<PropertiesForm> {
    match device.try_properties() {
        Ok(properties) if properties.nid_configured.is_some() => Ok(PropertiesForm::Long),
        Ok(_) => Ok(PropertiesForm::Short),
        Err(error) => judge(device, error).map(PropertiesForm::Other),
    }
}

fn default_classes(device: &Device) -> Result<DefaultClasses> {
    let desc = match device.execute(&SvcGetCmd::of(SERVICE)) {
        Ok(desc) => desc,
        Err(error) => return judge(device, error).map(|_| DefaultClasses::Other),
    };
    let restricted = SvcFlags::from_bits_truncate(desc.flags).contains(SvcFlags::RESTRICTED_TCS);
    Ok(match desc.tcs {
        [0, 0, 0, 0, 0] if !restricted => DefaultClasses::None,
        [1, 1, 1, 1, 0] if !restricted => DefaultClasses::FirstFour,
        _ => DefaultClasses::Other,
    })
}

fn le_usage(device: &Device) -> Result<Option<bool>> {
    match device.execute(&SvcRsrcGetCmd::of(SERVICE)) {
        Ok(usage) => Ok(usage.in_use.get(RSRC_LE).map(|les| *les == NOT_APPLICABLE)),
        Err(error) => judge(device, error).map(|_| None),
    }
}

fn parameters(directory: &NicDirectory) -> Option<Parameters> {
    let has = |name| directory.has_parameter(name);
    // Every release has this one: without it the parameters are not visible here.
    has("disable_default_svc").then(|| Parameters {
        default_lnis_per_rgid: has("default_lnis_per_rgid"),
        cass_sl_pml_rec_timeout_ms: has("cass_sl_pml_rec_timeout_ms"),
        rmu_pf_max_clients: has("rmu_pf_max_clients"),
    })
}
