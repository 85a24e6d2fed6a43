//! A private view of the file system for the mock and its programs.

use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use nix::mount::MsFlags;
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{getegid, geteuid};

use super::error::{Doing, ServeError};
use super::mount;
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
    nix::mount::mount(
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

/// The namespaces of a node. They are handed over as descriptors: the number of a process means
/// another process in another pid namespace, and may be given anew.
#[derive(Debug)]
pub(crate) struct Namespaces {
    user: File,
    mounts: File,
    /// If the node has one of its own.
    network: Option<File>,
    /// Inode number of the PID namespace, which a process cannot move to.
    pids: u64,
}

impl Namespaces {
    /// Those of this process.
    pub(crate) fn own() -> Result<Self, ServeError> {
        let open = |kind: &str| {
            let path = format!("/proc/self/ns/{kind}");
            File::open(&path).doing(|| format!("open {path}"))
        };
        Ok(Self {
            user: open("user")?,
            mounts: open("mnt")?,
            network: None,
            pids: inode(&open("pid")?)?,
        })
    }

    pub(crate) fn pids(&self) -> u64 {
        self.pids
    }

    /// Those of this process with a network namespace of the node's own.
    pub(crate) fn with_network(mut self, network: BorrowedFd<'_>) -> Result<Self, ServeError> {
        let network = network.try_clone_to_owned();
        self.network = Some(network.doing(|| "keep a namespace".to_owned())?.into());
        Ok(self)
    }

    pub(crate) fn fds(&self) -> Vec<BorrowedFd<'_>> {
        let always = [self.user.as_fd(), self.mounts.as_fd()];
        let network = self.network.as_ref().map(AsFd::as_fd);
        always.into_iter().chain(network).collect()
    }

    /// What a node handed over; none if something is missing.
    pub(crate) fn of_node(pids: u64, fds: Vec<OwnedFd>) -> Option<Self> {
        let mut fds = fds.into_iter().map(File::from);
        Some(Self {
            user: fds.next()?,
            mounts: fds.next()?,
            network: fds.next(),
            pids,
        })
    }

    /// Moves this process there. Call it while there is one thread.
    pub(crate) fn join(&self) -> Result<(), ServeError> {
        let (theirs, own) = (self, Self::own()?);
        if theirs.pids != own.pids {
            return Err(ServeError::Input(
                "the node runs in another PID namespace and could not answer programs of this \
                 one: enter it from there"
                    .to_owned(),
            ));
        }
        let stand = std::env::current_dir();
        if inode(&theirs.user)? != inode(&own.user)? {
            enter(&theirs.user, CloneFlags::CLONE_NEWUSER, "user")?;
        }
        if let Some(network) = &theirs.network {
            enter(network, CloneFlags::CLONE_NEWNET, "network")?;
        }
        enter(&theirs.mounts, CloneFlags::CLONE_NEWNS, "mount")?;
        if !mount::is_mock() {
            return Err(ServeError::Input(
                "the node's namespaces do not show a mock: nothing is run there".to_owned(),
            ));
        }
        if let Ok(stand) = stand {
            // The directory may be covered inside: then the program starts at the root.
            let _ = std::env::set_current_dir(stand);
        }
        Ok(())
    }
}

fn enter(namespace: &File, kind: CloneFlags, name: &str) -> Result<(), ServeError> {
    setns(namespace, kind).map_err(|errno| {
        ServeError::missing(
            format!(
                "entering the node's {name} namespace is refused ({})",
                errno.desc()
            ),
            "Enter a node as the user who serves it, with the same capabilities.",
        )
    })
}

fn inode(file: &File) -> Result<u64, ServeError> {
    let metadata = file.metadata().doing(|| "look at a namespace".to_owned())?;
    Ok(metadata.ino())
}
