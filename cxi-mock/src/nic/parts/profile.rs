//! Profiles: who may use a VNI or a range of VNIs, for sending (TX) and receiving (RX).

use std::collections::{BTreeMap, BTreeSet};

use cxi_ioctl::Errno;

use super::access::{Access, AccessList};
use super::ids::Ids;
use super::pid::PidTable;
use crate::Credentials;
use crate::nic::inconsistency::Inconsistency;
use crate::rules::Rules;

/// More than a driver could make, so that a broken snapshot cannot demand unlimited memory.
const MOST_PROFILES: u32 = 1 << 20;

/// A profile. `X` is what distinguishes TX and RX profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Profile<X> {
    /// VNI, or the first of the range.
    pub(crate) vni: u16,
    /// The bits of a VNI that do not count: the size of the range minus one.
    pub(crate) ignore: u16,
    pub(crate) access: AccessList,
    pub(crate) enabled: bool,
    /// `true` if the service that made it still exists.
    pub(crate) creator: bool,
    /// Number of users that hold a reference.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) users: u32,
    pub(crate) extra: X,
}

impl<X> Profile<X> {
    /// A disabled profile of a service.
    pub(crate) fn of_service(vni: u16, ignore: u16, access: AccessList, extra: X) -> Self {
        Self { vni, ignore, access, enabled: false, creator: true, users: 0, extra }
    }

    /// A profile that belongs to its users, for one VNI and one uid.
    pub(crate) fn private(vni: u16, uid: u32, extra: X) -> Self {
        Self {
            vni,
            ignore: 0,
            access: AccessList::of(Access::Uid(uid)),
            enabled: true,
            creator: false,
            users: 0,
            extra,
        }
    }

    pub(crate) fn last(&self) -> u16 {
        self.vni | self.ignore
    }

    pub(crate) fn references(&self) -> u32 {
        u32::from(self.creator) + self.users
    }
}

/// Request of a CP call, once it is known to be plausible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Traffic {
    pub(crate) vni: u16,
    pub(crate) tc: u32,
    pub(crate) tc_type: u32,
}

/// Part that only a TX profile has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Tx {
    /// Traffic classes that may be used.
    pub(crate) tcs: [bool; 5],
    /// `true` if every LNI gets its own entry of the CP table.
    pub(crate) exclusive_cp: bool,
    /// Entries of the CP table that others may share.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) cps: BTreeMap<Traffic, u32>,
}

impl Tx {
    pub(crate) fn new(tcs: [bool; 5]) -> Self {
        Self { tcs, exclusive_cp: false, cps: BTreeMap::new() }
    }
}

/// Part that only an RX profile has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Rx {
    /// Slot of the VNI table while enabled.
    pub(crate) vni_slot: Option<u32>,
    /// PIDs in use and reserved.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) pids: PidTable,
}

/// Result of a lookup by VNI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    Found(u32),
    /// Enabled profiles have the VNI, but none admits the caller.
    Refused,
    /// No enabled profile has the VNI.
    Unknown,
}

/// All profiles of a kind, by id and by VNI.
#[derive(Clone, Debug)]
pub(crate) struct Profiles<X> {
    ids: Ids,
    table: BTreeMap<u32, Profile<X>>,
    /// VNI and id of the profiles for a single VNI.
    exact: BTreeSet<(u16, u32)>,
    /// By first VNI, the last VNI and the id of ranges. Ranges overlap with nothing.
    ranges: BTreeMap<u16, (u16, u32)>,
    /// `true` if profiles for the same single VNI conflict.
    exclusive: bool,
}

impl<X> Profiles<X> {
    pub(crate) fn new(exclusive: bool) -> Self {
        Self {
            ids: Ids::new(1, u32::MAX),
            table: BTreeMap::new(),
            exact: BTreeSet::new(),
            ranges: BTreeMap::new(),
            exclusive,
        }
    }

    /// Adds a profile under the lowest free id; EEXIST if the VNIs are not free.
    pub(crate) fn add(&mut self, profile: Profile<X>) -> Result<u32, Errno> {
        if self.conflicts(profile.vni, profile.last()) {
            return Err(Errno::EEXIST);
        }
        let id = self.ids.alloc().ok_or(Errno::ENOSPC)?;
        self.put(id, profile);
        Ok(id)
    }

    /// The profiles of a snapshot, by id.
    pub(crate) fn restore(
        profiles: &BTreeMap<u32, Profile<X>>,
        what: &'static str,
        exclusive: bool,
    ) -> Result<Self, Inconsistency>
    where
        X: Clone,
    {
        let mut all = Self::new(exclusive);
        for (&id, profile) in profiles {
            if !(1..MOST_PROFILES).contains(&id) {
                return Err(Inconsistency::Number { what, id });
            }
            let (vni, ignore) = (profile.vni, profile.ignore);
            let block = (u32::from(ignore) + 1).is_power_of_two() && vni & ignore == 0;
            if !block || all.conflicts(vni, profile.last()) {
                return Err(Inconsistency::Vni { id, vni });
            }
            profile.access.check().map_err(|errno| Inconsistency::Access { what, id, errno })?;
            all.put(id, profile.clone());
        }
        all.ids = Ids::with_taken(1, u32::MAX, &profiles.keys().copied().collect());
        Ok(all)
    }

