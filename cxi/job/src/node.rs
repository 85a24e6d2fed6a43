//! The NICs of a node, as a scheduler sees them: which are usable, and which are close.
//!
//! ```
//! use cxi_job::Node;
//! use cxi_mock::{Credentials, MockNode, NicConfig};
//!
//! // On a real node: Node::discover(&Host::system())?
//! let mock = MockNode::with_nics(2, &NicConfig::new())?;
//! let node = Node::from_transports(mock.devices(&Credentials::root())?);
//! let usable: Vec<String> = node.usable().map(|nic| nic.id().to_string()).collect();
//! assert_eq!(usable, ["cxi0", "cxi1"]);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

use cxi::error::{Error, Result};
use cxi::{Device, DeviceId, DeviceInfo, Host, Platform, Service};
use cxi_ioctl::Transport;

use cxi_site::durable::{FileLock, LockError, LockGuard};
use cxi_site::{IdSet, ProcFs};

/// The NICs of a node, by number.
///
/// Their properties are read once; opened NICs stay open.
#[derive(Debug, Clone)]
pub struct Node {
    nics: Vec<NodeNic>,
    lock: Option<FileLock>,
    proc: ProcFs,
}

/// One NIC of a node.
#[derive(Debug, Clone)]
pub struct NodeNic {
    id: DeviceId,
    device: Option<Device>,
    info: Option<DeviceInfo>,
    cpus: IdSet,
    problems: Vec<NicProblem>,
}

/// Reason for which a job cannot use a NIC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "problem", rename_all = "snake_case")]
#[non_exhaustive]
pub enum NicProblem {
    /// It cannot be opened, or does not answer.
    Unavailable {
        /// The cause.
        reason: String,
    },
    /// It is a virtual function: services are made on its physical function.
    VirtualFunction,
    /// Its link is down.
    LinkDown,
    /// No retry handler is running for it; libfabric does not use such a NIC.
    NoRetryHandler,
}

impl fmt::Display for NicProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable { reason } => f.write_str(reason),
            Self::VirtualFunction => f.write_str(
                "it is a virtual function: services can be created only on its physical function",
            ),
            Self::LinkDown => f.write_str("its link is down"),
            Self::NoRetryHandler => f.write_str(
                "no retry handler (cxi_rh) runs for it, and libfabric does not use such a NIC",
            ),
        }
    }
}

impl NodeNic {
    fn new(id: DeviceId, found: Result<(Device, DeviceInfo)>) -> Self {
        match found {
            Ok((device, info)) => Self {
                id,
                problems: problems(&info),
                cpus: near_cpus(&info),
                device: Some(device),
                info: Some(info),
            },
            Err(error) => Self::unavailable(id, None, &error),
        }
    }

    fn unavailable(id: DeviceId, device: Option<Device>, error: &Error) -> Self {
        Self {
            id,
            device,
            info: None,
            cpus: IdSet::new(),
            problems: vec![NicProblem::Unavailable {
                reason: error.clone().without_device().to_string(),
            }],
        }
    }

    /// The NIC's id.
    #[must_use]
    pub const fn id(&self) -> DeviceId {
        self.id
    }

    /// The open NIC; `None` if it could not be opened. A NIC with a problem may still be open.
    #[must_use]
    pub const fn device(&self) -> Option<&Device> {
        self.device.as_ref()
    }

    /// Its properties; `None` if it did not answer.
    #[must_use]
    pub const fn info(&self) -> Option<&DeviceInfo> {
        self.info.as_ref()
    }

    /// The NUMA node that it is attached to, if sysfs reports one.
    #[must_use]
    pub fn numa_node(&self) -> Option<u32> {
        self.info.as_ref().and_then(|info| info.numa_node)
    }

    /// The CPUs that it is close to; empty if sysfs does not report any.
    #[must_use]
    pub const fn cpus(&self) -> &IdSet {
        &self.cpus
    }

    /// Returns whether a job can use it.
    #[must_use]
    pub const fn is_usable(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns the reasons for which a job cannot use it; empty if it can.
    #[must_use]
    pub fn problems(&self) -> &[NicProblem] {
        &self.problems
    }

    /// Returns whether it is known to be a virtual function, which shows the services of its
    /// physical function and cannot change them.
    #[must_use]
    pub fn is_virtual_function(&self) -> bool {
        self.problems.contains(&NicProblem::VirtualFunction)
    }
}

pub(crate) fn problems(info: &DeviceInfo) -> Vec<NicProblem> {
    let simulator = !matches!(info.platform, Platform::Asic);
    let checks = [
        (info.virtual_function == Some(true), NicProblem::VirtualFunction),
        (!info.link_up, NicProblem::LinkDown),
        // A simulator loses no packets and so has no retry handler.
        (!simulator && !info.is_retry_handler_running(), NicProblem::NoRetryHandler),
    ];
    checks.into_iter().filter(|(wrong, _)| *wrong).map(|(_, problem)| problem).collect()
}

fn near_cpus(info: &DeviceInfo) -> IdSet {
    // A NIC whose list cannot be read counts as close to no CPU, and is still used.
    let list = info.local_cpus.as_deref();
    list.and_then(|list| list.parse().ok()).unwrap_or_default()
}

impl Node {
    /// Finds, opens and queries every NIC of the node.
    ///
    /// A NIC that cannot be opened is listed with the reason. On a node without NICs the list is
    /// empty.
    ///
    /// # Errors
    ///
    /// The directory of devices exists but cannot be read.
    pub fn discover(host: &Host) -> Result<Self> {
        let found = host.devices()?;
        let nics = found.into_iter().map(|found| {
            let id = found.id();
            NodeNic::new(id, found.into_parts())
        });
        Ok(Self::sorted(nics.collect()))
    }

