//! Users of each VNI: transmit and receive profiles, and the PIDs of each VNI.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use cxi_ioctl::Errno;
use cxi_ioctl::abi::service::{SVC_MAX_VNIS, SvcDesc};

use super::access::AccessList;
use super::descriptor;
use super::group::{Held, ProfilePair};
use super::ids::Ids;
use super::pid::PidTable;
use super::profile::{Lookup, Profile, Profiles, Rx, Tx};
use crate::Credentials;
use crate::nic::inconsistency::Inconsistency;
use crate::rules::Rules;

/// Slots of the VNI table.
pub(crate) const VNI_SLOTS: u32 = 256;

/// The owner of PIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PidsOf {
    /// A receive profile's.
    Profile(u32),
    /// A VNI's, where there are no profiles.
    Vni(u16),
}

impl PidsOf {
    /// The owner's number in the data path, where profiles and VNIs must not collide.
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::Profile(id) => id,
            Self::Vni(vni) => 1 << 31 | u32::from(vni),
        }
    }
}

/// Profile of a pair that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Tx(Errno),
    Rx(Errno),
}

impl Refused {
    fn errno(self) -> Errno {
        let (Self::Tx(errno) | Self::Rx(errno)) = self;
        errno
    }
}

/// The PIDs of a VNI that is in use, where there are no profiles.
#[derive(Clone, Debug)]
struct VniPids {
    pids: PidTable,
    /// Slot of the VNI table.
    slot: u32,
    users: u32,
}

/// The profiles, and the slots of the VNI table that enabled ones have.
#[derive(Clone, Debug)]
pub(crate) struct Vnis {
    tx: Profiles<Tx>,
    rx: Profiles<Rx>,
    by_vni: BTreeMap<u16, VniPids>,
    slots: Ids,
    rules: Rules,
}

impl Vnis {
    pub(crate) fn new(rules: &Rules) -> Self {
        Self {
            tx: Profiles::new(rules.exact_vnis_exclusive),
            rx: Profiles::new(rules.exact_vnis_exclusive),
            by_vni: BTreeMap::new(),
            slots: Ids::new(0, VNI_SLOTS),
            rules: rules.clone(),
        }
    }

    /// The profiles of a snapshot.
    pub(crate) fn restore(
        &mut self,
        tx: &BTreeMap<u32, Profile<Tx>>,
        rx: &BTreeMap<u32, Profile<Rx>>,
    ) -> Result<(), Inconsistency> {
        let exclusive = self.rules.exact_vnis_exclusive;
        self.tx = Profiles::restore(tx, "TX profile", exclusive)?;
        self.rx = Profiles::restore(rx, "RX profile", exclusive)?;
        let mut slots = BTreeSet::new();
        for id in self.rx.iter().filter_map(|(_, rx)| rx.extra.vni_slot) {
            if id >= VNI_SLOTS || !slots.insert(id) {
                let what = "VNI table slot";
                return Err(Inconsistency::Number { what, id });
            }
        }
        self.slots = Ids::with_taken(0, VNI_SLOTS, &slots);
        Ok(())
    }

    pub(crate) fn tx(&self) -> &Profiles<Tx> {
        &self.tx
    }

    pub(crate) fn rx(&self) -> &Profiles<Rx> {
        &self.rx
    }

    /// Slots of the VNI table that are taken.
    pub(crate) fn slots_used(&self) -> u32 {
        self.slots.used()
    }

    pub(crate) fn tx_of(&mut self, pair: ProfilePair) -> Option<&mut Profile<Tx>> {
        self.tx.get_mut(pair.tx.id()?)
    }

    pub(crate) fn rx_of(&mut self, pair: ProfilePair) -> Option<&mut Profile<Rx>> {
        self.rx.get_mut(pair.rx.id()?)
    }

    /// Returns whether a profile gives every LNI its own entry in the CP table.
    pub(crate) fn is_exclusive(&self, tx: Option<u32>) -> bool {
        let tx = tx.and_then(|id| self.tx.get(id));
        tx.is_some_and(|tx| tx.extra.exclusive_cp)
    }

    pub(crate) fn tx_mut(&mut self, id: Option<u32>) -> Option<&mut Profile<Tx>> {
        self.tx.get_mut(id?)
    }
}