    /// The profiles that outlive open files: those whose services still exist, without users.
    pub(crate) fn without_users(&self, forget_users: impl Fn(&mut X)) -> BTreeMap<u32, Profile<X>>
    where
        X: Clone,
    {
        let idle = self.iter().filter(|(_, profile)| profile.creator).map(|(id, profile)| {
            let mut profile = profile.clone();
            profile.users = 0;
            forget_users(&mut profile.extra);
            (id, profile)
        });
        idle.collect()
    }

    fn put(&mut self, id: u32, profile: Profile<X>) {
        if profile.ignore == 0 {
            self.exact.insert((profile.vni, id));
        } else {
            self.ranges.insert(profile.vni, (profile.last(), id));
        }
        self.table.insert(id, profile);
    }

    /// The last range that contains some of the VNIs.
    fn range_up_to(&self, first: u16, last: u16) -> Option<u32> {
        let (_, (end, id)) = self.ranges.range(..=last).next_back()?;
        (*end >= first).then_some(*id)
    }

    /// Returns whether VNIs from `first` to `last` conflict with a profile, enabled or not.
    pub(crate) fn conflicts(&self, first: u16, last: u16) -> bool {
        let mut exact = self.exact.range((first, 0)..=(last, u32::MAX));
        self.range_up_to(first, last).is_some()
            || ((first != last || self.exclusive) && exact.next().is_some())
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Profile<X>> {
        self.table.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut Profile<X>> {
        self.table.get_mut(&id)
    }

    /// Removes a profile.
    pub(crate) fn remove(&mut self, id: u32) -> Option<Profile<X>> {
        let profile = self.table.remove(&id)?;
        if profile.ignore == 0 {
            self.exact.remove(&(profile.vni, id));
        } else {
            self.ranges.remove(&profile.vni);
        }
        self.ids.free(id);
        Some(profile)
    }

    /// Removes a profile if it has neither a creator nor users.
    pub(crate) fn remove_if_unused(&mut self, id: u32) -> Option<Profile<X>> {
        let unused = self.get(id)?.references() == 0;
        unused.then(|| self.remove(id)).flatten()
    }

    /// Records that the creator gives a profile up. It gets no new users, and is removed once it
    /// has none.
    pub(crate) fn give_up(&mut self, id: u32) -> Option<Profile<X>> {
        let profile = self.get_mut(id)?;
        profile.creator = false;
        profile.access.clear();
        self.remove_if_unused(id)
    }

    /// Records that a user of a profile is gone, and removes the profile with the last one.
    pub(crate) fn drop_user(&mut self, id: u32) -> Option<Profile<X>> {
        let profile = self.get_mut(id)?;
        profile.users = profile.users.saturating_sub(1);
        self.remove_if_unused(id)
    }

    /// Profiles that have a VNI, by ascending id.
    fn candidates(&self, vni: u16) -> impl Iterator<Item = (u32, &Profile<X>)> {
        let exact = self.exact.range((vni, 0)..=(vni, u32::MAX));
        let ids = exact.map(|(_, id)| *id).chain(self.range_up_to(vni, vni));
        ids.filter_map(|id| Some((id, self.get(id)?)))
    }

    /// Finds the profile by which a caller may use a VNI.
    pub(crate) fn lookup(&self, vni: u16, caller: &Credentials, rules: &Rules) -> Lookup {
        let mut refused = false;
        for (id, profile) in self.candidates(vni).filter(|(_, profile)| profile.enabled) {
            if profile.access.admits(caller, rules) {
                return Lookup::Found(id);
            }
            refused = true;
        }
        if refused && rules.not_admitted_is_eperm { Lookup::Refused } else { Lookup::Unknown }
    }

    /// All profiles by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Profile<X>)> {
        self.table.iter().map(|(id, profile)| (*id, profile))
    }
}

#[cfg(test)]
mod tests {
    use cxi_ioctl::DriverRelease;

    use super::*;

    fn profile(vni: u16, ignore: u16) -> Profile<()> {
        Profile::of_service(vni, ignore, AccessList::of(Access::Uid(7)), ())
    }

    #[test]
    fn ranges_conflict_with_all_exact_ones_by_rule() {
        let mut all = Profiles::new(false);
        for (vni, ignore, expected) in [
            (100, 0, Ok(1)),
            (100, 0, Ok(2)),
            (64, 63, Err(Errno::EEXIST)),
            (128, 127, Ok(3)),
            (255, 0, Err(Errno::EEXIST)),
            (192, 63, Err(Errno::EEXIST)),
            (256, 255, Ok(4)),
        ] {
            assert_eq!(all.add(profile(vni, ignore)), expected, "{vni} {ignore}");
        }
        all.remove(3);
        assert_eq!(all.add(profile(255, 0)), Ok(3));
        all.exclusive = true;
        assert_eq!(all.add(profile(100, 0)), Err(Errno::EEXIST));
    }

    #[test]
    fn lookup_tells_refusal_from_absence() {
        let rules = Rules::of(DriverRelease::Main2026_07);
        let mut all = Profiles::new(false);
        let id = all.add(profile(64, 63)).unwrap();
        let (member, other) = (Credentials::user(7, 7), Credentials::user(8, 8));
        assert_eq!(all.lookup(70, &member, &rules), Lookup::Unknown);
        all.get_mut(id).unwrap().enabled = true;
        assert_eq!(all.lookup(70, &member, &rules), Lookup::Found(id));
        assert_eq!(all.lookup(70, &other, &rules), Lookup::Refused);
        assert_eq!(all.lookup(128, &member, &rules), Lookup::Unknown);
        let old = Rules::of(DriverRelease::Shs13_0);
        assert_eq!(all.lookup(70, &other, &old), Lookup::Unknown);
    }
}
