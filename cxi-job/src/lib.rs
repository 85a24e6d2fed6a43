//! The scheduler layer for HPE Slingshot's Cassini NIC (CXI): what a job needs on every NIC of a
//! node, and the books behind it.
//!
//! A job's life: its scheduler reserves VNIs ([`VniPool`]), the prolog on each node allocates a
//! service on every NIC or none ([`Node::allocate`]), the job's processes get their environment
//! ([`SlingshotEnv`]), the epilog releases ([`Node::release`]), and what a crash left behind is
//! found and cleaned up ([`Node::clean`], [`Node::audit`]). A refusal is explained, with who holds
//! what is missing ([`Explanation`]).
// docs.rs says at an item which feature it needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod allocate;
pub mod audit;
pub mod check;
pub mod clean;
pub mod collectives;
mod describe;
pub mod environment;
pub mod explain;
mod grant;
pub mod idset;
pub mod limits;
pub mod lock;
pub mod na;
mod name;
pub mod node;
mod parallel;
pub mod pool;
pub mod proc;
pub mod release;
mod request;
mod view;

#[doc(inline)]
pub use allocate::AllocateError;
#[doc(inline)]
pub use audit::AuditOptions;
#[doc(inline)]
pub use clean::CleanPolicy;
#[doc(inline)]
pub use environment::SlingshotEnv;
#[doc(inline)]
pub use explain::Explanation;
pub use grant::{Grant, GrantedService, LeftOut};
#[doc(inline)]
pub use idset::{IdSet, ParseIdSetError, ParseIdSetErrorKind};
#[doc(inline)]
pub use lock::FileLock;
pub use name::{JobId, NameError, NodeName, StepId, TenantName};
#[doc(inline)]
pub use node::{NicProblem, Node, NodeNic};
#[doc(inline)]
pub use pool::VniPool;
#[doc(inline)]
pub use proc::ProcFs;
#[doc(inline)]
pub use release::{Filter, ReleaseOptions, ReleaseReport, ReleaseStatus};
pub use request::{InvalidJobRequest, JobLimits, JobRequest, JobRequestBuilder, NicPolicy};
