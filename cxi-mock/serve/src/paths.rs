//! Sysfs by path, for programs that have no mount of it: the same files that the file system serves,
//! and the links to them.

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;

use cxi_ioctl::Errno;

use super::files::Files;
use super::interrupts::WaitObject;
use super::mount::{DEVICES, LINKS, MODULE};
use super::node::links;
use super::place::{ClientPlace, Place};
use super::server::Server;
use super::tree::Item;

/// As many links as the kernel follows.
const LINKS_FOLLOWED: usize = 40;

/// Directory of links to the functions that the driver has.
const DRIVERS: &str = "/sys/bus/pci/drivers/cxi_ss1";

/// Sysfs of a node.
#[derive(Debug)]
pub(crate) struct Paths {
    files: Files,
}

/// Kind of thing at a path whose directories contain no link.
enum There {
    /// A directory that only has links, or the directories of links.
    Directory,
    Link(String),
    Place(Place),
}

impl Paths {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        Self { files: Files::new(server) }
    }

    /// The contents of a file.
    pub(crate) fn read(&self, path: &str) -> Result<Vec<u8>, Errno> {
        match self.find(path, true)? {
            (_, There::Place(Place::Clients(_, ClientPlace::Interrupt(..)))) => Ok(b"\n".to_vec()),
            (_, There::Place(place)) => match self.files.item(place) {
                Some(Item::Attribute(attribute)) => Ok(attribute.read().into_bytes()),
                _ => Err(Errno::EINVAL),
            },
            _ => Err(Errno::EINVAL),
        }
    }

    /// Writes a file.
    pub(crate) fn write(&self, path: &str, contents: &[u8]) -> Result<(), Errno> {
        let (_, There::Place(place)) = self.find(path, true)? else { return Err(Errno::EINVAL) };
        match self.files.item(place) {
            Some(Item::Attribute(attribute)) => attribute.write(contents),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Returns the wait object of a file.
    pub(crate) fn wait_object(&self, path: &str) -> Result<WaitObject, Errno> {
        match self.find(path, true)? {
            (_, There::Place(Place::Clients(number, ClientPlace::Interrupt(client, wait)))) => {
                Ok((number, client, wait))
            }
            _ => Err(Errno::EINVAL),
        }
    }

    /// The names in a directory, each with a null byte behind it.
    pub(crate) fn names(&self, path: &str) -> Result<Vec<u8>, Errno> {
        let (path, there) = self.find(path, true)?;
        let names: BTreeSet<String> = match there {
            There::Place(place) => {
                let is_directory = match self.files.item(place) {
                    None => !matches!(place, Place::Clients(_, ClientPlace::Interrupt(..))),
                    Some(Item::Directory | Item::Clients) => true,
                    Some(_) => false,
                };
                if !is_directory {
                    return Err(Errno::ENOTDIR);
                }
                self.files.children(place).into_iter().map(|(name, _)| name).collect()
            }
            There::Directory | There::Link(_) => {
                let below = format!("{path}/");
                let all = self.known();
                let names = all.iter().filter_map(|known| known.strip_prefix(&below));
                names.filter_map(|rest| rest.split('/').next()).map(str::to_owned).collect()
            }
        };
        Ok(names.iter().flat_map(|name| [name.as_bytes(), b"\0"].concat()).collect())
    }

    /// The target of a link.
    pub(crate) fn link(&self, path: &str) -> Result<String, Errno> {
        match self.find(path, false)? {
            (_, There::Link(target)) => Ok(target),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The length of a file, as `stat(2)` shows it.
    pub(crate) fn length(&self, path: &str) -> Result<u64, Errno> {
        match self.find(path, true)? {
            (_, There::Place(place)) => {
                self.files.kind(place).map(|(_, _, length)| length).ok_or(Errno::ENOENT)
            }
            _ => Ok(0),
        }
    }

    /// Follows a path, as the kernel does. Returns it without links, unless it ends with one that is
    /// not followed.
    fn find(&self, path: &str, follow: bool) -> Result<(String, There), Errno> {
        let mut at = String::new();
        let mut ahead: VecDeque<String> = path.split('/').map(str::to_owned).collect();
        let (mut there, mut followed) = (There::Directory, 0);
        while let Some(name) = ahead.pop_front() {
            match name.as_str() {
                "" | "." => continue,
                ".." => at.truncate(at.rfind('/').unwrap_or_default()),
                name => {
                    let _ = write!(at, "/{name}");
                }
            }
            there = self.look(&at).ok_or(Errno::ENOENT)?;
            if let There::Link(target) = &there
                && (follow || ahead.iter().any(|name| !name.is_empty()))
            {
                followed += 1;
                if followed > LINKS_FOLLOWED {
                    return Err(Errno::from_raw(nix::libc::ELOOP));
                }
                at.truncate(at.rfind('/').unwrap_or_default());
                target.rsplit('/').for_each(|name| ahead.push_front(name.to_owned()));
            }
        }
        Ok((at, there))
    }

    fn look(&self, path: &str) -> Option<There> {
        for (above, root) in [(DEVICES, Some(Place::Root)), (MODULE, self.module())] {
            let Some(below) = path.strip_prefix(above) else { continue };
            let mut names = below.split('/');
            if names.next() != Some("") {
                continue;
            }
            let place = names.try_fold(root?, |at, name| {
                self.files.child(at, name).filter(|place| *place != Place::Nodes)
            })?;
            return Some(match self.files.item(place) {
                Some(Item::Link(target)) => There::Link(target.clone()),
                _ => There::Place(place),
            });
        }
        let link = self.links().into_iter().find(|(known, _)| known == path);
        if let Some((_, target)) = link {
            return Some(There::Link(target));
        }
        let below = format!("{path}/");
        let is_above = |known: &String| known == path || known.starts_with(&below);
        self.known().iter().any(is_above).then_some(There::Directory)
    }

    fn module(&self) -> Option<Place> {
        self.files.child(Place::Root, "module")
    }

    /// All links into the directories of NICs that are there.
    fn links(&self) -> Vec<(String, String)> {
        let server = self.files.server();
        let there = server.functions().filter(|function| !function.nic.faults().is_unplugged());
        there.flat_map(links).filter(|(path, _)| path.starts_with("/sys/")).collect()
    }

    /// Paths that are listed without being part of a NIC.
    fn known(&self) -> Vec<String> {
        let directories = LINKS.iter().map(|(directory, _)| (*directory).to_owned());
        let links = self.links().into_iter().map(|(path, _)| path);
        let roots = [DEVICES, MODULE, DRIVERS].map(str::to_owned);
        directories.chain(links).chain(roots).collect()
    }
}
