//! Mounts the mock's devices and files over the real `/dev` and `/sys`.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, open};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::{getegid, geteuid};

use super::error::{Doing, ServeError};
use super::namespaces::in_thread;
use super::privileges::mount_refused;

/// Mount point of the mock's file system, with the PCI functions of the NICs at its root.
///
/// hwloc takes the directory above a function for a bus only if its name starts with `pci`. Network
/// devices below any other directory count as those of the whole machine.
pub(crate) const DEVICES: &str = "/sys/devices/pci-cxi-mock";

/// Directory of the module's parameters.
pub(crate) const MODULE: &str = "/sys/module/cxi_ss1";

/// Returns whether the mock's files are mounted where this process looks: its file system, or copies.
pub(crate) fn is_mock() -> bool {
    /// Types of FUSE and of tmpfs in `statfs(2)`.
    const TYPES: [rustix::fs::FsWord; 2] = [0x6573_5546, 0x0102_1994];
    rustix::fs::statfs(DEVICES).is_ok_and(|at| TYPES.contains(&at.f_type))
}

/// The parts of sysfs that get something added, and the directories that must be there.
const SYSFS: [(&str, &[&str]); 4] = [
    ("class", &["cxi", "cxi_user", "net", "pci_bus"]),
    ("devices", &["pci-cxi-mock"]),
    ("bus", &["pci/devices"]),
    ("module", &[]),
];

/// Directories of links that change when a NIC comes or goes, and whether the real links stay.
pub(crate) const LINKS: [(&str, bool); 5] = [
    ("/sys/class/cxi", false),
    ("/sys/class/cxi_user", false),
    ("/sys/class/net", true),
    ("/sys/class/pci_bus", true),
    ("/sys/bus/pci/devices", true),
];

/// Directory in which HPE's retry handler shows what it knows of each NIC.
pub(crate) const RETRY_HANDLERS: &str = "/run/cxi";

/// A tmpfs to build on, gone when dropped; what was bound elsewhere stays.
#[derive(Debug)]
pub(crate) struct Stage {
    root: PathBuf,
}

impl Stage {
    /// Covers a directory that this process does not read in the meantime.
    pub(crate) fn new() -> Result<Self, ServeError> {
        let root = ["/mnt", "/media", "/srv", "/opt", "/tmp"]
            .into_iter()
            .map(PathBuf::from)
            .find(|path| path.is_dir())
            .ok_or_else(|| {
                ServeError::missing(
                    "there is no directory to prepare mounts in",
                    "Make an empty directory /mnt.",
                )
            })?;
        mount_tmpfs(&root, "mode=755,size=16m")?;
        Ok(Self { root })
    }

    fn directory(&self, name: &str) -> Result<PathBuf, ServeError> {
        let path = self.root.join(name);
        fs::create_dir_all(&path).doing(|| format!("make the directory {}", path.display()))?;
        Ok(path)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // The namespace goes away with the process if this fails.
        let _ = umount2(&self.root, MntFlags::MNT_DETACH);
    }
}

/// Makes room in sysfs: overlays the real directories with new directories, those of the drivers
/// among them, and with files by their paths below `/sys`.
pub(crate) fn extend_sysfs(
    stage: &Stage,
    files: &[(String, String)],
    drivers: &[&str],
) -> Result<(), ServeError> {
    for driver in drivers {
        stage.directory(&format!("sys/bus/pci/drivers/{driver}"))?;
        stage.directory(&format!("sys/module/{driver}"))?;
    }
    for (path, text) in files {
        let (directory, name) = path.rsplit_once('/').unwrap_or((".", path));
        let file = stage.directory(&format!("sys/{directory}"))?.join(name);
        fs::write(&file, text).doing(|| format!("write {}", file.display()))?;
    }
    for (part, directories) in SYSFS {
        let target = Path::new("/sys").join(part);
        if !target.is_dir() {
            return Err(ServeError::missing(
                format!("there is no {}", target.display()),
                "Mount sysfs: mount -t sysfs sysfs /sys",
            ));
        }
        let top = stage.directory(&format!("sys/{part}"))?;
        for directory in directories {
            stage.directory(&format!("sys/{part}/{directory}"))?;
        }
        let layers = format!("lowerdir={}:{}", top.display(), target.display());
        mount(Some("cxi-mock"), &target, Some("overlay"), MsFlags::empty(), Some(layers.as_str()))
            .map_err(|errno| {
                mount_refused(&format!("an overlay on {}", target.display()), errno)
            })?;
    }
    Ok(())
}

