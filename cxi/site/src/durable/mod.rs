//! Files that survive a crash: opened without waiting, replaced as a whole, and locked.
//!
//! | for | use |
//! |---|---|
//! | a file that another user or program may have made | [`open_regular`] |
//! | anything else with a path that somebody configured | [`answers`] first |
//! | a file that readers must never see half-written | [`replace`], with the [`Owner`] that it is to have |
//! | a file that several processes replace | [`FileLock::of`] it, before reading what is replaced |
//! | taking turns without their own file | [`FileLock`] |
//! | a directory for any of them | [`create_dir`] |
//!
//! A file that root creates in a directory of another user belongs to that user. Otherwise, a
//! daemon could not use its own records once an administrator has run a command on them as root.
//!
//! ```
//! use cxi_site::durable::{self, FileLock, Owner};
//!
//! let directory = tempfile::tempdir()?;
//! let path = directory.path().join("jobs.json");
//! // Other processes that change the file wait here.
//! let held = FileLock::of(&path).acquire()?;
//! // A record that everyone may read; `Owner::Kept` leaves owner and mode as they are.
//! durable::replace(&path, b"[]\n", Owner::Set { uid: None, mode: 0o644 })?;
//! durable::replace(&path, b"[17]\n", Owner::Kept)?;
//! drop(held);
//! assert_eq!(std::io::read_to_string(durable::open_regular(&path)?)?, "[17]\n");
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod answers;
#[cfg(feature = "testing")]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub mod fault;
mod lock;

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown,
};
use std::path::{Path, PathBuf};

use cxi::kernel_file;
use nix::libc::{O_DIRECTORY, O_NOFOLLOW};
use nix::unistd::geteuid;

pub use answers::answers;
pub use lock::{FileLock, LockError, LockGuard, WaitReport};

/// The end of a new file's name, until it replaces the old one.
const NEW: &str = ".new";

/// Called before each change of a file, for the faults of tests (feature `testing`).
///
/// # Errors
///
/// The fault of a test; without that feature, none.
#[allow(clippy::unnecessary_wraps, reason = "only in tests is there an error")]
pub fn may_change() -> io::Result<()> {
    #[cfg(feature = "testing")]
    fault::check()?;
    Ok(())
}

/// Owner and mode of a file that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// As the file that is replaced. If there is none, or it is a link or a file of somebody who owns
    /// neither the directory nor this process, the new file belongs to the owner of the directory,
    /// with the mode that the umask leaves.
    Kept,
    /// As given.
    Set {
        /// The owner; `None` for the caller. Only root can give a file away: for anyone else, the
        /// file remains the caller's.
        uid: Option<u32>,
        /// The permission bits, whatever the umask.
        mode: u32,
    },
}

/// Opens a regular file for reading.
///
/// # Errors
///
/// The errors of opening; [`io::ErrorKind::InvalidInput`] for what is not a regular file;
/// [`io::ErrorKind::TimedOut`] for a file system that does not [answer](answers).
pub fn open_regular(path: &Path) -> io::Result<File> {
    open_regular_with(path, OpenOptions::new().read(true), 0)
}

/// Opens a regular file with options, and with more flags of `open(2)`. Neither a pipe nor a file system
/// that is dead is waited for.
///
/// # Errors
///
/// Those of [`open_regular`].
pub(crate) fn open_regular_with(
    path: &Path,
    options: &mut OpenOptions,
    flags: i32,
) -> io::Result<File> {
    answers(path)?;
    kernel_file::open_regular_with(path, options, flags)
}

/// Opens a regular file to add to it: one that whoever owns its directory, root or this user put there
/// under one name. No link is followed: whoever owns the directory could have this process write to a
/// file of somebody else.
pub(crate) fn open_own(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = open_regular_with(path, options, O_NOFOLLOW)?;
    owned_here(&file.metadata()?, directory_of(path))
        .map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
    Ok(file)
}

/// Returns the file to which a symbolic link may lead, if root or this user made the link: others could
/// make it lead elsewhere at any time.
pub(crate) fn target_of(path: &Path) -> PathBuf {
    let follows = || {
        answers(path)?;
        match fs::symlink_metadata(path) {
            Ok(link) if link.is_symlink() => Ok(is_trusted(link.uid())),
            found => found.map(|_| true),
        }
    };
    match follows() {
        Ok(true) => path.canonicalize().unwrap_or_else(|_: io::Error| path.to_owned()),
        Ok(false) | Err::<_, io::Error>(_) => path.to_owned(),
    }
}

fn is_trusted(uid: u32) -> bool {
    [0, geteuid().as_raw()].contains(&uid)
}

