//! The command `cxi`, as a library for its `main` and for tests of its parsers.
//!
//! Other programs should build on the crate `cxi` instead.
#![forbid(unsafe_code)]
#![allow(
    clippy::format_push_string,
    clippy::format_collect,
    reason = "a few lines for people: the plain form reads better"
)]

mod app;
mod args;
mod audit;
mod cdi;
mod cli;
mod collectives;
mod complete;
mod deferred;
mod devices;
mod errnos;
mod examples;
mod exit;
mod explain;
mod fabric;
mod failure;
mod files;
mod generate;
mod help;
mod integration;
mod job;
mod metrics;
mod node;
mod options;
mod output;
mod preflight;
pub mod read;
#[cfg(test)]
mod reference;
mod selftest;
mod service;
mod settings;
mod spec_file;
mod top;
mod vni;

pub use app::run;
