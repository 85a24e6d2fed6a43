//! What a program can do on the mock, and what it is told when it goes wrong.

#[path = "../../examples/common/mod.rs"]
mod common;
mod compile_fail;
mod cost;
mod counters;
mod lists;
mod messages;
mod queues;
mod scene;
