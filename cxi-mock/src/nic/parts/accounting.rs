//! Accounting of each resource: reserved, shared and in use.

use cxi_ioctl::Errno;
use cxi_ioctl::abi::service::{
    RSRC_AC, RSRC_COUNT, RSRC_CT, RSRC_EQ, RSRC_LE, RSRC_PTE, RSRC_TGQ, RSRC_TLE, RSRC_TXQ,
    RsrcLimits,
};

use super::pools::LePools;
use crate::state::{EntryState, ResourceState};

/// Fewest TLEs that a pool has; the driver raises smaller reservations to this number.
pub(crate) const MIN_POOL_TLES: u16 = 8;

/// The counted quantities: the resource types, with LEs separately for each processing element. The
/// driver checks and takes them in this order, so it reports the first one that is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Pte,
    Txq,
    Tgq,
    Eq,
    Ct,
    Le0,
    Le1,
    Le2,
    Le3,
    Tle,
    Ac,
}

const SLOTS: usize = 11;

impl Slot {
    /// Each slot with its index into the arrays of the kernel interface, and its name.
    const TABLE: [(Self, usize, &'static str); SLOTS] = [
        (Self::Pte, RSRC_PTE, "ptes"),
        (Self::Txq, RSRC_TXQ, "txqs"),
        (Self::Tgq, RSRC_TGQ, "tgqs"),
        (Self::Eq, RSRC_EQ, "eqs"),
        (Self::Ct, RSRC_CT, "cts"),
        (Self::Le0, RSRC_LE, "le0"),
        (Self::Le1, RSRC_LE, "le1"),
        (Self::Le2, RSRC_LE, "le2"),
        (Self::Le3, RSRC_LE, "le3"),
        (Self::Tle, RSRC_TLE, "tles"),
        (Self::Ac, RSRC_AC, "acs"),
    ];

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Self::TABLE.into_iter().map(|(slot, ..)| slot)
    }

    pub(crate) const fn resource(self) -> usize {
        Self::TABLE[self as usize].1
    }

    const fn name(self) -> &'static str {
        Self::TABLE[self as usize].2
    }
}

/// Entries of a resource group; a type without limits has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entries([Option<EntryState>; SLOTS]);

impl Entries {
    fn get(&self, slot: Slot) -> Option<&EntryState> {
        self.0[slot as usize].as_ref()
    }

    pub(crate) fn in_use(&self, slot: Slot) -> u32 {
        self.get(slot).map_or(0, |entry| entry.in_use)
    }

    pub(crate) fn states(&self) -> impl Iterator<Item = (&'static str, EntryState)> {
        Slot::all().filter_map(|slot| Some((slot.name(), *self.get(slot)?)))
    }
}

/// Reservation of a service on the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Reservation {
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) entries: Entries,
    pub(crate) le_pools: Option<LePools>,
    pub(crate) tle_pool: Option<u8>,
}

/// Device-wide counts.
#[derive(Clone, Debug)]
pub(crate) struct Accounting {
    totals: [ResourceState; SLOTS],
    limits: RsrcLimits,
}

impl Accounting {
    /// These totals, with nothing reserved and nothing in use.
    pub(crate) fn new(limits: RsrcLimits) -> Self {
        let totals = Slot::TABLE.map(|(_, resource, _)| {
            let max = limits.types[resource].max.into();
            ResourceState { max, shared: max, ..ResourceState::default() }
        });
        Self { totals, limits }
    }

    /// The totals, as maxima.
    pub(crate) fn totals(&self) -> RsrcLimits {
        self.limits
    }

    /// Returns whether reservations fit, and how much was available of each resource up to the
    /// first one that is short. The driver does not check TLEs here, because their pools run out
    /// first.
    pub(crate) fn available(&self, limits: &RsrcLimits) -> ([u16; RSRC_COUNT], Result<(), Errno>) {
        let mut available = [0; RSRC_COUNT];
        for slot in Slot::all() {
            let resource = slot.resource();
            let limit = limits.types[resource];
            if slot == Slot::Tle || (limit.max == 0 && limit.res == 0) {
                continue;
            }
            let shared = self.totals[slot as usize].shared;
            available[resource] = u16::try_from(shared).unwrap_or(u16::MAX);
            if u32::from(limit.res) > shared {
                return (available, Err(Errno::ENOSPC));
            }
        }
        (available, Ok(()))
    }

    /// Reserves for a group and gives it an entry.
    pub(crate) fn reserve(
        &mut self,
        entries: &mut Entries,
        slot: Slot,
        limits: &RsrcLimits,
    ) -> Result<(), Errno> {
        let limit = limits.types[slot.resource()];
        let total = &mut self.totals[slot as usize];
        total.shared = total.shared.checked_sub(limit.res.into()).ok_or(Errno::ENOSPC)?;
        total.reserved += u32::from(limit.res);
        entries.0[slot as usize] =
            Some(EntryState { max: limit.max.into(), res: limit.res.into(), in_use: 0 });
        Ok(())
    }

