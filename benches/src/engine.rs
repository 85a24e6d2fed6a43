//! An engine that a program puts to: the cost of the data path without a front end.

#[path = "../../cxi-mock/engine/tests/rig/mod.rs"]
mod rig;

use cxi_engine::PortalOptions;
use cxi_hw::{DmaFlags, FullDma, TargetCommand, TargetFlags};

use rig::{BUFFER, BUFFER_LEN, PORTAL, Rig};

/// Bytes that are put from; those behind them are put to.
const HALF: u64 = BUFFER_LEN as u64 / 2;

/// A program that puts the same bytes repeatedly, without events.
pub struct Program {
    rig: Rig,
    regions: u32,
    put: FullDma,
}

impl Program {
    /// One that puts bytes to a PtlTE whose list has a number of entries, of which the last one
    /// takes them; without matching if there is only one.
    #[must_use]
    pub fn new(bytes: u32, entries: u16) -> Self {
        Self::with(bytes, entries, |_| 0)
    }

    /// The same where each entry ignores other bits, so that the list has to be walked.
    #[must_use]
    pub fn with_wildcards(bytes: u32, entries: u16) -> Self {
        Self::with(bytes, entries, |entry| (u64::from(entry) + 1) << 32)
    }

    fn with(bytes: u32, entries: u16, ignored: fn(u16) -> u64) -> Self {
        let mut rig = Rig::new();
        let options = if entries > 1 { PortalOptions::IS_MATCHING } else { PortalOptions::empty() };
        rig.portal(PORTAL, 0, options);
        let quiet = TargetFlags::EVENT_COMM_DISABLE | TargetFlags::EVENT_LINK_DISABLE;
        for entry in 0..entries {
            rig.append(&TargetCommand {
                flags: TargetFlags::OP_PUT | quiet,
                match_bits: entry.into(),
                ignore_bits: ignored(entry),
                ..rig::entry(entry, BUFFER + HALF, HALF)
            });
        }
        let put = FullDma {
            flags: DmaFlags::EVENT_SEND_DISABLE | DmaFlags::EVENT_SUCCESS_DISABLE,
            match_bits: u64::from(entries) - 1,
            ..rig::put(bytes)
        };
        Self { rig, regions: 1, put }
    }

    /// The same with that many regions, one behind the other.
    #[must_use]
    pub fn with_regions(mut self, count: u32) -> Self {
        while self.regions < count {
            self.add_region();
        }
        self
    }

    fn add_region(&mut self) {
        let va = BUFFER + u64::from(self.regions) * BUFFER_LEN as u64;
        self.regions += 1;
        self.rig.region_with(self.regions, va, BUFFER_LEN, true, true);
    }

    /// Adds one more region, and removes it.
    pub fn add_and_remove_region(&mut self) {
        self.add_region();
        self.rig.engine.remove_region(self.regions);
        self.regions -= 1;
    }

    /// Puts once.
    pub fn put(&mut self) {
        self.rig.put(&self.put);
    }
}

impl Drop for Program {
    /// Puts that were refused are not what is measured.
    fn drop(&mut self) {
        let refused = self.rig.engine.telemetry().refusals.total();
        assert!(refused == 0 || std::thread::panicking(), "a put was refused");
    }
}
