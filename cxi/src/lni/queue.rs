//! Command queues.

use std::sync::Arc;

use cxi_ioctl::abi::queue::{
    CQ_IS_TX, CQ_TX_ETHERNET, CQ_TX_WITH_TRIG_CMDS, CQ_UPDATE_ALWAYS, CQ_UPDATE_HIGH_FREQ_EMPTY,
    CQ_UPDATE_LOW_FREQ, CQ_UPDATE_LOW_FREQ_EMPTY, CqAckCounterCmd, CqAllocCmd, CqAllocOpts,
    CqFreeCmd,
};
use cxi_ioctl::{Errno, Mapping, Opcode};

use super::event_queue::EventQueueInner;
use super::object::{Object, Window, closable};
use super::shared_profile::ProfileUse;
use super::{CommunicationProfile, EventQueue, Lni, LniInner};
use crate::Resource;
use crate::error::{ErrorKind, Result};

/// The most commands that a queue can have.
const MAX_SLOTS: u32 = 65_536;
/// The LCID that triggered commands need.
const LCID_OF_TRIGGERED: u32 = 0;
/// The highest set of credit thresholds.
const MAX_THRESHOLD_SET: u32 = 3;

/// When the NIC writes a queue's read pointer back.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UpdatePolicy {
    /// After each command.
    #[default]
    Always = CQ_UPDATE_ALWAYS,
    /// Often, and when the queue runs empty.
    OftenAndWhenEmpty = CQ_UPDATE_HIGH_FREQ_EMPTY,
    /// Rarely, and when the queue runs empty.
    SeldomAndWhenEmpty = CQ_UPDATE_LOW_FREQ_EMPTY,
    /// Rarely.
    Seldom = CQ_UPDATE_LOW_FREQ,
}

/// Options for allocating a transmit queue.
#[derive(Clone, Copy, Debug)]
pub struct TxqOptions<'a> {
    slots: u32,
    policy: UpdatePolicy,
    counter_pool: u32,
    flags: u32,
    event_queue: Option<&'a EventQueue>,
}

impl<'a> TxqOptions<'a> {
    /// A queue of at least `slots` commands of 64 bytes: 64 to 65536, rounded up to a power of two.
    #[must_use]
    pub const fn new(slots: u32) -> Self {
        Self {
            slots,
            policy: UpdatePolicy::Always,
            counter_pool: 0,
            flags: CQ_IS_TX,
            event_queue: None,
        }
    }

    setters! {
        /// Sets when the read pointer is written back.
        policy: UpdatePolicy;
        /// Sets the pool of statistics counters for the queue.
        counter_pool: u32;
        /// Sets the event queue to which errors of the queue are reported.
        event_queue: &'a EventQueue;
    }

    /// Allows triggered commands in the queue. Its profile must have LCID 0.
    #[must_use]
    pub const fn triggered(mut self) -> Self {
        self.flags |= CQ_TX_WITH_TRIG_CMDS;
        self
    }

    /// Makes the queue transmit Ethernet frames. Needs `CAP_NET_RAW`.
    #[must_use]
    pub const fn ethernet(mut self) -> Self {
        self.flags |= CQ_TX_ETHERNET;
        self
    }
}

/// Options for allocating a target queue.
#[derive(Clone, Copy, Debug)]
pub struct TgqOptions<'a> {
    slots: u32,
    policy: UpdatePolicy,
    credit_thresholds: u32,
    event_queue: Option<&'a EventQueue>,
}

impl<'a> TgqOptions<'a> {
    /// A queue of at least `slots` commands of 64 bytes: 64 to 65536, rounded up to a power of two.
    #[must_use]
    pub const fn new(slots: u32) -> Self {
        Self { slots, policy: UpdatePolicy::Always, credit_thresholds: 0, event_queue: None }
    }

    setters! {
        /// Sets when the read pointer is written back.
        policy: UpdatePolicy;
        /// Selects one of the four sets of credit thresholds, 0 to 3.
        credit_thresholds: u32;
        /// Sets the event queue to which errors of the queue are reported.
        event_queue: &'a EventQueue;
    }
}

/// Parts that transmit and target queues have in common.
#[derive(Debug)]
struct Queue {
    object: Object<CqFreeCmd>,
    slots: u32,
    commands: Window,
    write_pointer: Window,
    _events: Option<Arc<EventQueueInner>>,
    _profile: Option<ProfileUse>,
    _lni: Arc<LniInner>,
}

impl Queue {
    fn alloc(
        lni: &Lni,
        opts: CqAllocOpts,
        resource: Resource,
        events: Option<&EventQueue>,
        profile: Option<&CommunicationProfile>,
    ) -> Result<Box<Self>> {
        const OPCODE: Opcode = Opcode::CQ_ALLOC;
        let device = lni.device();
        if opts.count > MAX_SLOTS {
            let text = format!("a queue of {} commands: expected at most 65536", opts.count);
            let kind = ErrorKind::InvalidInput(text.into());
            return Err(device.error(kind, Errno::E2BIG, OPCODE));
        }
        if let Some(events) = events {
            let other = events.inner.device();
            lni.inner.check_same_file(other, "event queue", OPCODE)?;
        }
        if let Some(profile) = profile {
            let other = profile.inner.lni().device();
            lni.inner.check_same_file(other, "profile", OPCODE)?;
        }
        let command = CqAllocCmd::of(lni.id(), events.map_or(0, EventQueue::id), opts);
        let response = lni.inner.send(&command, Some(resource))?;
        Ok(Box::new(Self {
            object: Object::new(device, CqFreeCmd::of(response.cq)),
            slots: response.count,
            commands: Window::new(response.cmds),
            write_pointer: Window::new(response.wp_addr),
            _events: events.map(|events| Arc::clone(&events.inner)),
            _profile: profile.map(|profile| profile.inner.for_queue()),
            _lni: Arc::clone(&lni.inner),
        }))
    }
}

