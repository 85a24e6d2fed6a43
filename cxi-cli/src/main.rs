//! The command `cxi`.
#![forbid(unsafe_code)]
#![allow(
    clippy::format_push_string,
    clippy::format_collect,
    reason = "a few lines for people: the plain form reads better"
)]

mod app;
mod args;
mod audit;
mod cli;
mod demo;
mod devices;
mod exit;
mod explain;
mod generate;
mod input;
mod job;
mod node;
mod output;
mod service;
mod spec_file;
mod state_file;
mod vni;
mod wanted;

use std::process::ExitCode;

fn main() -> ExitCode {
    app::run()
}
