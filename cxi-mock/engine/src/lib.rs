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
mod event_queue;
mod fabric;
mod flight;
mod immediate;
mod index;
mod issue;
mod landing;
mod object;
mod observe;
mod packet;
mod pools;
mod portal;
pub mod reduction;
mod rendezvous;
mod request_header;
mod seam;
mod search;
mod sequence;
mod snapshot;
mod staged;
mod step;
mod table;
mod target;
mod telemetry;
mod transfer;
mod translation;
mod transmit;
mod triggered;

pub use cxi_hw::CounterDoorbell;
pub use engine::Engine;
pub use fabric::{Fabric, FabricFaults, MulticastTree};
pub use object::{
    CommunicationProfile, Counter, EntryPool, EventBuffer, EventFlags, EventQueue, NoTransition,
    PoolLimits, Portal, PortalOptions, PortalStatus, Region, Settings, TargetQueue, Thresholds,
    TransmitQueue, UpdatePolicy, WriteBack,
};
pub use observe::{ObservedOperation, Observer};
pub use seam::{ClientMemory, CommandPages, CounterPages, Effect, EventPages, MemoryFault};
pub use snapshot::{EntrySnapshot, PortalSnapshot, UnexpectedSnapshot};
pub use telemetry::{Counts, ElementTelemetry, EntryCounts, Outcomes, Telemetry};
