//! Lays the mock's devices and files over the real `/dev` and `/sys`.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, open};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::Mode;
use nix::unistd::{getegid, geteuid};

use super::descriptors::without_descriptors;
use super::error::{Doing, ServeError};
use super::privileges::mount_refused;

/// Where the mock's file system is mounted: the PCI functions of the NICs stand in it.
pub(crate) const DEVICES: &str = "/sys/devices/cxi-mock";

/// Whether the mock's file system is mounted where this process looks.
pub(crate) fn is_mock() -> bool {
    /// What `statfs(2)` says of FUSE.
    const FUSE_SUPER_MAGIC: rustix::fs::FsWord = 0x6573_5546;
    rustix::fs::statfs(DEVICES).is_ok_and(|at| at.f_type == FUSE_SUPER_MAGIC)
}

/// The parts of sysfs that get something added, and the directories that must be there.
const SYSFS: [(&str, &[&str]); 4] = [
    ("class", &["cxi", "cxi_user", "net"]),
    ("devices", &["cxi-mock"]),
    ("bus", &["pci/devices", "pci/drivers/cxi_ss1"]),
    ("module", &["cxi_ss1"]),
];

/// Directories of links that change when a NIC comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LinkDirectory {
    /// `/sys/class/cxi`
    ClassCxi,
    /// `/sys/class/cxi_user`
    ClassCxiUser,
    /// `/sys/class/net`, where the real interfaces stay.
    ClassNet,
    /// `/sys/bus/pci/devices`, where the real devices stay.
    PciDevices,
    /// `/sys/bus/pci/drivers/cxi_ss1`
    Driver,
}

impl LinkDirectory {
    const ALL: [Self; 5] = [
        Self::ClassCxi,
        Self::ClassCxiUser,
        Self::ClassNet,
        Self::PciDevices,
        Self::Driver,
    ];

    fn path(self) -> &'static str {
        match self {
            Self::ClassCxi => "/sys/class/cxi",
            Self::ClassCxiUser => "/sys/class/cxi_user",
            Self::ClassNet => "/sys/class/net",
            Self::PciDevices => "/sys/bus/pci/devices",
            Self::Driver => "/sys/bus/pci/drivers/cxi_ss1",
        }
    }

    fn keeps_real_links(self) -> bool {
        matches!(self, Self::ClassNet | Self::PciDevices)
    }
}

/// A tmpfs to build on, gone when dropped; what was bound elsewhere stays.
#[derive(Debug)]
pub(crate) struct Stage {
    root: PathBuf,
}

impl Stage {
    /// Covers a directory that this process does not read in the meantime.
    pub(crate) fn new() -> Result<Self, ServeError> {
        let root = ["/mnt", "/media", "/srv", "/opt", "/run", "/tmp", "/var"]
            .into_iter()
            .map(PathBuf::from)
            .find(|path| path.is_dir())
            .ok_or_else(|| {
                ServeError::missing(
                    "there is no directory to prepare mounts in",
                    "Make an empty directory /mnt.",
                )
            })?;
        mount(
            Some("cxi-mock"),
            &root,
            Some("tmpfs"),
            MsFlags::MS_NOSUID,
            Some("mode=755,size=16m"),
        )
        .map_err(|errno| mount_refused("a tmpfs", errno))?;
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

/// Makes room in sysfs: overlays with the new directories on top of the real ones.
pub(crate) fn extend_sysfs(stage: &Stage) -> Result<(), ServeError> {
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
        mount(
            Some("cxi-mock"),
            &target,
            Some("overlay"),
            MsFlags::empty(),
            Some(layers.as_str()),
        )
        .map_err(|errno| mount_refused(&format!("an overlay on {}", target.display()), errno))?;
    }
    Ok(())
}

/// Mounts the mock's file system where the devices go. From then on `fuse` must be answered.
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

/// Lays a `/etc/hosts` over the real one, if there is one.
pub(crate) fn lay_hosts(stage: &Stage, text: &str) -> Result<(), ServeError> {
    const HOSTS: &str = "/etc/hosts";
    if !Path::new(HOSTS).is_file() {
        return Ok(());
    }
    let ours = stage.directory("etc")?.join("hosts");
    fs::write(&ours, text).doing(|| format!("write {HOSTS}"))?;
    bind(&ours, Path::new(HOSTS))
}

/// Where programs find the credentials of a fabric manager.
pub(crate) const CREDENTIALS: &str = "/dev/fabric-manager";

/// Writes the credentials of a fabric manager, to be laid with `/dev`.
pub(crate) fn prepare_credentials(
    stage: &Stage,
    files: &[(&str, String)],
) -> Result<(), ServeError> {
    let directory = stage.directory(CREDENTIALS.trim_start_matches('/'))?;
    files.iter().try_for_each(|(name, text)| {
        fs::write(directory.join(name), text).doing(|| format!("write {CREDENTIALS}/{name}"))
    })
}

/// Gives the node shared memory of its own: processes of different nodes have the same numbers, and
/// would find each other there.
pub(crate) fn lay_shared_memory() -> Result<(), ServeError> {
    const SHARED_MEMORY: &str = "/dev/shm";
    if !Path::new(SHARED_MEMORY).is_dir() {
        return Ok(());
    }
    mount(
        Some("cxi-mock"),
        SHARED_MEMORY,
        Some("tmpfs"),
        MsFlags::MS_NOSUID | MsFlags::MS_NODEV,
        Some("mode=1777"),
    )
    .map_err(|errno| mount_refused("a tmpfs", errno))
}

/// The places where a NIC shows up.
#[derive(Debug)]
pub(crate) struct Places {
    dev: OwnedFd,
    links: Vec<(LinkDirectory, OwnedFd)>,
}

impl Places {
    /// Lays `/dev` and the directories of links over the real ones. The file system must be
    /// answering. `own_network`: of the real network devices, loopback alone is there.
    pub(crate) fn lay(stage: &Stage, own_network: bool) -> Result<Self, ServeError> {
        let module = Path::new(DEVICES).join("module");
        without_descriptors(|| bind(&module, Path::new("/sys/module/cxi_ss1")))?;
        let mut links = Vec::new();
        for directory in LinkDirectory::ALL {
            let real = Path::new(directory.path());
            let ours = stage.directory(&format!("links{}", directory.path()))?;
            let loopback_only = own_network && directory == LinkDirectory::ClassNet;
            if directory.keeps_real_links() {
                copy_links(real, &ours, |name| !loopback_only || name == "lo")?;
            }
            bind(&ours, real)?;
            links.push((directory, open_directory(real)?));
        }
        let dev = stage.directory("dev")?;
        copy_dev(&dev)?;
        bind(&dev, Path::new("/dev"))?;
        Ok(Self {
            dev: open_directory(Path::new("/dev"))?,
            links,
        })
    }