// What services do with profiles.
impl Vnis {
    /// Makes the profiles for all VNIs of a descriptor, or none.
    pub(crate) fn claim(
        &mut self,
        desc: &SvcDesc,
        access: &AccessList,
    ) -> Result<[ProfilePair; SVC_MAX_VNIS], Errno> {
        let mut pairs = [ProfilePair::default(); SVC_MAX_VNIS];
        let vnis = desc.vnis.iter().take(desc.num_vld_vnis.into());
        for (index, vni) in vnis.enumerate() {
            let made = self.add_pair(*vni, 0, desc, access);
            let made = made.map_err(Refused::errno).and_then(|pair| {
                pairs[index] = pair;
                // If profiles are not enabled and disabled with their service, they are enabled at
                // once.
                if self.rules.disabled_profiles_off { Ok(()) } else { self.enable(pair) }
            });
            if let Err(errno) = made {
                self.drop_creators(pairs);
                return Err(errno);
            }
        }
        Ok(pairs)
    }

    /// Makes a TX and an RX profile, or neither.
    pub(crate) fn add_pair(
        &mut self,
        vni: u16,
        ignore: u16,
        desc: &SvcDesc,
        access: &AccessList,
    ) -> Result<ProfilePair, Refused> {
        let tx = Tx::new(descriptor::traffic_classes(desc));
        let tx = Profile::of_service(vni, ignore, access.clone(), tx);
        let tx = self.tx.add(tx).map_err(Refused::Tx)?;
        let rx = Profile::of_service(vni, ignore, access.clone(), Rx::default());
        let rx = self.rx.add(rx).inspect_err(|_| drop(self.tx.remove(tx)));
        Ok(ProfilePair { tx: Held::Profile(tx), rx: Held::Profile(rx.map_err(Refused::Rx)?) })
    }

    /// Enables the profiles of a VNI. ENOSPC if the VNI table is full; the TX profile then stays
    /// enabled.
    pub(crate) fn enable(&mut self, pair: ProfilePair) -> Result<(), Errno> {
        if let Some(tx) = self.tx_of(pair) {
            tx.enabled = true;
        }
        let Some(rx) = pair.rx.id().and_then(|id| self.rx.get_mut(id)) else { return Ok(()) };
        if rx.extra.vni_slot.is_none() {
            rx.extra.vni_slot = Some(self.slots.alloc().ok_or(Errno::ENOSPC)?);
        }
        rx.enabled = true;
        Ok(())
    }

    pub(crate) fn disable(&mut self, pair: ProfilePair) {
        if let Some(tx) = self.tx_of(pair) {
            tx.enabled = false;
        }
        let rx = match pair.rx {
            Held::Profile(id) | Held::GivenUp(id) => self.rx.get_mut(id),
            Held::None | Held::Dangling => None,
        };
        if let Some(rx) = rx {
            rx.enabled = false;
            if let Some(slot) = rx.extra.vni_slot.take() {
                self.slots.free(slot);
            }
        }
    }

    /// Records that the creator gives its profiles up. They get no new users, and are freed once
    /// they have none.
    pub(crate) fn drop_creators(&mut self, pairs: impl IntoIterator<Item = ProfilePair>) {
        for pair in pairs {
            if let Some(id) = pair.tx.id() {
                self.tx.give_up(id);
            }
            if let Some(id) = pair.rx.id() {
                self.drop_rx_creator(id);
            }
        }
    }

    pub(crate) fn drop_rx_creator(&mut self, id: u32) {
        let gone = self.rx.give_up(id);
        self.free_slot_of(gone);
    }

    fn free_slot_of(&mut self, gone: Option<Profile<Rx>>) {
        if let Some(slot) = gone.and_then(|rx| rx.extra.vni_slot) {
            self.slots.free(slot);
        }
    }
}

// What senders do with profiles.
impl Vnis {
    /// The transmit profile by which a caller may use a VNI with a traffic class. Root gets a
    /// profile of its own for a VNI that no profile has.
    pub(crate) fn right_to_send(
        &mut self,
        caller: &Credentials,
        vni: u16,
        tc: usize,
    ) -> Result<u32, Errno> {
        let id = match self.tx.lookup(vni, caller, &self.rules) {
            Lookup::Found(id) => id,
            Lookup::Refused => return Err(Errno::EPERM),
            Lookup::Unknown if caller.uid != 0 => return Err(Errno::ENOENT),
            Lookup::Unknown => {
                // Such profiles do not have the last class.
                let tx = Tx::new([true, true, true, true, false]);
                self.tx.add(Profile::private(vni, 0, tx))?
            }
        };
        if !self.tx.get(id).is_some_and(|tx| tx.extra.tcs[tc]) {
            self.tx.remove_if_unused(id);
            return Err(Errno::EINVAL);
        }
        if let Some(tx) = self.tx.get_mut(id) {
            tx.users += 1;
        }
        Ok(id)
    }