    /// Makes a node of these NICs, and queries each for its properties.
    #[must_use]
    pub fn from_devices(devices: impl IntoIterator<Item = Device>) -> Self {
        let nics = devices.into_iter().map(|device| match device.info() {
            Ok(info) => NodeNic::new(device.id(), Ok((device, info))),
            Err(error) => NodeNic::unavailable(device.id(), Some(device), &error),
        });
        Self::sorted(nics.collect())
    }

    /// Makes a node of NICs with other transports, by number: in tests, those of a mock node.
    #[must_use]
    pub fn from_transports<T: Transport + 'static>(
        nics: impl IntoIterator<Item = (u32, T)>,
    ) -> Self {
        let nics = nics.into_iter();
        Self::from_devices(
            nics.map(|(number, nic)| Device::with_transport(DeviceId::new(number), nic)),
        )
    }

    fn sorted(mut nics: Vec<NodeNic>) -> Self {
        nics.sort_by_key(NodeNic::id);
        Self { nics, lock: None, proc: ProcFs::system() }
    }

    /// Sets the lock that serializes all changes of services.
    ///
    /// Everything that makes or destroys services for jobs on this node should use the same lock:
    /// the prolog holds it while it makes them, the epilog and the cleanup for each attempt.
    #[must_use]
    pub fn with_lock(mut self, lock: FileLock) -> Self {
        self.lock = Some(lock);
        self
    }

    /// Sets where to look for the processes that have a NIC open. The default is `/proc`.
    #[must_use]
    pub fn with_proc(mut self, proc: ProcFs) -> Self {
        self.proc = proc;
        self
    }

    pub(super) const fn has_lock(&self) -> bool {
        self.lock.is_some()
    }

    /// Keeps other processes from changing services until the returned guard is dropped.
    pub(super) fn acquire(&self) -> Result<Option<LockGuard>, LockError> {
        self.lock.as_ref().map(FileLock::acquire).transpose()
    }

    /// The same for a thread that has waited this long for its turn within the process.
    pub(super) fn acquire_after(&self, waited: Duration) -> Result<Option<LockGuard>, LockError> {
        self.lock.as_ref().map(|lock| lock.clone().less(waited).acquire()).transpose()
    }

    pub(super) const fn proc(&self) -> &ProcFs {
        &self.proc
    }

    /// Every NIC, by number.
    #[must_use]
    pub fn nics(&self) -> &[NodeNic] {
        &self.nics
    }

    /// The NIC with this number.
    #[must_use]
    pub fn nic(&self, id: DeviceId) -> Option<&NodeNic> {
        self.nics.iter().find(|nic| nic.id == id)
    }

    /// The NICs that a job can use, by number.
    pub fn usable(&self) -> impl Iterator<Item = &NodeNic> {
        self.nics.iter().filter(|nic| nic.is_usable())
    }

    /// The services that a test selects, on all NICs.
    ///
    /// # Errors
    ///
    /// A NIC cannot be queried.
    pub fn services(
        &self,
        selects: impl Fn(&Device, &Service) -> bool,
    ) -> Result<Vec<(DeviceId, Service)>> {
        let mut selected = Vec::new();
        for (_, device) in self.manageable() {
            let services = device.services().list()?.into_iter();
            let services = services.filter(|service| selects(device, service));
            selected.extend(services.map(|service| (device.id(), service)));
        }
        Ok(selected)
    }

    /// The NICs whose services can be read and changed, whether or not a job can use them.
    ///
    /// A virtual function only repeats what its physical function shows.
    pub(super) fn manageable(&self) -> impl Iterator<Item = (&NodeNic, &Device)> {
        let nics = self.nics.iter().filter(|nic| !nic.is_virtual_function());
        nics.filter_map(|nic| Some((nic, nic.device.as_ref()?)))
    }
}

impl Node {
    /// The usable NICs closest to a set of CPUs, by number: those close to most of them.
    ///
    /// If none is close to any of the CPUs, or sysfs reports nothing, all usable NICs are equally
    /// close.
    #[must_use]
    pub fn closest(&self, cpus: &IdSet) -> Vec<DeviceId> {
        let shared = |near: &IdSet| near.intersection(cpus).len();
        let most = self.usable().map(|nic| shared(nic.cpus())).max();
        self.usable().filter(|nic| Some(shared(nic.cpus())) == most).map(NodeNic::id).collect()
    }

    /// Assigns a NIC to each of this many processes, in turn. Empty if no NIC is usable.
    #[must_use]
    pub fn round_robin(&self, ranks: usize) -> Vec<DeviceId> {
        let nics: Vec<DeviceId> = self.usable().map(NodeNic::id).collect();
        nics.iter().copied().cycle().take(ranks).collect()
    }

    /// Assigns a NIC to each process, given its CPUs: of the [`closest`](Self::closest) NICs, the
    /// one with the fewest processes so far. Empty if no NIC is usable.
    #[must_use]
    pub fn closest_for_ranks(&self, ranks: &[IdSet]) -> Vec<DeviceId> {
        let mut plan: Vec<DeviceId> = Vec::with_capacity(ranks.len());
        for cpus in ranks {
            let users = |nic: &DeviceId| plan.iter().filter(|taken| *taken == nic).count();
            plan.extend(self.closest(cpus).into_iter().min_by_key(users));
        }
        plan
    }
}
