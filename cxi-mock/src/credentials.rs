//! The caller of a command.

/// Credentials of the calling process that the driver checks, at the time of the call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Credentials {
    /// Effective user id.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
    /// Supplementary group ids; only the driver of SHS 12.0 considers them.
    pub groups: Vec<u32>,
    /// `CAP_SYS_ADMIN` in the initial user namespace.
    pub sys_admin: bool,
    /// `CAP_NET_RAW`.
    pub net_raw: bool,
    /// Inode number of the network namespace.
    pub netns: u32,
}

impl Credentials {
    /// Inode number of the initial network namespace of a Linux kernel.
    pub const INITIAL_NETNS: u32 = 4_026_531_840;

    /// Root with all capabilities in the initial namespaces.
    #[must_use]
    pub const fn root() -> Self {
        let mut root = Self::user(0, 0);
        (root.sys_admin, root.net_raw) = (true, true);
        root
    }

    /// An ordinary user in the initial network namespace.
    #[must_use]
    pub const fn user(uid: u32, gid: u32) -> Self {
        Self {
            uid,
            gid,
            groups: Vec::new(),
            sys_admin: false,
            net_raw: false,
            netns: Self::INITIAL_NETNS,
        }
    }
}
