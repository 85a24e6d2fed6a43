//! Limits of a job's service on a NIC: pure planning from the job's size, a policy, and the
//! holdings of other services.
//!
//! For each resource, in saturating 32-bit arithmetic:
//!
//! 1. *wanted* is the policy's share times the job's size, or its fixed reservation;
//! 2. the *maximum* is the policy's, but no more than the device has (the driver would refuse that
//!    with EINVAL);
//! 3. *available* is the device's total less what system services (or all services, optionally)
//!    hold: the larger of reservation and use, where a use of 65535 means unknown;
//! 4. the reservation is the least of these, if the [`Mode`] allows it to be less than wanted; each
//!    cut is recorded with its reason and the holders.
//!
//! TLEs are special: the driver reserves all that a service may use, at least 8, and takes one of 4
//! pools for them, one of which the default service has. Without TLEs ([`LimitPolicy::tles`]) more than three
//! jobs fit on a NIC.
//!
//! ```
//! use cxi::{DeviceId, Limit, Limits, Resource, ResourceMap, ServiceId};
//! use cxi_job::limits::{LimitPolicy, Mode, NicUsage, ServiceUsage, Subtract, plan};
//!
//! let totals = ResourceMap::from([2048, 1024, 512, 2047, 2047, 16384, 2048, 1022]);
//! let mut held = Limits::default();
//! held[Resource::Ptes] = Limit::new(2000, 2048)?;
//! let other = ServiceUsage::new(ServiceId::new(5)?, held).owner("uid 5588");
//! let nic = NicUsage::new(DeviceId::new(1), totals, vec![other]);
//!
//! let policy = LimitPolicy::hpe_recommended().subtract(Subtract::All);
//! let size = 16;
//! let error = plan(&policy, size, &nic, Mode::Strict).unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "cxi1: 96 PTEs wanted, 48 available: 2000 held by service 5 (uid 5588)"
//! );
//!
//! let plan = plan(&policy, size, &nic, Mode::ScaleBack { floor: 1 })?;
//! assert_eq!(plan.limits[Resource::Ptes], Limit::new(48, 2048)?);
//! assert_eq!(plan.limits[Resource::Txqs], Limit::new(32, 1024)?);
//! assert_eq!(plan.limits[Resource::Tles], Limit::exactly(16));
//! assert_eq!(plan.cuts.len(), 1);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod nic_usage;
mod plan;
mod policy;
mod rgid;

pub use nic_usage::{Bottleneck, HeldBy, NicUsage, ServiceUsage, forecast};
pub use plan::{Cut, CutReason, LimitPlan, Mode, PlanError, plan};
pub use policy::{LimitPolicy, ResourcePolicy, Subtract};
pub(crate) use rgid::RgidSharing;
pub use rgid::{RgidError, lnis_per_rgid};
