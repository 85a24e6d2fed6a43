//! Operations of a program on the mock, and the errors that it gets.

#[path = "../../examples/common/mod.rs"]
mod common;
mod compile_fail;
mod cost;
mod counters;
mod dma_atomics;
mod lists;
mod messages;
mod queues;
mod rendezvous;
mod scene;
mod telemetry;
