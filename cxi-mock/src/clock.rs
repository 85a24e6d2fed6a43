//! The time of a fabric, which a front end advances.

use std::sync::Arc;
use std::time::Duration;

use crate::data_path::Wire;

/// The time of the fabric that NICs share. The model has no clock: its user ticks.
///
/// A tick delivers packets that are late. A NIC sends a packet again if it was not answered for 64
/// ticks, and gives up after 32 times.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Wire>);

impl Clock {
    pub(crate) fn new(wire: &Arc<Wire>) -> Self {
        Self(Arc::clone(wire))
    }

    /// Lets a tick pass for all NICs of the fabric.
    pub fn tick(&self) {
        self.0.tick();
    }

    /// Returns whether packets are on their way, or operations wait for an answer that may be lost.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.0.is_busy()
    }

    /// Waits until operations wait for an answer that may be lost, or for this long. Returns
    /// whether there are any. If so, it is time to [`tick`](Self::tick) for as long as the fabric
    /// [is busy](Self::is_busy).
    #[must_use]
    pub fn wait(&self, most: Duration) -> bool {
        self.0.wait_for_traffic(most)
    }
}
