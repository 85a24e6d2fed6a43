//! The tree of files: what is where, by place.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use fuser::{BackingId, FileAttr, FileHandle, FileType, FopenFlags, ReplyOpen};
use nix::unistd::{getegid, geteuid};

use super::device;
use super::place::{ClientPlace, Place};
use super::server::{Function, Server};
use super::sysfs::RETRY_HANDLER;
use super::tree::{Item, Tree};
use cxi_mock::Reading;

/// The size that sysfs shows for every attribute.
const ATTRIBUTE_SIZE: u64 = 4096;

/// An attribute of the kernel's own, which it lets no program map.
const UNMAPPABLE: &str = "/sys/kernel/uevent_seqnum";

/// The mock's file system.
#[derive(Debug)]
pub(crate) struct Files {
    server: Arc<Server>,
    /// Lookups of devices so far.
    lookups: AtomicU64,
    /// The backing of attributes, which cannot be mapped; `None` where the kernel does not accept
    /// it.
    unmappable: OnceLock<Option<BackingId>>,
    mounted: SystemTime,
    owner: (u32, u32),
}

impl Files {
    /// The file system of a server; everything belongs to the user that runs it.
    pub(crate) fn new(server: Arc<Server>) -> Self {
        Self {
            server,
            lookups: AtomicU64::new(0),
            unmappable: OnceLock::new(),
            mounted: SystemTime::now(),
            owner: (geteuid().as_raw(), getegid().as_raw()),
        }
    }

    /// The server, once it has noticed which files are closed.
    pub(crate) fn server(&self) -> &Arc<Server> {
        self.server.close_unmapped();
        &self.server
    }

    /// The server as it is, without waiting until files are closed.
    pub(crate) fn unclosed(&self) -> &Server {
        &self.server
    }

    /// Opens an attribute to read it. No program can map it, as in sysfs. If one could, the kernel
    /// would ask this process for the pages whenever the NIC reads from the program's memory, and
    /// the answer might wait for that very NIC.
    pub(crate) fn open_attribute(&self, handle: u64, reply: ReplyOpen) {
        let unmappable = self.unmappable.get_or_init(|| {
            let attribute = File::open(UNMAPPABLE).ok()?;
            reply.open_backing(attribute).ok()
        });
        let (handle, flags) = (FileHandle(handle), FopenFlags::FOPEN_DIRECT_IO);
        match unmappable {
            Some(backing) => reply.opened_passthrough(handle, flags, backing),
            None => reply.opened(handle, flags),
        }
    }

    fn tree(&self, place: Place) -> Option<(&Tree, u32)> {
        match place {
            Place::Shared(index) => Some((&self.server().shared, index)),
            Place::Function(number, index) => {
                let function = self.server().function(number)?;
                let path = function.tree.path(index)?;
                let faults = function.nic.faults();
                let is_there = !faults.is_unplugged()
                    && function.has_entry(path)
                    && (path.is_empty() || !faults.is_gone(path));
                is_there.then_some((&function.tree, index))
            }
            _ => None,
        }
    }

    /// Result of reading a file by the faults of its NIC.
    pub(crate) fn reading(&self, place: Place) -> Reading {
        let Place::Function(number, index) = place else { return Reading::default() };
        let function = self.server().function(number);
        let path = function.and_then(|function| Some((function, function.tree.path(index)?)));
        path.map_or_else(Reading::default, |(function, path)| function.nic.faults().reading(path))
    }

    pub(crate) fn item(&self, place: Place) -> Option<&Item> {
        let (tree, index) = self.tree(place)?;
        tree.item(index)
    }

    pub(crate) fn child(&self, place: Place, name: &str) -> Option<Place> {
        match place {
            Place::Root if name == "nodes" => Some(Place::Nodes),
            Place::Root => {
                if let Some(child) = self.server().shared.child(0, name) {
                    return Some(Place::Shared(child));
                }
                let function = self.server().function_at(name)?;
                (!function.nic.faults().is_unplugged())
                    .then_some(Place::Function(function.number, 0))
            }
            Place::Nodes => {
                let function = self.server().function_named(name)?;
                let lookup = self.lookups.fetch_add(1, Ordering::Relaxed) + 1;
                Some(Place::Device(function.number, lookup))
            }
            Place::Shared(_) | Place::Function(..) => {
                let (tree, index) = self.tree(place)?;
                let child = in_tree(place, tree.child(index, name)?, tree);
                self.is_there(child).then_some(child)
            }
            Place::Clients(number, directory) => {
                let function = self.server().function(number)?;
                let entries = client_entries(function, directory);
                let (_, entry) = entries.into_iter().find(|(known, _)| known == name)?;
                Some(Place::Clients(number, entry))
            }
            Place::Device(..) => None,
        }
    }

