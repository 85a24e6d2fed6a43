//! Portal table entries.

use std::sync::Arc;

use cxi_hw::List;
pub use cxi_hw::PtlteState;
use cxi_ioctl::{Command, Errno, Opcode, pte_status};

pub use cxi_ioctl::abi::portal::PtOptions;
use cxi_ioctl::abi::portal::{
    PtAllocOpts, PteAllocCmd, PteFreeCmd, PteLeInvalidateCmd, PteMapCmd, PteTransitionSmCmd,
    PteUnmapCmd,
};

use super::domain::DomainInner;
use super::event_queue::EventQueueInner;
use super::object::{Object, closable};
use super::{Domain, EventQueue, Lni, LniInner};
use crate::Resource;
use crate::error::{Refusal, Result};

/// Multicast addresses that a PtlTE can be mapped to.
const MULTICAST_ADDRESSES: u32 = 1 << 18;

/// A list of a PtlTE.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeList {
    /// Buffers for expected messages.
    Priority = List::PRIORITY.0,
    /// Buffers for unexpected messages.
    Overflow = List::OVERFLOW.0,
    /// Requests to software.
    Request = List::REQUEST.0,
    /// Headers of messages that arrived unexpectedly.
    Unexpected = List::UNEXPECTED.0,
}

impl From<LeList> for List {
    fn from(list: LeList) -> Self {
        Self(list as u8)
    }
}

/// The status of a PtlTE.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PteStatus {
    /// Messages dropped since the PtlTE was disabled.
    pub drop_count: u32,
    /// Its state.
    pub state: PtlteState,
    /// LEs reserved for its pool.
    pub les_reserved: u16,
    /// LEs in use in its pool.
    pub les_allocated: u16,
    /// The most LEs its pool may have.
    pub les_max: u16,
    /// Number of unexpected list entries, including those whose offset did not fit.
    pub unexpected: u16,
    /// Remote offsets of the unexpected list entries, as many as requested.
    pub unexpected_offsets: Vec<u64>,
}

/// A portal table entry (PtlTE).
#[derive(Debug)]
pub struct Pte {
    inner: Arc<PteInner>,
}

#[derive(Debug)]
struct PteInner {
    object: Object<PteFreeCmd>,
    _events: Option<Arc<EventQueueInner>>,
    lni: Arc<LniInner>,
}

/// A PtlTE mapped into a domain at an offset: a target that others can address.
#[derive(Debug)]
pub struct PteMapping {
    object: Object<PteUnmapCmd>,
    _pte: Arc<PteInner>,
    _domain: Arc<DomainInner>,
}

impl Lni {
    /// Allocates a portal table entry (PTE_ALLOC).
    ///
    /// ```
    /// # use cxi_mock::{MockNode, NicConfig};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let node = MockNode::with_nics(1, &NicConfig::new())?;
    /// # let device = cxi::Device::cxi0(node.nics()[0].root()?);
    /// # use cxi::{ServiceSpec, Vni};
    /// # let vni = Vni::new(1024)?;
    /// # let spec = ServiceSpec::builder().vni(vni).build()?;
    /// # let lni = device.alloc_lni(device.services().create(&spec)?)?;
    /// use cxi::lni::PtOptions;
    ///
    /// let pte = lni.alloc_pte(PtOptions::IS_MATCHING, None)?;
    /// let domain = lni.alloc_domain(vni, None)?;
    /// let mapping = pte.map(&domain, 7)?;
    /// mapping.close()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// EPERM for the Ethernet option without `CAP_NET_RAW`; ENOSPC when all PTEs of the service or
    /// the NIC are in use, EBADR when the service's limits allow none.
    ///
    /// A freed PtlTE stays with the LNI, which reuses it for its next allocation.
    #[doc(alias = "cxil_alloc_pte")]
    pub fn alloc_pte(&self, options: PtOptions, events: Option<&EventQueue>) -> Result<Pte> {
        if let Some(events) = events {
            let other = events.inner.device();
            self.inner.check_same_file(other, "event queue", PteAllocCmd::OPCODE)?;
        }
        let bits = options.bits();
        let events_id = events.map_or(0, EventQueue::id);
        let command = PteAllocCmd::of(self.id(), events_id, PtAllocOpts { bits });
        let response = self.inner.send(&command, Some(Resource::Ptes))?;
        Ok(Pte {
            inner: Arc::new(PteInner {
                object: Object::new(self.device(), PteFreeCmd::of(response.pte_number)),
                _events: events.map(|events| Arc::clone(&events.inner)),
                lni: Arc::clone(&self.inner),
            }),
        })
    }
}

