//! Which callbacks the driver keeps when an event queue is freed.

use cxi_ioctl::Opcode;

use crate::Device;
use crate::driver::Quirks;
use crate::error::Result;

/// Whether an LNI has freed an event queue with a wait object, for events and for status.
///
/// The LNI reuses the numbers of freed event queues, and the callback stays with the number. Locked
/// while event queues are allocated and freed, so that it is accurate when the driver looks.
#[derive(Debug, Default)]
pub(super) struct Callbacks([bool; 2]);

impl Callbacks {
    /// Refuses an event queue without a wait object if a freed one may have had one.
    pub(super) fn check(&self, device: &Device, waiting: [bool; 2]) -> Result<()> {
        let [events, status] = self.0;
        if (events && !waiting[0]) || (status && !waiting[1]) {
            device.guard(Quirks::REUSED_EVENT_QUEUE, Opcode::EQ_ALLOC)?;
        }
        Ok(())
    }

    pub(super) fn freed(&mut self, waiting: [bool; 2]) {
        self.0 = [self.0[0] || waiting[0], self.0[1] || waiting[1]];
    }
}
