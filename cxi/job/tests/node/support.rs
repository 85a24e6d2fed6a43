//! Nodes of mock NICs whose commands can be made to fail.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cxi::{Clock, Device, DeviceId, Service, ServiceId, Vni};
use cxi_ioctl::{Errno, Faulty, Transport};
use cxi_job::limits::{LimitPolicy, Mode};
use cxi_job::{AllocateError, CleanPolicy, Grant, JobLimits, JobRequest, JobRequestBuilder, Node};
use cxi_mock::{Credentials, InProcess, MockNode, Nic, NicConfig};
use cxi_site::FileLock;
use cxi_site::proc::ProcFs;
pub(crate) use cxi_test_kit::{devices, node as mock};
use tempfile::TempDir;

use crate::around::through;

pub(crate) const ROOT: Credentials = Credentials::root();

pub(crate) fn cxi(number: u32) -> DeviceId {
    DeviceId::new(number)
}

pub(crate) fn vni(number: u16) -> Vni {
    Vni::new(number).unwrap()
}

pub(crate) fn id(number: u32) -> ServiceId {
    ServiceId::new(number).unwrap()
}

/// Returns a policy that cleans up VNIs that a scheduler assigns.
pub(crate) fn pool() -> CleanPolicy<'static> {
    CleanPolicy::new("1024-65535".parse().unwrap()).foreign(true)
}

pub(crate) fn open(nic: &Arc<Nic>) -> InProcess {
    nic.open_as(ROOT).unwrap()
}

/// The first NIC in the hands of a user.
pub(crate) fn of_user(mock: &MockNode, uid: u32) -> Device {
    Device::cxi0(mock.nics()[0].open_as(Credentials::user(uid, 6)).unwrap())
}

/// A virtual function of the first NIC, cxi1, and the sysfs that says so.
pub(crate) fn virtual_function() -> (MockNode, TempDir, Device) {
    let mock = MockNode::with_nics(1, &NicConfig::new().virtual_functions(1)).unwrap();
    let sysfs = tempfile::tempdir().unwrap();
    let directory = sysfs.path().join("class/cxi_user/cxi1/device");
    fs::create_dir_all(&directory).unwrap();
    symlink("../pf", directory.join("physfn")).unwrap();
    let file = mock.nics()[0].open_vf(0).unwrap().transport(ROOT);
    let device = Device::with_sysfs(cxi(1), Arc::new(file), sysfs.path());
    (mock, sysfs, device)
}

/// A lock of a node, as long as its directory exists.
pub(crate) fn lock() -> (TempDir, FileLock) {
    let directory = tempfile::tempdir().unwrap();
    let lock = FileLock::new(directory.path().join("node.lock"));
    (directory, lock)
}

/// A process in `/proc` that has the first NIC open.
pub(crate) fn add_process(proc: &Path, pid: u32, name: &str, uid: u32) {
    let directory = proc.join(pid.to_string());
    let nic = proc.join("dev/cxi0");
    for kind in ["fd", "fdinfo"] {
        fs::create_dir_all(directory.join(kind)).unwrap();
    }
    let inode = fs::metadata(&nic).unwrap().ino();
    fs::write(directory.join("fdinfo/9"), format!("mnt_id:\t9\nino:\t{inode}\n")).unwrap();
    symlink(nic, directory.join("fd/9")).unwrap();
    let status = format!("Name:\t{name}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n");
    fs::write(directory.join("status"), status).unwrap();
}

/// A `/proc` without processes, next to the devices of a node with one NIC.
pub(crate) fn empty_proc() -> (TempDir, ProcFs) {
    let root = tempfile::tempdir().unwrap();
    let dev = root.path().join("dev");
    fs::create_dir(&dev).unwrap();
    fs::write(dev.join("cxi0"), "").unwrap();
    let proc = ProcFs::with_root(root.path()).dev(dev);
    (root, proc)
}

/// Checks a text against a pattern, in which `*` stands for anything.
#[track_caller]
pub(crate) fn like(text: &impl ToString, pattern: &str) {
    let text = text.to_string();
    let (first, rest) = pattern.split_once('*').unwrap();
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    let inside = text.strip_prefix(first).and_then(|text| text.strip_suffix(last));
    let is_like = inside.is_some_and(|inside| inside.contains(middle));
    assert!(is_like, "expected {pattern}, got {text}");
}

