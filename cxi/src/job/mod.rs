//! The scheduler layer: what a job needs on every NIC of a node, and the books behind it.

pub mod collectives;
pub mod environment;
pub mod idset;
pub mod limits;
pub mod na;
mod name;
pub mod pool;

#[doc(inline)]
pub use environment::SlingshotEnv;
#[doc(inline)]
pub use idset::{IdSet, ParseIdSetError, ParseIdSetErrorKind};
pub use name::{JobId, NameError, NodeName, StepId, TenantName};
#[doc(inline)]
pub use pool::VniPool;
