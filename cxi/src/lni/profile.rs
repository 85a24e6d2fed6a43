//! Communication profiles.

use cxi_ioctl::abi::profile::{
    CpAllocCmd, CpModifyCmd, LCID_ANY, LCID_NON_TRIG, LCID_TRIG, TC_ETH_SHARED, TC_ETH_TC1,
    TC_ETH_TC2, TC_TYPE_COLL_LEAF, TC_TYPE_DEFAULT, TC_TYPE_HRP, TC_TYPE_RESTRICTED,
    TrigCpAllocCmd,
};

use cxi_ioctl::{Command, CommandError, Errno, Opcode};

use super::object::closable;
use super::shared_profile::ProfileUse;
use super::{Lni, LniInner};
use crate::driver::{Capabilities, Quirks};
use crate::error::{Refusal, Result};
use crate::explain::{Attempt, Facts, explain};
use crate::{DriverRelease, Service, TrafficClass, Vni, VniAccess};

/// Highest priority code point of Ethernet frames.
const MAX_PRIORITY: u32 = 7;

/// The type of traffic within a class. Which combinations exist depends on the NIC's QoS profile.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TrafficClassType {
    /// Ordinary traffic.
    #[default]
    Default = TC_TYPE_DEFAULT,
    /// High rate puts.
    HighRatePuts = TC_TYPE_HRP,
    /// Restricted ordering.
    Restricted = TC_TYPE_RESTRICTED,
    /// Leaves of hardware collectives.
    CollectiveLeaf = TC_TYPE_COLL_LEAF,
}

/// A traffic class of Ethernet frames.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EthernetClass {
    /// The first class.
    Tc1 = TC_ETH_TC1,
    /// The class shared with everything else.
    Shared = TC_ETH_SHARED,
    /// The second class.
    Tc2 = TC_ETH_TC2,
}

/// Local communication profile IDs (LCIDs) that are acceptable.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LcidChoice {
    /// LCID 0, which a queue for triggered commands needs.
    Triggered = LCID_TRIG,
    /// Any but LCID 0.
    NotTriggered = LCID_NON_TRIG,
    /// Any.
    Any = LCID_ANY,
}

/// Options for allocating a communication profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileOptions {
    vni: u32,
    class: u32,
    class_type: TrafficClassType,
    lcid: Option<LcidChoice>,
    ethernet: bool,
}

impl ProfileOptions {
    /// A VNI with a traffic class.
    #[must_use]
    pub fn new(vni: Vni, class: TrafficClass) -> Self {
        Self {
            vni: vni.into(),
            class: class.number(),
            class_type: TrafficClassType::Default,
            lcid: None,
            ethernet: false,
        }
    }

    /// Ethernet frames with a priority code point, 0 to 7. Needs `CAP_NET_RAW`.
    #[must_use]
    pub fn ethernet(class: EthernetClass, priority: u8) -> Self {
        Self {
            vni: priority.into(),
            class: class as u32,
            class_type: TrafficClassType::Default,
            lcid: None,
            ethernet: true,
        }
    }

    setters! {
        /// Sets a type other than [`TrafficClassType::Default`].
        class_type: TrafficClassType;
        /// Requests a particular LCID (TRIG_CP_ALLOC; needs 13.1 or later).
        lcid: LcidChoice;
    }
}

/// A communication profile: the right to send on a VNI with a traffic class.
///
/// Transmit queues refer to it by its LCID. Several profiles of one RGID may share an LCID.
#[derive(Debug)]
pub struct CommunicationProfile {
    pub(super) inner: ProfileUse,
}

impl Lni {
    /// Allocates a communication profile for a VNI and a traffic class (CP_ALLOC).
    ///
    /// The right to a VNI comes from any enabled service that lists it and has the caller as a
    /// member, not necessarily the LNI's own (on 12.0 it is the LNI's own).
    ///
    /// If the LNI already has a profile for the same traffic, whose LCID the driver would share,
    /// this returns another handle of that profile. Nothing is sent then: the driver would search
    /// for a service again, and might charge the profile to the wrong one.
    ///
    /// # Errors
    ///
    /// ENOENT when no enabled service has the VNI; EPERM when the services that have it do not
    /// admit the caller; EINVAL when the service does not allow the class, or the NIC does not have
    /// it; ENOSPC when all 255 profiles of the NIC or all 16 LCIDs of the RGID are in use.
    #[doc(alias = "cxil_alloc_cp")]
    pub fn alloc_cp(&self, vni: Vni, class: TrafficClass) -> Result<CommunicationProfile> {
        self.alloc_cp_with(&ProfileOptions::new(vni, class))
    }

