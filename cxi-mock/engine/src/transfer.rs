//! Copies between processes, a piece at a time.

use cxi_hw::ReturnCode;

use crate::Engine;
use crate::landing::Landing;
use crate::translation::{Access, Scatter};

/// Bytes that a step copies.
const PIECE: usize = 1 << 20;
/// Bytes that are between two processes at a time: they fit a processor's own cache.
const BOUNCE: usize = 1 << 17;

/// A copy that is under way: of a put, or of a get.
#[derive(Debug)]
pub(crate) struct Transfer {
    landing: Landing,
    /// Memory of the initiator.
    remote: Scatter,
    put: bool,
    done: u64,
}

impl Transfer {
    /// Copies from memory of the initiator to the entry.
    pub(crate) fn put(landing: Landing, from: Scatter) -> Self {
        Self {
            landing,
            remote: from,
            put: true,
            done: 0,
        }
    }

    /// Copies from the entry to memory of the initiator.
    pub(crate) fn get(landing: Landing, to: Scatter) -> Self {
        Self {
            landing,
            remote: to,
            put: false,
            done: 0,
        }
    }

    fn left(&self) -> u64 {
        u64::from(self.landing.mlength) - self.done
    }
}

impl Engine {
    /// Copies the first piece; `None` if more are left, which the next steps copy.
    pub(crate) fn start_transfer(
        &mut self,
        mut transfer: Transfer,
    ) -> Option<Result<(), ReturnCode>> {
        let copied = self.copy_piece(&mut transfer);
        if copied.is_ok() && transfer.left() > 0 {
            self.transfer = Some(transfer);
            return None;
        }
        Some(copied)
    }

    /// Continues the copy that is under way. Returns whether there is one.
    pub(crate) fn step_transfer(&mut self) -> bool {
        let Some(mut transfer) = self.transfer.take() else {
            return false;
        };
        let copied = self.copy_piece(&mut transfer);
        if copied.is_ok() && transfer.left() > 0 {
            self.transfer = Some(transfer);
        } else {
            self.land(&transfer.landing, copied, [0; 16]);
        }
        true
    }

    /// The entry's memory is looked up again for each piece: it may be gone by then.
    fn copy_piece(&mut self, transfer: &mut Transfer) -> Result<(), ReturnCode> {
        let landing = &transfer.landing;
        let len = usize::try_from(transfer.left()).unwrap_or(PIECE).min(PIECE);
        let context = (landing.rgid, landing.entry.lac);
        let offset = if transfer.put {
            landing.header.into()
        } else {
            0
        };
        let iova = landing.iova + offset + transfer.done;
        let access = if transfer.put {
            Access::Write
        } else {
            Access::Read
        };
        let entry = self
            .translation
            .translate(context, iova, len as u64, access)?;
        let (remote, local) = ((&transfer.remote, transfer.done), (&entry, 0));
        let (source_error, missing) = (ReturnCode::SRC_ERROR, ReturnCode::NO_TRANSLATION);
        let (from, to, unread, unwritten) = if transfer.put {
            (remote, local, source_error, missing)
        } else {
            (local, remote, missing, source_error)
        };
        if !from.0.copy(from.1, to, len) {
            self.bounce
                .resize(self.bounce.len().max(len.min(BOUNCE)), 0);
            for at in (0..len).step_by(BOUNCE) {
                let part = &mut self.bounce[..BOUNCE.min(len - at)];
                let read = from.0.read(from.1 + at as u64, part);
                read.map_err(|_| unread)?;
                let written = to.0.write(to.1 + at as u64, part);
                written.map_err(|_| unwritten)?;
            }
        }
        transfer.done += len as u64;
        Ok(())
    }
}
