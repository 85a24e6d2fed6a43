//! A pool of VNIs in a file: commands that overlap, are killed, find the disk full, or
//! run as root.

#[path = "../common/mod.rs"]
mod common;
mod kills;
mod log;
mod owner;
mod turns;
