//! A private view of the file system for the mock and its programs.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, OnceLock};
use std::thread;

use nix::mount::MsFlags;
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{Pid, Uid, getegid, geteuid};
use serde::{Deserialize, Serialize};

use super::error::{Doing, ServeError};
use super::mount;
use super::privileges::{self, Route};

/// Identity of an ordinary user inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inside {
    /// User 0 with all capabilities of the new user namespace.
    Root,
    /// The same user id as outside; programs have no capabilities.
    Oneself,
}

impl Inside {
    /// Chooses by whether programs run under the user's own ID.
    pub(crate) fn new(as_user: bool) -> Self {
        if as_user { Self::Oneself } else { Self::Root }
    }
}

/// The user who started this process, by the number outside of a user namespace that it has made.
pub(crate) fn user_outside() -> Uid {
    *OUTSIDE.get_or_init(geteuid)
}

static OUTSIDE: OnceLock<Uid> = OnceLock::new();

/// Number of a user in the namespace around this one; the same number where there is none, or where it
/// does not say.
pub(crate) fn number_outside(user: Uid) -> Uid {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    mapped(&map, user.as_raw()).map_or(user, Uid::from_raw)
}

/// The number outside of one inside, by the lines of a map: the first number inside, that outside, and how
/// many there are.
fn mapped(map: &str, inside: u32) -> Option<u32> {
    map.lines().find_map(|line| {
        let mut numbers = line.split_whitespace().map(str::parse::<u32>);
        let mut next = || numbers.next()?.ok();
        let (first, outside, count) = (next()?, next()?, next()?);
        let after = inside.checked_sub(first).filter(|after| *after < count)?;
        outside.checked_add(after)
    })
}

