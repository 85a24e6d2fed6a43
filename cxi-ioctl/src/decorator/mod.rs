//! Transports around other transports: tracing, injecting faults, recording, replaying.

mod fault;
mod intercept;
mod mask;
mod observe;
mod recording;
mod replay;

pub use fault::{Fault, Faulty, Strike};
pub use intercept::Intercept;
pub use observe::{Record, Trace};
pub use recording::{Exchange, Recording};
pub use replay::{Divergence, Replay};