/// Returns whether there is something with that name, through symbolic links.
///
/// # Errors
///
/// Those of looking: whether it is there is not known. [`io::ErrorKind::TimedOut`] for a file system
/// that does not [answer](answers).
pub fn exists(path: &Path) -> io::Result<bool> {
    answers(path)?;
    path.try_exists()
}

/// Replaces a file as a whole, or creates it: a reader sees the old content or the new one, and so
/// does the next boot after a power failure.
///
/// The new content is written to a hidden file in the same directory first. A process that is killed
/// leaves that file behind; the next lock of the file removes it. A symbolic link is replaced, not followed.
///
/// # Errors
///
/// Those of creating, writing and renaming the new file. The old file is as it was then.
pub fn replace(path: &Path, bytes: &[u8], owner: Owner) -> io::Result<()> {
    answers(path)?;
    let directory = directory_of(path);
    let before = match owner {
        Owner::Kept => own_file(path, directory).ok(),
        Owner::Set { .. } => None,
    };
    let mut builder = tempfile::Builder::new();
    let prefix = new_prefix(path);
    builder.prefix(&prefix).suffix(NEW);
    if owner == Owner::Kept && before.is_none() {
        builder.permissions(Permissions::from_mode(0o666));
    }
    may_change()?;
    let mut new = builder.tempfile_in(directory)?;
    // Before anything is written: until now only this user can read the file. The owner first, as
    // changing it clears the special bits of the mode.
    match (&before, owner) {
        (Some(before), _) => own_like(new.as_file(), before)?,
        (None, Owner::Set { uid, mode }) => {
            match uid {
                Some(_) => give(new.as_file(), uid, None)?,
                None => inherit(new.as_file(), directory)?,
            }
            let mode = Permissions::from_mode(mode);
            new.as_file().set_permissions(mode)?;
        }
        (None, Owner::Kept) => inherit(new.as_file(), directory)?,
    }
    new.write_all(bytes)?;
    new.as_file().sync_all()?;
    may_change()?;
    new.persist(path)?;
    // The new file is in place, so a failure is ignored here: an error would tell the caller that
    // the old file still is.
    let _ = File::open(directory).and_then(|directory| directory.sync_all());
    Ok(())
}

/// Creates an empty file with mode 644, unless something with that name is there. That is neither
/// opened nor followed, so nobody gains by a link in its place.
///
/// # Errors
///
/// Those of creating a file.
pub fn mark(path: &Path) -> io::Result<()> {
    answers(path)?;
    may_change()?;
    match OpenOptions::new().write(true).create_new(true).mode(0o644).open(path) {
        Ok(new) => inherit(&new, directory_of(path)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Creates a directory with mode 755 and its missing parents, unless it exists.
///
/// # Errors
///
/// Those of [`fs::create_dir_all`].
pub fn create_dir(path: &Path) -> io::Result<()> {
    answers(path)?;
    let parent = directory_of(path);
    let create = || {
        may_change()?;
        DirBuilder::new().mode(0o755).create(path)
    };
    let created = create().or_else(|error| match error.kind() {
        io::ErrorKind::NotFound if parent != path => create_dir(parent).and_then(|()| create()),
        _ => Err(error),
    });
    match created {
        // Another process may create it at the same time.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => {
            // Whoever owns the parent could have put a link in its place.
            let flags = O_DIRECTORY | O_NOFOLLOW;
            let new = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
            let there = new.metadata()?;
            // Or another directory: only one that is this user's and empty can be the new one.
            if there.uid() == geteuid().as_raw() && there.nlink() <= 2 {
                inherit(&new, parent)?;
            }
            Ok(())
        }
    }
}

/// The directory of a path, in a form that can be opened: `.` for a bare file name.
#[must_use]
pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}

/// Readers of directories ignore hidden files.
fn new_prefix(path: &Path) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(path.file_name().unwrap_or_default());
    prefix.push(".");
    prefix
}

/// Removes what killed processes left of [`replace`] in a directory, of files whose hidden names
/// begin with `prefix`: of all files, if that is a dot. The caller must hold the lock of everyone who
/// writes these files.
pub fn remove_abandoned(directory: &Path, prefix: &OsStr) {
    let is_new = |name: &OsStr| {
        let name = name.as_encoded_bytes();
        name.starts_with(prefix.as_encoded_bytes()) && name.ends_with(NEW.as_bytes())
    };
    if answers(directory).is_err() {
        return;
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| is_new(&entry.file_name())) {
        // At worst it stays until the next time.
        let _ = fs::remove_file(entry.path());
    }
}

