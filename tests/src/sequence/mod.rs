//! Sequences of commands from several open files and callers, played on the mock and on a
//! reference model that is written from the driver's described behavior alone: plain maps and
//! counters.
//!
//! The tests `properties` and the fuzz target `sequence` play them.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::struct_excessive_bools,
    reason = "an unpublished package: fields have the names of the kernel's, a difference panics"
)]

pub mod machine;
pub mod model;
pub mod operation;
pub mod strategy;
