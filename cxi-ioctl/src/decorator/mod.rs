//! Transports around other transports: tracing, injecting faults, recording, replaying.

mod fault;
mod record;
mod recording;
mod replay;
mod trace;

pub use fault::{Fault, Faulty, Strike};
pub use record::Record;
pub use recording::{Exchange, ParseRecordingError, Recording};
pub use replay::{Divergence, Replay};
pub use trace::{Trace, TraceEntry, TraceEvent, TraceLog};
