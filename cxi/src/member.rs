//! Members of a service: those who may use it.

use std::fmt;

use cxi_ioctl::abi::service::{
    MEMBER_GID, MEMBER_IGNORE, MEMBER_NET_NS, MEMBER_UID, SVC_MAX_MEMBERS, SvcMember,
};

use crate::InvalidValue;

/// A user, group or network namespace that may use a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "type", content = "id", rename_all = "lowercase")
)]
pub enum Member {
    /// Processes with this effective user id.
    Uid(u32),
    /// Processes with this effective group id. SHS 12.0 also considers supplementary groups.
    Gid(u32),
    /// Processes in the network namespace with this inode number, as the service's only
    /// member. Needs SHS 14.0 or later.
    #[cfg_attr(feature = "serde", serde(alias = "net_ns"))]
    NetNs(u32),
    /// A kind that this library does not know, as a newer driver reported it. It cannot be
    /// requested.
    #[cfg_attr(feature = "serde", serde(skip_deserializing))]
    Other {
        /// Number of the kind.
        kind: u32,
        /// The id.
        id: u32,
    },
}

impl Member {
    pub(crate) fn to_kernel(self) -> SvcMember {
        let (kind, id) = match self {
            Self::Uid(id) => (MEMBER_UID, id),
            Self::Gid(id) => (MEMBER_GID, id),
            Self::NetNs(id) => (MEMBER_NET_NS, id),
            Self::Other { kind, id } => (kind, id),
        };
        SvcMember { id, kind }
    }

    /// `None` for an unused slot.
    pub(crate) fn from_kernel(SvcMember { id, kind }: SvcMember) -> Option<Self> {
        match kind {
            MEMBER_IGNORE => None,
            MEMBER_UID => Some(Self::Uid(id)),
            MEMBER_GID => Some(Self::Gid(id)),
            MEMBER_NET_NS => Some(Self::NetNs(id)),
            kind => Some(Self::Other { kind, id }),
        }
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uid(id) => write!(f, "uid {id}"),
            Self::Gid(id) => write!(f, "gid {id}"),
            Self::NetNs(inode) => write!(f, "network namespace {inode}"),
            Self::Other { kind, id } => write!(f, "member of kind {kind} with id {id}"),
        }
    }
}

/// At most two different members. An empty set admits no process.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "Vec<Member>", try_from = "Vec<Member>")
)]
pub struct Members {
    slots: [Option<Member>; SVC_MAX_MEMBERS],
}

impl Members {
    /// The most members that a service can name.
    pub const MAX: usize = SVC_MAX_MEMBERS;

    /// Creates a set of members.
    ///
    /// A network namespace must be the only member: the driver sets it only on a service without
    /// other members.
    ///
    /// # Errors
    ///
    /// More than two, a duplicate, an id of all ones, a namespace with another member, or an
    /// unknown kind.
    pub fn new(members: impl IntoIterator<Item = Member>) -> Result<Self, InvalidValue> {
        let members: Vec<Member> = members.into_iter().collect();
        if members.len() > Self::MAX {
            return Err(InvalidValue::TooManyMembers { count: members.len() });
        }
        for (index, member) in members.iter().enumerate() {
            let others = || members.iter().take(index);
            match *member {
                member if others().any(|other| *other == member) => {
                    return Err(InvalidValue::MemberTwice { member });
                }
                Member::Other { kind, .. } => return Err(InvalidValue::MemberKind { kind }),
                Member::Uid(u32::MAX) | Member::Gid(u32::MAX) | Member::NetNs(u32::MAX) => {
                    return Err(InvalidValue::MemberOfAllOnes { member: *member });
                }
                _ => {}
            }
        }
        if members.len() > 1 && members.iter().any(|member| matches!(member, Member::NetNs(_))) {
            return Err(InvalidValue::NetNsNotAlone);
        }
        Ok(Self::from_kernel(members))
    }

    /// The network namespace, if one is a member.
    #[must_use]
    pub fn netns(&self) -> Option<u32> {
        self.iter().find_map(|member| match member {
            Member::NetNs(inode) => Some(inode),
            _ => None,
        })
    }
}

slots!(Members of Member, separated by ", ");

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_members_say_why() {
        for (members, message) in [
            (
                vec![Member::Uid(1), Member::Uid(2), Member::Gid(3)],
                "3 members: a service can name at most 2",
            ),
            (vec![Member::Uid(1), Member::Uid(1)], "uid 1 is named twice: name each member once"),
            (
                vec![Member::Gid(u32::MAX)],
                "invalid member gid 4294967295: an ID of all ones means no ID",
            ),
            (
                vec![Member::NetNs(5), Member::Uid(1)],
                "a network namespace must be the only member of a service",
            ),
            (
                vec![Member::Other { kind: 9, id: 1 }],
                "unknown kind of member 9: expected a uid, a gid or a network namespace",
            ),
        ] {
            assert_eq!(Members::new(members).unwrap_err().to_string(), message);
        }
        let both = Members::new([Member::Uid(7), Member::Gid(7)]).unwrap();
        assert_eq!(both.to_string(), "uid 7, gid 7");
    }

    #[test]
    fn unknown_kinds_survive() {
        let raw = SvcMember { id: 3, kind: 77 };
        let member = Member::from_kernel(raw).unwrap();
        assert_eq!(member.to_kernel(), raw);
        assert_eq!(Member::from_kernel(SvcMember { id: 9, kind: 0 }), None);
    }
}
