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

const _: () = {
    const fn send_sync<T: Send + Sync>() {}
    send_sync::<Faulty<crate::CharDev>>();
    send_sync::<Record<crate::CharDev>>();
    send_sync::<Replay>();
    send_sync::<Trace<crate::CharDev>>();
    send_sync::<TraceLog>();
};
