//! Directories, links and attributes that look the same to every program.

use std::collections::BTreeMap;
use std::fmt;

use cxi_ioctl::Errno;

/// Reads an attribute.
type Read = Box<dyn Fn() -> String + Send + Sync>;
/// Reads a file of bytes.
type ReadBytes = Box<dyn Fn() -> Vec<u8> + Send + Sync>;
/// Writes an attribute.
type Write = Box<dyn Fn(&str) -> Result<(), Errno> + Send + Sync>;

/// Entry at a place of a tree.
pub(crate) enum Item {
    /// A directory.
    Directory,
    /// A symbolic link and its target.
    Link(String),
    /// A file whose content is made when it is read.
    Attribute(Attribute),
    /// A file of bytes, always as many, which only root can read whole.
    Bytes(ReadBytes),
    /// A file of zeros.
    Zeros(u64),
    /// The directory of open files, which comes and goes with them.
    Clients,
}

/// A sysfs attribute.
pub(crate) struct Attribute {
    read: Read,
    write: Option<Write>,
}

impl Attribute {
    /// The content, which is one line in most cases.
    pub(crate) fn read(&self) -> String {
        (self.read)()
    }

    /// Takes what a program wrote.
    pub(crate) fn write(&self, text: &[u8]) -> Result<(), Errno> {
        let write = self.write.as_ref().ok_or(Errno::EIO)?;
        let text = std::str::from_utf8(text).map_err(|_| Errno::EINVAL)?;
        // As the kernel: a text ends at its first null byte, and one newline at its end does not count.
        let text = text.split('\0').next().unwrap_or_default();
        write(text.strip_suffix('\n').unwrap_or(text))
    }

    /// The permission bits.
    pub(crate) fn mode(&self) -> u16 {
        if self.write.is_some() { 0o644 } else { 0o444 }
    }
}

/// A tree of items. The first is its root.
pub(crate) struct Tree {
    nodes: Vec<Entry>,
}

struct Entry {
    /// Below the root.
    path: String,
    item: Item,
    children: BTreeMap<String, u32>,
}

impl Tree {
    /// A tree with only a root directory.
    pub(crate) fn new() -> Self {
        let root = Entry { path: String::new(), item: Item::Directory, children: BTreeMap::new() };
        Self { nodes: vec![root] }
    }

    /// Adds an attribute with one value, followed by a newline.
    pub(crate) fn value<T: fmt::Display>(
        &mut self,
        path: &str,
        value: impl Fn() -> T + Send + Sync + 'static,
    ) {
        let read = Box::new(move || format!("{}\n", value()));
        self.add(path, Item::Attribute(Attribute { read, write: None }));
    }

    /// Adds an attribute with exactly that text.
    pub(crate) fn text(&mut self, path: &str, text: impl Fn() -> String + Send + Sync + 'static) {
        let read = Box::new(text);
        self.add(path, Item::Attribute(Attribute { read, write: None }));
    }

    /// Adds an attribute that can be written.
    pub(crate) fn writable<T: fmt::Display>(
        &mut self,
        path: &str,
        value: impl Fn() -> T + Send + Sync + 'static,
        write: impl Fn(&str) -> Result<(), Errno> + Send + Sync + 'static,
    ) {
        let read = Box::new(move || format!("{}\n", value()));
        let write: Option<Write> = Some(Box::new(write));
        self.add(path, Item::Attribute(Attribute { read, write }));
    }

    /// Adds a symbolic link.
    pub(crate) fn link(&mut self, path: &str, target: impl Into<String>) {
        self.add(path, Item::Link(target.into()));
    }

    /// Adds an item, and the directories above it. Existing items stay.
    pub(crate) fn add(&mut self, path: &str, item: Item) {
        let (directories, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = directories
            .split('/')
            .filter(|directory| !directory.is_empty())
            .fold(0, |at, directory| self.enter(at, directory, Item::Directory));
        self.enter(parent, name, item);
    }

    fn enter(&mut self, parent: u32, name: &str, item: Item) -> u32 {
        if let Some(known) = self.child(parent, name) {
            return known;
        }
        let index = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let mut path = name.to_owned();
        if let Some(node) = self.node_mut(parent) {
            if !node.path.is_empty() {
                path = format!("{}/{name}", node.path);
            }
            node.children.insert(name.to_owned(), index);
        }
        self.nodes.push(Entry { path, item, children: BTreeMap::new() });
        index
    }

    /// Returns the entry at a place.
    pub(crate) fn item(&self, index: u32) -> Option<&Item> {
        self.node(index).map(|node| &node.item)
    }

    /// The path of a place, below the root.
    pub(crate) fn path(&self, index: u32) -> Option<&str> {
        self.node(index).map(|node| node.path.as_str())
    }

    /// The paths of all items, with the items.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &Item)> {
        self.nodes.iter().map(|node| (node.path.as_str(), &node.item))
    }

    /// An entry of a directory.
    pub(crate) fn child(&self, index: u32, name: &str) -> Option<u32> {
        self.node(index)?.children.get(name).copied()
    }

    /// The entries of a directory by name.
    pub(crate) fn children(&self, index: u32) -> impl Iterator<Item = (&str, u32)> {
        self.node(index)
            .into_iter()
            .flat_map(|node| &node.children)
            .map(|(name, index)| (name.as_str(), *index))
    }

    /// The item that a path leads to, without following links. An empty path leads to the root.
    pub(crate) fn find(&self, path: &str) -> Option<&Item> {
        let mut names = path.split('/').filter(|name| !name.is_empty());
        let index = names.try_fold(0, |at, name| self.child(at, name))?;
        self.item(index)
    }

    fn node(&self, index: u32) -> Option<&Entry> {
        self.nodes.get(usize::try_from(index).ok()?)
    }

    fn node_mut(&mut self, index: u32) -> Option<&mut Entry> {
        self.nodes.get_mut(usize::try_from(index).ok()?)
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("nodes", &self.nodes.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_make_their_directories() {
        let mut tree = Tree::new();
        tree.value("properties/nid", || "0x100");
        tree.link("driver", "../driver");
        let directory = tree.child(0, "properties").unwrap();
        assert!(matches!(tree.item(directory), Some(Item::Directory)));
        let Some(Item::Attribute(nid)) = tree.find("properties/nid") else {
            panic!("an attribute");
        };
        assert_eq!(nid.read(), "0x100\n");
        assert_eq!(nid.mode(), 0o444);
        assert_eq!(nid.write(b"1"), Err(Errno::EIO));
        let names: Vec<_> = tree.children(0).map(|(name, _)| name).collect();
        assert_eq!(names, ["driver", "properties"]);
    }

    #[test]
    fn writes_arrive_without_the_newline() {
        let mut tree = Tree::new();
        let expect = |text: &str| (text == "5").then_some(()).ok_or(Errno::EINVAL);
        tree.writable("nid", || 5, expect);
        let Some(Item::Attribute(nid)) = tree.find("nid") else { panic!("an attribute") };
        assert_eq!(nid.mode(), 0o644);
        assert_eq!(nid.write(b"5\n"), Ok(()));
        assert_eq!(nid.write(b"5\n\0"), Ok(()));
        assert_eq!(nid.write(b"6\n"), Err(Errno::EINVAL));
        assert_eq!(nid.write(b"5\n\n"), Err(Errno::EINVAL));
        assert_eq!(nid.write(b"\xff"), Err(Errno::EINVAL));
    }
}
