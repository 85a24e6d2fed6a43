//! Jobs of a whole cluster: its controller decides what a job gets, nodes record, make and destroy its
//! services, and confirm.
//!
//! ```text
//!   controller                                    each node of the job
//!
//!   Controller::reserve --> running/JOB/job.json ---> ComputeNode::prolog: reads, records,
//!                           running/JOB/reservation.json   makes services
//!   Controller::release --> ended/JOB/job.json        ComputeNode::epilog: services gone,
//!                           ended/JOB/confirmed/NODE <---  confirms, removes its record
//!   VNIs are free when all nodes have confirmed      ComputeNode::clean: what is left
//! ```
//!
//! The controller's directory (setting `controller.records`) is on a file system that all nodes
//! mount; each node's records (`node.records`) and the pool are local. The command `cxi job` is this
//! module with options and texts, and shares all files with it.
//!
//! `examples/cluster.rs` takes a job through its life.

mod allowance;
mod compute_node;
mod controller;
mod decisions;
mod error;
mod job_records;
pub mod keys;
mod known_jobs;
mod ledger;
#[cfg(feature = "fabric-manager")]
#[cfg_attr(docsrs, doc(cfg(feature = "fabric-manager")))]
mod manager;
mod mismatch;
mod network;
mod pool_store;
mod service_records;
mod shape;
pub mod store;

pub use compute_node::{
    Access, Cleaned, Cleaning, ComputeNode, Started, StartingJob, StepEnvironment,
};
pub use controller::{Adopted, Controller, Done, ReserveRequest, Warning};
pub use decisions::{Component, Decision};
pub use error::{NicsUnavailable, SiteError};
pub use job_records::{CollectivesRecord, JobRecord};
#[cfg(feature = "fabric-manager")]
#[cfg_attr(docsrs, doc(cfg(feature = "fabric-manager")))]
pub use manager::{end_inherited_step, fabric_manager};
pub use mismatch::Mismatch;
pub use network::NetworkOptions;
pub use pool_store::{Act, PoolStore};
pub use service_records::{HeldRecord, ServiceRecord, ServiceRecords};
pub use shape::JobShape;

use cxi_site::NodeName;
use cxi_site::settings::Settings;

/// A site, by its settings.
#[derive(Clone, Debug)]
pub struct Site {
    settings: Settings,
}

impl Site {
    /// Opens a site. Nothing is read or written yet.
    ///
    /// # Errors
    ///
    /// [`SiteError::Setting`]: the file contains an unknown setting or an invalid value.
    pub fn open(settings: Settings) -> Result<Self, SiteError> {
        settings.check(keys::ALL)?;
        Ok(Self { settings })
    }

    /// The settings.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The site's controller, with its pool of VNIs.
    ///
    /// # Errors
    ///
    /// [`SiteError::NoController`] and [`SiteError::Setting`].
    pub fn controller<'a>(&self, pool: impl PoolStore + 'a) -> Result<Controller<'a>, SiteError> {
        Controller::open(&self.settings, pool)
    }

    /// A node of the site, usually this machine.
    ///
    /// # Errors
    ///
    /// [`SiteError::Setting`].
    pub fn node<'a>(&self, name: NodeName) -> Result<ComputeNode<'a>, SiteError> {
        ComputeNode::open(&self.settings, name)
    }
}