    /// Makes a link in one of the directories.
    pub(crate) fn link(
        &self,
        directory: LinkDirectory,
        name: &str,
        target: &str,
    ) -> Result<(), ServeError> {
        let path = self.link_path(directory, name);
        let _ = fs::remove_file(&path);
        symlink(target, &path).doing(|| format!("link {}/{name}", directory.path()))
    }

    /// Removes a link.
    pub(crate) fn unlink(&self, directory: LinkDirectory, name: &str) -> Result<(), ServeError> {
        absent_is_fine(fs::remove_file(self.link_path(directory, name)))
            .doing(|| format!("remove {}/{name}", directory.path()))
    }

    /// Makes `/dev/NAME`: a link, since a node that is mounted there would be one inode for all who
    /// open it, and each open file must have its own.
    pub(crate) fn add_device(&self, name: &str) -> Result<(), ServeError> {
        let link = child_of(&self.dev, name);
        symlink(format!("..{DEVICES}/nodes/{name}"), link).doing(|| format!("make /dev/{name}"))
    }

    /// Removes `/dev/NAME`. Files that are open stay so.
    pub(crate) fn remove_device(&self, name: &str) -> Result<(), ServeError> {
        let link = child_of(&self.dev, name);
        absent_is_fine(fs::remove_file(link)).doing(|| format!("remove /dev/{name}"))
    }

    fn link_path(&self, directory: LinkDirectory, name: &str) -> PathBuf {
        self.links
            .iter()
            .find(|(known, _)| *known == directory)
            .map_or_else(
                || Path::new(directory.path()).join(name),
                |(_, fd)| child_of(fd, name),
            )
    }
}

/// Programs may mount over the paths: what was opened at the start stays what it is.
fn child_of(directory: &OwnedFd, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()))
}

fn open_directory(path: &Path) -> Result<OwnedFd, ServeError> {
    open(
        path,
        OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC,
        Mode::empty(),
    )
    .doing(|| format!("open {}", path.display()))
}

fn bind(source: &Path, target: &Path) -> Result<(), ServeError> {
    mount(
        Some(source),
        target,
        None::<&str>,
        MsFlags::MS_BIND | MsFlags::MS_REC,
        None::<&str>,
    )
    .map_err(|errno| mount_refused(&format!("a binding on {}", target.display()), errno))
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn copy_links(from: &Path, to: &Path, keep: impl Fn(&OsStr) -> bool) -> Result<(), ServeError> {
    for entry in entries(from)? {
        if !keep(&entry.file_name()) {
            continue;
        }
        if let Ok(target) = fs::read_link(entry.path()) {
            let copy = to.join(entry.file_name());
            symlink(target, &copy).doing(|| format!("copy the link {}", entry.path().display()))?;
        }
    }
    Ok(())
}

/// A `/dev` with everything of the real one but its CXI devices.
fn copy_dev(to: &Path) -> Result<(), ServeError> {
    for entry in entries(Path::new("/dev"))? {
        let name = entry.file_name();
        if is_cxi_device(&name) {
            continue;
        }
        let (source, copy) = (entry.path(), to.join(&name));
        if copy.exists() {
            // Ours covers that of a node around this one.
            continue;
        }
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        let what = || format!("copy {}", source.display());
        if kind.is_symlink() {
            let target = fs::read_link(&source).doing(what)?;
            symlink(target, &copy).doing(what)?;
        } else if kind.is_dir() {
            fs::create_dir(&copy).doing(what)?;
            bind(&source, &copy)?;
        } else {
            File::create(&copy).doing(what)?;
            match bind(&source, &copy) {
                Ok(()) => {}
                // A node that has vanished in the meantime.
                Err(_) if !source.exists() => absent_is_fine(fs::remove_file(&copy)).doing(what)?,
                Err(error) => return Err(error),
            }
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