/// Moves this process into its own mount namespace. Call it while there is one thread.
pub(crate) fn separate(route: Route, inside: Inside) -> Result<(), ServeError> {
    match route {
        Route::Privileged => {
            unshare(CloneFlags::CLONE_NEWNS)
                .doing(|| "make a mount namespace (CAP_SYS_ADMIN is there)".to_owned())?;
        }
        Route::UserNamespace => {
            let (uid, gid) = (user_outside(), getegid());
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
    keep_mounts_private()
}

/// Moves this thread, which is in a user namespace with all capabilities, into namespaces for one
/// of several nodes.
pub(crate) fn separate_node(name: &str) -> Result<(), ServeError> {
    unshare(
        CloneFlags::CLONE_FS
            | CloneFlags::CLONE_NEWNS
            | CloneFlags::CLONE_NEWUTS
            | CloneFlags::CLONE_NEWIPC,
    )
    .doing(|| format!("make the namespaces of {name}"))?;
    keep_mounts_private()?;
    nix::unistd::sethostname(name).map_err(|errno| {
        ServeError::missing(
            format!("a node cannot have its own host name ({})", errno.desc()),
            "A container's seccomp filter forbids it: docker run or podman run --security-opt \
             seccomp=unconfined, and --security-opt systempaths=unconfined (podman: unmask=ALL).",
        )
    })
}

fn keep_mounts_private() -> Result<(), ServeError> {
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

/// A kind of namespace that a node may have for itself, in the order in which one moves there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NamespaceKind {
    /// Users.
    User,
    /// The network.
    Net,
    /// The host name.
    Uts,
    /// Shared memory and message queues.
    Ipc,
    /// Process numbers. Only the children of the process that moves there are in it.
    Pid,
    /// Mounts.
    Mnt,
}

impl NamespaceKind {
    /// Its name below `/proc/PID/ns`, and the flag that makes one.
    fn name_and_flag(self) -> (&'static str, CloneFlags) {
        match self {
            Self::User => ("user", CloneFlags::CLONE_NEWUSER),
            Self::Net => ("net", CloneFlags::CLONE_NEWNET),
            Self::Uts => ("uts", CloneFlags::CLONE_NEWUTS),
            Self::Ipc => ("ipc", CloneFlags::CLONE_NEWIPC),
            Self::Pid => ("pid", CloneFlags::CLONE_NEWPID),
            Self::Mnt => ("mnt", CloneFlags::CLONE_NEWNS),
        }
    }

    fn name(self) -> &'static str {
        self.name_and_flag().0
    }
}

/// The namespaces of a node. They are handed over as descriptors, because a process number means
/// another process in another PID namespace, and may be reused.
#[derive(Debug)]
pub(crate) struct Namespaces {
    own: Vec<(NamespaceKind, File)>,
    /// Inode number of the server's PID namespace.
    pids: u64,
    /// Variables of programs there.
    variables: Vec<Variable>,
    /// `true` if another process serves the node.
    foreign: bool,
}

/// Does something in a separate thread, which may enter other namespaces or close descriptors.
/// Namespaces that it makes exist as long as something refers to them.
pub(crate) fn in_thread<T: Send>(
    act: impl FnOnce() -> Result<T, ServeError> + Send,
) -> Result<T, ServeError> {
    let done = thread::scope(|scope| scope.spawn(act).join());
    done.unwrap_or_else(|_| Err(ServeError::Input("a thread panicked".to_owned())))
}

/// The name and value of an environment variable.
pub(crate) type Variable = (OsString, OsString);

/// Environment variables with those names.
pub(crate) fn variables<V: Into<OsString>>(
    values: impl IntoIterator<Item = (&'static str, V)>,
) -> Vec<Variable> {
    values.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// Message that is sent with the descriptors when they are handed over.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Handover {
    kinds: Vec<NamespaceKind>,
    pids: u64,
    variables: Vec<Variable>,
}

impl Namespaces {
    /// The namespaces of this thread, of some kinds.
    pub(crate) fn of_this_thread(kinds: &[NamespaceKind]) -> Result<Self, ServeError> {
        let own = kinds.iter().map(|kind| {
            let path = format!("/proc/thread-self/ns/{}", kind.name());
            Ok((*kind, open(&path)?))
        });
        Ok(Self {
            own: own.collect::<Result<_, _>>()?,
            pids: inode(&open("/proc/thread-self/ns/pid")?)?,
            variables: Vec::new(),
            foreign: false,
        })
    }

    /// The same, with variables for programs.
    pub(crate) fn with_variables(self, variables: Vec<Variable>) -> Self {
        Self { variables, ..self }
    }

    /// As [`of_this_thread`](Self::of_this_thread), with the PID namespace of a process, and
    /// variables for programs.
    pub(crate) fn with_pids_of(
        &self,
        process: Pid,
        variables: Vec<Variable>,
    ) -> Result<Self, ServeError> {
        let pids = open(&format!("/proc/{process}/ns/pid"))?;
        let own = self.own.iter().map(|(kind, file)| {
            let file = file.try_clone().doing(|| "keep a namespace".to_owned())?;
            Ok((*kind, file))
        });
        let mut own = own.collect::<Result<Vec<_>, ServeError>>()?;
        own.push((NamespaceKind::Pid, pids));
        // Everything is opened before the mounts change.
        own.sort_by_key(|(kind, _)| *kind as u8);
        Ok(Self { own, variables, ..*self })
    }

    /// The descriptors to hand over, and what is sent with them.
    pub(crate) fn handover(&self) -> (Handover, Vec<BorrowedFd<'_>>) {
        let handover = Handover {
            kinds: self.own.iter().map(|(kind, _)| *kind).collect(),
            pids: self.pids,
            variables: self.variables.clone(),
        };
        (handover, self.own.iter().map(|(_, fd)| fd.as_fd()).collect())
    }

    /// The namespaces that a node handed over; `None` if something is missing.
    pub(crate) fn of_node(handover: Handover, fds: Vec<OwnedFd>) -> Option<Self> {
        let Handover { kinds, pids, variables } = handover;
        let fds = fds.into_iter().map(File::from);
        let own: Vec<_> = kinds.iter().copied().zip(fds).collect();
        (own.len() == kinds.len()).then_some(Self { own, pids, variables, foreign: true })
    }

    /// Returns the variables of programs there.
    pub(crate) fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// Returns whether the processes there have their own numbers.
    pub(crate) fn has_pids(&self) -> bool {
        self.own.iter().any(|(kind, _)| *kind == NamespaceKind::Pid)
    }

    /// Moves this process into the user namespace. Call it while there is one thread.
    pub(crate) fn join_user(&self) -> Result<(), ServeError> {
        if self.pids != inode(&open("/proc/self/ns/pid")?)? {
            return Err(ServeError::Input(
                "the node runs in another PID namespace and could not answer programs of this \
                 one: enter it from there"
                    .to_owned(),
            ));
        }
        for (kind, theirs) in self.own.iter().filter(|(kind, _)| *kind == NamespaceKind::User) {
            if inode(theirs)? != inode(&open("/proc/self/ns/user")?)? {
                enter(theirs, *kind)?;
            }
        }
        Ok(())
    }

    /// Moves this thread, and what it starts, into the other namespaces.
    pub(crate) fn join(&self) -> Result<(), ServeError> {
        let stand = std::env::current_dir();
        unshare(CloneFlags::CLONE_FS).doing(|| "leave the other threads behind".to_owned())?;
        for (kind, theirs) in self.own.iter().filter(|(kind, _)| *kind != NamespaceKind::User) {
            enter(theirs, *kind)?;
        }
        // Otherwise the server would wait for its own answer: see `without_descriptors`.
        let has_mounts = self.own.iter().any(|(kind, _)| *kind == NamespaceKind::Mnt);
        if self.foreign && has_mounts && !mount::is_mock() {
            return Err(ServeError::Input(
                "the node's namespaces do not show a mock: nothing is run there".to_owned(),
            ));
        }
        if let Ok(stand) = stand {
            // The directory may be hidden on the node. The program then starts at the root.
            let _ = std::env::set_current_dir(stand);
        }
        Ok(())
    }
}

/// The server's mount namespace. Its `/proc` shows all processes, while that of a node may show only
/// the node's.
#[derive(Debug)]
pub(crate) struct Home(File);

impl Home {
    /// That of this thread.
    pub(crate) fn here() -> Result<Arc<Self>, ServeError> {
        open("/proc/thread-self/ns/mnt").map(|file| Arc::new(Self(file)))
    }

    /// Moves this thread there.
    pub(crate) fn enter(&self) -> Result<(), ServeError> {
        if inode(&open("/proc/thread-self/ns/mnt")?)? == inode(&self.0)? {
            return Ok(());
        }
        unshare(CloneFlags::CLONE_FS).doing(|| "leave the other threads behind".to_owned())?;
        setns(&self.0, CloneFlags::CLONE_NEWNS).doing(|| "leave the mounts of a node".to_owned())
    }
}

fn open(path: &str) -> Result<File, ServeError> {
    File::open(path).doing(|| format!("open {path}"))
}

fn enter(namespace: &File, kind: NamespaceKind) -> Result<(), ServeError> {
    setns(namespace, kind.name_and_flag().1).map_err(|errno| {
        ServeError::missing(
            format!("entering the node's {} namespace is refused ({})", kind.name(), errno.desc()),
            "Enter a node as the user who serves it, with the same capabilities.",
        )
    })
}

fn inode(file: &File) -> Result<u64, ServeError> {
    Ok(file.metadata().doing(|| "look at a namespace".to_owned())?.ino())
}

#[cfg(test)]
mod tests {
    use super::mapped;

    #[test]
    fn a_map_tells_the_number_outside() {
        let whole = "         0          0 4294967295\n";
        assert_eq!([mapped(whole, 0), mapped(whole, 1001)], [Some(0), Some(1001)]);
        let container = "         0       1001          1\n         1     100000      65536\n";
        assert_eq!([mapped(container, 0), mapped(container, 7)], [Some(1001), Some(100_006)]);
        // Of a namespace that the node itself has made, this is the number outside already.
        assert_eq!(mapped("0 1001 1", 1001), None);
        assert_eq!([mapped("", 0), mapped("0 x 1", 0), mapped("5 4294967295 9", 6)], [None; 3]);
    }
}
