//! Event queues.

use std::sync::{Arc, Mutex, PoisonError};

use cxi_ioctl::abi::queue::{
    EQ_DROP_STATUS_DISABLE, EQ_EC_DISABLE, EQ_INIT_LONG, EQ_REGISTER_PCT, EQ_TGT_LONG,
    EQ_TIMESTAMP_EVENTS, EqAllocCmd, EqAttr, EqFreeCmd, EqResizeCmd, EqResizeCompleteCmd,
};
use cxi_ioctl::{
    Command, DeviceMemory, Errno, Mapping, eq_adjust_reserved_fc, eq_alloc, eq_resize,
};

use super::memory::MdInner;
use super::object::{Object, Window, closable, device_memory};
use super::wait::WaitInner;
use super::{Lni, LniInner, MapOptions, Md, WaitObject};
use crate::error::{ErrorKind, Result};
use crate::{Device, Resource};

bitflags::bitflags! {
    /// Optional features of an event queue.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct EventQueueFlags: u64 {
        /// Long initiator events.
        const INITIATOR_LONG = EQ_INIT_LONG;
        /// Long target events.
        const TARGET_LONG = EQ_TGT_LONG;
        /// No status updates for dropped events.
        const NO_DROP_STATUS = EQ_DROP_STATUS_DISABLE;
        /// Time stamps in events.
        const TIMESTAMPS = EQ_TIMESTAMP_EVENTS;
        /// No event coalescing.
        const NO_COALESCING = EQ_EC_DISABLE;
        /// The queue of the retry handler, one per device. Needs `CAP_SYS_ADMIN`.
        const RETRY_HANDLER = EQ_REGISTER_PCT;
    }
}

/// The fill levels at which an event queue reports its status: `base` and further levels below it,
/// `count` in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusThresholds {
    /// The highest level, in percent.
    pub base: u32,
    /// The distance between two levels, in percent.
    pub delta: u32,
    /// Number of levels, at most 4.
    pub count: u32,
}

/// Options for allocating an event queue, which takes an EQ, and an AC for its memory
/// ([`Lni::alloc_eq`]).
#[derive(Clone, Copy, Debug)]
pub struct EventQueueOptions<'a> {
    len: usize,
    flags: EventQueueFlags,
    thresholds: StatusThresholds,
    coalescing_delay: u32,
    cpu: u32,
    reserved_slots: u32,
    event_wait: Option<&'a WaitObject>,
    status_wait: Option<&'a WaitObject>,
}

impl<'a> EventQueueOptions<'a> {
    /// A queue with room for `len` bytes of events, rounded up to whole pages.
    #[must_use]
    pub fn new(len: usize) -> Self {
        Self {
            len,
            flags: EventQueueFlags::empty(),
            thresholds: StatusThresholds::default(),
            coalescing_delay: 0,
            cpu: 0,
            reserved_slots: 0,
            event_wait: None,
            status_wait: None,
        }
    }

    setters! {
        /// Sets the flags.
        flags: EventQueueFlags;
        /// Sets the fill levels that are reported.
        thresholds: StatusThresholds;
        /// Sets how long events may be delayed to be written together, in the NIC's units.
        coalescing_delay: u32;
        /// Sets the CPU that takes the interrupts.
        cpu: u32;
        /// Sets how many slots are reserved for software: fewer than the queue has and at most 16383.
        reserved_slots: u32;
        /// Sets the wait object to wake when there is an event.
        event_wait: &'a WaitObject;
        /// Sets the wait object to wake when the status changes.
        status_wait: &'a WaitObject;
    }
}

/// An event queue with its memory.
#[derive(Debug)]
pub struct EventQueue {
    pub(super) inner: Arc<EventQueueInner>,
}

#[derive(Debug)]
pub(super) struct EventQueueInner {
    object: Object<EqFreeCmd>,
    lni: Arc<LniInner>,
    registers: Window,
    waits: [Option<Arc<WaitInner>>; 2],
    buffers: Mutex<Buffers>,
}