/// Mounts the mock's file system at [`DEVICES`]. From then on `fuse` must be answered.
pub(crate) fn mount_fuse(fuse: &OwnedFd) -> Result<(), ServeError> {
    let options = format!(
        "fd={},rootmode=40000,user_id={},group_id={},default_permissions,allow_other",
        fuse.as_raw_fd(),
        geteuid(),
        getegid()
    );
    mount(
        Some("cxi-mock"),
        DEVICES,
        Some("fuse"),
        MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOATIME,
        Some(options.as_str()),
    )
    .map_err(|errno| mount_refused("FUSE", errno))
}

/// Makes a directory for copies of the mock's files and shows it at [`DEVICES`], where nothing can be
/// written: it would have no effect.
pub(crate) fn mount_copies(stage: &Stage) -> Result<PathBuf, ServeError> {
    let ours = stage.directory("copies")?;
    mount_tmpfs(&ours, "mode=755")?;
    bind(&ours, Path::new(DEVICES))?;
    let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY | MsFlags::MS_NOSUID;
    mount(None::<&str>, DEVICES, None::<&str>, flags, None::<&str>)
        .map_err(|errno| mount_refused(&format!("{DEVICES} for reading"), errno))?;
    Ok(ours)
}

/// Covers the real `/etc/hosts` with another, if there is one.
pub(crate) fn cover_hosts(stage: &Stage, text: &str) -> Result<(), ServeError> {
    const HOSTS: &str = "/etc/hosts";
    if !Path::new(HOSTS).is_file() {
        return Ok(());
    }
    let ours = stage.directory("etc")?.join("hosts");
    fs::write(&ours, text).doing(|| format!("write {HOSTS}"))?;
    bind(&ours, Path::new(HOSTS))
}

/// Directory in which programs find the credentials of a fabric manager.
pub(crate) const CREDENTIALS: &str = "/dev/fabric-manager";

/// Writes the credentials of a fabric manager, to be mounted with `/dev`.
pub(crate) fn prepare_credentials(
    stage: &Stage,
    files: &[(&str, String)],
) -> Result<(), ServeError> {
    let directory = stage.directory(CREDENTIALS.trim_start_matches('/'))?;
    files.iter().try_for_each(|(name, text)| {
        let path = directory.join(name);
        // Programs refuse a secret that others can read.
        fs::write(&path, text)
            .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o600)))
            .doing(|| format!("write {CREDENTIALS}/{name}"))
    })
}

/// Gives the node its own shared memory. Processes of different nodes have the same numbers, and
/// would otherwise find each other's segments there.
pub(crate) fn mount_shared_memory() -> Result<(), ServeError> {
    const SHARED_MEMORY: &str = "/dev/shm";
    if !Path::new(SHARED_MEMORY).is_dir() {
        return Ok(());
    }
    mount_tmpfs(Path::new(SHARED_MEMORY), "mode=1777")
}

/// Gives the node its own copies of the directories in which programs for NICs keep records.
/// Different nodes have the same job and service numbers, and none may touch the machine's records.
/// Everything else in the parent directories stays as it is; what is created there stays on the
/// node.
pub(crate) fn mount_records(stage: &Stage) -> Result<(), ServeError> {
    for (above, own) in [("/run", &["cxi", "cxi-node"][..]), ("/var/lib", &["cxi"])] {
        let real = Path::new(above);
        if !real.is_dir() {
            continue;
        }
        let ours = stage.directory(above.trim_start_matches('/'))?;
        mount_tmpfs(&ours, "mode=755")?;
        for directory in own.iter().map(|own| ours.join(own)) {
            fs::create_dir(&directory)
                .doing(|| format!("make the directory {}", directory.display()))?;
        }
        copy_entries(real, &ours, |name| !own.iter().any(|own| name == *own))?;
        bind(&ours, real)?;
    }
    Ok(())
}

