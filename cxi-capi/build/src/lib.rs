//! Makes `libcxi.so.1` and `libcxi.a` from the archive of cxi-capi, with a C compiler as linker.
//!
//! rustc cannot: it has a version script of its own, and a library without HPE's symbol versions
//! is none that programs of theirs start with.

#![forbid(unsafe_code)]

mod headers;
mod install;
mod link;
mod tool;

pub use headers::write_headers;
pub use install::{Places, install};
pub use link::{Library, SONAME};
pub use tool::{Result, compiler};
