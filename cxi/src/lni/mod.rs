//! Logical network interfaces (LNIs) and everything that is allocated below one.
//!
//! These objects belong to the open device: the driver frees them when it is closed, also when the
//! process dies. The handles here give them back one by one. A handle keeps alive what it depends
//! on, so they may be dropped in any order; `close` reports what the driver says, and gives the
//! handle back in the error.
//!
//! ```text
//! Lni ── CommunicationProfile ── Txq ─┐
//!   │                                 ├─ EventQueue ── Md, WaitObject
//!   ├─── Tgq ─────────────────────────┤
//!   ├─── Pte ── PteMapping ── Domain  ┘
//!   └─── CountingEvent
//! ```
//!
//! How much a service may have of each is in its [`Limits`](crate::Limits). What a reservation is
//! worth: the driver lets the services without one use up the shared part *up to the device's
//! total*, and identifiers are handed out first come, first served. A reservation is held back
//! from other reservations, and its share of the maximum is certain, but sharers that are already
//! there can have used up the identifiers.

mod callbacks;
mod counter;
mod domain;
mod event_queue;
mod explain;
mod memory;
mod object;
mod portal;
mod profile;
mod queue;
mod reach;
mod shared_profile;
mod wait;

pub use counter::{CounterValue, CountingEvent};
pub use domain::{Domain, InvalidPid, Pid, PidBlock};
pub use event_queue::{EventQueue, EventQueueFlags, EventQueueOptions, StatusThresholds};
pub use memory::{MapFlags, MapOptions, Md};
pub use object::NotClosed;
pub use portal::{LeList, PtOptions, Pte, PteMapping, PteState, PteStatus};
pub use profile::{
    CommunicationProfile, EthernetClass, LcidChoice, ProfileOptions, TrafficClassType,
};
pub use queue::{Tgq, TgqOptions, Txq, TxqOptions, UpdatePolicy};
pub use wait::{Interrupt, WaitObject};

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cxi_ioctl::abi::device::InboundWaitCmd;
use cxi_ioctl::abi::lni::LniFreeCmd;
use cxi_ioctl::{CommandError, Opcode, SafeCommand};

use crate::error::{Error, Result};
use crate::{Device, Resource, ServiceId, VniAccess};
use callbacks::Callbacks;
use object::{Object, closable};
use shared_profile::SharedProfiles;

/// A logical network interface: an open file's part in a service.
///
/// ```
/// # use cxi_mock::{Credentials, MockNode, NicConfig};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let node = MockNode::with_nics(1, &NicConfig::new())?;
/// # let transport = node.nics()[0].open()?.transport(Credentials::root());
/// # let device = cxi::Device::with_transport(cxi::DeviceId::new(0), std::sync::Arc::new(transport));
/// use cxi::{ServiceSpec, TrafficClass, Vni};
///
/// let vni = Vni::new(1024)?;
/// let service = device.services().create(&ServiceSpec::builder().vni(vni).build()?)?;
/// let lni = device.alloc_lni(service)?;
/// let profile = lni.alloc_cp(vni, TrafficClass::BestEffort)?;
/// let queue = lni.alloc_txq(&profile, &cxi::lni::TxqOptions::new(256))?;
/// queue.close()?;
/// profile.close()?;
/// lni.close()?;
/// device.services().destroy(service)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Lni {
    inner: Arc<LniInner>,
}

/// What the objects of an LNI keep alive.
#[derive(Debug)]
pub(crate) struct LniInner {
    object: Object<LniFreeCmd>,
    service: ServiceId,
    /// VNIs of the service, which nobody can change while it has an LNI.
    vnis: OnceLock<VniAccess>,
    callbacks: Mutex<Callbacks>,
    profiles: SharedProfiles,
}

impl LniInner {
    pub(crate) fn device(&self) -> &Device {
        self.object.device()
    }

    pub(crate) fn number(&self) -> u32 {
        self.object.command().lni
    }

    fn callbacks(&self) -> MutexGuard<'_, Callbacks> {
        self.callbacks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses what belongs to another open file: its number means something else in this one.
    fn check_same_file(&self, other: &Device, what: &str, opcode: Opcode) -> Result<()> {
        if self.device().same_file(other) {
            return Ok(());
        }
        let text = format!("the {what} belongs to another open file than the LNI");
        Err(self.device().invalid(opcode, text))
    }

    /// Sends a command that allocates something of this LNI; `resource` is what it counts as.
    fn send<C: SafeCommand>(&self, command: &C, resource: Option<Resource>) -> Result<C::Response> {
        self.device()
            .execute(command)
            .map_err(|error| self.refused(error, resource))
    }

    /// What it means that a command was refused; `resource` is what it would have counted as.
    fn refused(&self, error: CommandError, resource: Option<Resource>) -> Error {
        self.device().refused(error, |errno| {
            explain::allocation(self, error.opcode(), resource, errno)
        })
    }
}

impl Device {
    /// Allocates an LNI of a service (LNI_ALLOC).
    ///
    /// The caller's effective uid, effective gid and network namespace at the time of the call
    /// must be among the service's members. No privilege is needed.
    ///
    /// # Errors
    ///
    /// EINVAL without such a service (one that is there, and a driver that takes neither form of the
    /// command, is [`ErrorKind::Refused`](crate::ErrorKind::Refused)), EKEYREVOKED when it is disabled, EPERM when the caller is no
    /// member, ENOSPC when all RGIDs of the NIC are in use.
    #[doc(alias = "cxil_alloc_lni")]
    pub fn alloc_lni(&self, service: ServiceId) -> Result<Lni> {
        let lni = self
            .lni_form()
            .alloc(self.seam(), service.get())
            .map_err(|error| self.refused(error, |errno| explain::lni(self, service, errno)))?;
        let free = LniFreeCmd {
            lni,
            ..LniFreeCmd::new()
        };
        Ok(Lni {
            inner: Arc::new(LniInner {
                object: Object::new(self, free),
                service,
                vnis: OnceLock::new(),
                callbacks: Mutex::default(),
                profiles: SharedProfiles::default(),
            }),
        })
    }
}

impl Device {
    /// Waits until what was on its way into the NIC has arrived (INBOUND_WAIT).
    ///
    /// No privilege is needed.
    ///
    /// # Errors
    ///
    /// ETIMEDOUT when the NIC does not come to rest, EIO when it is gone.
    #[doc(alias = "cxil_inbound_wait")]
    pub fn inbound_wait(&self) -> Result<()> {
        self.call(&InboundWaitCmd::new(), |_| None)
    }
}

impl Lni {
    /// The LNI's number: device-wide, and its handle in this open file.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.inner.number()
    }

    /// The service it was allocated from.
    #[must_use]
    pub fn service(&self) -> ServiceId {
        self.inner.service
    }

    /// The device it belongs to.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.inner.device()
    }

    fn object(&self) -> &Object<LniFreeCmd> {
        &self.inner.object
    }
}

closable!(
    Lni,
    "LNI_FREE",
    "cxil_destroy_lni",
    "EBUSY while an object of the LNI is left."
);

const _: () = {
    const fn send_sync<T: Send + Sync>() {}
    send_sync::<Lni>();
    send_sync::<CommunicationProfile>();
    send_sync::<Domain>();
    send_sync::<EventQueue>();
    send_sync::<Txq>();
    send_sync::<Tgq>();
    send_sync::<CountingEvent>();
    send_sync::<Pte>();
    send_sync::<PteMapping>();
    send_sync::<Md>();
    send_sync::<WaitObject>();
};