fn own_like(file: &File, like: &Metadata) -> io::Result<()> {
    give(file, Some(like.uid()), Some(like.gid()))?;
    // Without the special bits: nothing that is written here is a program.
    file.set_permissions(Permissions::from_mode(like.mode() & 0o777))
}

/// Returns the properties of a file that whoever owns its directory, root or this user put there as
/// it is.
fn own_file(path: &Path, directory: &Path) -> io::Result<Metadata> {
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    owned_here(&metadata, directory)
        .map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
    Ok(metadata)
}

/// Returns whether a file belongs where it is: it has one name, and if others than root and this
/// user can write to the directory, the file is root's, this user's or the directory's owner's. A
/// link to a file of somebody else does not.
fn owned_here(file: &Metadata, directory: &Path) -> Result<(), String> {
    if file.nlink() > 1 {
        return Err(format!("the file has {} names (hard links)", file.nlink()));
    }
    let directory = fs::metadata(directory).map_err(|error| error.to_string())?;
    let of_others = !is_trusted(directory.uid()) || directory.mode() & 0o022 != 0;
    if of_others && !is_trusted(file.uid()) && file.uid() != directory.uid() {
        return Err(format!(
            "the file belongs to uid {}, and the directory to uid {}",
            file.uid(),
            directory.uid()
        ));
    }
    Ok(())
}

/// Gives what was just created to the owner of its directory.
fn inherit(new: &File, directory: &Path) -> io::Result<()> {
    give(new, Some(fs::metadata(directory)?.uid()), None)
}

