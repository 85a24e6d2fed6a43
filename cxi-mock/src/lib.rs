//! A mock of the CXI kernel device, for testing schedulers and tools without the hardware.
//!
//! [`Nic`] is a Cassini NIC with its driver loaded, [`MockNode`] a node with several NICs, and
//! [`MockCluster`] several nodes on one [`Fabric`]. A [`Client`] is an open file, and a command is
//! the bytes that the driver would take, written by a caller with [`Credentials`]. The mock
//! responds like the driver release chosen in [`NicConfig`], down to each errno, and keeps the same
//! accounting.
//!
//! ```
//! use cxi_ioctl::abi::service::{SvcAllocCmd, SvcDestroyCmd, SvcFlags};
//! use cxi_ioctl::{DriverRelease, Errno, execute};
//! use cxi_mock::{Credentials, Nic, NicConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let nic = Nic::new(NicConfig::new().release(DriverRelease::Shs14_0_0))?;
//! let root = nic.root()?;
//!
//! let mut alloc = SvcAllocCmd::new();
//! alloc.svc_desc.flags = SvcFlags::RESTRICTED_VNIS.bits();
//! alloc.svc_desc.num_vld_vnis = 1;
//! alloc.svc_desc.vnis[0] = 100;
//! let svc_id = execute(&root, &alloc)?.svc_id;
//! // In this release no other service can have the VNI.
//! assert_eq!(execute(&root, &alloc).unwrap_err().errno(), Errno::EEXIST);
//!
//! let mut destroy = SvcDestroyCmd::new();
//! destroy.svc_id = svc_id;
//! // The same open file in the hands of an ordinary user.
//! let user = root.with_credentials(Credentials::user(1000, 100));
//! assert_eq!(execute(&user, &destroy).unwrap_err().errno(), Errno::EPERM);
//! execute(&root, &destroy)?;
//! assert_eq!(nic.state().svc_count, 1);
//! # Ok(())
//! # }
//! ```
//!
//! With the crate `cxi`, a device is `Device::cxi0(nic.root()?)`; with `cxi-job`, a node is
//! `Node::from_transports(mock.devices(&Credentials::root())?)`. This test shows how a
//! program can be made to see a full NIC, and then one that has room again:
//!
//! ```
//! use cxi_ioctl::abi::service::SvcAllocCmd;
//! use cxi_ioctl::{Errno, Opcode, execute};
//! use cxi_mock::{Credentials, Fault, MockNode, NicConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let node = MockNode::with_nics(2, &NicConfig::new())?;
//! let files = node.devices(&Credentials::root())?;
//! // Once, cxi1 is full. `Fault::shortage` refuses those that ask for too much of a resource.
//! let nic = &node.nics()[1];
//! nic.faults().inject(Fault::errno(Errno::ENOSPC).on(Opcode::SVC_ALLOC).once());
//! let (number, file) = &files[1];
//! assert_eq!(*number, 1);
//! assert_eq!(execute(file, &SvcAllocCmd::new()).unwrap_err().errno(), Errno::ENOSPC);
//! execute(file, &SvcAllocCmd::new())?;
//! // Every SVC_DESTROY is refused until the fault is removed.
//! nic.faults().inject(Fault::errno(Errno::EBUSY).on(Opcode::SVC_DESTROY));
//! # Ok(())
//! # }
//! ```
//!
//! Tests can set what the hardware reports ([`Nic::hardware`]), make commands fail or take long,
//! and remove the NIC ([`Nic::faults`]). They can read the driver's accounting ([`Nic::state`]) and
//! the events that a real kernel might not survive ([`Nic::hazards`]), and preserve a node's
//! services between runs ([`MockNode::snapshot`]).
//!
//! The model does no I/O and has no clock or randomness. The only exception is windows of device
//! memory, which are in a memfd that is created when the first window is mapped.
// docs.rs shows which feature an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod caller_memory;
mod card;
mod client;
mod clock;
mod cluster;
mod config;
mod credentials;
mod data_path;
mod errnos;
mod fault;
mod fault_spec;
mod file_fault;
mod hardware;
mod hazard;
mod identity;
mod nic;
mod node;
mod rules;
pub mod serve;
mod snapshot;
mod state;
mod sweep;

pub use caller_memory::{Backing, CallerMemory};
pub use card::{Card, UnknownCard};
pub use client::{Client, InProcess};
pub use clock::Clock;
pub use cluster::{ClusterError, MockCluster};
pub use config::{LoadError, ModuleParameters, NicConfig, Totals};
pub use credentials::Credentials;
pub use cxi_engine::{
    ClientMemory, EntrySnapshot, Fabric, FabricFaults, MemoryFault, MulticastTree, PortalSnapshot,
    SplitMix64, Telemetry, UnexpectedSnapshot,
};
pub use cxi_ioctl::Fault;
pub use errnos::Errnos;
pub use fault::Faults;
pub use fault_spec::{FaultSpec, InvalidFault};
pub use file_fault::{FileFault, Reading};
pub use hardware::{Hardware, NoSuchPlace};
pub use hazard::{Hazard, HazardKind};
pub use identity::Identity;
pub use nic::{Inconsistency, Nic, NicSnapshot, SnapshotError};
pub use node::MockNode;
pub use snapshot::NodeSnapshot;
pub use state::{
    AccessEntryState, EntryState, NicState, ObjectCounts, ProfileState, ResourceGroupState,
    ResourceState, RgidState, RxProfileState, TxProfileState,
};
pub use sweep::{
    Attempt, Case, Ended, FailureKind, FailurePoint, Failures, Finding, FindingKind,
    InvalidFailure, Left, Observed, Pairs, Script, Surroundings, SweepConfig, SweepError,
    SweepOptions, SweepReport, sweep, sweep_with,
};
