//! Communication profiles, LCIDs and the table of CPs.

use std::collections::BTreeSet;

use cxi_ioctl::Errno;
use cxi_ioctl::abi::profile::CpModifyCmd;

use super::file::handles;
use super::profile::vni;
use super::{Model, Values, lowest_free};
use crate::sequence::operation::{Caller, CpRequest};

const LCIDS: u32 = 16;
const TABLE: usize = 255;
const CLASSES: u32 = 8;
const TYPES: u32 = 4;
const FIRST_ETHERNET: u32 = 5;
const LAST_PCP: u32 = 7;
pub const TRIGGER: u32 = 0;
pub const NON_TRIGGER: u32 = 1;

/// Class and type that the hardware is set up for.
const PAIRS: [(u32, u32); 6] = [(1, 0), (1, 3), (2, 0), (3, 0), (3, 1), (3, 2)];

/// A handle.
#[derive(Clone, Copy, Debug)]
pub struct Cp {
    pub lni: u32,
    pub rgid: u32,
    pub lcid: u32,
    pub profile: u32,
}

/// An LCID of an RGID.
#[derive(Clone, Copy, Debug)]
pub struct Lcid {
    pub vni: u16,
    pub class: (u32, u32),
    pub profile: u32,
    /// The LNI that asked for it first.
    pub lni: u32,
    pub users: u32,
}

impl Model {
    pub(super) fn cp_alloc(&mut self, file: usize, caller: Caller, asked: &CpRequest) -> Values {
        let rgid = self.lni(file, asked.lni)?.rgid;
        let (tc, tc_type) = asked.class;
        if tc >= CLASSES || tc_type >= TYPES {
            return Err(Errno::EINVAL);
        }
        if tc >= FIRST_ETHERNET {
            // A caller with the privilege never gets here.
            assert!(asked.vni > LAST_PCP || !caller.admin);
            return Err(if asked.vni > LAST_PCP { Errno::EINVAL } else { Errno::EPERM });
        }
        let vni = vni(asked.vni)?;
        let profile = self.tx.find_or_create(vni, caller)?;
        let allowed = self.tx.get(profile).tcs[tc as usize] != 0 && PAIRS.contains(&asked.class);
        let lcid = if allowed { self.lcid(rgid, vni, profile, asked) } else { Err(Errno::EINVAL) };
        let lcid = lcid.inspect_err(|_| self.tx.sweep(profile))?;
        self.tx.hold(profile);
        let handle = lowest_free(0, handles(&self.cps, file));
        let cp = Cp { lni: asked.lni, rgid, lcid, profile };
        self.cps.insert((file, handle), cp);
        Ok(vec![handle, lcid])
    }

    /// An LCID for a CP: an existing one, or a new one.
    fn lcid(&mut self, rgid: u32, vni: u16, profile: u32, asked: &CpRequest) -> Result<u32, Errno> {
        let kind = asked.kind;
        if let Some(lcid) = self.reusable(rgid, vni, asked) {
            if let Some(found) = self.lcids.get_mut(&(rgid, lcid)) {
                found.users += 1;
            }
            return Ok(lcid);
        }
        let new = Lcid { vni, class: asked.class, profile, lni: asked.lni, users: 1 };
        if self.table_use_with(Some(new)) > TABLE {
            return Err(Errno::ENOSPC);
        }
        let first = u32::from(kind == Some(NON_TRIGGER));
        let of_rgid = self.lcids.range((rgid, 0)..(rgid, LCIDS));
        let lcid = lowest_free(first, of_rgid.map(|((_, lcid), _)| *lcid));
        let last = if kind == Some(TRIGGER) { 0 } else { LCIDS - 1 };
        if lcid > last {
            return Err(Errno::ENOSPC);
        }
        self.lcids.insert((rgid, lcid), new);
        Ok(lcid)
    }

    /// The LCID that a CP would share.
    pub fn reusable(&self, rgid: u32, vni: u16, asked: &CpRequest) -> Option<u32> {
        let of_rgid = self.lcids.range((rgid, 0)..(rgid, LCIDS));
        let mut same = of_rgid.filter(|(_, lcid)| (lcid.vni, lcid.class) == (vni, asked.class));
        let found = same.find(|((_, number), lcid)| {
            if asked.kind == Some(NON_TRIGGER) {
                *number > 0 && lcid.lni == asked.lni
            } else {
                *number == 0
            }
        });
        found.map(|((_, number), _)| *number)
    }

    /// Entries of the CP table in use.
    pub fn cp_table_use(&self) -> usize {
        self.table_use_with(None)
    }

    fn table_use_with(&self, new: Option<Lcid>) -> usize {
        let mut shared = BTreeSet::new();
        let mut own = 0;
        for lcid in self.lcids.values().copied().chain(new) {
            if self.tx.get(lcid.profile).exclusive {
                own += 1;
            } else {
                shared.insert((lcid.profile, lcid.vni, lcid.class));
            }
        }
        own + shared.len()
    }

    pub(super) fn cp_free(&mut self, file: usize, handle: u32) -> Values {
        if !self.cps.contains_key(&(file, handle)) {
            return Err(Errno::EINVAL);
        }
        self.drop_cp((file, handle));
        Ok(vec![])
    }

    pub(super) fn drop_cp(&mut self, key: (usize, u32)) {
        let cp = self.cps.remove(&key).unwrap();
        let number = (cp.rgid, cp.lcid);
        let lcid = self.lcids.get_mut(&number).unwrap();
        lcid.users -= 1;
        if lcid.users == 0 {
            self.lcids.remove(&number);
        }
        self.tx.release(cp.profile);
    }

    pub(super) fn cp_modify(&mut self, file: usize, caller: Caller, asked: &CpModifyCmd) -> Values {
        let cp = self.cps.get(&(file, asked.cp_hndl));
        let cp = *cp.ok_or(Errno::EINVAL)?;
        let vni = vni(asked.vni)?;
        let usable = self.tx.find(vni, caller).is_ok();
        if !usable || !self.tx.get(cp.profile).exclusive {
            return Err(Errno::EINVAL);
        }
        self.lcids.get_mut(&(cp.rgid, cp.lcid)).unwrap().vni = vni;
        Ok(vec![])
    }
}
