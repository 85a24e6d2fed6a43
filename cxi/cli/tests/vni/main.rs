//! A pool of VNIs in a file, with its log: commands that overlap, are killed, find the disk full, or
//! run as root.

#[path = "../common/mod.rs"]
mod common;
mod kills;
mod log;
mod owner;
mod replay;
mod turns;
