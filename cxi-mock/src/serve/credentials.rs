//! Who a caller is: what the request does not say is read from `/proc`.

use std::fs;

use nix::unistd::Pid;

use cxi_ioctl::{Opcode, Privilege, Release};

use crate::Credentials;

/// Bit of `CAP_NET_RAW` in a capability set.
pub(super) const CAP_NET_RAW: u32 = 13;
/// Bit of `CAP_SYS_ADMIN` in a capability set.
pub(super) const CAP_SYS_ADMIN: u32 = 21;

/// Inode of the initial user namespace, the same on every Linux.
const INITIAL_USER_NAMESPACE: u32 = 4_026_531_837;

/// Where a capability counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Authority {
    /// The user namespace whose capabilities count beside those of the initial one.
    user_namespace: u32,
}

impl Authority {
    /// The driver's rule: capabilities count in the initial user namespace only.
    pub(super) const fn strict() -> Self {
        Self {
            user_namespace: INITIAL_USER_NAMESPACE,
        }
    }

    /// The namespace of this process counts as the initial one.
    pub(super) fn of_this_process() -> Self {
        Self {
            user_namespace: namespace("self", "user").unwrap_or(INITIAL_USER_NAMESPACE),
        }
    }

    fn covers(self, user_namespace: u32) -> bool {
        user_namespace == INITIAL_USER_NAMESPACE || user_namespace == self.user_namespace
    }
}

/// What the driver looks at of a caller, by command: reading `/proc` costs more than the command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wanted {
    capabilities: bool,
    network_namespace: bool,
}

fn wanted(opcode: Opcode) -> Wanted {
    let admin = opcode
        .info()
        .and_then(|info| info.handler)
        .is_some_and(|handler| handler.privilege == Privilege::Admin);
    Wanted {
        capabilities: admin
            || matches!(
                opcode,
                Opcode::CP_ALLOC
                    | Opcode::TRIG_CP_ALLOC
                    | Opcode::CQ_ALLOC
                    | Opcode::CQ_ALLOC_BUF
                    | Opcode::EQ_ALLOC
                    | Opcode::PTE_ALLOC
            ),
        network_namespace: matches!(
            opcode,
            Opcode::LNI_ALLOC
                | Opcode::CP_ALLOC
                | Opcode::TRIG_CP_ALLOC
                | Opcode::CP_MODIFY
                | Opcode::DOMAIN_ALLOC
                | Opcode::DOMAIN_RESERVE
        ),
    }
}

/// The credentials of a calling thread, as far as the command needs them.
pub(super) fn of_caller(
    (pid, uid, gid): (Pid, u32, u32),
    opcode: Opcode,
    release: Release,
    authority: Authority,
) -> Credentials {
    let wanted = wanted(opcode);
    let mut credentials = Credentials::user(uid, gid);
    let groups = wanted.network_namespace && release == Release::Shs12_0;
    if wanted.capabilities || groups {
        let task = pid.to_string();
        let status = fs::read_to_string(format!("/proc/{task}/status")).unwrap_or_default();
        if wanted.capabilities
            && namespace(&task, "user").is_some_and(|user| authority.covers(user))
        {
            credentials.sys_admin = has_capability(&status, CAP_SYS_ADMIN);
            credentials.net_raw = has_capability(&status, CAP_NET_RAW);
        }
        if groups {
            credentials.groups = supplementary_groups(&status);
        }
    }
    if wanted.network_namespace
        && let Some(netns) = namespace(&pid.to_string(), "net")
    {
        credentials.netns = netns;
    }
    credentials
}

/// The inode number of a namespace of a task.
fn namespace(task: &str, kind: &str) -> Option<u32> {
    let link = fs::read_link(format!("/proc/{task}/ns/{kind}")).ok()?;
    let link = link.to_str()?;
    let (_, inode) = link.split_once(":[")?;
    inode.strip_suffix(']')?.parse().ok()
}

/// Whether the effective set of a `/proc/PID/status` has a capability.
pub(super) fn has_capability(status: &str, bit: u32) -> bool {
    field(status, "CapEff:")
        .and_then(|set| u64::from_str_radix(set, 16).ok())
        .is_some_and(|set| set >> bit & 1 == 1)
}

fn supplementary_groups(status: &str) -> Vec<u32> {
    let groups = field(status, "Groups:").unwrap_or_default();
    groups
        .split_whitespace()
        .filter_map(|gid| gid.parse().ok())
        .collect()
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tsh\nUid:\t1000\t1000\t1000\t1000\nGroups:\t4 24 1000 \n\
                          CapPrm:\t0000000000000000\nCapEff:\t0000000000202000\n";

    #[test]
    fn capabilities_are_bits_of_the_effective_set() {
        assert!(has_capability(STATUS, CAP_SYS_ADMIN));
        assert!(has_capability(STATUS, CAP_NET_RAW));
        assert!(!has_capability(STATUS, 0));
        assert!(!has_capability("", CAP_SYS_ADMIN));
        assert!(!has_capability("CapEff:\tnonsense\n", CAP_SYS_ADMIN));
    }

    #[test]
    fn groups_are_numbers() {
        assert_eq!(supplementary_groups(STATUS), [4, 24, 1000]);
        assert_eq!(supplementary_groups("Groups:\t\n"), [0_u32; 0]);
    }

    #[test]
    fn only_privileged_commands_cost_a_look_at_capabilities() {
        assert!(wanted(Opcode::SVC_ALLOC).capabilities);
        assert!(wanted(Opcode::LNI_ALLOC).network_namespace);
        assert_eq!(wanted(Opcode::DEV_INFO_GET), Wanted::default());
        assert_eq!(wanted(Opcode::from_number(4711)), Wanted::default());
    }

    #[test]
    fn the_own_namespace_counts_unless_strict() {
        assert!(Authority::strict().covers(INITIAL_USER_NAMESPACE));
        assert!(!Authority::strict().covers(4_026_532_000));
        let own = namespace("self", "user").expect("proc is mounted");
        assert!(Authority::of_this_process().covers(own));
    }
}
