#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod api;
mod control;
mod http;
mod listener;
pub mod model;
mod server;
mod switches;

pub use api::{Access, Config, Delivery, Effect, Endpoint, Fault, JournalEntry};
pub use model::{Forget, Settings, State};
pub use server::MockFabricManager;
pub use switches::TreeChange;
