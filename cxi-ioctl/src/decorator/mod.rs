//! Transports around other transports: looking on, failing on purpose, recording, replaying.

mod fault;
mod record;
mod recording;
mod replay;
mod trace;

pub use fault::{Fault, Injection};
pub use record::Record;
pub use recording::{Exchange, ParseRecordingError, Recording};
pub use replay::{Divergence, Replay};
pub use trace::{Trace, TraceEntry, TraceEvent, TraceLog};
