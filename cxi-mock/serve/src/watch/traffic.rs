//! What has moved between NICs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cxi_hw::ReturnCode;
use cxi_mock::ObservedOperation;

/// Messages that arrived, and their bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moved {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

/// What has moved, by the addresses of the initiator's NIC and the target's. Clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic(Arc<Mutex<BTreeMap<(u32, u32), Moved>>>);

impl Traffic {
    pub(super) fn count(&self, operation: &ObservedOperation) {
        if operation.code == ReturnCode::OK {
            let mut moved = self.moved();
            let moved = moved.entry((operation.from.0, operation.to.0)).or_default();
            moved.messages += 1;
            moved.bytes += u64::from(operation.moved);
        }
    }

    pub(crate) fn moved(&self) -> MutexGuard<'_, BTreeMap<(u32, u32), Moved>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
