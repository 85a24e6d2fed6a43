//! Registered memory.

use std::ops::Range;
use std::sync::Arc;

pub use cxi_ioctl::abi::memory::MapFlags;
use cxi_ioctl::abi::memory::{AtuMapCmd, AtuUnmapCmd, AtuUpdateMdCmd, MdHints};
use cxi_ioctl::{Command, DeviceMemory, atu_map, atu_update_md};

use super::object::{Object, closable};
use super::{Lni, LniInner};
use crate::Resource;
use crate::error::Result;

/// Options for registering memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapOptions {
    flags: MapFlags,
    page_shift: i32,
    huge_shift: i32,
}

impl Default for MapOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl MapOptions {
    /// Pinned memory, readable and writable by the NIC, with page sizes chosen by the driver.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            flags: MapFlags::PIN.union(MapFlags::READ).union(MapFlags::WRITE),
            page_shift: 0,
            huge_shift: 0,
        }
    }

    setters! {
        /// Sets other flags.
        flags: MapFlags;
    }

    /// Sets log2 of the page size; 0 leaves the choice to the driver.
    #[must_use]
    pub const fn page_shift(mut self, shift: u8) -> Self {
        self.page_shift = shift as i32;
        self
    }

    /// Sets log2 of the huge page size; 0 leaves the choice to the driver.
    #[must_use]
    pub const fn huge_shift(mut self, shift: u8) -> Self {
        self.huge_shift = shift as i32;
        self
    }
}

/// A memory descriptor: memory of this process that the NIC may use.
///
/// The memory stays allocated until the NIC can no longer reach it.
#[derive(Debug)]
pub struct Md {
    pub(super) inner: Arc<MdInner>,
}

#[derive(Debug)]
pub(super) struct MdInner {
    object: Object<AtuUnmapCmd>,
    lni: Arc<LniInner>,
    id: u32,
    iova: u64,
    lac: u8,
    flags: MapFlags,
    memory: Arc<DeviceMemory>,
}

impl MdInner {
    pub(super) fn memory(&self) -> Arc<DeviceMemory> {
        Arc::clone(&self.memory)
    }
}

impl Lni {
    /// Registers memory for the NIC (ATU_MAP).
    ///
    /// Mappings of one kind (flags, page sizes) share an address context (AC) of the LNI's RGID,
    /// which is released with the LNI.
    ///
    /// ```
    /// # use cxi_mock::{MockNode, NicConfig};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let node = MockNode::with_nics(1, &NicConfig::new())?;
    /// # let device = cxi::Device::cxi0(node.nics()[0].root()?);
    /// # use cxi::{ServiceSpec, Vni};
    /// # let spec = ServiceSpec::builder().vni(Vni::new(1024)?).build()?;
    /// # let lni = device.alloc_lni(device.services().create(&spec)?)?;
    /// use cxi::{DeviceMemory, lni::MapOptions};
    ///
    /// let buffer = std::sync::Arc::new(DeviceMemory::new(8192)?);
    /// let md = lni.map_memory(&buffer, &MapOptions::new())?;
    /// assert_eq!(md.len(), 8192);
    /// md.close()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// EINVAL for flags that let the NIC reach more than the memory ([`MapFlags::CONFINED`]), or
    /// flags or page sizes that cannot be combined; EOPNOTSUPP for unpinned memory on a virtual
    /// function; ENOSPC when all ACs of the service or the RGID are in use, EBADR when the service's
    /// limits allow none; ENOMEM or EFAULT when the memory cannot be pinned.
    #[doc(alias = "cxil_map")]
    pub fn map_memory(&self, memory: &Arc<DeviceMemory>, options: &MapOptions) -> Result<Md> {
        if !MapFlags::CONFINED.contains(options.flags) {
            let text = format!(
                "{:?}: expected flags of MapFlags::CONFINED, the others let the NIC reach more \
                 than the memory",
                options.flags - MapFlags::CONFINED
            );
            return Err(self.device().invalid(AtuMapCmd::OPCODE, text));
        }
        let command = AtuMapCmd {
            lni: self.id(),
            flags: options.flags.bits(),
            hints: MdHints {
                page_shift: options.page_shift,
                huge_shift: options.huge_shift,
                ..zerocopy::FromZeros::new_zeroed()
            },
            ..AtuMapCmd::new()
        };
        let response = atu_map(self.device().transport(), memory, &command)
            .map_err(|error| self.inner.refused(error, Some(Resource::Acs)))?;
        Ok(Md {
            inner: Arc::new(MdInner {
                object: Object::new(self.device(), AtuUnmapCmd::of(response.id)),
                lni: Arc::clone(&self.inner),
                id: response.id,
                iova: response.md.iova,
                lac: response.md.lac,
                flags: options.flags,
                memory: Arc::clone(memory),
            }),
        })
    }
}

impl Md {
    /// The descriptor's number in this open file.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.inner.id
    }

    /// The address that commands use for the first byte.
    #[must_use]
    pub fn iova(&self) -> u64 {
        self.inner.iova
    }

    /// The logical address context, 0 to 7 within the RGID.
    #[must_use]
    pub fn lac(&self) -> u8 {
        self.inner.lac
    }

    /// Length in bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "registered memory is never empty")]
    pub fn len(&self) -> usize {
        self.inner.memory().len()
    }

    /// The memory.
    #[must_use]
    pub fn memory(&self) -> Arc<DeviceMemory> {
        self.inner.memory()
    }

    /// Faults in the pages of a part of the memory (ATU_UPDATE_MD), for memory registered with
    /// [`MapFlags::ALLOC_MD`] that has no translation yet or has been unmapped since.
    ///
    /// # Errors
    ///
    /// EINVAL when the range exceeds the memory or the memory is pinned; nothing was sent.
    #[doc(alias = "cxil_update_md")]
    pub fn update(&self, part: Range<usize>) -> Result<()> {
        let memory = &self.inner.memory;
        let device = self.inner.lni.device();
        if part.is_empty() || part.end > memory.len() {
            let text = format!(
                "bytes {} to {}: expected a part of the {} that are registered",
                part.start,
                part.end,
                memory.len()
            );
            return Err(device.invalid(AtuUpdateMdCmd::OPCODE, text));
        }
        if self.inner.flags.contains(MapFlags::PIN) {
            let text = "the memory is pinned: its pages are always there";
            return Err(device.invalid(AtuUpdateMdCmd::OPCODE, text));
        }
        let command = AtuUpdateMdCmd {
            id: self.inner.id,
            flags: (self.inner.flags | MapFlags::FAULT).bits(),
            ..AtuUpdateMdCmd::new()
        };
        atu_update_md(device.transport(), memory, part, &command)
            .map_err(|error| self.inner.lni.refused(error, None))
    }
}

closable! {
    /// EBUSY while an event queue uses the memory.
    Md.inner.object by ATU_UNMAP ("cxil_unmap")
}
