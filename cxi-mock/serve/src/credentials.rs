//! Identity of a caller. What the request does not contain is read from the kernel.

use std::path::Path;

use nix::unistd::Pid;
use rustix::thread::CapabilitySet;

use cxi_ioctl::{DriverRelease, Opcode, Privilege};

use super::procfs;
use cxi_mock::Credentials;
use cxi_site::proc::{self, Status};

/// Inode of the initial user namespace, the same on every Linux.
const INITIAL_USER_NAMESPACE: u32 = 4_026_531_837;

/// Namespace in which a capability counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Authority {
    /// The user namespace whose capabilities count in addition to those of the initial one.
    user_namespace: u32,
    /// An ordinary user whose node it is, and who counts as root there.
    owner: Option<u32>,
}

impl Authority {
    /// The driver's rule: capabilities count in the initial user namespace only.
    pub(crate) const fn strict() -> Self {
        Self { user_namespace: INITIAL_USER_NAMESPACE, owner: None }
    }

    /// The namespace of this process counts as the initial one.
    pub(crate) fn of_this_process() -> Self {
        let user_namespace = namespace("self", "user").unwrap_or(INITIAL_USER_NAMESPACE);
        Self { user_namespace, owner: None }
    }

    /// The same, where a user without privileges counts as root.
    pub(crate) fn owned_by(self, user: u32) -> Self {
        Self { owner: Some(user), ..self }
    }

    /// Returns whether a user may write what root may write.
    pub(crate) fn may_write(self, user: u32) -> bool {
        user == 0 || self.owner == Some(user)
    }

    fn covers(self, user_namespace: u32) -> bool {
        user_namespace == INITIAL_USER_NAMESPACE || user_namespace == self.user_namespace
    }
}

/// Returns whether the driver looks at the capabilities of a command's caller, and whether at its
/// groups and namespaces: reading `/proc` costs more than most commands.
fn wanted(opcode: Opcode) -> (bool, bool) {
    opcode.handler().map_or((false, false), |handler| {
        let capability = handler.capability || handler.privilege == Privilege::Admin;
        (capability, handler.membership)
    })
}

/// The credentials of a calling thread, as far as the command needs them.
pub(crate) fn of_caller(
    (pid, uid, gid): (Pid, u32, u32),
    opcode: Opcode,
    release: DriverRelease,
    authority: Authority,
) -> Credentials {
    let (capabilities, membership) = wanted(opcode);
    let mut credentials = Credentials::user(uid, gid);
    let task = pid.to_string();
    if authority.owner == Some(uid) {
        (credentials.sys_admin, credentials.net_raw) = (true, true);
    } else if capabilities {
        let held = capabilities_of_request(pid, uid);
        if !held.is_empty() && namespace(&task, "user").is_some_and(|user| authority.covers(user)) {
            credentials.sys_admin = held.contains(CapabilitySet::SYS_ADMIN);
            credentials.net_raw = held.contains(CapabilitySet::NET_RAW);
        }
    }
    if membership && release == DriverRelease::Shs12_0 {
        let status = procfs::status(pid).unwrap_or_default();
        credentials.groups = numbers(&status, "Groups").collect();
    }
    if membership && let Some(netns) = namespace(&task, "net") {
        credentials.netns = netns;
    }
    credentials
}

/// The capabilities with which a thread makes a request as that user.
///
/// A thread of io_uring works for its process with the identity that the process had when the
/// request was submitted, and keeps for itself what the process had when the thread was made.
fn capabilities_of_request(thread: Pid, uid: u32) -> CapabilitySet {
    let held = effective_capabilities(thread);
    if held.is_empty() {
        return held;
    }
    let status = procfs::head(thread).unwrap_or_default();
    let file_system_uid = numbers(&status, "Uid").nth(3);
    if file_system_uid != Some(uid) {
        return CapabilitySet::empty();
    }
    let mut name = status.words("Name");
    if !name.next().is_some_and(|name| name.starts_with("iou-")) {
        return held;
    }
    let process = procfs::process(&status).unwrap_or(Pid::from_raw(0));
    held & effective_capabilities(process)
}

/// The inode number of a namespace of a task.
fn namespace(task: &str, kind: &str) -> Option<u32> {
    proc::namespace(&Path::new("/proc").join(task), kind)
}

/// The effective capabilities of a thread; none if it is unknown here. This is one system call,
/// where `/proc/PID/status` would take three and a page of text.
pub(crate) fn effective_capabilities(thread: Pid) -> CapabilitySet {
    let thread = Some(thread.as_raw()).filter(|thread| *thread > 0);
    thread
        .and_then(rustix::process::Pid::from_raw)
        .and_then(|thread| rustix::thread::capabilities(Some(thread)).ok())
        .map_or(CapabilitySet::empty(), |sets| sets.effective)
}

/// The identifiers on a line of users or groups.
fn numbers(status: &Status, name: &str) -> impl Iterator<Item = u32> {
    status.words(name).filter_map(|word| word.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_not_there_holds_nothing() {
        // For capget(2), 0 would mean this thread.
        for absent in [0, -1, i32::MAX] {
            let held = effective_capabilities(Pid::from_raw(absent));
            assert_eq!(held, CapabilitySet::empty(), "{absent}");
        }
    }

    #[test]
    fn capabilities_are_those_of_proc() {
        let status = std::fs::read_to_string("/proc/thread-self/status").expect("proc is mounted");
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let bits = u64::from_str_radix(effective.expect("a set").trim(), 16).expect("a number");
        assert_eq!(effective_capabilities(nix::unistd::gettid()).bits(), bits);
    }

    #[test]
    fn only_privileged_commands_cost_a_look_at_capabilities() {
        assert_eq!(wanted(Opcode::SVC_ALLOC), (true, false));
        assert_eq!(wanted(Opcode::LNI_ALLOC), (false, true));
        assert_eq!(wanted(Opcode::DEV_INFO_GET), (false, false));
        assert_eq!(wanted(Opcode::from_number(4711)), (false, false));
    }

    #[test]
    fn the_own_namespace_counts_unless_strict() {
        assert!(Authority::strict().covers(INITIAL_USER_NAMESPACE));
        assert!(!Authority::strict().covers(4_026_532_000));
        let own = namespace("self", "user").expect("proc is mounted");
        assert!(Authority::of_this_process().covers(own));
    }
}
