//! The data of requests: copies between processes, a piece at a time, and atomics.

use cxi_hw::{DmaOp, ReturnCode};

use crate::landing::Landing;
use crate::packet::Data;
use crate::signals::Signals;
use crate::translation::{Access, Scatter, Translation};
use crate::{Settings, atomic, request_header};

/// Bytes that one step copies: about a tenth of a millisecond, during which the engine is locked.
const PIECE: usize = 1 << 20;
/// Bytes that are copied between two processes at a time: few enough for a processor's own cache.
const BOUNCE: usize = 1 << 17;

/// The outcome of moving a request's data: the value that a fetching atomic found, or zeros.
pub(crate) type Moved = Result<[u8; 16], ReturnCode>;

/// A copy that is under way.
#[derive(Debug)]
struct Transfer {
    landing: Landing,
    /// Memory of the initiator.
    remote: Scatter,
    done: u64,
}

impl Transfer {
    fn left(&self) -> u64 {
        u64::from(self.landing.mlength) - self.done
    }
}

/// Moves the data of requests, one at a time.
#[derive(Debug, Default)]
pub(crate) struct Transfers {
    /// A copy that is longer than one step.
    current: Option<Box<Transfer>>,
    /// The buffer between the memories of two processes.
    bounce: Vec<u8>,
}

impl Transfers {
    pub(crate) fn is_busy(&self) -> bool {
        self.current.is_some()
    }

    /// Moves the data of a request; `None` if there is more, which the next steps move.
    pub(crate) fn start(
        &mut self,
        landing: &Landing,
        data: &Data,
        settings: &Settings,
        translation: &Translation,
        signals: &mut Signals,
    ) -> Option<Moved> {
        let prepared = match landing.request.op {
            DmaOp::ATOMIC | DmaOp::FETCHING_ATOMIC => {
                return Some(apply_atomic(landing, translation));
            }
            DmaOp::GET => prepare_get(landing, data, translation),
            _ => store_head(landing, data, settings, translation, signals),
        };
        match prepared {
            Err(code) => Some(Err(code)),
            Ok(Some(remote)) if landing.mlength > 0 => {
                self.current = Some(Box::new(Transfer {
                    landing: *landing,
                    remote,
                    done: 0,
                }));
                self.step(translation).map(|(_, moved)| moved)
            }
            Ok(_) => Some(Ok([0; 16])),
        }
    }

    /// Copies the next piece of the current copy. Returns its request if the copy has ended.
    pub(crate) fn step(&mut self, translation: &Translation) -> Option<(Landing, Moved)> {
        let mut transfer = self.current.take()?;
        let copied = self.copy_piece(&mut transfer, translation);
        if copied.is_ok() && transfer.left() > 0 {
            self.current = Some(transfer);
            return None;
        }
        Some((transfer.landing, copied.map(|()| [0; 16])))
    }

    /// Copies a piece. The entry's memory is looked up again for each piece, because it may be gone
    /// by then.
    fn copy_piece(
        &mut self,
        transfer: &mut Transfer,
        translation: &Translation,
    ) -> Result<(), ReturnCode> {
        let landing = &transfer.landing;
        let put = landing.request.op != DmaOp::GET;
        let len = usize::try_from(transfer.left()).map_or(PIECE, |left| left.min(PIECE));
        let context = (landing.rgid, landing.entry.lac);
        let (header, access) = if put {
            (landing.header.into(), Access::Write)
        } else {
            (0, Access::Read)
        };
        let iova = landing.iova + header + transfer.done;
        let entry = translation.translate(context, iova, len as u64, access)?;
        let (remote, local) = ((&transfer.remote, transfer.done), (&entry, 0));
        // Rule 15.4: Memory that disappears during a copy is an error of the side that it belongs
        // to; bytes already copied stay.
        let (source_error, missing) = (ReturnCode::SRC_ERROR, ReturnCode::NO_TRANSLATION);
        let (from, to, unread, unwritten) = if put {
            (remote, local, source_error, missing)
        } else {
            (local, remote, missing, source_error)
        };
        let bounce = self.bounce.len().max(len.min(BOUNCE));
        self.bounce.resize(bounce, 0);
        for at in (0..len).step_by(BOUNCE) {
            let part = &mut self.bounce[..BOUNCE.min(len - at)];
            let read = from.0.read(from.1 + at as u64, part);
            read.map_err(|_| unread)?;
            let written = to.0.write(to.1 + at as u64, part);
            written.map_err(|_| unwritten)?;
        }
        transfer.done += len as u64;
        Ok(())
    }
}

fn apply_atomic(landing: &Landing, translation: &Translation) -> Moved {
    let Some(atomic) = &landing.request.atomic else {
        return Err(ReturnCode::AMO_INVAL_OP_ERROR);
    };
    let context = (landing.rgid, landing.entry.lac);
    let at = translation.translate(context, landing.iova, landing.mlength.into(), Access::Both)?;
    let mut fetched = [0; 16];
    at.update(landing.mlength as usize, &mut |value| {
        let old = &mut fetched[..value.len()];
        old.copy_from_slice(value);
        atomic::apply(atomic, value);
    })?;
    Ok(fetched)
}

/// Stores the header and the immediate data of a put. Returns where the rest goes, if there is
/// more.
fn store_head(
    landing: &Landing,
    data: &Data,
    settings: &Settings,
    translation: &Translation,
    signals: &mut Signals,
) -> Result<Option<Scatter>, ReturnCode> {
    let context = (landing.rgid, landing.entry.lac);
    let whole = u64::from(landing.header) + u64::from(landing.mlength);
    // All of the memory must exist before any of it is written.
    let to = translation.translate(context, landing.iova, whole, Access::Write)?;
    if landing.header > 0 {
        // Rule 11.7: On the request list the packet headers precede the data.
        let header = request_header::encode(&landing.request, landing.back.nid, settings);
        to.write(0, &header[..landing.header as usize])?;
    }
    match data {
        Data::Inline(bytes, len) => {
            let bytes = &bytes[..(*len).min(landing.mlength as usize)];
            match to.single() {
                // The event is for the same process most of the time, and an access to its memory
                // may be a system call, so both are stored by one.
                Some(segment) if landing.header == 0 && !landing.keeps_header() => {
                    signals.stage(segment, bytes);
                }
                _ => to.write(landing.header.into(), bytes)?,
            }
            Ok(None)
        }
        Data::Memory(from) => Ok(Some(from.clone())),
        Data::None => Ok(None),
    }
}

/// Checks the memory of a get. Returns where the bytes go.
fn prepare_get(
    landing: &Landing,
    data: &Data,
    translation: &Translation,
) -> Result<Option<Scatter>, ReturnCode> {
    let context = (landing.rgid, landing.entry.lac);
    // Rule 8.8: A get reads from the entry and stores at the initiator before its REPLY.
    translation.translate(context, landing.iova, landing.mlength.into(), Access::Read)?;
    match data {
        Data::Memory(to) => Ok(Some(to.clone())),
        _ => Ok(None),
    }
}
