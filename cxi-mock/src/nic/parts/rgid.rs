//! RGIDs: how LNIs share the hardware's address contexts and communication profiles.

use std::collections::BTreeMap;
use std::ops::Range;

use cxi_ioctl::Errno;

use super::ids::Ids;

/// Highest RGID.
const LAST_RGID: u32 = 255;
/// Communication profiles that an RGID has room for.
pub(crate) const LCIDS: usize = 16;
/// Address contexts that an RGID has room for.
const LACS: u32 = 8;

/// Local communication profile: the VNI and the class that an LCID stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lcid {
    /// The LNI that requested it first.
    pub(crate) lni: u32,
    /// The communication profile.
    pub(crate) cp: u32,
    /// Number of handles that stand for it.
    pub(crate) handles: u32,
}

/// An RGID in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rgid {
    pub(crate) svc: u32,
    /// The service's LNIs per RGID when it was made.
    pub(crate) setting: u32,
    /// Number of LNIs that share it.
    pub(crate) lnis: u32,
    /// One bit for each logical address context in use.
    pub(crate) lacs: u8,
    /// On the heap, because the map of RGIDs moves its entries.
    pub(crate) lcids: Box<[Option<Lcid>; LCIDS]>,
}

/// The RGIDs in use.
#[derive(Clone, Debug)]
pub(crate) struct Rgids {
    ids: Ids,
    used: BTreeMap<u32, Rgid>,
    /// `true` if a new RGID is the highest in use plus one, instead of the lowest free one.
    count_up: bool,
}

/// The RGID that an LNI got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    pub(crate) rgid: u32,
    /// The number that the driver believes it to have, if that is wrong.
    pub(crate) wrong: Option<u32>,
    /// The logical address context that comes with it.
    pub(crate) lac: Option<u8>,
}

impl Rgids {
    pub(crate) fn new(count_up: bool) -> Self {
        Self { ids: Ids::new(1, LAST_RGID + 1), used: BTreeMap::new(), count_up }
    }

    /// Finds an RGID for one more LNI of a service: one that it may share, or a new one. ENOSPC if
    /// it `needs_lac` and the shared one has no logical address context left, because the driver
    /// does not look for another.
    pub(crate) fn join(
        &mut self,
        svc: u32,
        lnis_per_rgid: u32,
        needs_lac: bool,
    ) -> Result<Joined, Errno> {
        let (rgid, wrong) = self.find_or_make(svc, lnis_per_rgid)?;
        let lac = needs_lac.then(|| self.take_lac(rgid).ok_or(Errno::ENOSPC)).transpose()?;
        if let Some(entry) = self.used.get_mut(&rgid) {
            entry.lnis += 1;
        }
        Ok(Joined { rgid, wrong, lac })
    }

    /// The RGID that has room for one more LNI, and the number that the driver believes it to have
    /// if that is wrong.
    fn find_or_make(&mut self, svc: u32, setting: u32) -> Result<(u32, Option<u32>), Errno> {
        // Setting 0 has the same effect as 1: no sharing.
        let mut before = 0;
        for (&number, rgid) in &self.used {
            if rgid.svc == svc && rgid.setting == setting && rgid.lnis < setting {
                let believed = before + 1;
                let wrong = self.count_up && believed != number;
                return Ok((number, wrong.then_some(believed)));
            }
            before = number;
        }
        let rgid = if self.count_up {
            let next = self.used.last_key_value().map_or(1, |(last, _)| last + 1);
            (next <= LAST_RGID).then_some(next)
        } else {
            self.ids.alloc()
        };
        let rgid = rgid.ok_or(Errno::ENOSPC)?;
        let new = self.used.entry(rgid).or_default();
        (new.svc, new.setting) = (svc, setting);
        Ok((rgid, None))
    }

    /// Removes an LNI. The last one frees the number.
    pub(crate) fn leave(&mut self, rgid: u32) {
        if let Some(entry) = self.used.get_mut(&rgid) {
            entry.lnis = entry.lnis.saturating_sub(1);
            if entry.lnis == 0 {
                self.used.remove(&rgid);
                if !self.count_up {
                    self.ids.free(rgid);
                }
            }
        }
    }

    /// Returns the profile that an LCID of an RGID stands for.
    pub(crate) fn lcid(&self, rgid: u32, index: usize) -> Option<Lcid> {
        *self.used.get(&rgid)?.lcids.get(index)?
    }

