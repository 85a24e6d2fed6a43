//! What `/proc` reveals: who has a NIC open, and what this process may do. Names in it may be any
//! bytes.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, Metadata};
use std::ops::Range;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use cxi::{DeviceId, Member, Members, kernel_file};

/// Bit of CAP_SYS_ADMIN in the capability masks of `/proc/PID/status`.
const CAP_SYS_ADMIN: u64 = 1 << 21;

/// The `/proc` to read, and the `/dev` that has the NICs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcFs {
    root: PathBuf,
    dev: PathBuf,
}

impl ProcFs {
    /// This node's `/proc`.
    #[must_use]
    pub fn system() -> Self {
        Self::with_root("/proc")
    }

    /// Another directory, such as a test's.
    #[must_use]
    pub fn with_root(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), dev: "/dev".into() }
    }

    /// No `/proc` at all: for NICs that no process of this machine can open, such as an in-memory
    /// mock's.
    #[must_use]
    pub fn none() -> Self {
        Self::with_root("/dev/null").dev("/dev/null")
    }

    /// Sets the directory of the NICs' device nodes. The default is `/dev`.
    #[must_use]
    pub fn dev(mut self, dev: impl Into<PathBuf>) -> Self {
        self.dev = dev.into();
        self
    }

    /// Returns the other processes that have a NIC open.
    ///
    /// A process that only has a window mapped counts too; only root can see that.
    ///
    /// An open file is not an LNI, and `/proc` does not show which service it uses; but no process
    /// holds a service without an open file. Files are identified by device number, not by name, so
    /// that a device node in a container is recognized wherever it is.
    #[must_use]
    pub fn users_of(&self, device: DeviceId) -> Users {
        let mut users = Users::default();
        let Ok(node) = fs::metadata(self.dev.join(device.to_string())) else { return users };
        let node = FileId::new(&node);
        let this = fs::read_link(self.root.join("self")).ok();
        let this = this.as_deref().and_then(Path::to_str).and_then(pid);
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(pid) else { continue };
            match has_open(&entry.path(), node) {
                Ok(true) if Some(pid) != this => users.processes.push(process(pid, &entry.path())),
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                    users.hidden += 1;
                }
                // The process does not have the NIC open, or has ended in the meantime.
                Ok(_) | Err(_) => {}
            }
        }
        users.processes.sort_by_key(|process| process.pid);
        users
    }

    /// Returns this process; `None` if `/proc` cannot be read.
    #[must_use]
    pub fn caller(&self) -> Option<Process> {
        let pid = fs::read_link(self.root.join("self")).ok()?.to_str().and_then(pid)?;
        Some(process(pid, &self.root.join("self")))
    }

    /// Whether this process is in a user namespace other than the initial one, where the driver
    /// honors no capability; `None` if `/proc` cannot be read.
    #[must_use]
    pub fn in_user_namespace(&self) -> Option<bool> {
        let map = kernel_file::read(&self.root.join("self/uid_map")).ok()?;
        let mut numbers = map.split_whitespace();
        let whole = ["0", "0", "4294967295"];
        let initial = whole.iter().all(|part| numbers.next() == Some(part));
        Some(!(initial && numbers.next().is_none()))
    }

    /// Whether this process has CAP_SYS_ADMIN in its user namespace; `None` if `/proc` cannot be
    /// read.
    #[must_use]
    pub fn has_sys_admin(&self) -> Option<bool> {
        let status = Status(kernel_file::read(&self.root.join("self/status")).ok()?);
        let mask = u64::from_str_radix(status.value("CapEff")?, 16).ok()?;
        Some(mask & CAP_SYS_ADMIN != 0)
    }
}

impl Default for ProcFs {
    fn default() -> Self {
        Self::system()
    }
}

/// The processes that have a NIC open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Users {
    /// The visible ones, by pid.
    pub processes: Vec<Process>,
    /// How many processes could not be examined for lack of rights.
    pub hidden: usize,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Process {
    /// Its pid.
    pub pid: u32,
    /// The name of its program, as the kernel stores it (15 bytes).
    pub name: Option<String>,
    /// Its effective user id.
    pub uid: Option<u32>,
    /// Its effective group id.
    pub gid: Option<u32>,
    /// Inode number of its network namespace.
    pub netns: Option<u32>,
}

impl Users {
    /// Keeps only the processes of a service's members. Keeps all of them if there are none,
    /// because a process may have changed its user since it allocated.
    #[must_use]
    pub fn among(mut self, members: Option<&Members>) -> Self {
        let is_member = |process: &Process| {
            members.is_some_and(|members| {
                members.iter().any(|member| match member {
                    Member::Uid(uid) => process.uid == Some(uid),
                    Member::Gid(gid) => process.gid == Some(gid),
                    Member::NetNs(netns) => process.netns == Some(netns),
                    Member::Other { .. } => false,
                })
            })
        };
        if self.processes.iter().any(is_member) {
            self.processes.retain(is_member);
        }
        self
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.pid)?;
        match (&self.name, self.uid) {
            (Some(name), Some(uid)) => write!(f, " ({name}, uid {uid})"),
            (Some(name), None) => write!(f, " ({name})"),
            (None, Some(uid)) => write!(f, " (uid {uid})"),
            (None, None) => Ok(()),
        }
    }
}