    /// Allocates a communication profile (CP_ALLOC, or TRIG_CP_ALLOC if an LCID is requested).
    ///
    /// ```
    /// # use cxi_mock::{MockNode, NicConfig};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let node = MockNode::with_nics(1, &NicConfig::new())?;
    /// # let device = cxi::Device::cxi0(node.nics()[0].root()?);
    /// # use cxi::{ServiceSpec, TrafficClass, Vni};
    /// # let vni = Vni::new(1024)?;
    /// # let service = device.services().create(&ServiceSpec::builder().vni(vni).build()?)?;
    /// # let lni = device.alloc_lni(service)?;
    /// use cxi::lni::{LcidChoice, ProfileOptions};
    ///
    /// let options = ProfileOptions::new(vni, TrafficClass::LowLatency).lcid(LcidChoice::Triggered);
    /// let profile = lni.alloc_cp_with(&options)?;
    /// assert_eq!(profile.lcid(), 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Lni::alloc_cp`]; ENOSPC also when LCID 0 is requested and taken; EPERM for Ethernet
    /// without `CAP_NET_RAW`; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a choice of LCID before SHS 13.1.
    #[doc(alias = "cxil_alloc_trig_cp")]
    pub fn alloc_cp_with(&self, options: &ProfileOptions) -> Result<CommunicationProfile> {
        let (lni, device) = (self.id(), self.device());
        let tc_type = options.class_type as u32;
        let attempt = Attempt::OnVni {
            service: self.service(),
            vni: options.vni,
            ethernet: options.ethernet,
        };
        if options.ethernet && options.vni > MAX_PRIORITY {
            let text = format!("priority code point {}: expected 0 to 7", options.vni);
            return Err(device.invalid(CpAllocCmd::OPCODE, text));
        }
        let traffic = (options.vni, options.class, tc_type);
        let inner = ProfileUse::handle(&self.inner, traffic, options.lcid, || {
            if !options.ethernet {
                check_vni(&self.inner, options.vni)?;
            }
            let (vni, tc) = (options.vni, options.class);
            let Some(choice) = options.lcid else {
                return device.attempt(attempt, &CpAllocCmd::of(lni, vni, tc, tc_type));
            };
            device.needs(Capabilities::TRIGGERED_CPS, TrigCpAllocCmd::OPCODE)?;
            let command = TrigCpAllocCmd::of(lni, vni, tc, tc_type, choice as u32);
            device.attempt(attempt, &command)
        })?;
        Ok(CommunicationProfile { inner })
    }
}

/// Refuses a communication profile on a VNI that no service has.
///
/// The driver refuses it too, except for uid 0: root gets its own profile, and when that is
/// freed, the kernel uses memory that it has freed before.
fn check_vni(lni: &LniInner, vni: u32) -> Result<()> {
    let device = lni.device();
    let Ok(vni) = Vni::try_from(vni) else { return Ok(()) };
    if own_vnis(lni).is_some_and(|vnis| vnis.contains(vni))
        || !device.threatens(Quirks::ORPHANED_PROFILE)?
    {
        return Ok(());
    }
    // There the driver checks only the LNI's own service, which may allow every VNI.
    let driver = device.driver()?;
    if driver.detected_release().may_be(DriverRelease::Shs12_0) {
        return Ok(());
    }
    let disabled_off = driver.can(Capabilities::DISABLED_VNIS_OFF);
    let reachable = |service: &Service| {
        let listed = match service.vnis() {
            VniAccess::Unrestricted => service.listed_vnis().contains(vni),
            vnis => vnis.contains(vni),
        };
        listed && (service.is_enabled() || !disabled_off)
    };
    if device.services().list()?.iter().any(reachable) {
        return Ok(());
    }
    let refusal = CommandError::refused(Opcode::CP_ALLOC, Errno::ENOENT);
    Err(explain(&lni.on_vni(vni), refusal, &Facts::default()).on(device.id()))
}

/// The VNIs of the LNI's service, queried once.
fn own_vnis(lni: &LniInner) -> Option<VniAccess> {
    if let Some(vnis) = lni.vnis.get() {
        return Some(*vnis);
    }
    let vnis = lni.device().services().get(lni.service).ok()?.vnis();
    Some(*lni.vnis.get_or_init(|| vnis))
}

impl CommunicationProfile {
    /// The local communication profile id, 0 to 15 within the RGID.
    #[must_use]
    pub fn lcid(&self) -> u32 {
        self.inner.lcid()
    }

    /// Moves the profile to another VNI (CP_MODIFY; needs 13.1 or later).
    ///
    /// Only for profiles of a service with exclusive communication profiles.
    ///
    /// # Errors
    ///
    /// EINVAL when the profile is not exclusive, or the caller may not use the VNI;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).
    #[doc(alias = "cxil_modify_cp")]
    pub fn modify(&self, vni: Vni) -> Result<()> {
        let device = self.inner.lni().device();
        device.needs(Capabilities::CP_MODIFY, CpModifyCmd::OPCODE)?;
        self.inner.modify(vni.into(), |cp_hndl| {
            let command = CpModifyCmd::of(cp_hndl, vni.into());
            device.call(&command, |errno| {
                (errno == Errno::EINVAL).then_some(Refusal::VniOfProfile.into())
            })
        })
    }
}

closable! {
    /// EBUSY while something uses it. As long as the LNI has another handle of it, nothing is sent.
    CommunicationProfile.inner by CP_FREE ("cxil_destroy_cp")
}
