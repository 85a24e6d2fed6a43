//! Access to a resource group or a profile.

use cxi_ioctl::Errno;

use crate::Credentials;
use crate::rules::Rules;
use crate::state::AccessEntryState;

/// Whom an access entry admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub(crate) enum Access {
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct AccessList(Vec<Access>);

impl AccessList {
    pub(crate) fn of(access: Access) -> Self {
        Self(vec![access])
    }

    /// Adds an entry. EBADR for an id of all ones, EEXIST for an entry that exists.
    pub(crate) fn add(&mut self, access: Access) -> Result<(), Errno> {
        if let Access::Uid(u32::MAX) | Access::Gid(u32::MAX) | Access::Netns(u32::MAX) = access {
            return Err(Errno::EBADR);
        }
        if self.0.contains(&access) {
            return Err(Errno::EEXIST);
        }
        self.0.push(access);
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Checks the entries of a snapshot, as [`add`](Self::add) does.
    pub(crate) fn check(&self) -> Result<(), Errno> {
        let mut entries = self.0.iter();
        entries.try_fold(Self::default(), |mut list, entry| list.add(*entry).map(|()| list))?;
        Ok(())
    }

    /// Returns whether an entry admits the caller. Capabilities and being root do not help.
    pub(crate) fn admits(&self, caller: &Credentials, rules: &Rules) -> bool {
        self.0.iter().any(|access| match *access {
            Access::Uid(uid) => caller.uid == uid,
            Access::Gid(gid) => is_member(caller, gid, rules),
            Access::Netns(netns) => caller.netns == netns,
            Access::Open => true,
        })
    }

    /// Returns whether anything other than a namespace is admitted.
    pub(crate) fn beyond_netns(&self) -> bool {
        self.0.iter().any(|access| !matches!(access, Access::Netns(_)))
    }

    pub(crate) fn lowest_netns(&self) -> Option<u32> {
        let namespaces = self.0.iter().filter_map(|access| match access {
            Access::Netns(netns) => Some(*netns),
            _ => None,
        });
        namespaces.min()
    }

    pub(crate) fn states(&self) -> Vec<AccessEntryState> {
        (1..)
            .zip(&self.0)
            .map(|(id, access)| {
                let (kind, data) = match *access {
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

/// Returns whether a caller is in a group.
pub(crate) fn is_member(caller: &Credentials, gid: u32, rules: &Rules) -> bool {
    caller.gid == gid || (rules.supplementary_groups && caller.groups.contains(&gid))
}