    /// Gives back all reservations of a group.
    pub(crate) fn release(&mut self, entries: &mut Entries) {
        for slot in Slot::all() {
            if let Some(entry) = entries.0[slot as usize].take() {
                let total = &mut self.totals[slot as usize];
                total.reserved -= entry.res;
                total.shared += entry.res;
            }
        }
    }

    /// Returns whether [`charge`](Self::charge) would succeed: EBADR without an entry, ENOSPC when
    /// there is nothing left.
    pub(crate) fn may_charge(&self, entries: &Entries, slot: Slot) -> Result<(), Errno> {
        let entry = entries.get(slot).ok_or(Errno::EBADR)?;
        let total = &self.totals[slot as usize];
        let reserved = entry.in_use < entry.res;
        let shared = entry.in_use < entry.max && total.shared_use < total.max;
        (reserved || shared).then_some(()).ok_or(Errno::ENOSPC)
    }

    /// Takes a unit: a reserved one if there is one, or else a shared one.
    ///
    /// The driver bounds the shared part by the device total, not by what is unreserved. Services
    /// that share can therefore use up what is reserved for others.
    pub(crate) fn charge(&mut self, entries: &mut Entries, slot: Slot) -> Result<(), Errno> {
        self.may_charge(entries, slot)?;
        let entry = entries.0[slot as usize].as_mut().ok_or(Errno::EBADR)?;
        let total = &mut self.totals[slot as usize];
        if entry.in_use >= entry.res {
            total.shared_use += 1;
        }
        entry.in_use += 1;
        total.in_use += 1;
        Ok(())
    }

    /// Gives a unit back.
    pub(crate) fn refund(&mut self, entries: &mut Entries, slot: Slot) {
        let Some(entry) = entries.0[slot as usize].as_mut() else { return };
        let total = &mut self.totals[slot as usize];
        if entry.in_use > entry.res {
            total.shared_use = total.shared_use.saturating_sub(1);
        }
        entry.in_use = entry.in_use.saturating_sub(1);
        total.in_use = total.in_use.saturating_sub(1);
    }

    pub(crate) fn states(&self) -> impl Iterator<Item = (&'static str, ResourceState)> {
        Slot::all().map(Slot::name).zip(self.totals)
    }
}

#[cfg(test)]
mod tests {
    use cxi_ioctl::abi::service::Limits;

    use super::*;

    fn limits(max: u16, res: u16) -> RsrcLimits {
        RsrcLimits { types: [Limits { max, res }; RSRC_COUNT] }
    }

    #[test]
    fn reserved_units_first_then_shared_ones() {
        let mut accounting = Accounting::new(limits(4, 0));
        let (mut one, mut two) = (Entries::default(), Entries::default());
        accounting.reserve(&mut one, Slot::Txq, &limits(3, 2)).unwrap();
        accounting.reserve(&mut two, Slot::Txq, &limits(4, 0)).unwrap();
        for _ in 0..3 {
            accounting.charge(&mut one, Slot::Txq).unwrap();
        }
        assert_eq!(accounting.charge(&mut one, Slot::Txq), Err(Errno::ENOSPC));
        let shared_use = |accounting: &Accounting| {
            accounting.states().find(|(name, _)| *name == "txqs").unwrap().1.shared_use
        };
        assert_eq!(shared_use(&accounting), 1);
        // One shared unit is taken: three more, although two of the four are reserved.
        for _ in 0..3 {
            accounting.charge(&mut two, Slot::Txq).unwrap();
        }
        assert_eq!(accounting.charge(&mut two, Slot::Txq), Err(Errno::ENOSPC));
        accounting.refund(&mut one, Slot::Txq);
        assert_eq!(shared_use(&accounting), 3);
        accounting.refund(&mut one, Slot::Txq);
        assert_eq!(shared_use(&accounting), 3);
    }

    #[test]
    fn no_entry_is_not_a_matter_of_space() {
        let mut accounting = Accounting::new(limits(4, 0));
        let mut none = Entries::default();
        assert_eq!(accounting.charge(&mut none, Slot::Ct), Err(Errno::EBADR));
    }

    #[test]
    fn available_stops_at_the_first_short_resource() {
        let mut accounting = Accounting::new(limits(10, 0));
        let mut group = Entries::default();
        accounting.reserve(&mut group, Slot::Tgq, &limits(10, 7)).unwrap();
        let (available, result) = accounting.available(&limits(10, 4));
        assert_eq!(result, Err(Errno::ENOSPC));
        assert_eq!(available, [10, 10, 3, 0, 0, 0, 0, 0]);
        accounting.release(&mut group);
        let (available, result) = accounting.available(&limits(10, 4));
        assert_eq!(result, Ok(()));
        assert_eq!(available, [10, 10, 10, 10, 10, 10, 0, 10]);
    }
}
