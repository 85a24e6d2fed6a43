//! The scheduler layer for HPE Slingshot's Cassini NIC (CXI). It sets up a job's services on every
//! NIC of a node. Its VNIs come from the pool of the crate [`cxi_site`].
//!
//! # The life of a job
//!
//! ```text
//!   controller          each node of the job                                      controller
//!
//!   SharedPool::reserve prolog           step            epilog                   SharedPool::confirm
//!   ------------------> Node::allocate   SlingshotEnv    Node::release ---------> VNIs rest, then
//!   VNIs of the job     all NICs or      environment     services are gone,       are free again
//!                       none: a Grant    of each task    or still busy
//!                          |                                |
//!                          | killed                         | killed, or busy for too long
//!                          v                                v
//!                       Node::clean: what ended jobs left behind
//! ```
//!
//! Prolog, epilog and cleanup of one node share a [`FileLock`]. A refusal comes with an
//! [`Explanation`]: what is missing, which services hold it, and what to do. [`Node::audit`] finds
//! problems before a job does.
//!
//! The controller's pool is a [`SharedPool`] on a log: a change is on the disk before its result is
//! returned, so no VNI is ever assigned twice.
//!
//! ```
//! # use cxi::Device;
//! # use cxi_mock::{MockNode, NicConfig};
//! use cxi_job::{Filter, JobRequest, Node, ReleaseOptions, ReleaseStatus};
//! use cxi_site::pool::log::{FileLog, SharedPool};
//! use cxi_site::pool::{PoolConfig, Timestamp, VniRequest};
//! use cxi_site::{JobId, NodeName};
//! # let mock = MockNode::with_nics(1, &NicConfig::new())?;
//! # let node = Node::from_devices([Device::cxi0(mock.nics()[0].root()?)]);
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("vni-pool");
//!
//! // The controller. The pool itself has no clock: each change takes the time.
//! let now = Timestamp::now();
//! let config = PoolConfig::new("1024-65535".parse()?);
//! let mut pool = SharedPool::open(FileLog::new(&path), config, "controller", 0, now)?;
//! let job = JobId::new("4711")?;
//! let vnis = pool.reserve(&job, &VniRequest::vnis(1), now)?;
//! // The prolog; on a real node: Node::discover(&Host::system())?.with_lock(…)
//! let grant = node.allocate(&JobRequest::builder().uid(1000).vnis(vnis.iter()).build()?)?;
//! // The step.
//! assert_eq!(grant.env()?.vars()[0], ("SLINGSHOT_VNIS", "1024".to_owned()));
//! // The epilog.
//! let report = node.release(&Filter::for_grant(&grant), &ReleaseOptions::once());
//! assert_eq!(report.status(), ReleaseStatus::Done);
//! // The controller.
//! let name = NodeName::new("node1")?;
//! pool.release(&job, &[name.clone()], now)?;
//! pool.confirm(&job, &name, now)?;
//! assert_eq!(pool.pool().jobs().count(), 0);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # A prolog and an epilog
//!
//! [`Node::allocate`] makes services on all NICs or on none: before it returns an error, it
//! destroys the services it has created. The error says what could not be destroyed, if anything.
//!
//! After a failure, the job's VNIs are still reserved. Return them as after an epilog: call
//! [`SharedPool::release`] with the node, and [`SharedPool::confirm`] when none of the job's services
//! are left there. If services are left, or if the prolog was killed and there is no [`Grant`], call
//! [`Node::release`] in between, with [`Filter::for_job`]. [`SharedPool::cancel`] is only for a job
//! whose prolog never began on any node.
//!
//! ```no_run
//! use std::error::Error;
//! use std::time::Duration;
//!
//! use cxi::{Host, Vni};
//! use cxi_job::limits::{LimitPolicy, Mode};
//! use cxi_job::{Filter, Grant, JobLimits, JobRequest, Node, ReleaseOptions, ReleaseStatus};
//! use cxi_site::FileLock;
//!
//! fn node() -> cxi::Result<Node> {
//!     Ok(Node::discover(&Host::system())?.with_lock(FileLock::new("/run/cxi/node.lock")))
//! }
//!
//! fn prolog(uid: u32, vni: Vni, cores: u32) -> Result<Grant, Box<dyn Error>> {
//!     let (policy, size) = (LimitPolicy::hpe_recommended(), cores);
//!     let limits = JobLimits::planned(policy, size, Mode::Strict);
//!     let request = JobRequest::builder().uid(uid).vni(vni).limits(limits).build()?;
//!     Ok(node()?.allocate(&request)?)
//! }
//!
//! fn epilog(grant: &Grant) -> Result<(), Box<dyn Error>> {
//!     let options = ReleaseOptions::until(Duration::from_secs(5));
//!     let report = node()?.release(&Filter::for_grant(grant), &options);
//!     match report.status() {
//!         ReleaseStatus::Done | ReleaseStatus::NothingToDo => Ok(()),
//!         _ => Err(report.to_string().into()),
//!     }
//! }
//! ```
//!
//! # Testing a scheduler
//!
//! A node of the crate `cxi-mock` replaces the real one, and a fault simulates a full NIC:
//!
//! ```
//! use cxi::{Limit, Limits, Resource, Vni};
//! use cxi_job::{JobLimits, JobRequest, Node};
//! use cxi_mock::{Credentials, Fault, MockNode, NicConfig};
//!
//! let mock = MockNode::with_nics(2, &NicConfig::new())?;
//! mock.nics()[1].faults().inject(Fault::shortage(Resource::Txqs, 96));
//! let node = Node::from_transports(mock.devices(&Credentials::root())?);
//!
//! let limits = Limits::none().with(Resource::Txqs, Limit::exactly(128));
//! let request = JobRequest::builder()
//!     .uid(1000)
//!     .vni(Vni::new(1024)?)
//!     .limits(JobLimits::Fixed(limits))
//!     .build()?;
//! let refused = node.allocate(&request).unwrap_err().to_string();
//! assert!(refused.contains("cxi1: SVC_ALLOC: not enough TXQs: 128 requested, 96 available"));
//! // All NICs or none: only the default service is left on cxi0.
//! assert_eq!(mock.nics()[0].state().svc_count, 1);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! [`FileLock`]: cxi_site::FileLock
//! [`SharedPool`]: cxi_site::SharedPool
//! [`SharedPool::cancel`]: cxi_site::SharedPool::cancel
//! [`SharedPool::confirm`]: cxi_site::SharedPool::confirm
//! [`SharedPool::release`]: cxi_site::SharedPool::release
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
pub mod cluster;
mod describe;
pub mod environment;
pub mod explain;
mod grant;
mod job_request;
pub mod limits;
pub mod node;
pub mod owners;
mod parallel;
pub mod release;
mod view;

#[doc(inline)]
pub use allocate::AllocateError;
#[doc(inline)]
pub use audit::AuditOptions;
#[doc(inline)]
pub use clean::{CleanPolicy, live_vnis};
#[doc(inline)]
pub use environment::SlingshotEnv;
#[doc(inline)]
pub use explain::Explanation;
pub use grant::{Grant, GrantedService, LeftOut};
pub use job_request::{InvalidJobRequest, JobLimits, JobRequest, JobRequestBuilder, NicPolicy};
#[doc(inline)]
pub use node::{NicProblem, Node, NodeNic};
#[doc(inline)]
pub use release::{Filter, ReleaseOptions, ReleaseReport, ReleaseStatus};
