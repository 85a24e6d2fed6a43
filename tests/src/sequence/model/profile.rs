//! Profiles: who may use which VNIs, to send (TX) and to receive (RX).

use std::collections::{BTreeMap, BTreeSet};

use cxi_ioctl::Errno;
use cxi_ioctl::abi::service::{SvcDesc, SvcFlags, SvcMember};

use super::lowest_free;
use crate::sequence::operation::Caller;

const IGNORE: u32 = 0;
const UID: u32 = 1;
const GID: u32 = 2;

/// Access to a service or a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    Open,
    Members(Vec<SvcMember>),
}

impl Access {
    pub fn admits(&self, caller: Caller) -> bool {
        match self {
            Self::Open => true,
            Self::Members(members) => members.iter().any(|member| match member.kind {
                UID => member.id == caller.uid,
                GID => member.id == caller.gid,
                _ => false,
            }),
        }
    }
}

/// Returns whether a descriptor has a flag.
pub fn has(descriptor: &SvcDesc, flag: SvcFlags) -> bool {
    descriptor.flags & flag.bits() != 0
}

/// Returns the access to a service with these members.
pub fn access(asked: &SvcDesc) -> Result<Access, Errno> {
    if !has(asked, SvcFlags::RESTRICTED_MEMBERS) {
        return Ok(Access::Open);
    }
    let members = asked.members.iter().filter(|member| member.kind != IGNORE);
    let members: Vec<SvcMember> = members.copied().collect();
    if matches!(members.as_slice(), [first, second] if first == second) {
        return Err(Errno::EEXIST);
    }
    Ok(Access::Members(members))
}

/// A profile of either direction.
#[derive(Clone, Debug)]
pub struct Profile {
    pub low: u16,
    pub high: u16,
    pub access: Access,
    pub enabled: bool,
    /// Its service holds it.
    pub has_creator: bool,
    /// CPs, or domains and reservations, that hold it.
    pub users: u32,
    /// Traffic classes (TX).
    pub tcs: [u8; 5],
    /// Each CP has its own table entry (TX).
    pub exclusive: bool,
    /// PIDs taken by domains and reservations (RX).
    pub taken_pids: BTreeSet<u32>,
    /// PIDs that an LNI has reserved and not used yet: PID, LNI and reservation (RX).
    pub reserved_pids: BTreeSet<(u32, u32, u32)>,
}

impl Profile {
    pub fn new(low: u16, high: u16, access: Access, tcs: [u8; 5]) -> Self {
        Self {
            low,
            high,
            access,
            enabled: false,
            has_creator: true,
            users: 0,
            tcs,
            exclusive: false,
            taken_pids: BTreeSet::new(),
            reserved_pids: BTreeSet::new(),
        }
    }

    pub fn matches(&self, vni: u16) -> bool {
        (self.low..=self.high).contains(&vni)
    }
}

/// All profiles of one direction, by number.
#[derive(Clone, Debug, Default)]
pub struct Profiles(pub BTreeMap<u32, Profile>);

impl Profiles {
    /// Returns whether a profile conflicts with a new one: they overlap, and one of them is a
    /// range.
    pub fn conflict(&self, low: u16, high: u16) -> bool {
        self.0.values().any(|profile| {
            let exact = low == high && profile.low == profile.high;
            !exact && low <= profile.high && profile.low <= high
        })
    }

    pub fn add(&mut self, profile: Profile) -> u32 {
        let id = lowest_free(1, self.0.keys().copied());
        self.0.insert(id, profile);
        id
    }

    /// The profile by which a caller may use a VNI; EPERM if only others may, ENOENT if there is none.
    pub fn find(&self, vni: u16, caller: Caller) -> Result<u32, Errno> {
        let mut errno = Errno::ENOENT;
        for (id, profile) in &self.0 {
            if !profile.enabled || !profile.matches(vni) {
                continue;
            }
            if profile.access.admits(caller) {
                return Ok(*id);
            }
            errno = Errno::EPERM;
        }
        Err(errno)
    }

    /// As [`Self::find`]; uid 0 gets a new profile for a VNI without one.
    pub fn find_or_create(&mut self, vni: u16, caller: Caller) -> Result<u32, Errno> {
        match self.find(vni, caller) {
            Err(Errno::ENOENT) if caller.uid == 0 => {
                if self.conflict(vni, vni) {
                    return Err(Errno::EEXIST);
                }
                let access = Access::Members(vec![SvcMember { kind: UID, id: 0 }]);
                let tcs = [1, 1, 1, 1, 0];
                let profile = Profile {
                    enabled: true,
                    has_creator: false,
                    ..Profile::new(vni, vni, access, tcs)
                };
                Ok(self.add(profile))
            }
            found => found,
        }
    }

    pub fn get(&self, id: u32) -> &Profile {
        &self.0[&id]
    }

    pub fn get_mut(&mut self, id: u32) -> &mut Profile {
        let profile = self.0.get_mut(&id);
        profile.unwrap_or_else(|| panic!("profile {id} is gone, but in use"))
    }

    pub fn hold(&mut self, id: u32) {
        self.get_mut(id).users += 1;
    }

    /// Removes a user; without users, the profile is removed.
    pub fn release(&mut self, id: u32) {
        self.get_mut(id).users -= 1;
        self.sweep(id);
    }

    /// The service is destroyed: its profile admits no new users, but stays for existing ones.
    pub fn orphan(&mut self, id: u32) {
        let profile = self.get_mut(id);
        profile.has_creator = false;
        profile.access = Access::Members(Vec::new());
        self.sweep(id);
    }

    /// Removes a profile that is not in use.
    pub fn sweep(&mut self, id: u32) {
        let profile = self.get(id);
        if !profile.has_creator && profile.users == 0 {
            self.0.remove(&id);
        }
    }
}

/// A VNI as given by a caller.
pub fn vni(number: u32) -> Result<u16, Errno> {
    let vni = u16::try_from(number).ok().filter(|vni| *vni > 0);
    vni.ok_or(Errno::EINVAL)
}
