//! The decisions and files of a site with HPE Slingshot's Cassini NIC (CXI): which job has which VNIs,
//! the settings of its machines, and reservations at the fabric manager. Nothing here sends a command
//! to a NIC; the crate `cxi-job` does.
//!
//! | for | use |
//! |---|---|
//! | the VNIs of a cluster | [`SharedPool`] on a [log](pool::log) |
//! | settings in a file and in variables | [`settings`] |
//! | files that survive a crash, and locks | [`durable`], [`FileLock`] |
//! | files that somebody else has made | [`input`], [`secret`] |
//! | hardware collectives | [`collectives`], [`fabric`] |
//! | names and lists of jobs and nodes | [`JobId`], [`NodeName`], [`HostList`], [`IdSet`] |
//! | processes that have a device open | [`ProcFs`] |
//! | a program that has to end in time | [`end_within`] |
//!
//! ```
//! use cxi_site::pool::log::FileLog;
//! use cxi_site::pool::{PoolConfig, Timestamp, VniRequest};
//! use cxi_site::{JobId, NodeName, SharedPool};
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("vni-pool");
//!
//! // The pool has no clock: each change takes the time.
//! let now = Timestamp::now();
//! let config = PoolConfig::new("1024-65535".parse()?);
//! let mut pool = SharedPool::open(FileLog::new(&path), config, "controller", 0, now)?;
//! let job = JobId::new("4711")?;
//! assert_eq!(pool.reserve(&job, &VniRequest::vnis(1), now)?.to_string(), "VNI 1024");
//! // The job has ended; its VNI rests once each of its nodes has confirmed.
//! let name = NodeName::new("node1")?;
//! pool.release(&job, &[name.clone()], now)?;
//! pool.confirm(&job, &name, now)?;
//! assert_eq!(pool.pool().jobs().count(), 0);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
// docs.rs says at an item which feature it needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod child;
pub mod collectives;
pub mod durable;
mod error_code;
pub mod fabric;
mod host_list;
mod idset;
pub mod input;
mod mounts;
mod name;
pub mod pool;
pub mod proc;
pub mod secret;
pub mod settings;
mod text;

pub use child::end_within;
pub use durable::FileLock;
pub use error_code::ErrorCode;
pub use host_list::{HostList, cpus_at};
pub use idset::{IdSet, ParseIdSetError};
pub use name::{JobId, NameError, NodeName, StepId, TenantName};
#[doc(inline)]
pub use pool::VniPool;
#[doc(inline)]
pub use pool::log::SharedPool;
#[doc(inline)]
pub use proc::ProcFs;
pub use text::{excerpt, misleads, printable, printable_json};
