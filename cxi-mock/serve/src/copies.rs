//! Copies of a node's sysfs in plain files, for programs that read it themselves where FUSE cannot
//! be had.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use super::error::{Doing, ServeError, say};
use super::files::Files;
use super::mount;
use super::namespaces::Home;
use super::place::Place;
use super::server::Server;
use super::tree::Item;

/// Longest time for which a copy differs from what the node's socket answers.
const INTERVAL: Duration = Duration::from_secs(1);

/// Separator of a counter and the time at which it was read.
const TIME: u8 = b'@';

/// A copy of something, without its name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Copied {
    Directory,
    Link(String),
    File { contents: Vec<u8>, mode: u32 },
    Zeros(u64),
}

impl Copied {
    /// Returns whether the other one says something else. Counters that only were read at another time
    /// say the same.
    fn differs(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { contents, mode }, Self::File { contents: others, mode: of_other }) => {
                mode != of_other || without_time(contents) != without_time(others)
            }
            _ => self != other,
        }
    }
}

fn without_time(contents: &[u8]) -> &[u8] {
    contents.split(|byte| *byte == TIME).next().unwrap_or_default()
}

/// The copies of a node.
#[derive(Debug)]
pub(crate) struct Copies {
    files: Files,
    /// The directory, as this process may write it.
    root: OwnedFd,
    written: Mutex<BTreeMap<String, Copied>>,
}

impl Copies {
    /// Writes all copies to an empty directory.
    pub(crate) fn write(server: Arc<Server>, root: &Path) -> Result<Self, ServeError> {
        let files = Files::new(server);
        let all = all(&files);
        fill(root, &all).doing(|| format!("write copies of sysfs to {}", root.display()))?;
        Ok(Self { files, root: mount::open_directory(root)?, written: Mutex::new(all) })
    }

    /// Writes what has changed.
    pub(crate) fn refresh(&self) -> io::Result<()> {
        let root = PathBuf::from(format!("/proc/self/fd/{}", self.root.as_raw_fd()));
        let mut written = self.written.lock();
        let now = all(&self.files);
        // From the end: a directory is removed after everything below it.
        for (path, what) in written.iter().rev().filter(|(path, _)| !now.contains_key(*path)) {
            let path = root.join(path);
            match what {
                Copied::Directory => fs::remove_dir(path)?,
                _ => fs::remove_file(path)?,
            }
        }
        for (path, what) in &now {
            match written.get(path) {
                None => write(&root.join(path), what)?,
                // Programs see the old contents or the new, and the names that share them keep them.
                Some(before) if what.differs(before) => {
                    let new = root.join(".new");
                    write(&new, what)?;
                    fs::rename(new, root.join(path))?;
                }
                Some(_) => {}
            }
        }
        *written = now;
        Ok(())
    }

    /// Refreshes the copies as long as the node is there, while something may change them.
    pub(crate) fn keep_fresh(self: Arc<Self>, home: Arc<Home>) -> Result<(), ServeError> {
        let act = move || {
            let _ = home.enter();
            let server = self.files.unclosed();
            while !server.has_ended() {
                thread::sleep(INTERVAL);
                let in_use = server.is_in_use();
                // Once more after the last program has closed its file.
                if !server.stale.swap(in_use, Ordering::Relaxed) {
                    continue;
                }
                if let Err(error) = self.refresh() {
                    say(format_args!("the copies of sysfs stay as they are: {error}"));
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("copies".to_owned());
        thread.spawn(act).doing(|| "start to refresh copies of sysfs".to_owned()).map(drop)
    }
}

/// All that there is to copy, by path. The files of open NICs are not: only their programs use them, which
/// reach them through the socket.
fn all(files: &Files) -> BTreeMap<String, Copied> {
    let mut found = BTreeMap::new();
    let shared = files.server().shared.children(0);
    let shared = shared.map(|(name, index)| (name.to_owned(), Place::Shared(index)));
    let mut ahead: Vec<_> = files.children(Place::Root).into_iter().chain(shared).collect();
    while let Some((path, place)) = ahead.pop() {
        let copied = match files.item(place) {
            Some(Item::Directory) => Copied::Directory,
            Some(Item::Link(target)) => Copied::Link(target.clone()),
            Some(Item::Attribute(attribute)) => Copied::File {
                contents: attribute.read().into_bytes(),
                mode: u32::from(attribute.mode()),
            },
            Some(Item::Bytes(read)) => Copied::File { contents: read(), mode: 0o644 },
            Some(Item::Zeros(length)) => Copied::Zeros(*length),
            Some(Item::Clients) | None => continue,
        };
        if copied == Copied::Directory {
            let below = files.children(place).into_iter();
            ahead.extend(below.map(|(name, place)| (format!("{path}/{name}"), place)));
        }
        found.insert(path, copied);
    }
    found
}

/// Writes everything to an empty directory. Files that say the same are one file: most counters are
/// zero, and each file would take a page.
fn fill(root: &Path, all: &BTreeMap<String, Copied>) -> io::Result<()> {
    let mut known: HashMap<(&[u8], u32), &str> = HashMap::new();
    for (path, what) in all {
        let to = root.join(path);
        if let Copied::File { contents, mode } = what {
            let key = (without_time(contents), *mode);
            if let Some(same) = known.get(&key) {
                fs::hard_link(root.join(same), to)?;
                continue;
            }
            known.insert(key, path);
        }
        write(&to, what)?;
    }
    Ok(())
}

fn write(to: &Path, what: &Copied) -> io::Result<()> {
    match what {
        Copied::Directory => fs::create_dir(to),
        Copied::Link(target) => symlink(target, to),
        Copied::File { contents, mode } => {
            fs::write(to, contents)?;
            fs::set_permissions(to, Permissions::from_mode(*mode))
        }
        Copied::Zeros(length) => {
            File::create(to)?.set_len(*length)?;
            fs::set_permissions(to, Permissions::from_mode(0o600))
        }
    }
}
