//! Builds `libcxi.so.1` from the archive of cxi-capi, `libcxi_job.so.0` from that of cxi-job-capi, and
//! static libraries for C, with a C compiler as the linker.
//!
//! rustc cannot do this, because it uses its own version script. A library without HPE's symbol
//! versions would not work with programs that were linked with HPE's library.

#![forbid(unsafe_code)]

mod headers;
mod install;
mod link;
mod tool;

pub use headers::write_headers;
pub use install::{Places, install};
pub use link::{LIBCXI, LIBCXI_JOB, Library, Product, SONAME};
pub use tool::{Result, compiler};
