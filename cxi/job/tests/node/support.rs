//! Nodes of mock NICs whose commands can be made to fail.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use cxi::{Clock, Device, DeviceId, Service, ServiceId, Vni};
use cxi_ioctl::{Errno, Faulty, Mapping, Request, Transport};
use cxi_job::limits::{LimitPolicy, Mode, Multiplier};
use cxi_job::{AllocateError, CleanPolicy, Grant, JobLimits, JobRequest, JobRequestBuilder, Node};
use cxi_mock::{Credentials, InProcess, MockNode, Nic, NicConfig};

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

pub(crate) fn mock(nics: u8) -> MockNode {
    MockNode::with_nics(nics, &NicConfig::new()).unwrap()
}

/// What cleans up VNIs that a scheduler assigns.
pub(crate) fn pool() -> CleanPolicy<'static> {
    CleanPolicy::new("1024-65535".parse().unwrap())
}

pub(crate) fn open(nic: &Arc<Nic>) -> InProcess {
    nic.open().unwrap().transport(ROOT)
}

/// The NICs of a mock node as a scheduler has them.
pub(crate) fn node(mock: &MockNode) -> Node {
    Node::from_devices(devices(mock))
}

pub(crate) fn devices(mock: &MockNode) -> Vec<Device> {
    let nics = mock.nics().iter().zip(0..);
    nics.map(|(nic, number)| Device::with_transport(cxi(number), Arc::new(open(nic))))
        .collect()
}

pub(crate) type FaultyFile = Arc<Faulty<InProcess>>;

/// A node whose NICs can be made to fail.
pub(crate) fn faulty(mock: &MockNode) -> (Node, Vec<FaultyFile>) {
    let faults: Vec<FaultyFile> = mock
        .nics()
        .iter()
        .map(|nic| Arc::new(Faulty::new(open(nic))))
        .collect();
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
        let users = services
            .into_iter()
            .filter(|service| !service.id().is_default());
        users.map(move |service| (device.id(), service))
    };
    devices(mock).into_iter().flat_map(list).collect()
}

pub(crate) fn ids(services: &[(DeviceId, Service)]) -> Vec<(DeviceId, ServiceId)> {
    services
        .iter()
        .map(|(device, service)| (*device, service.id()))
        .collect()
}

/// A job with that user and VNI.
pub(crate) fn job(uid: u32, number: u16) -> JobRequestBuilder {
    JobRequest::builder().uid(uid).vni(vni(number))
}

pub(crate) fn allocate(node: &Node, request: JobRequestBuilder) -> Grant {
    node.allocate(&request.build().unwrap())
        .unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn refuse(node: &Node, request: JobRequestBuilder) -> AllocateError {
    node.allocate(&request.build().unwrap()).unwrap_err()
}

pub(crate) fn planned(cores: u32, mode: Mode) -> JobLimits {
    JobLimits::Planned {
        policy: LimitPolicy::hpe_recommended(),
        size: Multiplier::Cores(cores),
        mode,
    }
}

/// Numbers that are random enough, and the same in each run of a thread.
#[derive(Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
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

/// The life of a process: this many commands succeed on all NICs together, then no more do, as when
/// the process is killed at that point.
#[derive(Debug)]
pub(crate) struct Life {
    left: Mutex<u64>,
}

#[derive(Debug)]
struct Mortal {
    inner: InProcess,
    life: Arc<Life>,
}

impl Transport for Mortal {
    fn submit(&self, request: Request<'_>) -> Result<(), Errno> {
        // Commands of several NICs one after the other: only whole commands go through.
        let mut left = self.life.left.lock().unwrap();
        match left.checked_sub(1) {
            None => Err(Errno::EIO),
            Some(after) => {
                *left = after;
                self.inner.submit(request)
            }
        }
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        self.inner.map(offset, len)
    }
}

/// A node that is used by a process that dies after this many commands, not counting those that open
/// the node.
pub(crate) fn mortal(mock: &MockNode, commands: u64) -> (Node, Arc<Life>) {
    let life = Arc::new(Life {
        left: Mutex::new(u64::MAX),
    });
    let devices = mock.nics().iter().zip(0..).map(|(nic, number)| {
        let transport = Mortal {
            inner: open(nic),
            life: Arc::clone(&life),
        };
        Device::with_transport(cxi(number), Arc::new(transport))
    });
    let node = Node::from_devices(devices);
    *life.left.lock().unwrap() = commands;
    (node, life)
}

impl Life {
    /// Whether the process lived on.
    pub(crate) fn survived(&self) -> bool {
        *self.left.lock().unwrap() > 0
    }
}
