//! Facts from `/proc`: the processes that have a NIC open, and the rights of this process. Names in
//! it may be any bytes.

use std::collections::HashMap;
use std::ops::Range;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use std::{fmt, fs, io, thread};

use cxi::{DeviceId, Member, Members, kernel_file};
use serde::{Deserialize, Serialize};

use crate::mounts::{Mount, MountTable, device_number};
use crate::text::printable;

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

    /// The path of a file in it.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Returns the other processes that have a NIC open.
    ///
    /// A process that only has a window mapped counts too; only root can see that.
    ///
    /// An open file is not an LNI, and `/proc` does not show which service it uses; but no process
    /// holds a service without an open file. Files are identified by device number, not by name, so
    /// that a device node in a container is recognized wherever it is.
    ///
    /// No file system is asked about an open file that could keep the caller waiting, such as a
    /// network's whose server is gone. A process that the kernel itself does not describe within
    /// 250 ms counts as [hidden](Users::hidden), and so do all that are left after 5 s.
    #[must_use]
    pub fn users_of(&self, device: DeviceId) -> Users {
        let Ok(node) = DeviceNode::find(self.dev.join(device.to_string())) else {
            return Users::default();
        };
        let this = fs::read_link(self.root.join("self")).ok();
        let this = this.as_deref().and_then(Path::to_str).and_then(pid);
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| pid(entry.file_name().to_str()?));
        let others: Vec<u32> = pids.filter(|pid| Some(*pid) != this).collect();
        let root = self.root.clone();
        let looked = in_time(others, PATIENCE, DEADLINE, || {
            let (root, node, mut mounts) = (root.clone(), node.clone(), Mounts::new(&root));
            move |pid: &u32| -> io::Result<Option<Process>> {
                let directory = root.join(pid.to_string());
                let open = node.is_open_in(&directory, &mut mounts)?;
                Ok(open.then(|| process(*pid, &directory)))
            }
        });
        let mut users = Users::default();
        for found in looked {
            match found {
                Some(Ok(process)) => users.processes.extend(process),
                Some(Err(error)) if error.kind() != io::ErrorKind::PermissionDenied => {
                    // It has ended in the meantime.
                }
                Some(Err(_)) | None => users.hidden += 1,
            }
        }
        users.processes.sort_by_key(|process| process.pid);
        users
    }

    /// Returns a process, with what can be read of it.
    #[must_use]
    pub fn process(&self, pid: u32) -> Process {
        process(pid, &self.root.join(pid.to_string()))
    }

    /// Returns this process; `None` if `/proc` cannot be read.
    #[must_use]
    pub fn caller(&self) -> Option<Process> {
        let pid = fs::read_link(self.root.join("self")).ok()?.to_str().and_then(pid)?;
        Some(process(pid, &self.root.join("self")))
    }

    /// Returns whether this process is in a user namespace other than the initial one, where the
    /// driver honors no capability; `None` if `/proc` cannot be read.
    #[must_use]
    pub fn in_user_namespace(&self) -> Option<bool> {
        let map = kernel_file::read(&self.root.join("self/uid_map")).ok()?;
        let mut numbers = map.split_whitespace();
        let whole = ["0", "0", "4294967295"];
        let initial = whole.iter().all(|part| numbers.next() == Some(part));
        Some(!(initial && numbers.next().is_none()))
    }

    /// Returns whether this process has CAP_SYS_ADMIN in its user namespace; `None` if `/proc`
    /// cannot be read.
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
    /// Number of processes that could not be examined, for lack of rights or because the kernel did
    /// not answer in time.
    pub hidden: usize,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Process {
    /// Its pid.
    pub pid: u32,
    /// The name of its program, as the kernel stores it (15 bytes), without control characters.
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
            0 => f.write_str("no visible process has the NIC open")?,
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

/// The file by which programs open a NIC.
#[derive(Clone, Debug)]
struct DeviceNode {
    path: PathBuf,
    /// The number of a character device; `None` for a file that stands in for one, as on a served
    /// mock.
    number: Option<u64>,
    file_system: u64,
    inode: u64,
}

/// An open or mapped file as the kernel describes it, without its file system being asked.
struct OpenFile<'a> {
    mount: Option<&'a Mount>,
    /// `true` if the mount has what it knows of the file in memory.
    at_once: bool,
    /// Not shown by kernels before 5.14.
    inode: Option<u64>,
    name: &'a Path,
    /// Follows to the file.
    link: &'a Path,
}