/// The directories in which a NIC appears.
#[derive(Debug)]
pub(crate) struct Places(Vec<(String, OwnedFd)>);

impl Places {
    /// Covers `/dev` and the directories of links. The file system must already be answering, and the
    /// directories of records be mounted. With `own_network`, loopback is the only real network device that remains.
    pub(crate) fn mount(
        stage: &Stage,
        drivers: &[&str],
        own_network: bool,
    ) -> Result<Self, ServeError> {
        let module = Path::new(DEVICES).join("module");
        for driver in drivers {
            let place = Path::new("/sys/module").join(driver);
            without_descriptors(|| bind(&module, &place))?;
        }
        let mut places = Vec::new();
        let drivers =
            drivers.iter().map(|driver| (format!("/sys/bus/pci/drivers/{driver}"), false));
        let others = LINKS.iter().map(|(directory, stay)| ((*directory).to_owned(), *stay));
        for (directory, real_stay) in others.chain(drivers) {
            let real = Path::new(&directory);
            let ours = stage.directory(&format!("links{directory}"))?;
            let loopback_only = own_network && directory == "/sys/class/net";
            if real_stay {
                copy_entries(real, &ours, |name| !loopback_only || name == "lo")?;
            }
            bind(&ours, real)?;
            let opened = open_directory(real)?;
            places.push((directory, opened));
        }
        if Path::new(RETRY_HANDLERS).is_dir() {
            let opened = open_directory(Path::new(RETRY_HANDLERS))?;
            places.push((RETRY_HANDLERS.to_owned(), opened));
        }
        let ours = stage.directory("dev")?;
        let dev = Path::new("/dev");
        copy_entries(dev, &ours, |name| !is_cxi_device(name) && name != "ptmx")?;
        add_ptmx(&ours)?;
        bind(&ours, dev)?;
        places.push(("/dev".to_owned(), open_directory(dev)?));
        Ok(Self(places))
    }

    /// Makes a link in one of the directories.
    pub(crate) fn link(&self, path: &str, target: &str) -> Result<(), ServeError> {
        self.unlink(path)?;
        symlink(target, self.find(path)).doing(|| format!("link {path}"))
    }

    /// Removes a link. Files that are open stay so.
    pub(crate) fn unlink(&self, path: &str) -> Result<(), ServeError> {
        absent_is_fine(fs::remove_file(self.find(path))).doing(|| format!("remove {path}"))
    }

    /// Finds a path through the directories that were opened at the start, because programs may
    /// mount over the path.
    fn find(&self, path: &str) -> PathBuf {
        let (directory, name) = path.rsplit_once('/').unwrap_or_default();
        self.0.iter().find(|(known, _)| known == directory).map_or_else(
            || PathBuf::from(path),
            |(_, fd)| PathBuf::from(format!("/proc/self/fd/{}/{name}", fd.as_raw_fd())),
        )
    }
}

/// Makes the device that opens terminals. Bound as a file, it would not work: the kernel looks for
/// `pts` in its directory. In a user namespace, where no device can be made, the node gets terminals
/// of its own, whose file system has such a device; where that is refused, it has none.
fn add_ptmx(dev: &Path) -> Result<(), ServeError> {
    let (ptmx, terminals) = (dev.join("ptmx"), dev.join("pts"));
    if !terminals.is_dir() {
        return Ok(());
    }
    let everybody = Mode::from_bits_truncate(0o666);
    if mknod(&ptmx, SFlag::S_IFCHR, everybody, makedev(5, 2)).is_ok() {
        return fs::set_permissions(&ptmx, Permissions::from_mode(everybody.bits()))
            .doing(|| format!("let everyone open {}", ptmx.display()));
    }
    let own = mount(
        Some("devpts"),
        &terminals,
        Some("devpts"),
        MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC,
        Some("newinstance,ptmxmode=0666,mode=620"),
    );
    own.map_or(Ok(()), |()| symlink("pts/ptmx", &ptmx).doing(|| format!("link {}", ptmx.display())))
}