impl fmt::Display for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.processes.iter().map(Process::to_string).collect();
        match names.len() {
            0 => f.write_str("no process that can be seen has the NIC open")?,
            1 => write!(f, "process {} has the NIC open", names.join(""))?,
            _ => write!(f, "processes {} have the NIC open", names.join(", "))?,
        }
        match self.hidden {
            0 => Ok(()),
            1 => f.write_str("; 1 process could not be looked into"),
            hidden => write!(f, "; {hidden} processes could not be looked into"),
        }
    }
}

fn pid(name: &str) -> Option<u32> {
    name.parse().ok()
}

/// What identifies an open file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileId {
    /// A character device, by its number.
    Device(u64),
    /// A file that stands in for one, as on a served mock: by file system and inode.
    File(u64, u64),
}

impl FileId {
    fn new(metadata: &Metadata) -> Self {
        if metadata.file_type().is_char_device() {
            Self::Device(metadata.rdev())
        } else {
            Self::File(metadata.dev(), metadata.ino())
        }
    }
}

fn has_open(directory: &Path, node: FileId) -> std::io::Result<bool> {
    // The target of the link is only a name; following it gives the open file.
    let is_node = |link: &Path| fs::metadata(link).is_ok_and(|file| FileId::new(&file) == node);
    for entry in fs::read_dir(directory.join("fd"))? {
        if is_node(&entry?.path()) {
            return Ok(true);
        }
    }
    // A mapped window keeps its file open after the descriptor is closed. Windows are shared
    // memory.
    let maps = fs::read(directory.join("maps")).unwrap_or_default();
    let maps = String::from_utf8_lossy(&maps);
    let shared = maps.lines().filter_map(mapping);
    let mut shared = shared.filter(|(_, access)| access.ends_with('s'));
    Ok(shared.any(|(Range { start, end }, _)| {
        // Without the leading zeros that `maps` has.
        is_node(&directory.join(format!("map_files/{start:x}-{end:x}")))
    }))
}

fn process(pid: u32, directory: &Path) -> Process {
    let status = Status(kernel_file::read(&directory.join("status")).unwrap_or_default());
    // The second of the real, effective, saved and file system IDs.
    let effective = |name: &str| status.words(name).nth(1)?.parse().ok();
    Process {
        pid,
        name: status.value("Name").map(str::to_owned),
        uid: effective("Uid"),
        gid: effective("Gid"),
        netns: namespace(directory, "net"),
    }
}

/// The `status` of a process or thread, or its first lines: each a name and its value.
#[derive(Debug, Default)]
pub struct Status(pub String);

impl Status {
    /// The value of a line, such as `Tgid`.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        let mut values =
            self.0.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        values.next().map(str::trim)
    }

    /// The words of a line, such as the four ids of `Uid`; none if there is no such line.
    pub fn words(&self, name: &str) -> impl Iterator<Item = &str> {
        self.value(name).into_iter().flat_map(str::split_whitespace)
    }
}

/// The addresses of a line of `maps`, and how they can be accessed, such as `rw-s`; `None` for
/// another line, as in `smaps`.
#[must_use]
pub fn mapping(line: &str) -> Option<(Range<u64>, &str)> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    Some((address(start)?..address(end)?, words.next()?))
}

