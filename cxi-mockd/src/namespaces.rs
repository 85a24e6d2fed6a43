//! A private view of the file system for the mock and its programs.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{getegid, geteuid};

use super::error::{Doing, ServeError};
use super::privileges::{self, Route};

/// Who an ordinary user is inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inside {
    /// User 0 with all capabilities of the own user namespace.
    Root,
    /// The same user id as outside; programs have no capabilities.
    Oneself,
}

/// Moves this process into a mount namespace of its own. Call it while there is one thread.
pub(crate) fn separate(route: Route, inside: Inside) -> Result<(), ServeError> {
    match route {
        Route::Privileged => {
            unshare(CloneFlags::CLONE_NEWNS)
                .doing(|| "make a mount namespace (CAP_SYS_ADMIN is there)".to_owned())?;
        }
        Route::UserNamespace => {
            let (uid, gid) = (geteuid(), getegid());
            unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)
                .map_err(privileges::user_namespace_refused)?;
            let within = |outside: u32| match inside {
                Inside::Root => 0,
                Inside::Oneself => outside,
            };
            set_map("setgroups", "deny")?;
            set_map("uid_map", &format!("{} {uid} 1", within(uid.as_raw())))?;
            set_map("gid_map", &format!("{} {gid} 1", within(gid.as_raw())))?;
        }
    }
    mount(
        None::<&str>,
        "/",
        None::<&str>,
        MsFlags::MS_REC | MsFlags::MS_PRIVATE,
        None::<&str>,
    )
    .map_err(|errno| privileges::mount_refused("/ as private", errno))
}

fn set_map(file: &str, content: &str) -> Result<(), ServeError> {
    fs::write(format!("/proc/self/{file}"), content).map_err(|error| {
        let errno = nix::errno::Errno::from_raw(error.raw_os_error().unwrap_or_default());
        privileges::user_namespace_refused(errno)
    })
}

/// Moves this process into the namespaces of a node's process. Call it while there is one thread.
pub(crate) fn join(process: i32) -> Result<(), ServeError> {
    let stand = std::env::current_dir();
    let open = |kind: &str| {
        File::open(format!("/proc/{process}/ns/{kind}")).map_err(|error| {
            ServeError::missing(
                format!("the node's {kind} namespace cannot be opened: {error}"),
                "Enter a node as the user who serves it, or as root.",
            )
        })
    };
    let (user, mounts) = (open("user")?, open("mnt")?);
    if inode(&user) != inode(&File::open("/proc/self/ns/user").doing(|| "read /proc".to_owned())?) {
        enter(&user, CloneFlags::CLONE_NEWUSER, "user")?;
    }
    enter(&mounts, CloneFlags::CLONE_NEWNS, "mount")?;
    if let Ok(stand) = stand {
        // The directory may be covered inside: then the program starts at the root.
        let _ = std::env::set_current_dir(stand);
    }
    Ok(())
}

fn enter(namespace: &File, kind: CloneFlags, name: &str) -> Result<(), ServeError> {
    setns(namespace, kind).map_err(|errno| {
        ServeError::missing(
            format!(
                "entering the node's {name} namespace is refused ({})",
                errno.desc()
            ),
            "Enter a node as the user who serves it, or as root.",
        )
    })
}

fn inode(file: &File) -> Option<u64> {
    file.metadata().ok().map(|metadata| metadata.ino())
}