/// Gives a file to a user, so that its owner can read what root wrote.
fn give(file: &File, uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
    let now = file.metadata()?;
    if uid.is_none_or(|uid| uid == now.uid()) && gid.is_none_or(|gid| gid == now.gid()) {
        return Ok(());
    }
    match fchown(file, uid, gid) {
        // A user other than root who may replace another user's file replaces it with a file of
        // their own. So does root of a user namespace that has no such user (EINVAL).
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput
            ) =>
        {
            Ok(())
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::time::Duration;

    use super::*;

    fn lock(path: &Path, wait: Duration) -> Result<LockGuard, LockError> {
        FileLock::of(path).wait(wait).acquire()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn names(directory: &Path) -> Vec<OsString> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_keeps_its_mode_or_gets_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        replace(&path, b"1", Owner::Kept).unwrap();
        assert_eq!(mode(&path) & 0o600, 0o600);
        for given in [0o640, 0o444] {
            fs::set_permissions(&path, Permissions::from_mode(given)).unwrap();
            replace(&path, b"2", Owner::Kept).unwrap();
            assert_eq!((mode(&path), fs::read(&path).unwrap()), (given, b"2".to_vec()));
        }
        let owner = |mode| Owner::Set { uid: None, mode };
        for given in [0o644, 0o600] {
            replace(&path, b"3", owner(given)).unwrap();
            assert_eq!((mode(&path), fs::read(&path).unwrap()), (given, b"3".to_vec()));
        }
        assert_eq!(names(directory.path()), ["file"]);
    }

    #[test]
    fn root_gives_a_file_to_its_user() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        let uid = Some(4711);
        replace(&path, b"", Owner::Set { uid, mode: 0o600 }).unwrap();
        let root = geteuid().is_root();
        let written = fs::metadata(&path).unwrap();
        let own = geteuid().as_raw();
        assert_eq!(written.uid(), if root { 4711 } else { own });
        replace(&path, b"", Owner::Kept).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().uid(), written.uid());
        let held = lock(&path, Duration::ZERO).unwrap();
        let lock = held.file().metadata().unwrap();
        assert_eq!((lock.uid(), lock.mode() & 0o777), (written.uid(), 0o600));
    }

    #[test]
    fn what_root_creates_belongs_to_the_owner_of_the_directory() {
        if !cxi_test_kit::root("give a file to another user") {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(directory.path(), Some(4711), None).unwrap();
        let path = directory.path().join("a/b");
        create_dir(&path).unwrap();
        create_dir(&path).unwrap();
        let file = path.join("file");
        let guard = FileLock::new(path.join("c/.lock")).acquire().unwrap();
        drop(guard);
        replace(&file, b"", Owner::Kept).unwrap();
        let public = Owner::Set { uid: None, mode: 0o644 };
        replace(&path.join("public"), b"", public).unwrap();
        let _guard = lock(&path.join("later"), Duration::ZERO).unwrap();
        for name in ["", "../b", "file", "public", "later.lock", "c", "c/.lock"] {
            let owner = fs::metadata(path.join(name)).unwrap().uid();
            assert_eq!(owner, 4711, "{name}");
        }
    }

    /// Whoever owns a directory can put links into it. Root neither waits for, nor changes, nor gives
    /// away what they lead to.
    #[test]
    fn a_lock_is_not_a_link_to_a_file_of_somebody_else() {
        if !cxi_test_kit::root("give a file to another user") {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let (owner, victim) = (Some(4711), Some(4712));
        std::os::unix::fs::chown(directory.path(), owner, None).unwrap();
        let secret = directory.path().join("secret");
        fs::write(&secret, "a key").unwrap();
        fs::set_permissions(&secret, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::chown(&secret, victim, victim).unwrap();
        let pool = directory.path().join("pool.json");
        fs::write(&pool, "").unwrap();
        std::os::unix::fs::chown(&pool, owner, None).unwrap();
        let link = directory.path().join("pool.json.lock");
        let unchanged = || {
            let secret = fs::metadata(&secret).unwrap();
            assert_eq!((secret.uid(), secret.gid(), secret.mode() & 0o777), (4712, 4712, 0o640));
        };
        fs::hard_link(&secret, &link).unwrap();
        let error = lock(&pool, Duration::ZERO).unwrap_err().to_string();
        assert!(error.contains("not a lock: the file has 2 names"), "{error}");
        unchanged();
        // Even once it is the only name.
        fs::rename(&secret, directory.path().join("other")).unwrap();
        fs::remove_file(directory.path().join("other")).unwrap();
        fs::rename(&link, directory.path().join("x")).unwrap();
        fs::rename(directory.path().join("x"), &link).unwrap();
        let error = lock(&pool, Duration::ZERO).unwrap_err().to_string();
        assert!(error.contains("not a lock: the file belongs to uid 4712"), "{error}");
        fs::rename(&link, &secret).unwrap();
        symlink(&secret, &link).unwrap();
        lock(&pool, Duration::ZERO).unwrap_err();
        unchanged();
        // A new lock, or a new content, does not become the victim's either.
        fs::remove_file(&link).unwrap();
        fs::remove_file(&pool).unwrap();
        for link in [fs::hard_link, |from: &Path, to: &Path| symlink(from, to)] {
            link(&secret, &pool).unwrap();
            drop(lock(&pool, Duration::ZERO).unwrap());
            replace(&pool, b"", Owner::Kept).unwrap();
            for name in ["pool.json", "pool.json.lock"] {
                let owner = fs::metadata(directory.path().join(name)).unwrap().uid();
                assert_eq!(owner, 4711, "{name}");
                fs::remove_file(directory.path().join(name)).unwrap();
            }
            unchanged();
        }
        let mark_of = directory.path().join("n1");
        symlink(&secret, &mark_of).unwrap();
        mark(&mark_of).unwrap();
        assert_eq!(fs::read(&secret).unwrap(), b"a key");
        // The owner's own lock keeps its mode.
        drop(lock(&pool, Duration::ZERO).unwrap());
        let lock_file = directory.path().join("pool.json.lock");
        fs::set_permissions(&lock_file, Permissions::from_mode(0o660)).unwrap();
        replace(&pool, b"", Owner::Kept).unwrap();
        drop(lock(&pool, Duration::ZERO).unwrap());
        assert_eq!(mode(&lock_file), 0o660);
    }

    #[test]
    fn what_cannot_be_replaced_stays_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("full/file")).unwrap();
        let error = replace(&directory.path().join("full"), b"", Owner::Kept).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
        assert_eq!(names(directory.path()), ["full"]);
        let missing = directory.path().join("none/file");
        let error = replace(&missing, b"", Owner::Kept).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        // What a link leads to is not written.
        symlink("full/file", directory.path().join("link")).unwrap();
        let link = directory.path().join("link");
        replace(&link, b"1", Owner::Set { uid: None, mode: 0o600 }).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_file());
    }

    #[test]
    fn a_lock_removes_what_killed_writers_left_of_this_file() {
        let directory = tempfile::tempdir().unwrap();
        for name in [".pool.json.aB3dE6.new", ".other.json.aB3dE6.new", "pool.json.new"] {
            fs::write(directory.path().join(name), "half").unwrap();
        }
        let held = lock(&directory.path().join("pool.json"), Duration::ZERO).unwrap();
        let left = [".other.json.aB3dE6.new", "pool.json.lock", "pool.json.new"];
        assert_eq!(names(directory.path()), left);
        let busy = lock(&directory.path().join("pool.json"), Duration::ZERO);
        assert!(busy.unwrap_err().is_busy());
        drop(held);
    }
}
