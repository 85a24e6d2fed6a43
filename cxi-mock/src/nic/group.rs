//! Resource groups, each with the service of the same number.

use std::collections::BTreeSet;

use cxi_ioctl::abi::service::{DEFAULT_SVC_ID, SVC_MAX_VNIS, SvcDesc, SvcFlags};

use super::access::AccessList;
use super::accounting::Entries;
use super::ids::Ids;
use super::pools::LePools;
use crate::rules::ListOrder;

/// Highest id of a group.
const LAST_ID: u32 = i32::MAX.unsigned_abs();

/// What a group keeps of a profile that it made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Held {
    /// Nothing.
    #[default]
    None,
    /// The profile of that id.
    Profile(u32),
    /// A profile that is freed.
    Dangling,
}

impl Held {
    pub(crate) fn id(self) -> Option<u32> {
        match self {
            Self::Profile(id) => Some(id),
            Self::None | Self::Dangling => None,
        }
    }
}

/// The profiles for one entry of a service's VNI list, or for its range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProfilePair {
    pub(crate) tx: Held,
    pub(crate) rx: Held,
}

/// A resource group and its service.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Place in the order of allocation.
    pub(crate) seq: u64,
    /// The descriptor as SVC_GET shows it.
    pub(crate) desc: SvcDesc,
    pub(crate) enabled: bool,
    pub(crate) access: AccessList,
    pub(crate) entries: Entries,
    pub(crate) le_pools: Option<LePools>,
    pub(crate) tle_pool: Option<u8>,
    pub(crate) lnis_per_rgid: u32,
    /// As given when the service was made; updates do not change them.
    pub(crate) system: bool,
    pub(crate) cntr_pool_id: u32,
    /// LNIs, those that wait for their cleanup included.
    pub(crate) lnis: u32,
    pub(crate) profiles: [ProfilePair; SVC_MAX_VNIS],
}

impl Group {
    pub(crate) fn flags(&self) -> SvcFlags {
        flags(&self.desc)
    }

    /// Profiles that the VNI count on record covers.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (usize, ProfilePair)> + use<> {
        self.profiles
            .into_iter()
            .enumerate()
            .take(self.desc.num_vld_vnis.into())
    }

    pub(crate) fn set_enabled(&mut self, enabled: bool) {
        self.enabled = enabled;
        let mut flags = flags(&self.desc);
        flags.set(SvcFlags::ENABLE, enabled);
        self.desc.flags = (self.desc.flags & !SvcFlags::all().bits()) | flags.bits();
    }
}

/// The flags of a descriptor.
pub(crate) fn flags(desc: &SvcDesc) -> SvcFlags {
    SvcFlags::from_bits_truncate(desc.flags)
}

/// All groups by id.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    pub(crate) ids: Ids,
    slots: Vec<Option<Box<Group>>>,
    count: u32,
    next_seq: u64,
}

impl Groups {
    pub(crate) fn new() -> Self {
        Self {
            ids: Ids::new(DEFAULT_SVC_ID, LAST_ID),
            slots: Vec::new(),
            count: 0,
            next_seq: 0,
        }
    }

    /// Marks ids as taken, from a snapshot.
    pub(crate) fn take_ids(&mut self, taken: &BTreeSet<u32>) {
        self.ids = Ids::with_taken(DEFAULT_SVC_ID, LAST_ID, taken);
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Adds a group as the youngest under an id that was allocated.
    pub(crate) fn put(&mut self, id: u32, mut group: Box<Group>) {
        group.seq = self.next_seq;
        self.next_seq += 1;
        let index = id as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        self.slots[index] = Some(group);
        self.count += 1;
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<Box<Group>> {
        let group = self.slots.get_mut(id as usize)?.take()?;
        self.ids.free(id);
        self.count -= 1;
        Some(group)
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Group> {
        self.slots.get(id as usize)?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut Group> {
        self.slots.get_mut(id as usize)?.as_deref_mut()
    }

    /// All groups by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Group)> {
        (0..)
            .zip(&self.slots)
            .filter_map(|(id, slot)| Some((id, slot.as_deref()?)))
    }

    /// All groups in the order that lists have.
    pub(crate) fn listed(&self, order: ListOrder) -> Vec<(u32, &Group)> {
        let mut groups: Vec<_> = self.iter().collect();
        if order == ListOrder::Allocation {
            groups.sort_unstable_by_key(|(_, group)| group.seq);
        }
        groups
    }
}