impl EventQueueInner {
    pub(super) fn handle(&self) -> u32 {
        self.object.command().eq
    }

    pub(super) fn device(&self) -> &Device {
        self.object.device()
    }

    fn free(&self) -> Result<()> {
        let mut callbacks = self.lni.callbacks();
        self.object.free()?;
        callbacks.freed([0, 1].map(|wait| self.waits[wait].is_some()));
        Ok(())
    }
}

impl Drop for EventQueueInner {
    fn drop(&mut self) {
        // A failure cannot be reported from here; closing the device frees what remains.
        let _ = self.free();
    }
}

/// The event buffer, and its replacement while a resize is in progress.
#[derive(Debug)]
struct Buffers {
    current: Arc<MdInner>,
    next: Option<Arc<MdInner>>,
}

impl Lni {
    /// Allocates an event queue (EQ_ALLOC) and registers its memory (ATU_MAP).
    ///
    /// ```
    /// # use cxi_mock::{MockNode, NicConfig};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let node = MockNode::with_nics(1, &NicConfig::new())?;
    /// # let device = cxi::Device::cxi0(node.nics()[0].root()?);
    /// # use cxi::{ServiceSpec, Vni};
    /// # let spec = ServiceSpec::builder().vni(Vni::new(1024)?).build()?;
    /// # let lni = device.alloc_lni(device.services().create(&spec)?)?;
    /// use cxi::lni::EventQueueOptions;
    ///
    /// let events = lni.alloc_eq(&EventQueueOptions::new(4096))?;
    /// assert_eq!(events.memory().read_u64(0)?, 0);
    /// events.close()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// EINVAL for a length of zero, impossible thresholds or too many reserved slots; EPERM for the
    /// retry handler's queue without `CAP_SYS_ADMIN`, EEXIST for a second one; ENOSPC when all of
    /// the service's EQs are in use, EBADR when its limits allow no EQs or no ACs; the errors of
    /// [`Lni::map_memory`]. [`ErrorKind::Quirk`] for a queue without a wait object after the LNI
    /// has freed one that had one; nothing was sent, because the driver would follow a null
    /// pointer.
    #[doc(alias = "cxil_alloc_evtq")]
    pub fn alloc_eq(&self, options: &EventQueueOptions<'_>) -> Result<EventQueue> {
        if options.len == 0 {
            let text = "an event queue of 0 bytes: expected room for at least one event";
            return Err(self.device().invalid(EqAllocCmd::OPCODE, text));
        }
        for wait in options.event_wait.iter().chain(&options.status_wait) {
            let other = wait.inner.device();
            self.inner.check_same_file(other, "wait object", EqAllocCmd::OPCODE)?;
        }
        let waits = [options.event_wait, options.status_wait];
        self.inner.callbacks().check(self.device(), waits.map(|wait| wait.is_some()))?;
        let md = self.register(options.len)?;
        let memory = md.memory();
        let command = EqAllocCmd {
            lni: self.id(),
            queue_md: md.id(),
            event_wait: waits[0].map_or(0, WaitObject::id),
            status_wait: waits[1].map_or(0, WaitObject::id),
            attr: EqAttr {
                flags: options.flags.bits(),
                status_thresh_base: options.thresholds.base,
                status_thresh_delta: options.thresholds.delta,
                status_thresh_count: options.thresholds.count,
                ec_delay: options.coalescing_delay,
                cpu_affinity: options.cpu,
                reserved_slots: options.reserved_slots,
                ..zerocopy::FromZeros::new_zeroed()
            },
            ..EqAllocCmd::new()
        };
        let response = eq_alloc(self.device().transport(), &memory, &command)
            .map_err(|error| self.inner.refused(error, Some(Resource::Eqs)))?;
        Ok(EventQueue {
            inner: Arc::new(EventQueueInner {
                object: Object::new(self.device(), EqFreeCmd::of(response.eq)),
                lni: Arc::clone(&self.inner),
                registers: Window::new(response.csr),
                waits: waits.map(|wait| wait.map(|wait| Arc::clone(&wait.inner))),
                buffers: Mutex::new(Buffers { current: Arc::clone(&md.inner), next: None }),
            }),
        })
    }

