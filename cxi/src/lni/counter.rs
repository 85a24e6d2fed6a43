//! Counting events.

use std::sync::{Arc, Mutex, PoisonError};

use cxi_hw::CtWriteback;
use cxi_ioctl::abi::counter::{CtAllocCmd, CtFreeCmd, CtWbUpdateCmd};
use cxi_ioctl::{DeviceMemory, Mapping, ct_alloc, ct_wb_update};

use super::object::{Object, Window, closable, device_memory};
use super::{Lni, LniInner};
use crate::Resource;
use crate::error::Result;

/// The value of a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CounterValue {
    /// Successes, modulo 2^48.
    pub success: u64,
    /// Failures, at most 127.
    pub failure: u8,
    /// `true` if the NIC has written the value back since it was last cleared.
    pub written_back: bool,
}

impl From<u64> for CounterValue {
    fn from(bits: u64) -> Self {
        let word = CtWriteback::decode(&bits.to_le_bytes());
        Self { success: word.ct_success, failure: word.ct_failure, written_back: word.ct_writeback }
    }
}

/// A counting event (CT) and the memory that its value is written back to.
#[derive(Debug)]
pub struct CountingEvent {
    object: Object<CtFreeCmd>,
    doorbell: Window,
    write_back: Mutex<Arc<DeviceMemory>>,
    _lni: Arc<LniInner>,
}

impl Lni {
    /// Allocates a counting event with memory for its write-backs (CT_ALLOC).
    ///
    /// ```
    /// # use cxi_mock::{MockNode, NicConfig};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let node = MockNode::with_nics(1, &NicConfig::new())?;
    /// # let device = cxi::Device::cxi0(node.nics()[0].root()?);
    /// # use cxi::{ServiceSpec, Vni};
    /// # let spec = ServiceSpec::builder().vni(Vni::new(1024)?).build()?;
    /// # let lni = device.alloc_lni(device.services().create(&spec)?)?;
    /// let counter = lni.alloc_ct()?;
    /// assert_eq!(counter.value().success, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// ENOSPC when all CTs of the service or the NIC are in use, EBADR when the service's limits
    /// allow none.
    ///
    /// A freed counter returns its share only with the LNI.
    #[doc(alias = "cxil_alloc_ct")]
    pub fn alloc_ct(&self) -> Result<CountingEvent> {
        let device = self.device();
        let memory = Arc::new(device_memory(device, size_of::<u64>())?);
        let command = CtAllocCmd::of(self.id());
        let response = ct_alloc(device.transport(), &memory, &command)
            .map_err(|error| self.inner.refused(error, Some(Resource::Cts)))?;
        Ok(CountingEvent {
            object: Object::new(device, CtFreeCmd::of(response.ctn)),
            doorbell: Window::new(response.doorbell),
            write_back: Mutex::new(memory),
            _lni: Arc::clone(&self.inner),
        })
    }
}

impl CountingEvent {
    /// The counter's number on the device.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.object.command().ctn
    }

    /// The value that the NIC wrote back last.
    #[must_use]
    pub fn value(&self) -> CounterValue {
        // The memory has at least one page.
        self.write_back().read_u64(0).unwrap_or_default().into()
    }

    /// Sets the value in memory to 0, so that [`CounterValue::written_back`] shows the next
    /// write-back. The NIC continues to count from its own value.
    pub fn clear(&self) {
        // The memory has at least one page.
        let _ = self.write_back().write_u64(0, 0);
    }

    /// The counter's doorbell, mapped at first use.
    ///
    /// # Errors
    ///
    /// The errno of `mmap(2)`.
    pub fn doorbell(&self) -> Result<&Mapping> {
        self.doorbell.get(self.object.device(), "counter doorbell")
    }

    /// Makes the NIC write the value to the start of other memory from now on (CT_WB_UPDATE).
    ///
    /// # Errors
    ///
    /// EINVAL when the driver rejects the address. The old memory then stays in use.
    #[doc(alias = "cxil_ct_wb_update")]
    pub fn write_back_to(&self, memory: &Arc<DeviceMemory>) -> Result<()> {
        let mut current = self.write_back.lock().unwrap_or_else(PoisonError::into_inner);
        let device = self.object.device();
        let command = CtWbUpdateCmd::of(self.id());
        ct_wb_update(device.transport(), memory, &command)
            .map_err(|error| device.refused(error, |_| None))?;
        *current = Arc::clone(memory);
        Ok(())
    }

    fn write_back(&self) -> Arc<DeviceMemory> {
        Arc::clone(&self.write_back.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

closable! {
    /// EBUSY while something uses it.
    CountingEvent.object by CT_FREE ("cxil_destroy_ct")
}
