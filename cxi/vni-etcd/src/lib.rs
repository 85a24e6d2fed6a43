#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod gateway;
mod log;

pub use log::EtcdLog;
