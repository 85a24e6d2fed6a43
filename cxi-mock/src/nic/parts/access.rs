//! Who may use a resource group or a profile.

use cxi_ioctl::Errno;

use crate::state::AccessEntryState;
use crate::{Credentials, rules::Rules};

/// Who an access entry admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Access {
    /// A user.
    Uid(u32),
    /// A group.
    Gid(u32),
    /// A network namespace.
    Netns(u32),
    /// Everyone.
    Open,
}

/// The access entries of a group or a profile, numbered from 1.
///
/// Two of them, what a descriptor can name, need no allocation: services are made and destroyed
/// often.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccessList {
    few: [Option<Access>; 2],
    more: Vec<Access>,
}

impl AccessList {
    pub(crate) fn of(access: Access) -> Self {
        Self {
            few: [Some(access), None],
            more: Vec::new(),
        }
    }

    /// Adds an entry: EBADR for an id of all ones, EEXIST for one that is there.
    pub(crate) fn add(&mut self, access: Access) -> Result<(), Errno> {
        if let Access::Uid(u32::MAX) | Access::Gid(u32::MAX) | Access::Netns(u32::MAX) = access {
            return Err(Errno::EBADR);
        }
        if self.entries().any(|there| there == access) {
            return Err(Errno::EEXIST);
        }
        match self.few.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(access),
            None => self.more.push(access),
        }
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether an entry admits the caller. Capabilities and being root do not help.
    pub(crate) fn admits(&self, caller: &Credentials, rules: &Rules) -> bool {
        self.entries().any(|access| match access {
            Access::Uid(uid) => caller.uid == uid,
            Access::Gid(gid) => is_member(caller, gid, rules),
            Access::Netns(netns) => caller.netns == netns,
            Access::Open => true,
        })
    }

    /// Whether anything other than a namespace is admitted.
    pub(crate) fn beyond_netns(&self) -> bool {
        self.entries()
            .any(|access| !matches!(access, Access::Netns(_)))
    }

    pub(crate) fn lowest_netns(&self) -> Option<u32> {
        self.entries()
            .filter_map(|access| match access {
                Access::Netns(netns) => Some(netns),
                _ => None,
            })
            .min()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = Access> {
        self.few.iter().flatten().chain(&self.more).copied()
    }

    pub(crate) fn states(&self) -> Vec<AccessEntryState> {
        (1..)
            .zip(self.entries())
            .map(|(id, access)| {
                let (kind, data) = match access {
                    Access::Uid(uid) => ("UID", uid),
                    Access::Gid(gid) => ("GID", gid),
                    Access::Netns(netns) => ("NETNS", netns),
                    Access::Open => ("OPEN", 0),
                };
                AccessEntryState { id, kind, data }
            })
            .collect()
    }
}

/// Whether a caller is in a group.
pub(crate) fn is_member(caller: &Credentials, gid: u32, rules: &Rules) -> bool {
    caller.gid == gid || (rules.supplementary_groups && caller.groups.contains(&gid))
}
