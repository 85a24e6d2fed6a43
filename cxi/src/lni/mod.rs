//! Logical network interfaces (LNIs) and everything that is allocated below one.
//!
//! These objects belong to the open device: the driver frees them when it is closed, and also when
//! the process dies. The handles here release them individually. A handle keeps alive what it
//! depends on, so handles may be dropped in any order; `close` reports the driver's answer, and
//! gives the handle back on error.
//!
//! ```text
//! Lni ── CommunicationProfile ── Txq ─┐
//!   │                                 ├─ EventQueue ── Md, WaitObject
//!   ├─── Tgq ─────────────────────────┤
//!   ├─── Pte ── PteMapping ── Domain  ┘
//!   └─── CountingEvent
//! ```
//!
//! The limits of a service are in its [`Limits`](crate::Limits). A reservation is not absolute. The
//! driver lets services without one use the shared part *up to the device's total*, and assigns
//! identifiers first come, first served. A reservation is protected from other reservations, and
//! its share of the maximum is certain, but services that share may already have used up the
//! identifiers.

mod counter;
mod domain;
mod event_queue;
mod memory;
mod object;
mod portal;
mod profile;
mod queue;
mod shared_profile;
mod wait;

pub use crate::error::NotClosed;
pub use counter::{CounterValue, CountingEvent};
pub use domain::{Domain, Pid, PidBlock};
pub use event_queue::{EventQueue, EventQueueFlags, EventQueueOptions, StatusThresholds};
pub use memory::{MapFlags, MapOptions, Md};
pub use portal::{LeList, PtOptions, Pte, PteMapping, PteStatus, PtlteState};
pub use profile::{
    CommunicationProfile, EthernetClass, LcidChoice, ProfileOptions, TrafficClassType,
};
pub use queue::{Tgq, TgqOptions, Txq, TxqOptions, UpdatePolicy};
pub use wait::{Interrupt, WaitObject};

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cxi_ioctl::abi::device::InboundWaitCmd;
use cxi_ioctl::abi::lni::LniFreeCmd;
use cxi_ioctl::abi::queue::EqAllocCmd;
use cxi_ioctl::{Command, CommandError, LniForm, Opcode, SafeCommand};

use crate::driver::Quirks;
use crate::error::{Error, Result};
use crate::explain::Attempt;
use crate::{Device, Resource, ServiceId, Vni, VniAccess};
use object::{Object, closable};
use shared_profile::SharedProfiles;

/// A logical network interface: the use of a service by an open file.
///
/// ```
/// # use cxi_mock::{MockNode, NicConfig};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let node = MockNode::with_nics(1, &NicConfig::new())?;
/// # let device = cxi::Device::cxi0(node.nics()[0].root()?);
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

/// State that the objects of an LNI keep alive.
#[derive(Debug)]
pub(crate) struct LniInner {
    object: Object<LniFreeCmd>,
    service: ServiceId,
    /// Form of requests that the driver understood.
    form: LniForm,
    /// VNIs of the service, which cannot change while it has an LNI.
    vnis: OnceLock<VniAccess>,
    callbacks: Mutex<Callbacks>,
    profiles: SharedProfiles,
}

/// Event queues with a wait object that an LNI has freed: one flag for events, and one for status.
///
/// The LNI reuses the numbers of freed event queues, and the callback stays with the number. Locked
/// while event queues are allocated and freed, so that it is accurate when the driver looks.
#[derive(Debug, Default)]
struct Callbacks([bool; 2]);

impl Callbacks {
    /// Refuses an event queue without a wait object if a freed one may have had one.
    fn check(&self, device: &Device, waiting: [bool; 2]) -> Result<()> {
        let [events, status] = self.0;
        if (events && !waiting[0]) || (status && !waiting[1]) {
            device.guard(Quirks::REUSED_EVENT_QUEUE, EqAllocCmd::OPCODE)?;
        }
        Ok(())
    }

    fn freed(&mut self, waiting: [bool; 2]) {
        self.0 = [self.0[0] || waiting[0], self.0[1] || waiting[1]];
    }
}

impl LniInner {
    pub(crate) fn device(&self) -> &Device {
        self.object.device()
    }

    pub(crate) fn id(&self) -> u32 {
        self.object.command().lni
    }

    fn callbacks(&self) -> MutexGuard<'_, Callbacks> {
        self.callbacks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses an object of another open file: its number means something else in this one.
    fn check_same_file(&self, other: &Device, what: &str, opcode: Opcode) -> Result<()> {
        if self.device().same_file(other) {
            return Ok(());
        }
        let text = format!("the {what} belongs to another open file than the LNI");
        Err(self.device().invalid(opcode, text))
    }

    /// Sends a command that allocates something of this LNI; `resource` is the resource it uses up.
    fn send<C: SafeCommand>(&self, command: &C, resource: Option<Resource>) -> Result<C::Response> {
        self.device().execute(command).map_err(|error| self.refused(error, resource))
    }

    /// Explains the refusal of a command; `resource` is the resource it would have used up.
    fn refused(&self, error: CommandError, resource: Option<Resource>) -> Error {
        let service = self.service;
        self.device().explain(&Attempt::Below { service, resource }, error)
    }

    /// An attempt to use a VNI.
    fn on_vni(&self, vni: Vni) -> Attempt {
        Attempt::OnVni { service: self.service, vni: vni.into(), ethernet: false }
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
    /// EINVAL if there is no such service ([`ErrorKind::Refused`](crate::ErrorKind::Refused) if it
    /// does exist, but the driver understands neither form of the command); EKEYREVOKED if it is
    /// disabled; EPERM if the caller is not a member; ENOSPC if all RGIDs of the NIC are in use.
    #[doc(alias = "cxil_alloc_lni")]
    pub fn alloc_lni(&self, service: ServiceId) -> Result<Lni> {
        let (lni, form) = self
            .lni_form()
            .alloc(self.transport(), service.get())
            .map_err(|error| self.explain(&Attempt::OnService(service), error))?;
        Ok(Lni {
            inner: Arc::new(LniInner {
                object: Object::new(self, LniFreeCmd::of(lni)),
                service,
                form,
                vnis: OnceLock::new(),
                callbacks: Mutex::default(),
                profiles: SharedProfiles::default(),
            }),
        })
    }
}

impl Device {
    /// Waits until everything in flight toward the NIC has arrived (INBOUND_WAIT).
    ///
    /// No privilege is needed.
    ///
    /// # Errors
    ///
    /// ETIMEDOUT if the NIC does not become quiet, EIO if it is gone.
    #[doc(alias = "cxil_inbound_wait")]
    pub fn inbound_wait(&self) -> Result<()> {
        self.call(&InboundWaitCmd::new(), |_| None)
    }
}

impl Lni {
    /// The LNI's number: device-wide, and its handle in this open file.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.inner.id()
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
}

closable! {
    /// EBUSY while an object of the LNI is left.
    Lni.inner.object by LNI_FREE ("cxil_destroy_lni")
}
