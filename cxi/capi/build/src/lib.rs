//! Makes `libcxi.so.1` from the archive of cxi-capi and `libcxi_job.so.0` from that of
//! cxi-job-capi, and archives for C, with a C compiler as linker.
//!
//! rustc cannot: it has a version script of its own, and a library without HPE's symbol versions
//! does not work with programs that are linked with theirs.

#![forbid(unsafe_code)]

mod headers;
mod install;
mod link;
mod tool;

pub use headers::write_headers;
pub use install::{Places, install};
pub use link::{LIBCXI, LIBCXI_JOB, Library, Product, SONAME};
pub use tool::{Result, compiler};
