//! One test for each rule of the data path, by the numbers of docs/DATA-PATH.md.

#[path = "../rig/mod.rs"]
mod rig;

mod addresses;
mod atomics;
mod counters;
mod entries;
mod event_queues;
mod events;
mod memory;
mod messages;
mod objects;
mod order;
mod queues;
mod rendezvous;
mod search;
mod software;
mod states;
mod triggered;