/// A transmit command queue (TXQ).
#[derive(Debug)]
pub struct Txq {
    queue: Box<Queue>,
}

/// A target command queue (TGQ).
#[derive(Debug)]
pub struct Tgq {
    queue: Box<Queue>,
}

impl Lni {
    /// Allocates a transmit command queue (CQ_ALLOC).
    ///
    /// # Errors
    ///
    /// E2BIG for more than 65536 commands; EINVAL for a triggered queue on a profile whose LCID is
    /// not 0; EPERM for Ethernet without `CAP_NET_RAW`; ENOSPC when all TXQs of the service or the
    /// NIC are in use, EBADR when the service's limits allow none.
    ///
    /// A freed queue returns its share late: when a later allocation of the same LNI needs it, or
    /// with the LNI.
    #[doc(alias = "cxil_alloc_cmdq")]
    pub fn alloc_txq(
        &self,
        profile: &CommunicationProfile,
        options: &TxqOptions<'_>,
    ) -> Result<Txq> {
        if options.flags & CQ_TX_WITH_TRIG_CMDS != 0 && profile.lcid() != LCID_OF_TRIGGERED {
            let text = format!(
                "a queue for triggered commands needs a profile with LCID 0, this one has {}: ask \
                 for LcidChoice::Triggered",
                profile.lcid()
            );
            return Err(self.device().invalid(Opcode::CQ_ALLOC, text));
        }
        let opts = CqAllocOpts {
            count: options.slots,
            policy: options.policy as u32,
            stat_cnt_pool: options.counter_pool,
            flags: options.flags,
            lcid: profile.lcid(),
            lpe_cdt_thresh_id: 0,
        };
        let queue = Queue::alloc(self, opts, Resource::Txqs, options.event_queue, Some(profile))?;
        Ok(Txq { queue })
    }

    /// Allocates a target command queue (CQ_ALLOC).
    ///
    /// ```
    /// # use cxi_mock::{MockNode, NicConfig};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let node = MockNode::with_nics(1, &NicConfig::new())?;
    /// # let device = cxi::Device::cxi0(node.nics()[0].root()?);
    /// # use cxi::{ServiceSpec, Vni};
    /// # let spec = ServiceSpec::builder().vni(Vni::new(1024)?).build()?;
    /// # let lni = device.alloc_lni(device.services().create(&spec)?)?;
    /// use cxi::lni::TgqOptions;
    ///
    /// let queue = lni.alloc_tgq(&TgqOptions::new(100))?;
    /// assert_eq!(queue.slots(), 128);
    /// queue.commands()?.write_u64(0, 0)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Lni::alloc_txq`] for TGQs; EINVAL for a threshold set above 3.
    #[doc(alias = "cxil_alloc_cmdq")]
    pub fn alloc_tgq(&self, options: &TgqOptions<'_>) -> Result<Tgq> {
        if options.credit_thresholds > MAX_THRESHOLD_SET {
            let text =
                format!("credit threshold set {}: expected 0 to 3", options.credit_thresholds);
            return Err(self.device().invalid(Opcode::CQ_ALLOC, text));
        }
        let opts = CqAllocOpts {
            count: options.slots,
            policy: options.policy as u32,
            stat_cnt_pool: 0,
            flags: 0,
            lcid: 0,
            lpe_cdt_thresh_id: options.credit_thresholds,
        };
        let queue = Queue::alloc(self, opts, Resource::Tgqs, options.event_queue, None)?;
        Ok(Tgq { queue })
    }
}

macro_rules! command_queue {
    ($queue:ident) => {
        impl $queue {
            /// The queue's number on the device.
            #[must_use]
            pub fn id(&self) -> u32 {
                self.queue.object.command().cq
            }

            /// Returns the number of commands that fit.
            #[must_use]
            pub fn slots(&self) -> u32 {
                self.queue.slots
            }

            /// The command slots, 64 bytes each, mapped at first use.
            ///
            /// # Errors
            ///
            /// The errno of `mmap(2)`.
            pub fn commands(&self) -> Result<&Mapping> {
                self.queue.commands.get(self.queue.object.device(), "command slots")
            }

            /// The write pointer, which notifies the NIC of new commands; mapped at first use.
            ///
            /// # Errors
            ///
            /// The errno of `mmap(2)`.
            pub fn write_pointer(&self) -> Result<&Mapping> {
                self.queue.write_pointer.get(self.queue.object.device(), "write pointer")
            }

            /// Returns the number of commands of the queue that have not been acknowledged yet
            /// (CQ_ACK_COUNTER).
            ///
            /// # Errors
            ///
            /// EIO when the device is gone.
            #[doc(alias = "cxil_cmdq_ack_counter")]
            pub fn ack_counter(&self) -> Result<u32> {
                let response =
                    self.queue.object.device().call(&CqAckCounterCmd::of(self.id()), |_| None)?;
                Ok(response.ack_counter)
            }
        }

        closable! {
            /// EBUSY while something uses it.
            $queue.queue.object by CQ_FREE ("cxil_destroy_cmdq")
        }
    };
}

command_queue!(Txq);
command_queue!(Tgq);
