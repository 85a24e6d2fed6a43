//! The functions that C calls, by subject. Each does what the function of the same name in HPE's
//! library does; `docs/C-ABI.md` lists the differences.

#![allow(unsafe_code, reason = "exported names")]
#![allow(
    clippy::needless_pass_by_value,
    reason = "C passes pointers; their types here cannot be copied"
)]

mod csr;
mod ct;
mod device;
mod error;
mod evtq;
mod link;
mod lni;
mod md;
mod profile;
mod pte;
mod queue;
mod service;
mod telemetry;
mod wait;
