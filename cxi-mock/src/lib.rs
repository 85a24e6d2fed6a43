//! A mock of the CXI kernel device.
//!
//! [`Nic`] is a NIC with its driver; [`Client`] is an open file of it; a command is bytes, as the
//! driver takes them, written by a caller with [`Credentials`].
#![forbid(unsafe_code)]

mod client;
mod config;
mod credentials;
mod fault;
mod hardware;
mod hazard;
mod identity;
mod nic;
mod node;
#[cfg(feature = "serde")]
mod release_name;
mod rules;
#[cfg(feature = "serve")]
pub mod serve;
mod snapshot;
mod state;
mod transport;

pub use client::{CallerMemory, Client};
pub use config::{LoadError, ModuleParameters, NicConfig, Totals};
pub use credentials::Credentials;
pub use fault::{Fault, Faults};
pub use hardware::{Hardware, NoSuchPlace};
pub use hazard::{Hazard, HazardKind};
pub use identity::{Identity, NoPciAddress, PciAddress};
pub use nic::Nic;
pub use node::MockNode;
pub use snapshot::{
    AccessSnapshot, HeldSnapshot, Inconsistency, NicSnapshot, NodeSnapshot, RxProfileSnapshot,
    SNAPSHOT_VERSION, ServiceSnapshot, SnapshotError, SnapshotHeader, TxProfileSnapshot,
};
pub use state::{
    AccessEntryState, EntryState, NicState, ObjectCounts, ResourceGroupState, ResourceState,
    RgidState, RxProfileState, TxProfileState,
};
pub use transport::InProcess;
