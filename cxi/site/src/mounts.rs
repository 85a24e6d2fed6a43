//! The mounts that a process sees, as the kernel describes them in `/proc`. No file system is asked.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use nix::sys::stat::makedev;

/// Number of symbolic links that the kernel follows.
const MOST_LINKS: usize = 40;

/// All mounts that a process sees.
#[derive(Debug)]
pub(crate) struct MountTable(Vec<Mount>);

/// A file system at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) id: u64,
    pub(crate) file_system: u64,
    /// Its type, such as `nfs4`.
    pub(crate) kind: String,
    /// Its place.
    pub(crate) at: PathBuf,
    /// The directories that it consists of: those of a container's `overlay`.
    pub(crate) layers: Vec<PathBuf>,
}

impl MountTable {
    /// The mounts that the process with this directory in `/proc` sees.
    pub(crate) fn of(process: &Path) -> io::Result<Self> {
        let lines = fs::read(process.join("mountinfo"))?;
        let lines = String::from_utf8_lossy(&lines);
        Ok(Self(lines.lines().filter_map(Mount::parse).collect()))
    }

    pub(crate) const fn empty() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn by_id(&self, id: u64) -> Option<&Mount> {
        self.0.iter().find(|mount| mount.id == id)
    }

    pub(crate) fn by_file_system(&self, file_system: u64) -> Option<&Mount> {
        self.0.iter().find(|mount| mount.file_system == file_system)
    }

    /// The first mount on the way to a path, symbolic links included, that
    /// [may not answer](Mount::may_be_dead). What is below such a mount is not looked at.
    pub(crate) fn first_that_may_be_dead(&self, path: &Path) -> Option<&Mount> {
        // On most nodes of a test there is none, and on others a few.
        if !self.0.iter().any(Mount::may_be_dead) {
            return None;
        }
        let (mut at, mut links) = (PathBuf::from("/"), 0);
        let path = std::path::absolute(path).ok()?;
        let mut rest: VecDeque<OsString> = parts(&path).collect();
        loop {
            // Of mounts at the same place, the last one is seen.
            let mount = self.0.iter().rev().find(|mount| mount.at == at);
            if let Some(mount) = mount.filter(|mount| mount.may_be_dead()) {
                return Some(mount);
            }
            let part = rest.pop_front()?;
            if part == ".." {
                at.pop();
                continue;
            }
            let next = at.join(part);
            let is_mount = self.0.iter().any(|mount| mount.at == next);
            match fs::read_link(&next) {
                // What is mounted there is asked about next.
                _ if is_mount => at = next,
                Ok(target) if links < MOST_LINKS => {
                    links += 1;
                    if target.is_absolute() {
                        at = "/".into();
                    }
                    let target: Vec<_> = parts(&target).collect();
                    target.into_iter().rev().for_each(|part| rest.push_front(part));
                }
                _ => at = next,
            }
        }
    }
}

/// The names of a path.
fn parts(path: &Path) -> impl Iterator<Item = OsString> + '_ {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    })
}

impl Mount {
    /// Parses a line of `mountinfo`.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let id = words.next()?.parse().ok()?;
        let file_system = device_number(words.nth(1)?, 10)?;
        let at = unescaped(words.nth(1)?);
        let mut words = words.skip_while(|word| *word != "-").skip(1);
        let kind = words.next()?.to_owned();
        let layers = if kind == "overlay" { layers(words.nth(1)?) } else { Vec::new() };
        Some(Self { id, file_system, kind, at, layers })
    }

    /// Returns whether the file system has what it knows of an open file in memory. A network or a program
    /// (FUSE) may take for ever, and so may what is on top of it; `own` are the mounts that this process
    /// sees.
    pub(crate) fn answers_at_once(&self, own: &MountTable) -> bool {
        let is_here =
            |layer: &PathBuf| layer.is_absolute() && own.first_that_may_be_dead(layer).is_none();
        self.is_local() || (!self.layers.is_empty() && self.layers.iter().all(is_here))
    }

    /// Returns whether it is a file system on a disk or in memory of this machine.
    fn is_local(&self) -> bool {
        const LOCAL: [&str; 10] = [
            "btrfs", "devtmpfs", "ext2", "ext3", "ext4", "ramfs", "rootfs", "squashfs", "tmpfs",
            "xfs",
        ];
        LOCAL.contains(&self.kind.as_str())
    }

    /// Returns whether the file system depends on a server, which may be gone: not the kernel's own, and not
    /// the layers of a container, on which its programs are.
    fn may_be_dead(&self) -> bool {
        const OWN: [&str; 22] = [
            "bcachefs",
            "binfmt_misc",
            "bpf",
            "cgroup",
            "cgroup2",
            "configfs",
            "debugfs",
            "devpts",
            "efivarfs",
            "erofs",
            "f2fs",
            "hugetlbfs",
            "mqueue",
            "nsfs",
            "overlay",
            "proc",
            "pstore",
            "securityfs",
            "sysfs",
            "tracefs",
            "vfat",
            "zfs",
        ];
        !self.is_local() && !OWN.contains(&self.kind.as_str())
    }
}