impl Pte {
    /// The PtlTE's number on the device.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.inner.object.command().pte_number
    }

    /// Maps it into a domain at an offset below 256 (PTE_MAP).
    ///
    /// # Errors
    ///
    /// EINVAL for an offset of 256 or more, or a domain of another LNI. The driver permits mapping
    /// an offset twice.
    #[doc(alias = "cxil_map_pte")]
    pub fn map(&self, domain: &Domain, offset: u32) -> Result<PteMapping> {
        self.map_at(domain, offset, false)
    }

    /// Maps it to a multicast address, below 2^18 (PTE_MAP).
    ///
    /// # Errors
    ///
    /// EINVAL for an address of 2^18 or more, a domain of another LNI, or an entry that already has
    /// a multicast address; ENOSPC when the address is taken.
    #[doc(alias = "cxil_map_pte")]
    pub fn map_multicast(&self, domain: &Domain, offset: u32) -> Result<PteMapping> {
        self.map_at(domain, offset, true)
    }

    fn map_at(&self, domain: &Domain, offset: u32, multicast: bool) -> Result<PteMapping> {
        const OPCODE: Opcode = PteMapCmd::OPCODE;
        let device = self.inner.object.device();
        self.inner.lni.check_same_file(domain.inner.device(), "domain", OPCODE)?;
        let end =
            if multicast { MULTICAST_ADDRESSES } else { device.properties()?.info.pid_granule };
        if offset >= end {
            let text = format!("offset {offset}: expected 0 to {}", end.saturating_sub(1));
            return Err(device.invalid(OPCODE, text));
        }
        let command = PteMapCmd::of(self.id(), domain.inner.handle(), offset, multicast.into());
        let response = device.call(&command, |errno| match errno {
            Errno::EINVAL if multicast => Some(Refusal::MulticastOrDomain.into()),
            Errno::EINVAL => Some(Refusal::DomainOfOtherLni.into()),
            Errno::ENOSPC if multicast => Some(Refusal::MulticastTaken(offset).into()),
            _ => None,
        })?;
        let unmap = PteUnmapCmd::of(response.pte_index);
        Ok(PteMapping {
            object: Object::new(self.inner.object.device(), unmap),
            _pte: Arc::clone(&self.inner),
            _domain: Arc::clone(&domain.inner),
        })
    }

    /// Invalidates the list entry with a buffer id (PTE_LE_INVALIDATE).
    ///
    /// # Errors
    ///
    /// EINVAL when the PtlTE is gone.
    #[doc(alias = "cxil_invalidate_pte_le")]
    pub fn invalidate(&self, list: LeList, buffer_id: u16) -> Result<()> {
        let command = PteLeInvalidateCmd::of(self.id(), buffer_id.into(), (list as u8).into());
        self.inner.object.device().call(&command, |_| None)
    }

    /// Returns its status, with the offsets of at most `offsets` unexpected list entries
    /// (PTE_STATUS).
    ///
    /// # Errors
    ///
    /// EINVAL when the PtlTE is gone.
    #[doc(alias = "cxil_pte_status")]
    pub fn status(&self, offsets: u16) -> Result<PteStatus> {
        let device = self.inner.object.device();
        let (status, unexpected_offsets) = pte_status(device.transport(), self.id(), offsets)
            .map_err(|error| device.refused(error, |_| None))?;
        Ok(PteStatus {
            drop_count: status.drop_count,
            state: PtlteState(status.state),
            les_reserved: status.les_reserved,
            les_allocated: status.les_allocated,
            les_max: status.les_max,
            unexpected: status.ule_count,
            unexpected_offsets,
        })
    }

    /// Moves the PtlTE to software-managed mode if it has dropped as many messages as
    /// [`status`](Self::status) reported (PTE_TRANSITION_SM). If it is already in that mode, it
    /// stays there.
    ///
    /// # Errors
    ///
    /// EAGAIN if it has dropped a different number, EINVAL if the PtlTE is gone.
    #[doc(alias = "cxil_pte_transition_sm")]
    pub fn transition_to_software(&self, drop_count: u32) -> Result<()> {
        let command = PteTransitionSmCmd::of(self.id(), drop_count);
        self.inner
            .object
            .device()
            .call(&command, |errno| (errno == Errno::EAGAIN).then_some(Refusal::DropCount.into()))
    }
}

impl PteMapping {
    /// The index of the mapping on the device.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.object.command().pte_index
    }
}

closable! {
    /// EBUSY while it is mapped.
    Pte.inner.object by PTE_FREE ("cxil_destroy_pte")
}
closable! {
    /// EINVAL when the driver does not know the mapping.
    PteMapping.object by PTE_UNMAP ("cxil_unmap_pte")
}