pub(crate) fn texts<T: ToString>(items: impl IntoIterator<Item = T>) -> Vec<String> {
    items.into_iter().map(|item| item.to_string()).collect()
}

/// The NICs of a mock node as a scheduler has them.
pub(crate) fn node(mock: &MockNode) -> Node {
    Node::from_devices(devices(mock))
}

pub(crate) type FaultyFile = Arc<Faulty<InProcess>>;

/// A node whose NICs can be made to fail.
pub(crate) fn faulty(mock: &MockNode) -> (Node, Vec<FaultyFile>) {
    let faults: Vec<FaultyFile> =
        mock.nics().iter().map(|nic| Arc::new(Faulty::new(open(nic)))).collect();
    let devices = faults.iter().zip(0..).map(|(fault, number)| {
        let transport: Arc<dyn Transport> = Arc::<Faulty<InProcess>>::clone(fault);
        Device::with_transport(cxi(number), transport)
    });
    (Node::from_devices(devices), faults)
}

/// The services of a node other than the default ones, without regard to faults.
pub(crate) fn user_services(mock: &MockNode) -> Vec<(DeviceId, Service)> {
    let list = |device: Device| {
        let services = device.services().list().unwrap();
        let users = services.into_iter().filter(|service| !service.id().is_default());
        users.map(move |service| (device.id(), service))
    };
    devices(mock).into_iter().flat_map(list).collect()
}

/// The same without a command to a NIC.
pub(crate) fn existing(mock: &MockNode) -> Vec<(DeviceId, ServiceId)> {
    let of_nic = |(number, nic): (u32, &Arc<Nic>)| {
        let groups = nic.state().rgroups;
        let users = groups.into_iter().filter(|group| group.has_svc && group.id != 1);
        users.map(move |group| (cxi(number), id(group.id)))
    };
    (0..).zip(mock.nics()).flat_map(of_nic).collect()
}

pub(crate) fn ids(services: &[(DeviceId, Service)]) -> Vec<(DeviceId, ServiceId)> {
    services.iter().map(|(device, service)| (*device, service.id())).collect()
}

/// A job with that user and VNI.
pub(crate) fn job(uid: u32, number: u16) -> JobRequestBuilder {
    JobRequest::builder().uid(uid).vni(vni(number))
}

pub(crate) fn allocate(node: &Node, request: JobRequestBuilder) -> Grant {
    node.allocate(&request.build().unwrap()).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn refuse(node: &Node, request: JobRequestBuilder) -> AllocateError {
    node.allocate(&request.build().unwrap()).unwrap_err()
}

pub(crate) fn planned(cores: u32, mode: Mode) -> JobLimits {
    JobLimits::Planned { policy: LimitPolicy::hpe_recommended(), size: cores, mode }
}

/// A clock on which waiting takes no time.
#[derive(Debug, Default)]
pub(crate) struct FakeClock {
    now: Mutex<Duration>,
    pauses: Mutex<Vec<Duration>>,
}

impl FakeClock {
    pub(crate) fn pauses(&self) -> Vec<Duration> {
        self.pauses.lock().unwrap().clone()
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Duration {
        *self.now.lock().unwrap()
    }

    fn sleep(&self, time: Duration) {
        *self.now.lock().unwrap() += time;
        self.pauses.lock().unwrap().push(time);
    }
}

/// A node that is used by a process that dies after this many commands on all NICs together, not
/// counting those that open the node: then no more go through.
pub(crate) fn mortal(mock: &MockNode, commands: u64) -> Node {
    let life = Arc::new(Mutex::new(u64::MAX));
    let of_process = Arc::clone(&life);
    let node = through(mock, move |file, request| {
        // Commands of several NICs one after the other: only whole commands go through.
        let mut left = of_process.lock().unwrap();
        *left = left.checked_sub(1).ok_or(Errno::EIO)?;
        file.submit(request)
    });
    *life.lock().unwrap() = commands;
    node
}