pub(crate) fn open_directory(path: &Path) -> Result<OwnedFd, ServeError> {
    open(path, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
        .doing(|| format!("open {}", path.display()))
}

fn mount_tmpfs(target: &Path, options: &str) -> Result<(), ServeError> {
    mount(Some("cxi-mock"), target, Some("tmpfs"), MsFlags::MS_NOSUID, Some(options))
        .map_err(|errno| mount_refused(&format!("a tmpfs on {}", target.display()), errno))
}

fn bind(source: &Path, target: &Path) -> Result<(), ServeError> {
    mount(Some(source), target, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)
        .map_err(|errno| mount_refused(&format!("a binding on {}", target.display()), errno))
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Fills a directory with the entries of a real one: links are copied, and everything else is
/// bound. Existing entries stay.
fn copy_entries(from: &Path, to: &Path, keep: impl Fn(&OsStr) -> bool) -> Result<(), ServeError> {
    for entry in entries(from)? {
        let name = entry.file_name();
        let (source, copy) = (entry.path(), to.join(&name));
        if !keep(&name) || copy.exists() {
            continue;
        }
        let Ok(kind) = entry.file_type() else { continue };
        let what = || format!("copy {}", source.display());
        if kind.is_symlink() {
            let target = fs::read_link(&source).doing(what)?;
            symlink(target, &copy).doing(what)?;
            continue;
        }
        if kind.is_dir() {
            fs::create_dir(&copy).doing(what)?;
        } else {
            File::create(&copy).doing(what)?;
        }
        match bind(&source, &copy) {
            // The entry has vanished in the meantime.
            Err(_) if !source.exists() => {
                let removed = fs::remove_dir(&copy).or_else(|_| fs::remove_file(&copy));
                absent_is_fine(removed).doing(what)?;
            }
            bound => bound?,
        }
    }
    Ok(())
}

fn is_cxi_device(name: &OsStr) -> bool {
    name.to_str()
        .and_then(|name| name.strip_prefix("cxi"))
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

fn entries(directory: &Path) -> Result<Vec<fs::DirEntry>, ServeError> {
    fs::read_dir(directory)
        .and_then(Iterator::collect)
        .doing(|| format!("read the directory {}", directory.display()))
}

/// Runs something that asks the mock's file system, in the very process that answers. If the
/// process is killed before it answers, this thread waits until the descriptor for the answer is
/// closed. The thread must therefore not hold that descriptor itself: it has a copy of all
/// descriptors, and closes them.
pub(crate) fn without_descriptors(
    act: impl FnOnce() -> Result<(), ServeError> + Send,
) -> Result<(), ServeError> {
    let close_all = || {
        unshare(CloneFlags::CLONE_FILES)?;
        for fd in descriptors()? {
            let _ = nix::unistd::close(fd);
        }
        io::Result::Ok(())
    };
    in_thread(|| {
        close_all().doing(|| "give up the descriptors of a thread".to_owned())?;
        act()
    })
}

/// The numbers of the open descriptors, except for those of the terminal.
fn descriptors() -> io::Result<Vec<i32>> {
    let entries = fs::read_dir("/proc/thread-self/fd")?;
    let numbers = entries.map(|entry| Ok(entry?.file_name().to_str().and_then(|n| n.parse().ok())));
    let numbers: io::Result<Vec<Option<i32>>> = numbers.collect();
    Ok(numbers?.into_iter().flatten().filter(|fd| *fd > 2).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbered_devices_are_cxi_devices() {
        assert!(is_cxi_device(OsStr::new("cxi0")));
        assert!(is_cxi_device(OsStr::new("cxi12")));
        assert!(!is_cxi_device(OsStr::new("cxi")));
        assert!(!is_cxi_device(OsStr::new("cxi0a")));
        assert!(!is_cxi_device(OsStr::new("console")));
    }
}