impl DeviceNode {
    fn find(path: PathBuf) -> io::Result<Self> {
        let metadata = fs::metadata(&path)?;
        let number = metadata.file_type().is_char_device().then(|| metadata.rdev());
        Ok(Self { path, number, file_system: metadata.dev(), inode: metadata.ino() })
    }

    fn is(&self, file: &OpenFile<'_>) -> bool {
        let Some(mount) = file.mount else {
            // A mount of another namespace, or one that is gone.
            return file.inode == Some(self.inode)
                && file.name.file_name() == self.path.file_name();
        };
        if mount.file_system == self.file_system && file.inode == Some(self.inode) {
            return true;
        }
        if file.at_once {
            // Follows the link; a device node may be a different file of the same device.
            return fs::metadata(file.link).is_ok_and(|file| match self.number {
                Some(number) => file.file_type().is_char_device() && file.rdev() == number,
                None => (file.dev(), file.ino()) == (self.file_system, self.inode),
            });
        }
        mount.file_system == self.file_system && file.inode.is_none() && file.name == self.path
    }

    /// Returns whether the process with this directory in `/proc` has the file open or mapped.
    fn is_open_in(&self, directory: &Path, mounts: &mut Mounts) -> io::Result<bool> {
        let descriptors = fs::read_dir(directory.join("fd"))?;
        let (mounts, own) = mounts.of(directory);
        let is_at_once = |mount: Option<&Mount>| mount.is_some_and(|it| it.answers_at_once(own));
        for entry in descriptors {
            let entry = entry?;
            let link = entry.path();
            // Sockets, pipes and the like have names without a directory.
            let Ok(name) = fs::read_link(&link) else { continue };
            if !name.is_absolute() {
                continue;
            }
            let info = kernel_file::read(&directory.join("fdinfo").join(entry.file_name()));
            let info = Status(info.unwrap_or_default());
            let number = |name| info.value(name)?.parse().ok();
            let mount = number("mnt_id").and_then(|id| mounts.by_id(id));
            let (at_once, inode) = (is_at_once(mount), number("ino"));
            if self.is(&OpenFile { mount, at_once, inode, name: &name, link: &link }) {
                return Ok(true);
            }
        }
        // A mapped window keeps its file open after the descriptor is closed. Windows are shared
        // memory.
        let maps = fs::read(directory.join("maps")).unwrap_or_default();
        let maps = String::from_utf8_lossy(&maps);
        Ok(maps.lines().any(|line| {
            let mapped = mapping(line).filter(|(_, access)| access.ends_with('s'));
            let (Some((Range { start, end }, _)), Some(file)) = (mapped, mapped_file(line)) else {
                return false;
            };
            let (file_system, inode, name) = file;
            // Without the leading zeros that `maps` has.
            let link = directory.join(format!("map_files/{start:x}-{end:x}"));
            let mount = mounts.by_file_system(file_system);
            let (at_once, inode, name) = (is_at_once(mount), Some(inode), Path::new(name));
            self.is(&OpenFile { mount, at_once, inode, name, link: &link })
        }))
    }
}

/// The file system, inode and name of the file of a line of `maps`.
fn mapped_file(line: &str) -> Option<(u64, u64, &str)> {
    let mut words = line.splitn(6, ' ');
    let device = device_number(words.nth(3)?, 16)?;
    let inode = words.next()?.parse().ok()?;
    Some((device, inode, words.next().unwrap_or_default().trim_start()))
}