    fn register(&self, len: usize) -> Result<Md> {
        let memory = device_memory(self.device(), len)?;
        self.map_memory(&Arc::new(memory), &MapOptions::new())
    }
}

impl EventQueue {
    /// The queue's handle in this open file.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.inner.handle()
    }

    /// The event buffer that the NIC writes to.
    #[must_use]
    pub fn memory(&self) -> Arc<DeviceMemory> {
        self.buffers().current.memory()
    }

    /// The queue's registers, mapped at first use.
    ///
    /// # Errors
    ///
    /// The errno of `mmap(2)`.
    pub fn registers(&self) -> Result<&Mapping> {
        self.inner.registers.get(self.inner.object.device(), "event queue registers")
    }

    /// Starts moving the queue to a buffer of another size (EQ_RESIZE) and returns that buffer.
    ///
    /// The NIC continues in the old buffer until it has written the event that marks the switch;
    /// consume that, then call [`complete_resize`](Self::complete_resize).
    ///
    /// # Errors
    ///
    /// EBUSY while an earlier resize is not complete; the errors of [`Lni::alloc_eq`]. The queue is
    /// then unchanged.
    #[doc(alias = "cxil_evtq_resize")]
    pub fn resize(&self, len: usize) -> Result<Arc<DeviceMemory>> {
        let mut buffers = self.buffers();
        if buffers.next.is_some() {
            let what = "an earlier resize is not complete: the event queue".into();
            let busy = ErrorKind::Busy { what, waited: None };
            let device = self.inner.device();
            return Err(device.error(busy, Errno::EBUSY, EqResizeCmd::OPCODE));
        }
        let lni = Lni { inner: Arc::clone(&self.inner.lni) };
        let md = lni.register(len)?;
        let memory = md.memory();
        let command = EqResizeCmd::of(self.id(), md.id());
        eq_resize(lni.device().transport(), &memory, &command)
            .map_err(|error| self.inner.lni.refused(error, None))?;
        buffers.next = Some(Arc::clone(&md.inner));
        Ok(memory)
    }

    /// Completes a resize (EQ_RESIZE_COMPLETE) and releases the old buffer.
    ///
    /// # Errors
    ///
    /// EINVAL when no resize is in progress.
    #[doc(alias = "cxil_evtq_resize_complete")]
    pub fn complete_resize(&self) -> Result<()> {
        let mut buffers = self.buffers();
        self.inner.lni.send(&EqResizeCompleteCmd::of(self.id()), None)?;
        if let Some(next) = buffers.next.take() {
            buffers.current = next;
        }
        Ok(())
    }

    /// Changes the number of slots reserved for flow control by `change` and returns the new number
    /// (EQ_ADJUST_RESERVED_FC).
    ///
    /// # Errors
    ///
    /// EINVAL if the number would be negative or above 16383; ENOSPC if it would reach the size of
    /// the queue.
    #[doc(alias = "cxil_evtq_adjust_reserved_fc")]
    pub fn adjust_reserved_slots(&self, change: i32) -> Result<i32> {
        let (device, form) = (self.inner.lni.device(), self.inner.lni.form);
        eq_adjust_reserved_fc(device.transport(), form, self.id(), change)
            .map_err(|error| device.refused(error, |_| None))
    }

    fn buffers(&self) -> std::sync::MutexGuard<'_, Buffers> {
        self.inner.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

closable! {
    /// EBUSY while a queue or PtlTE reports to it.
    EventQueue.inner by EQ_FREE ("cxil_destroy_evtq")
}