/// The inode number of a namespace of the process or thread with that directory in `/proc`. `kind` is
/// the name of a link in `ns`, such as `net`.
#[must_use]
pub fn namespace(directory: &Path, kind: &str) -> Option<u32> {
    let link = fs::read_link(directory.join("ns").join(kind)).ok()?;
    link.to_str()?.strip_prefix(kind)?.strip_prefix(":[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nic_is_open_where_its_file_is_and_not_where_its_name_is() {
        let proc = tempfile::tempdir().unwrap();
        let dev = proc.path().join("dev");
        fs::create_dir(&dev).unwrap();
        for nic in ["cxi0", "cxi1", "cxi11"] {
            fs::write(dev.join(nic), "").unwrap();
        }
        // A device node in a container is a different file of the same device.
        let elsewhere = proc.path().join("container");
        fs::create_dir(&elsewhere).unwrap();
        fs::hard_link(dev.join("cxi1"), elsewhere.join("nic")).unwrap();
        // A file that merely has the same name.
        fs::write(elsewhere.join("cxi1"), "").unwrap();
        let add = |pid: &str, uid: u32, target: &str| {
            let target = proc.path().join(target);
            let directory = proc.path().join(pid);
            fs::create_dir_all(directory.join("fd")).unwrap();
            fs::create_dir_all(directory.join("ns")).unwrap();
            std::os::unix::fs::symlink(target, directory.join("fd/3")).unwrap();
            std::os::unix::fs::symlink("net:[4026531840]", directory.join("ns/net")).unwrap();
            let status = format!("Name:\tapp{pid}\nUid:\t0\t{uid}\t0\t0\nGid:\t5\t6\t5\t5\n");
            fs::write(directory.join("status"), status).unwrap();
        };
        add("42", 1000, "dev/cxi1");
        add("7", 1001, "container/nic");
        add("8", 1000, "container/cxi1");
        add("9", 1000, "dev/cxi11");
        add("10", 1000, "socket:[4711]");
        let status = proc.path().join("42/status");
        // A program may choose any name for itself.
        let renamed = [fs::read(&status).unwrap(), b"Groups:\t\xFF\n".to_vec()].concat();
        fs::write(&status, renamed).unwrap();
        add("11", 0, "dev/cxi1");
        std::os::unix::fs::symlink("11", proc.path().join("self")).unwrap();
        fs::create_dir(proc.path().join("sys")).unwrap();

        let proc = ProcFs::with_root(proc.path()).dev(dev);
        let users = proc.users_of(DeviceId::new(1));
        assert_eq!(
            users.to_string(),
            "processes 7 (app7, uid 1001), 42 (app42, uid 1000) have the NIC open"
        );
        let netns = users.processes.iter().map(|process| process.netns);
        assert!(netns.eq([Some(4_026_531_840); 2]));
        let members = Members::new([Member::Uid(1000)]).unwrap();
        assert_eq!(
            users.clone().among(Some(&members)).to_string(),
            "process 42 (app42, uid 1000) has the NIC open"
        );
        let strangers = Members::new([Member::Gid(77)]).unwrap();
        assert_eq!(users.clone().among(Some(&strangers)), users);
        assert_eq!(
            proc.users_of(DeviceId::new(0)).to_string(),
            "no process that can be seen has the NIC open"
        );
    }

    #[test]
    fn a_device_node_is_known_by_its_number() {
        let directory = tempfile::tempdir().unwrap();
        let dev = directory.path().join("dev");
        fs::create_dir(&dev).unwrap();
        std::os::unix::fs::symlink("/dev/null", dev.join("cxi0")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", dev.join("cxi1")).unwrap();
        let fds = directory.path().join("5/fd");
        fs::create_dir_all(&fds).unwrap();
        std::os::unix::fs::symlink("/dev/null", fds.join("0")).unwrap();
        let proc = ProcFs::with_root(directory.path()).dev(dev);
        let count = |nic| proc.users_of(DeviceId::new(nic)).processes.len();
        assert_eq!([count(0), count(1), count(2)], [1, 0, 0]);
        // The descriptor is closed, and a window is still mapped.
        let mapped = directory.path().join("6");
        fs::create_dir_all(mapped.join("fd")).unwrap();
        fs::create_dir(mapped.join("map_files")).unwrap();
        let maps = "00001000-00002000 r-xp 0 00:38 4711 /bin/sh\n00002000-00003000 rw-s 0 00:05 4 /dev/nic\n";
        fs::write(mapped.join("maps"), maps).unwrap();
        std::os::unix::fs::symlink("/dev/null", mapped.join("map_files/2000-3000")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", mapped.join("map_files/1000-2000")).unwrap();
        assert_eq!([count(0), count(1)], [2, 0]);
        let none = ProcFs::none();
        assert_eq!(none.users_of(DeviceId::new(0)), Users::default());
        assert_eq!((none.caller(), none.has_sys_admin()), (None, None));
    }

    #[test]
    fn a_status_is_lines_of_words() {
        let status = Status("Name:\ta Tgid:\\n\nTgid:\t7\nGroups:\t4 24 1000 \n".to_owned());
        assert_eq!(status.value("Name"), Some("a Tgid:\\n"));
        assert_eq!(status.value("Tgid"), Some("7"));
        let groups: Vec<&str> = status.words("Groups").collect();
        assert_eq!(groups, ["4", "24", "1000"]);
        assert_eq!(status.words("Group").next(), None);
        assert_eq!(Status::default().value("Tgid"), None);
    }

    #[test]
    fn knows_the_initial_user_namespace() {
        let root = tempfile::tempdir().unwrap();
        let proc = ProcFs::with_root(root.path());
        assert_eq!(proc.in_user_namespace(), None);
        fs::create_dir(root.path().join("self")).unwrap();
        let cases = [
            ("         0          0 4294967295\n", false),
            ("         0       1000          1\n", true),
            ("0 0 4294967295\n1 5 1\n", true),
        ];
        for (map, inside) in cases {
            fs::write(root.path().join("self/uid_map"), map).unwrap();
            assert_eq!(proc.in_user_namespace(), Some(inside), "{map:?}");
        }
        for (mask, admin) in [("000001ffffffffff", true), ("0000000000000000", false)] {
            fs::write(root.path().join("self/status"), format!("CapEff:\t{mask}\n")).unwrap();
            assert_eq!(proc.has_sys_admin(), Some(admin));
        }
    }
}