    /// The first LCID of a range that is free.
    pub(crate) fn free_lcid(&self, rgid: u32, mut range: Range<usize>) -> Option<usize> {
        let lcids = &self.used.get(&rgid)?.lcids;
        range.find(|index| lcids.get(*index).is_some_and(Option::is_none))
    }

    /// The first suitable LCID in use, with one more handle.
    pub(crate) fn reuse_lcid(
        &mut self,
        rgid: u32,
        will_do: impl Fn(usize, &Lcid) -> bool,
    ) -> Option<usize> {
        let lcids = self.used.get_mut(&rgid)?.lcids.iter_mut().enumerate();
        let mut in_use = lcids.filter_map(|(index, lcid)| Some((index, lcid.as_mut()?)));
        let (index, lcid) = in_use.find(|(index, lcid)| will_do(*index, lcid))?;
        lcid.handles += 1;
        Some(index)
    }

    /// Makes an LCID stand for a communication profile, with one handle.
    pub(crate) fn set_lcid(&mut self, rgid: u32, index: usize, lni: u32, cp: u32) {
        let place = self.used.get_mut(&rgid);
        if let Some(place) = place.and_then(|rgid| rgid.lcids.get_mut(index)) {
            let handles = 1;
            *place = Some(Lcid { lni, cp, handles });
        }
    }

    /// Removes a handle of an LCID. The last one frees the LCID and returns the communication
    /// profile that it stood for.
    pub(crate) fn drop_handle(&mut self, rgid: u32, index: usize) -> Option<u32> {
        let place = self.used.get_mut(&rgid)?.lcids.get_mut(index)?;
        let lcid = place.as_mut()?;
        lcid.handles = lcid.handles.saturating_sub(1);
        let last = lcid.handles == 0;
        place.take_if(|_| last).map(|lcid| lcid.cp)
    }

    /// The logical address context that an RGID would get next.
    pub(crate) fn next_lac(&self, rgid: u32) -> Option<u8> {
        let lac = self.used.get(&rgid)?.lacs.trailing_ones();
        u8::try_from(lac).ok().filter(|_| lac < LACS)
    }

    pub(crate) fn take_lac(&mut self, rgid: u32) -> Option<u8> {
        let lac = self.next_lac(rgid)?;
        self.used.get_mut(&rgid)?.lacs |= 1 << lac;
        Some(lac)
    }

    pub(crate) fn give_lac(&mut self, rgid: u32, lac: u8) {
        if let Some(entry) = self.used.get_mut(&rgid) {
            entry.lacs &= !(1 << lac);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Rgid)> {
        self.used.iter().map(|(number, rgid)| (*number, rgid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::unnecessary_wraps, reason = "compared with results")]
    const fn right(rgid: u32) -> Result<(u32, Option<u32>), Errno> {
        Ok((rgid, None))
    }

    fn join(rgids: &mut Rgids, svc: u32, setting: u32) -> Result<(u32, Option<u32>), Errno> {
        let joined = rgids.join(svc, setting, false)?;
        Ok((joined.rgid, joined.wrong))
    }

    #[test]
    fn shares_by_service_and_setting() {
        let mut rgids = Rgids::new(false);
        assert_eq!(join(&mut rgids, 2, 2), right(1));
        assert_eq!(join(&mut rgids, 3, 2), right(2));
        assert_eq!(join(&mut rgids, 2, 2), right(1));
        assert_eq!(join(&mut rgids, 2, 2), right(3));
        assert_eq!(join(&mut rgids, 2, 3), right(4));
        assert_eq!(join(&mut rgids, 2, 1), right(5));
        rgids.leave(2);
        assert_eq!(join(&mut rgids, 9, 0), right(2));
    }

    #[test]
    fn old_drivers_only_count_up_and_miscount_behind_holes() {
        let mut rgids = Rgids::new(true);
        for number in 1..=3 {
            assert_eq!(join(&mut rgids, number, 2), right(number));
        }
        rgids.leave(2);
        assert_eq!(join(&mut rgids, 3, 2), Ok((3, Some(2))));
        assert_eq!(join(&mut rgids, 4, 1), right(4));
        for number in 5..=255 {
            assert_eq!(join(&mut rgids, 4, 1), right(number));
        }
        assert_eq!(join(&mut rgids, 4, 1), Err(Errno::ENOSPC));
        rgids.leave(255);
        assert_eq!(join(&mut rgids, 4, 1), right(255));
    }
}