    /// Removes a user of a transmit profile.
    pub(crate) fn drop_tx_user(&mut self, id: Option<u32>) {
        if let Some(id) = id {
            self.tx.drop_user(id);
        }
    }
}

// What receivers do with profiles.
impl Vnis {
    /// Finds or makes the owner of a VNI's PIDs, for one more user.
    pub(crate) fn right_to_receive(
        &mut self,
        caller: &Credentials,
        vni: u16,
    ) -> Result<PidsOf, Errno> {
        if !self.rules.has_profiles {
            return self.use_vni(vni);
        }
        let id = match self.rx.lookup(vni, caller, &self.rules) {
            Lookup::Found(id) => id,
            Lookup::Refused => return Err(Errno::EPERM),
            Lookup::Unknown => self.private_rx(caller.uid, vni)?,
        };
        Ok(self.use_rx(id))
    }

    /// As [`right_to_receive`](Self::right_to_receive), for a reservation, which never makes a
    /// profile.
    pub(crate) fn right_to_reserve(
        &mut self,
        caller: &Credentials,
        desc: &SvcDesc,
        vni: u16,
    ) -> Result<PidsOf, Errno> {
        if !self.rules.has_profiles {
            if !descriptor::has_vni(desc, vni) {
                return Err(Errno::EINVAL);
            }
            return self.use_vni(vni);
        }
        let Lookup::Found(id) = self.rx.lookup(vni, caller, &self.rules) else {
            return Err(Errno::EINVAL);
        };
        Ok(self.use_rx(id))
    }

    fn use_rx(&mut self, id: u32) -> PidsOf {
        if let Some(rx) = self.rx.get_mut(id) {
            rx.users += 1;
        }
        PidsOf::Profile(id)
    }

    fn private_rx(&mut self, uid: u32, vni: u16) -> Result<u32, Errno> {
        if uid != 0 && !self.rules.private_rx_for_all {
            return Err(Errno::ENOENT);
        }
        let profile = Profile::private(vni, uid, Rx::default());
        let id = self.rx.add(profile)?;
        let Some(slot) = self.slots.alloc() else {
            self.rx.remove(id);
            return Err(Errno::ENOSPC);
        };
        if let Some(rx) = self.rx.get_mut(id) {
            rx.extra.vni_slot = Some(slot);
        }
        Ok(id)
    }

    fn use_vni(&mut self, vni: u16) -> Result<PidsOf, Errno> {
        if let Some(used) = self.by_vni.get_mut(&vni) {
            used.users += 1;
        } else {
            let used = VniPids {
                pids: PidTable::default(),
                slot: self.slots.alloc().ok_or(Errno::ENOSPC)?,
                users: 1,
            };
            self.by_vni.insert(vni, used);
        }
        Ok(PidsOf::Vni(vni))
    }

    pub(crate) fn pids_mut(&mut self, of: PidsOf) -> Option<&mut PidTable> {
        match of {
            PidsOf::Profile(id) => self.rx.get_mut(id).map(|rx| &mut rx.extra.pids),
            PidsOf::Vni(vni) => self.by_vni.get_mut(&vni).map(|used| &mut used.pids),
        }
    }

    pub(crate) fn pids(&self, of: PidsOf) -> Option<&PidTable> {
        match of {
            PidsOf::Profile(id) => self.rx.get(id).map(|rx| &rx.extra.pids),
            PidsOf::Vni(vni) => self.by_vni.get(&vni).map(|used| &used.pids),
        }
    }

    /// The VNIs that PIDs are for.
    pub(crate) fn vnis_of(&self, of: PidsOf) -> Option<RangeInclusive<u16>> {
        match of {
            PidsOf::Profile(id) => self.rx.get(id).map(|rx| rx.vni..=rx.last()),
            PidsOf::Vni(vni) => Some(vni..=vni),
        }
    }

    /// Removes a user of PIDs.
    pub(crate) fn drop_pids_user(&mut self, of: PidsOf) {
        match of {
            PidsOf::Profile(id) => {
                let gone = self.rx.drop_user(id);
                self.free_slot_of(gone);
            }
            PidsOf::Vni(vni) => {
                let Some(used) = self.by_vni.get_mut(&vni) else { return };
                used.users = used.users.saturating_sub(1);
                if used.users == 0
                    && let Some(used) = self.by_vni.remove(&vni)
                {
                    self.slots.free(used.slot);
                }
            }
        }
    }
}