/// The mounts that processes see, by mount namespace and root directory.
#[derive(Debug)]
struct Mounts {
    own: MountTable,
    tables: HashMap<(Option<u32>, Option<PathBuf>), MountTable>,
}

impl Mounts {
    fn new(proc: &Path) -> Self {
        let own = MountTable::of(&proc.join("self")).unwrap_or_else(|_| MountTable::empty());
        Self { own, tables: HashMap::new() }
    }

    /// The mounts that a process sees, and those that this one sees.
    fn of(&mut self, directory: &Path) -> (&MountTable, &MountTable) {
        let view = (namespace(directory, "mnt"), fs::read_link(directory.join("root")).ok());
        let table = self
            .tables
            .entry(view)
            .or_insert_with(|| MountTable::of(directory).unwrap_or_else(|_| MountTable::empty()));
        (table, &self.own)
    }
}

/// Longest time that the kernel may take to describe a process, and all of them.
const PATIENCE: Duration = Duration::from_millis(250);
const DEADLINE: Duration = Duration::from_secs(5);

/// Looks at each item in turn; `None` for those that took too long. A look that does not return is
/// left behind in its thread, for which `start` makes a new one: it ends at the latest with this
/// program, because what keeps it waiting can be killed.
fn in_time<T, R, L>(
    items: Vec<T>,
    patience: Duration,
    deadline: Duration,
    start: impl Fn() -> L,
) -> Vec<Option<R>>
where
    T: Send + Sync + 'static,
    R: Send + 'static,
    L: FnMut(&T) -> R + Send + 'static,
{
    let end = Instant::now() + deadline;
    let items = Arc::new(items);
    let mut results = Vec::new();
    while results.len() < items.len() {
        let (sender, receiver) = mpsc::channel();
        let (rest, from, mut look) = (Arc::clone(&items), results.len(), start());
        let looking = thread::Builder::new().name("cxi-proc".to_owned()).spawn(move || {
            for item in &rest[from..] {
                if sender.send(look(item)).is_err() {
                    return;
                }
            }
        });
        let mut left = end.saturating_duration_since(Instant::now());
        while looking.is_ok() && results.len() < items.len() && !left.is_zero() {
            let result = receiver.recv_timeout(patience.min(left)).ok();
            let late = result.is_none();
            results.push(result);
            if late {
                break;
            }
            left = end.saturating_duration_since(Instant::now());
        }
        if looking.is_err() || left.is_zero() {
            results.resize_with(items.len(), || None);
        }
    }
    results
}

