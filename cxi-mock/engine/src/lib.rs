#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod arrival;
mod atomic;
mod command_queue;
mod counter;
mod counter_names;
mod directory;
mod dma;
mod engine;
mod entry;
mod event_queue;
mod fabric;
mod landing;
mod link;
mod object;
mod observe;
mod packet;
mod pools;
mod portal;
mod random;
pub mod reduction;
mod rendezvous;
mod report;
mod request_header;
mod run;
mod seam;
mod send;
mod sequence;
mod signals;
mod snapshot;
mod table;
mod target;
mod telemetry;
mod transfer;
mod translation;

pub use command_queue::unwritten;
pub use cxi_hw::CounterDoorbell;
pub use dma::{Dma, Release};
pub use engine::Engine;
pub use fabric::{Fabric, FabricFaults, MulticastTree};
pub use object::{
    CommandQueue, CommunicationProfile, Counter, EntryPool, EventBuffer, EventFlags, EventQueue,
    NoTransition, PoolLimits, Portal, PortalOptions, PortalStatus, Region, Settings, Thresholds,
    Transmit, UpdatePolicy, WriteBack,
};
pub use observe::{ObservedOperation, Observer};
pub use random::SplitMix64;
pub use seam::{ClientMemory, CommandPages, CounterPages, Effect, EventPages, MemoryFault};
pub use snapshot::{EntrySnapshot, PortalSnapshot, UnexpectedSnapshot};
pub use telemetry::{Counts, ElementTelemetry, EntryCounts, Outcomes, Telemetry};
