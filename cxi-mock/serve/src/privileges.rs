//! Requirements on the machine and the user's rights.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::unistd::gettid;
use rustix::thread::CapabilitySet;

use super::credentials::{Authority, effective_capabilities};
use super::error::{Doing, ServeError};
use super::launch::SELF;
use super::memory;
use super::mount::{self, Stage};
use super::namespaces::{self, Inside};

/// Way in which the launcher obtains its own mount namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// It has CAP_SYS_ADMIN where it is.
    Privileged,
    /// It makes a user namespace first.
    UserNamespace,
}

/// Checks for what serving files needs besides namespaces, and reports the first thing that is missing.
pub(crate) fn check_files() -> Result<(), ServeError> {
    check_memory_access()?;
    open_fuse().map(drop)
}

/// Checks whether programs can be given another `/sys` than this process has.
pub(crate) fn check_namespaces(inside: Inside) -> Result<Route, ServeError> {
    if !is_privileged() {
        check_user_namespaces()?;
    }
    // A security module may let a user namespace be made and refuse everything in it, and a process that
    // has made one cannot leave it. So another process tries.
    let mut probe = Command::new(SELF);
    probe.arg0("cxi-mock").arg(PROBE).args((inside == Inside::Oneself).then_some("--as-user"));
    let output = probe.output().doing(|| "try to mount something".to_owned())?;
    if output.status.success() {
        return Ok(route());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim().trim_start_matches("cxi-mock: ");
    let (what, how) = said.split_once("\n  ").unwrap_or((said, "Run as root."));
    Err(ServeError::missing(what, how))
}

/// The hidden command that tries what [`check_namespaces`] asks about.
pub(crate) const PROBE: &str = "probe";

/// Does in this process everything that the system or its container may refuse.
pub(crate) fn probe(inside: Inside) -> Result<u8, ServeError> {
    namespaces::separate(route(), inside)?;
    mount::extend_sysfs(&Stage::new()?, &[], &[])?;
    Ok(0)
}

fn route() -> Route {
    if is_privileged() { Route::Privileged } else { Route::UserNamespace }
}

/// Returns whether programs can map windows of files, as far as it can be told before any is opened:
/// that takes root in the initial user namespace, and Linux 6.9.
pub(crate) fn may_map_windows() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    is_privileged() && Authority::of_this_process() == Authority::strict() && version >= (6, 9)
}

/// Returns whether this process has CAP_SYS_ADMIN where it is.
pub(crate) fn is_privileged() -> bool {
    effective_capabilities(gettid()).contains(CapabilitySet::SYS_ADMIN)
}

fn check_memory_access() -> Result<(), ServeError> {
    if read_number("/proc/sys/kernel/yama/ptrace_scope") == Some(3) {
        return Err(ServeError::missing(
            "Yama forbids every access to the memory of another process \
             (kernel.yama.ptrace_scope is 3), so that responses cannot be delivered",
            "Boot with a lower value: scope 3 cannot be left while the system runs. \
             Look for kernel.yama.ptrace_scope in /etc/sysctl.d.",
        ));
    }
    memory::self_test().map_err(|errno| {
        ServeError::missing(
            format!("process_vm_writev(2) is refused ({errno})"),
            "A seccomp filter blocks it, as old container runtimes do: \
             allow it, or add the capability SYS_PTRACE to the container.",
        )
    })
}

/// Opens the FUSE device in the user namespace that is to mount it, because the kernel requires the
/// two to be the same.
pub(crate) fn open_fuse() -> Result<OwnedFd, ServeError> {
    let opened = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    opened.map(File::into).map_err(|error| match error.kind() {
        ErrorKind::NotFound => ServeError::missing(
            "FUSE is missing: there is no /dev/fuse",
            "Load the module (modprobe fuse); in a container, pass the device \
             (docker run --device /dev/fuse --cap-add SYS_ADMIN).",
        ),
        ErrorKind::PermissionDenied => ServeError::missing(
            "FUSE is not accessible: /dev/fuse cannot be opened for reading and writing",
            "Let everyone open it, as distributions do (chmod 666 /dev/fuse), or run as root.",
        ),
        _ => ServeError::missing(
            format!("FUSE is not accessible: /dev/fuse cannot be opened: {error}"),
            "Load the module (modprobe fuse); in a container, allow the device \
             (docker run --device /dev/fuse).",
        ),
    })
}

/// The sysctls that commonly forbid user namespaces.
fn check_user_namespaces() -> Result<(), ServeError> {
    const FORBIDDEN: &str = "An ordinary user needs user namespaces, and they are forbidden here";
    let forbid = |how: &str| Err(ServeError::missing(FORBIDDEN, how));
    if !fs::exists("/proc/self/ns/user").unwrap_or(false) {
        return forbid("The kernel has none (CONFIG_USER_NS): run as root.");
    }
    if read_number("/proc/sys/user/max_user_namespaces") == Some(0) {
        return forbid("sysctl user.max_user_namespaces=10000, or run as root.");
    }
    if read_number("/proc/sys/kernel/unprivileged_userns_clone") == Some(0) {
        return forbid("sysctl kernel.unprivileged_userns_clone=1, or run as root.");
    }
    Ok(())
}

/// Returns the error for a user namespace that could not be made although no plain sysctl forbids
/// it.
pub(crate) fn user_namespace_refused(errno: nix::errno::Errno) -> ServeError {
    let how = if read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for \
         cxi-mock that allows userns, or run as root."
    } else {
        "In a container, allow unshare and mount (docker run --cap-add SYS_ADMIN \
         --security-opt seccomp=unconfined --security-opt apparmor=unconfined), or run as root."
    };
    ServeError::missing(
        format!(
            "An ordinary user needs user namespaces, and making one is refused ({})",
            errno.desc()
        ),
        how,
    )
}

/// Returns the error for a mount that serving needs and was refused.
pub(crate) fn mount_refused(what: &str, errno: nix::errno::Errno) -> ServeError {
    use nix::errno::Errno;
    let doing = format!("mount {what}");
    let what = format!("mounting {what} is refused ({})", errno.desc());
    match errno {
        Errno::ENODEV => ServeError::missing(
            what,
            "The kernel does not know that file system: modprobe fuse overlay.",
        ),
        Errno::EPERM | Errno::EACCES => ServeError::missing(
            what,
            "In a container, allow mounts (docker run --cap-add SYS_ADMIN \
             --security-opt apparmor=unconfined); an ordinary user needs Linux 5.11.",
        ),
        _ => ServeError::System { doing, source: errno.into() },
    }
}

fn read_number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