fn process(pid: u32, directory: &Path) -> Process {
    let status = Status(kernel_file::read(&directory.join("status")).unwrap_or_default());
    // The second of the real, effective, saved and file system IDs.
    let effective = |name: &str| status.words(name).nth(1)?.parse().ok();
    Process {
        pid,
        // A program names itself.
        name: status.value("Name").map(|name| printable(name).into_owned()),
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

    /// The line of `mountinfo` of the file system of a file.
    fn mount_of(file: &Path, id: u64) -> String {
        let device = fs::metadata(file).map_or(0, |file| file.dev());
        let (major, minor) = (nix::sys::stat::major(device), nix::sys::stat::minor(device));
        format!("{id} 1 {major}:{minor} / /dev rw,nosuid shared:2 - tmpfs tmpfs rw\n")
    }

    /// Lets a process of a test have a file open, on a mount.
    fn open(process: &Path, descriptor: u32, target: &Path, mount: String) {
        let inode = fs::metadata(target).map_or(0, |file| file.ino());
        let id = mount.split(' ').next().unwrap_or_default();
        let info = format!("pos:\t0\nflags:\t02\nmnt_id:\t{id}\nino:\t{inode}\n");
        fs::create_dir_all(process.join("fd")).unwrap();
        fs::create_dir_all(process.join("fdinfo")).unwrap();
        fs::write(process.join(format!("fdinfo/{descriptor}")), info).unwrap();
        fs::write(process.join("mountinfo"), mount).unwrap();
        std::os::unix::fs::symlink(target, process.join(format!("fd/{descriptor}"))).unwrap();
    }

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
            open(&directory, 3, &target, mount_of(&target, 7));
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
        let beep = fs::read_to_string(proc.path().join("7/status")).unwrap();
        let beep = beep.replace("app7", "app7\u{1b}]0;x\u{7}");
        fs::write(proc.path().join("7/status"), beep).unwrap();
        add("11", 0, "dev/cxi1");
        std::os::unix::fs::symlink("11", proc.path().join("self")).unwrap();
        fs::create_dir(proc.path().join("sys")).unwrap();

        let proc = ProcFs::with_root(proc.path()).dev(dev);
        let users = proc.users_of(DeviceId::new(1));
        assert_eq!(
            users.to_string(),
            "processes 7 (app7\u{fffd}]0;x\u{fffd}, uid 1001), 42 (app42, uid 1000) have the NIC open"
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
            "no visible process has the NIC open"
        );
    }

    #[test]
    fn a_device_node_is_known_by_its_number() {
        let directory = tempfile::tempdir().unwrap();
        let dev = directory.path().join("dev");
        fs::create_dir(&dev).unwrap();
        std::os::unix::fs::symlink("/dev/null", dev.join("cxi0")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", dev.join("cxi1")).unwrap();
        let null = Path::new("/dev/null");
        open(&directory.path().join("5"), 0, null, mount_of(null, 3));
        let proc = ProcFs::with_root(directory.path()).dev(dev);
        let count = |nic| proc.users_of(DeviceId::new(nic)).processes.len();
        assert_eq!([count(0), count(1), count(2)], [1, 0, 0]);
        // The descriptor is closed, and a window is still mapped.
        let mapped = directory.path().join("6");
        fs::create_dir_all(mapped.join("fd")).unwrap();
        fs::create_dir(mapped.join("map_files")).unwrap();
        let there = fs::metadata(null).unwrap();
        let (major, minor) =
            (nix::sys::stat::major(there.dev()), nix::sys::stat::minor(there.dev()));
        let inode = there.ino();
        let maps = format!(
            "00001000-00002000 r-xp 0 00:38 4711                      /bin/sh\n\
             00002000-00003000 rw-s 0 {major:02x}:{minor:02x} {inode}                      /dev/nic\n"
        );
        fs::write(mapped.join("maps"), maps).unwrap();
        fs::write(mapped.join("mountinfo"), mount_of(null, 3)).unwrap();
        std::os::unix::fs::symlink("/dev/null", mapped.join("map_files/2000-3000")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", mapped.join("map_files/1000-2000")).unwrap();
        assert_eq!([count(0), count(1)], [2, 0]);
        let none = ProcFs::none();
        assert_eq!(none.users_of(DeviceId::new(0)), Users::default());
        assert_eq!((none.caller(), none.has_sys_admin()), (None, None));
    }

    #[test]
    fn what_does_not_return_is_left_behind() {
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(std::sync::Mutex::new(held));
        let look = || {
            let held = Arc::clone(&held);
            move |item: &u32| {
                if item % 4 == 2 {
                    let _ = held.lock().map(|held| held.recv());
                }
                item * 10
            }
        };
        let (short, long) = (Duration::from_millis(50), Duration::from_secs(60));
        let results = in_time((1..=5).collect(), short, long, look);
        assert_eq!(results, [Some(10), None, Some(30), Some(40), Some(50)]);
        // The first that waits uses up all the time.
        let results = in_time((1..=5).collect(), long, short, look);
        assert_eq!(results, [Some(10), None, None, None, None]);
        drop(release);
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