/// The directories in the options of an `overlay`.
fn layers(options: &str) -> Vec<PathBuf> {
    let names = ["lowerdir=", "lowerdir+=", "datadir+=", "upperdir="];
    let lists = options
        .split(',')
        .filter_map(|option| names.iter().find_map(|name| option.strip_prefix(name)));
    lists
        .flat_map(|list| list.split(':'))
        .filter(|layer| !layer.is_empty())
        .map(unescaped)
        .collect()
}

/// A path of `mountinfo`, which has blanks and the like as octal numbers (`\040`).
fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let number = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let number = number.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        if let Some(byte) = number.filter(|_| *first == b'\\') {
            bytes.push(byte);
            rest = after.get(3..).unwrap_or_default();
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    OsString::from_vec(bytes).into()
}

/// A device number as `/proc` writes it, such as `0:38`.
pub(crate) fn device_number(text: &str, radix: u32) -> Option<u64> {
    let (major, minor) = text.split_once(':')?;
    let number = |text| u64::from_str_radix(text, radix).ok();
    Some(makedev(number(major)?, number(minor)?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_first_mount_on_the_way_that_may_be_dead_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let process = root.join("process");
        for name in ["process", "plain", "home", "with blank"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        symlink("../home/jobs", root.join("plain/jobs")).unwrap();
        symlink(root.join("plain"), root.join("again")).unwrap();
        symlink("round", root.join("round")).unwrap();
        let at = root.display();
        let lines = format!(
            "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
             2 1 0:30 / {at}/home rw shared:1 - nfs4 server:/home rw\n\
             3 1 0:31 / {at}/with\\040blank rw - fuse.sshfs x rw\n\
             4 1 0:32 / {at}/twice rw - nfs4 x rw\n\
             5 1 0:33 / {at}/twice rw - tmpfs x rw\n"
        );
        fs::write(process.join("mountinfo"), lines).unwrap();
        let mounts = MountTable::of(&process).unwrap();
        let found = |path: &str| {
            let mount = mounts.first_that_may_be_dead(&root.join(path));
            mount.map(|mount| mount.id)
        };
        for (path, id) in [
            ("plain/file", None),
            ("home", Some(2)),
            ("home/jobs/running", Some(2)),
            ("plain/jobs/running", Some(2)),
            ("again/jobs", Some(2)),
            ("plain/../home/x", Some(2)),
            ("home/../plain", Some(2)),
            ("with blank/x", Some(3)),
            ("twice/x", None),
            ("round/x", None),
            ("missing/x", None),
        ] {
            assert_eq!(found(path), id, "{path}");
        }
    }

    #[test]
    fn a_container_answers_at_once_if_its_layers_do() {
        let process = tempfile::tempdir().unwrap();
        let table = |lines: &str| {
            fs::write(process.path().join("mountinfo"), lines).unwrap();
            MountTable::of(process.path()).unwrap()
        };
        let own = table(
            "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:30 / /images rw - nfs4 server:/images rw\n",
        );
        let at_once = |options: &str| {
            let table = table(&format!("7 1 0:50 / / rw - overlay overlay rw,{options}\n"));
            table.by_id(7).unwrap().answers_at_once(&own)
        };
        assert!(at_once("lowerdir=/var/a:/var/b,upperdir=/var/c,workdir=/var/d"));
        assert!(at_once("lowerdir+=/var/a,datadir+=/var/b"));
        assert!(!at_once("lowerdir=/var/a:/images/b,upperdir=/var/c"));
        assert!(!at_once("lowerdir=a,upperdir=/var/c"));
        assert!(!at_once("xino=off"));
    }
}
