//! What packets go out with, where they come in, and the memory that they reach.

use std::ops::RangeInclusive;
use std::sync::Arc;

use cxi_engine::{ClientMemory, CommunicationProfile, Region};
use cxi_ioctl::abi::memory::{MapFlags, Md};

use super::{DataPath, small};

impl DataPath {
    /// What an LCID of an RGID sends with: VNI, traffic class, and whether puts are of the high
    /// rate; `None` when nothing is registered any more.
    pub(crate) fn set_profile(&self, rgid: u32, lcid: usize, sends: Option<(u16, u32, bool)>) {
        let profile = sends.map(|(vni, tc, high_rate)| CommunicationProfile {
            vni,
            traffic_class: tc.to_le_bytes()[0],
            high_rate,
        });
        let lcid = u8::try_from(lcid).unwrap_or(u8::MAX);
        let mut state = self.state();
        state.engine.set_profile(small(rgid), lcid, profile);
    }

    /// A domain receives by a receive profile.
    pub(crate) fn add_receive_profile(&self, profile: u32, vnis: RangeInclusive<u16>) {
        self.state().engine.add_receive_profile(profile, vnis);
    }

    /// The last domain of a receive profile is gone.
    pub(crate) fn remove_receive_profile(&self, profile: u32) {
        self.state().engine.remove_receive_profile(profile);
    }

    /// PTE_MAP: for a PID, or to a multicast address.
    pub(crate) fn map_portal(&self, profile: u32, pid: Option<u32>, offset: u32, portal: u32) {
        let engine = &mut self.state().engine;
        match pid {
            Some(pid) => engine.map_portal(profile, small(pid), small(offset), small(portal)),
            None => engine.map_multicast(profile, offset, small(portal)),
        }
    }

    /// PTE_UNMAP.
    pub(crate) fn unmap_portal(&self, profile: u32, pid: Option<u32>, offset: u32) {
        let engine = &mut self.state().engine;
        match pid {
            Some(pid) => engine.unmap_portal(profile, small(pid), small(offset)),
            None => engine.unmap_multicast(profile, offset),
        }
    }

    /// ATU_MAP.
    pub(crate) fn add_region(
        &self,
        rgid: u32,
        md: &Md,
        flags: MapFlags,
        memory: &Arc<dyn ClientMemory>,
    ) {
        let region = Region {
            rgid: small(rgid),
            lac: md.lac,
            iova: md.iova,
            len: md.len,
            va: md.va,
            readable: flags.contains(MapFlags::READ),
            writable: flags.contains(MapFlags::WRITE),
            memory: Arc::clone(memory),
        };
        self.state().engine.add_region(md.id, region);
    }

    /// ATU_UNMAP.
    pub(crate) fn remove_region(&self, id: u32) {
        self.state().engine.remove_region(id);
    }
}
