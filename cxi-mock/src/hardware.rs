//! What the hardware would report, as set by tests.

use crate::Nic;

/// Sets what the hardware of a NIC reports.
#[derive(Debug)]
pub struct Hardware<'a> {
    nic: &'a Nic,
}

/// A place of the hardware that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {what} {index}: expected {expected}")]
pub struct NoSuchPlace {
    what: &'static str,
    index: u32,
    expected: &'static str,
}

impl<'a> Hardware<'a> {
    pub(crate) fn new(nic: &'a Nic) -> Self {
        Self { nic }
    }

    /// Sets how many commands of transmit queue `index` are in flight; 0 makes it quiet.
    ///
    /// # Errors
    ///
    /// The NIC has no such queue.
    pub fn set_txq_in_flight(&self, index: u32, commands: u32) -> Result<(), NoSuchPlace> {
        self.queue(index, "TXQ", "0 to 1023", commands)
    }

    /// Sets how many commands of target queue `index` are in flight; 0 makes it quiet.
    ///
    /// Target queues are numbered from 1024, like their handles.
    ///
    /// # Errors
    ///
    /// The NIC has no such queue.
    pub fn set_tgq_in_flight(&self, index: u32, commands: u32) -> Result<(), NoSuchPlace> {
        self.queue(index, "TGQ", "1024 to 1535", commands)
    }

    /// Sets how many TLEs are in use in a pool, 0 to 3.
    ///
    /// # Errors
    ///
    /// There is no such pool.
    pub fn set_tles_in_use(&self, pool: u32, tles: u16) -> Result<(), NoSuchPlace> {
        self.nic
            .with_registers(|registers| {
                let count = registers.tles_in_use.get_mut(usize::try_from(pool).ok()?)?;
                *count = tles;
                Some(())
            })
            .ok_or(NoSuchPlace {
                what: "TLE pool",
                index: pool,
                expected: "0 to 3",
            })
    }

    /// Sets how many LEs are allocated in a pool, 0 to 15, of a processing element, 0 to 3.
    ///
    /// # Errors
    ///
    /// There is no such element or pool.
    pub fn set_les_allocated(&self, element: u32, pool: u32, les: u16) -> Result<(), NoSuchPlace> {
        let (what, index, expected) = if element > 3 {
            ("processing element", element, "0 to 3")
        } else {
            ("LE pool", pool, "0 to 15")
        };
        self.nic
            .with_registers(|registers| {
                let pools = registers
                    .les_allocated
                    .get_mut(usize::try_from(element).ok()?)?;
                *pools.get_mut(usize::try_from(pool).ok()?)? = les;
                Some(())
            })
            .ok_or(NoSuchPlace {
                what,
                index,
                expected,
            })
    }

    /// Takes the link up or down.
    pub fn set_link(&self, up: bool) {
        self.nic
            .with_registers(|registers| registers.link_up = Some(up));
        self.nic.data_path().set_link(up);
    }

    /// Whether the link is up.
    #[must_use]
    pub fn is_link_up(&self) -> bool {
        self.nic
            .with_registers(|registers| registers.link_up)
            .unwrap_or(self.nic.config().identity.link_up)
    }

    /// Sets the NIC's address on the fabric.
    pub fn set_nid(&self, nid: u32) {
        self.nic
            .with_registers(|registers| registers.nid = Some(nid));
        self.nic.data_path().set_up(|settings| settings.nid = nid);
    }

    /// The NIC's address on the fabric.
    #[must_use]
    pub fn nid(&self) -> u32 {
        self.nic
            .with_registers(|registers| registers.nid)
            .unwrap_or(self.nic.config().identity.nid)
    }

    /// Turns rendezvous gets on or off.
    pub fn set_rdzv_get_en(&self, enabled: bool) {
        self.nic
            .with_registers(|registers| registers.rdzv_get_en = Some(enabled));
        self.nic
            .data_path()
            .set_up(|settings| settings.rendezvous_gets = enabled);
    }

    /// Whether rendezvous gets are on.
    #[must_use]
    pub fn rdzv_get_en(&self) -> bool {
        self.nic
            .with_registers(|registers| registers.rdzv_get_en)
            .unwrap_or(self.nic.config().params.rdzv_get_en_default)
    }

    /// Maps a fetching atomic to a PCIe fetch-add; -1 for none.
    pub fn set_amo_remap_to_pcie_fadd(&self, atomic: i32) {
        self.nic
            .with_registers(|registers| registers.amo_remap_to_pcie_fadd = Some(atomic));
    }

    /// The fetching atomic that is mapped to a PCIe fetch-add; -1 for none.
    #[must_use]
    pub fn amo_remap_to_pcie_fadd(&self) -> i32 {
        self.nic
            .with_registers(|registers| registers.amo_remap_to_pcie_fadd)
            .unwrap_or(self.nic.config().identity.amo_remap_to_pcie_fadd)
    }

    fn queue(
        &self,
        index: u32,
        what: &'static str,
        expected: &'static str,
        commands: u32,
    ) -> Result<(), NoSuchPlace> {
        let range = if what == "TXQ" { 0..1024 } else { 1024..1536 };
        if !range.contains(&index) {
            return Err(NoSuchPlace {
                what,
                index,
                expected,
            });
        }
        self.nic.with_registers(|registers| {
            if commands == 0 {
                registers.in_flight.remove(&index);
            } else {
                registers.in_flight.insert(index, commands);
            }
        });
        Ok(())
    }
}
