//! A pool of VNIs in a file, and the records of a controller: commands that overlap, are killed, find
//! the disk full, or run as root.

#[path = "../common/mod.rs"]
mod common;
mod job_kills;
mod kills;
mod log;
mod owner;
mod turns;
