//! The C library as C programs see it: names, layouts, recorded behavior, and lives on served
//! nodes. Needs a C compiler; what else a test needs it says when it is skipped.

mod callers;
mod compiled;
mod cost;
mod explained;
mod headers;
mod job;
mod lies;
mod life;
mod recorded;
mod symbols;
mod tools;
mod vectors;

// Linked for their archives.
use cxi_capi as _;
use cxi_job_capi as _;
