//! Reports of the hardware, as set by tests.

use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Nic;

/// Sets what the hardware of a NIC reports.
#[derive(Debug)]
pub struct Hardware<'a> {
    nic: &'a Nic,
}

/// A place of the hardware that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {what} {index}: expected {} to {}", .expected.start(), .expected.end())]
pub struct NoSuchPlace {
    what: &'static str,
    index: u32,
    expected: RangeInclusive<u32>,
}

impl Nic {
    /// Sets what the hardware reports.
    #[must_use]
    pub fn hardware(&self) -> Hardware<'_> {
        Hardware { nic: self }
    }
}

impl Hardware<'_> {
    /// Sets how many commands of transmit queue `index` are in flight; 0 makes it quiet.
    ///
    /// # Errors
    ///
    /// The NIC has no such queue.
    pub fn set_txq_in_flight(&self, index: u32, commands: u32) -> Result<(), NoSuchPlace> {
        self.set_in_flight("TXQ", 0..=1023, index, commands)
    }

    /// Sets how many commands of target queue `index` are in flight; 0 makes it quiet.
    ///
    /// Target queues are numbered from 1024, like their handles.
    ///
    /// # Errors
    ///
    /// The NIC has no such queue.
    pub fn set_tgq_in_flight(&self, index: u32, commands: u32) -> Result<(), NoSuchPlace> {
        self.set_in_flight("TGQ", 1024..=1535, index, commands)
    }

    fn set_in_flight(
        &self,
        what: &'static str,
        expected: RangeInclusive<u32>,
        index: u32,
        commands: u32,
    ) -> Result<(), NoSuchPlace> {
        if !expected.contains(&index) {
            return Err(NoSuchPlace { what, index, expected });
        }
        let in_flight = &mut self.nic.device().registers.in_flight;
        in_flight.insert(index, commands);
        in_flight.retain(|_, commands| *commands > 0);
        Ok(())
    }

    /// Sets how many TLEs are in use in a pool, 0 to 3.
    ///
    /// # Errors
    ///
    /// There is no such pool.
    pub fn set_tles_in_use(&self, pool: u32, tles: u16) -> Result<(), NoSuchPlace> {
        let pools = &mut self.nic.device().registers.tles_in_use;
        *place(pools, "TLE pool", pool)? = tles;
        Ok(())
    }

    /// Sets how many LEs are allocated in a pool, 0 to 15, of a processing element, 0 to 3.
    ///
    /// # Errors
    ///
    /// There is no such element or pool.
    pub fn set_les_allocated(&self, element: u32, pool: u32, les: u16) -> Result<(), NoSuchPlace> {
        let elements = &mut self.nic.device().registers.les_allocated;
        let pools = place(elements, "processing element", element)?;
        *place(pools, "LE pool", pool)? = les;
        Ok(())
    }

    /// Takes the link up or down.
    pub fn set_link(&self, up: bool) {
        self.nic.device().registers.link.set(up);
        self.nic.data_path().set_link(up);
    }

    /// Restarts the link: it goes down, if it was up, and comes up again at this time. The driver
    /// notes the time.
    pub fn restart_link(&self, at: SystemTime) {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.nic.data_path().set_link(false);
        self.nic.device().registers.link.restart(since);
        self.nic.data_path().set_link(true);
    }

    /// Returns whether the link is up.
    #[must_use]
    pub fn is_link_up(&self) -> bool {
        self.nic.device().registers.link.is_up()
    }

    /// When the link restarted, since the Unix epoch, in the ten places of the driver's list: an
    /// eleventh restart takes the place of the first. A place that is unused is zero.
    #[must_use]
    pub fn link_restarts(&self) -> [Duration; 10] {
        self.nic.device().registers.link.restarts
    }

    /// Returns how often the link has come up, and how often it has gone down, since the NIC was made.
    #[must_use]
    pub fn carrier_changes(&self) -> (u64, u64) {
        let link = &self.nic.device().registers.link;
        (link.ups, link.downs)
    }

    /// Sets the NIC's address on the fabric.
    pub fn set_nid(&self, nid: u32) {
        self.nic.device().registers.nid = nid;
        self.nic.data_path().set_up(|settings| settings.nid = nid);
    }

    /// The NIC's address on the fabric.
    #[must_use]
    pub fn nid(&self) -> u32 {
        self.nic.device().registers.nid
    }

    /// Turns rendezvous gets on or off.
    pub fn set_rdzv_get_en(&self, enabled: bool) {
        self.nic.device().registers.rdzv_get_en = enabled;
        self.nic.data_path().set_up(|settings| settings.rendezvous_gets = enabled);
    }

    /// Returns whether rendezvous gets are on.
    #[must_use]
    pub fn rdzv_get_en(&self) -> bool {
        self.nic.device().registers.rdzv_get_en
    }

    /// Maps a fetching atomic to a PCIe fetch-add; -1 for none.
    pub fn set_amo_remap_to_pcie_fadd(&self, atomic: i32) {
        self.nic.device().registers.amo_remap_to_pcie_fadd = atomic;
    }

    /// The fetching atomic that is mapped to a PCIe fetch-add; -1 for none.
    #[must_use]
    pub fn amo_remap_to_pcie_fadd(&self) -> i32 {
        self.nic.device().registers.amo_remap_to_pcie_fadd
    }
}

fn place<'a, T>(of: &'a mut [T], what: &'static str, index: u32) -> Result<&'a mut T, NoSuchPlace> {
    let last = u32::try_from(of.len()).unwrap_or(u32::MAX) - 1;
    let place = usize::try_from(index).ok().and_then(|at| of.get_mut(at));
    place.ok_or(NoSuchPlace { what, index, expected: 0..=last })
}