    /// Returns the entries of a directory, without the dots.
    pub(crate) fn children(&self, place: Place) -> Vec<(String, Place)> {
        match place {
            Place::Root => self
                .server()
                .functions()
                .filter(|function| !function.nic.faults().is_unplugged())
                .map(|function| {
                    let place = Place::Function(function.number, 0);
                    (function.address.to_string(), place)
                })
                .collect(),
            Place::Shared(_) | Place::Function(..) => {
                self.tree(place).map_or_else(Vec::new, |(tree, index)| {
                    tree.children(index)
                        // No driver shows the files of the retry handler.
                        .filter(|(name, _)| index != 0 || *name != RETRY_HANDLER)
                        .map(|(name, child)| (name.to_owned(), in_tree(place, child, tree)))
                        .filter(|(_, child)| self.is_there(*child))
                        .collect()
                })
            }
            Place::Clients(number, directory) => {
                let function = self.server().function(number);
                let entries = function.map(|function| client_entries(function, directory));
                entries
                    .unwrap_or_default()
                    .into_iter()
                    .map(|(name, entry)| (name, Place::Clients(number, entry)))
                    .collect()
            }
            Place::Nodes | Place::Device(..) => Vec::new(),
        }
    }

    /// Returns whether no fault hides a place of a tree.
    fn is_there(&self, place: Place) -> bool {
        !matches!(place, Place::Function(..)) || self.tree(place).is_some()
    }

    pub(crate) fn kind(&self, place: Place) -> Option<(FileType, u16, u64)> {
        match place {
            Place::Device(number, _) => {
                self.server().function(number)?;
                Some((FileType::RegularFile, 0o666, device::SIZE))
            }
            Place::Root | Place::Nodes => Some((FileType::Directory, 0o755, 0)),
            Place::Clients(number, place) => {
                let function = self.server().function(number)?;
                client_exists(function, place).then_some(match place {
                    ClientPlace::Interrupt(..) => (FileType::RegularFile, 0o444, ATTRIBUTE_SIZE),
                    _ => (FileType::Directory, 0o755, 0),
                })
            }
            Place::Shared(_) | Place::Function(..) => Some(match self.item(place)? {
                Item::Directory | Item::Clients => (FileType::Directory, 0o755, 0),
                Item::Link(target) => (FileType::Symlink, 0o777, target.len() as u64),
                Item::Attribute(attribute) => {
                    (FileType::RegularFile, attribute.mode(), ATTRIBUTE_SIZE)
                }
                Item::Bytes(read) => (FileType::RegularFile, 0o644, read().len() as u64),
                Item::Zeros(size) => (FileType::RegularFile, 0o600, *size),
            }),
        }
    }

    pub(crate) fn attributes(&self, place: Place) -> Option<FileAttr> {
        let (kind, perm, size) = self.kind(place)?;
        Some(FileAttr {
            ino: place.inode(),
            size,
            blocks: 0,
            atime: self.mounted,
            mtime: self.mounted,
            ctime: self.mounted,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: self.owner.0,
            gid: self.owner.1,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }
}

fn in_tree(place: Place, child: u32, tree: &Tree) -> Place {
    match place {
        Place::Function(number, _) if matches!(tree.item(child), Some(Item::Clients)) => {
            Place::Clients(number, ClientPlace::All)
        }
        Place::Function(number, _) => Place::Function(number, child),
        _ => Place::Shared(child),
    }
}

/// Returns the entries of a directory below `clients`.
fn client_entries(function: &Function, directory: ClientPlace) -> Vec<(String, ClientPlace)> {
    let nic = &function.nic;
    match directory {
        ClientPlace::All => nic
            .clients_of(function.vf)
            .into_iter()
            .map(|client| (client.to_string(), ClientPlace::Client(client)))
            .collect(),
        ClientPlace::Client(client) => vec![("wait".to_owned(), ClientPlace::Waits(client))],
        ClientPlace::Waits(client) => nic
            .waits_of(function.vf, client)
            .unwrap_or_default()
            .into_iter()
            .map(|wait| (wait.to_string(), ClientPlace::Wait(client, wait)))
            .collect(),
        ClientPlace::Wait(client, wait) => {
            vec![("intr".to_owned(), ClientPlace::Interrupt(client, wait))]
        }
        ClientPlace::Interrupt(..) => Vec::new(),
    }
}

/// Returns whether the open file or wait object is there.
fn client_exists(function: &Function, place: ClientPlace) -> bool {
    let waits = |client| function.nic.waits_of(function.vf, client);
    match place {
        ClientPlace::All => !function.nic.faults().is_unplugged(),
        ClientPlace::Client(client) | ClientPlace::Waits(client) => waits(client).is_some(),
        ClientPlace::Wait(client, wait) | ClientPlace::Interrupt(client, wait) => {
            waits(client).is_some_and(|waits| waits.contains(&wait))
        }
    }
}
