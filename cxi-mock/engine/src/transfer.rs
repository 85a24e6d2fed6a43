//! The data of requests: copies between processes, a piece at a time, and atomics.

use cxi_hw::{DmaOp, ReturnCode};

use crate::dma::{self, Then};
use crate::landing::Landing;
use crate::packet::Data;
use crate::translation::{Access, Scatter, Translation};
use crate::{Settings, request_header};

/// Bytes that are copied between two processes at a time: few enough for a processor's own cache.
const PIECE: usize = 1 << 17;

/// The outcome of moving a request's data: the value that a fetching atomic found, or zeros.
pub(crate) type Moved = Result<[u8; 16], ReturnCode>;

/// Continuation of a request with its data.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Move {
    /// With an access, and what it is for.
    Access(dma::Access, Then),
    /// It has ended.
    End(Box<Landing>, Moved),
}

/// A copy that is under way.
#[derive(Debug)]
pub(crate) struct Copy {
    pub(crate) landing: Box<Landing>,
    /// Memory of the initiator.
    remote: Scatter,
    done: u64,
}

impl Copy {
    fn is_put(&self) -> bool {
        self.landing.request.op != DmaOp::GET
    }

    /// Memory of the entry for a piece. It is looked up for each piece: it may be gone by then.
    fn entry(&self, translation: &Translation, len: usize) -> Result<Scatter, ReturnCode> {
        let landing = &self.landing;
        let context = (landing.rgid, landing.entry.lac);
        let (header, access) =
            if self.is_put() { (landing.header.into(), Access::Write) } else { (0, Access::Read) };
        let iova = landing.iova + header + self.done;
        translation.translate(context, iova, len as u64, access)
    }

    /// Reads the next piece, if there is one.
    pub(crate) fn read(self, translation: &Translation) -> Move {
        let left = u64::from(self.landing.mlength) - self.done;
        let len = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
        if len == 0 {
            return Move::End(self.landing, Ok([0; 16]));
        }
        let from = if self.is_put() {
            Ok((self.remote.clone(), self.done))
        } else {
            self.entry(translation, len).map(|entry| (entry, 0))
        };
        match from {
            Ok((from, offset)) => {
                let access = dma::Access::Read(from, offset, len, Vec::new());
                Move::Access(access, Then::Read(self))
            }
            Err(code) => Move::End(self.landing, Err(code)),
        }
    }

    /// Stores a piece, if it could be read.
    pub(crate) fn write(self, bytes: Option<Vec<u8>>, translation: &Translation) -> Move {
        let Some(bytes) = bytes else {
            let of_entry = !self.is_put();
            return self.fail(of_entry);
        };
        let len = bytes.len();
        let to = if self.is_put() {
            self.entry(translation, len).map(|entry| (entry, 0))
        } else {
            Ok((self.remote.clone(), self.done))
        };
        match to {
            Ok((to, offset)) => {
                let access = dma::Access::Write(to, offset, bytes);
                Move::Access(access, Then::Written(self, len))
            }
            Err(code) => Move::End(self.landing, Err(code)),
        }
    }

    /// Goes on after a piece of that many bytes, if it could be stored.
    pub(crate) fn written(mut self, len: Option<usize>, translation: &Translation) -> Move {
        let Some(len) = len else {
            let of_entry = self.is_put();
            return self.fail(of_entry);
        };
        self.done += len as u64;
        self.read(translation)
    }

    /// Ends as memory is not there, of the entry or of the initiator.
    fn fail(self, of_entry: bool) -> Move {
        // Rule 15.4: Memory that disappears during a copy is an error of the side that it belongs
        // to; bytes already copied stay.
        let code = if of_entry { ReturnCode::NO_TRANSLATION } else { ReturnCode::SRC_ERROR };
        Move::End(self.landing, Err(code))
    }
}

/// Starts to move the data of a request.
pub(crate) fn start(
    landing: Box<Landing>,
    data: Data,
    settings: &Settings,
    translation: &Translation,
) -> Move {
    let moves = match landing.request.op {
        DmaOp::ATOMIC | DmaOp::FETCHING_ATOMIC => apply_atomic(&landing, translation),
        DmaOp::GET => prepare_get(&landing, data, translation),
        _ => store_head(&landing, data, settings, translation),
    };
    let (head, remote) = match moves {
        Ok(moves) => moves,
        Err(code) => return Move::End(landing, Err(code)),
    };
    match (head, remote) {
        (Some(head), Some(remote)) => {
            Move::Access(head, Then::Written(Copy { landing, remote, done: 0 }, 0))
        }
        (None, Some(remote)) => Copy { landing, remote, done: 0 }.read(translation),
        (Some(head), None) => Move::Access(head, Then::Landed(landing)),
        (None, None) => Move::End(landing, Ok([0; 16])),
    }
}

/// The first access, and the initiator's memory for the rest.
type Moves = (Option<dma::Access>, Option<Scatter>);

fn apply_atomic(landing: &Landing, translation: &Translation) -> Result<Moves, ReturnCode> {
    let Some(atomic) = landing.request.atomic else { return Err(ReturnCode::AMO_INVAL_OP_ERROR) };
    let context = (landing.rgid, landing.entry.lac);
    let at = translation.translate(context, landing.iova, landing.mlength.into(), Access::Both)?;
    let access = dma::Access::Update(at, atomic, landing.mlength as usize, [0; 16]);
    Ok((Some(access), None))
}

/// The header and the immediate data of a put, and where more of it is.
fn store_head(
    landing: &Landing,
    data: Data,
    settings: &Settings,
    translation: &Translation,
) -> Result<Moves, ReturnCode> {
    let context = (landing.rgid, landing.entry.lac);
    let whole = u64::from(landing.header) + u64::from(landing.mlength);
    // All of the memory must exist before any of it is written.
    let to = translation.translate(context, landing.iova, whole, Access::Write)?;
    let (mut bytes, remote) = match data {
        Data::Inline(bytes) => (bytes, None),
        Data::Memory(from) => (Vec::new(), Some(from)),
        Data::None => (Vec::new(), None),
    };
    bytes.truncate(landing.mlength as usize);
    if landing.header > 0 {
        // Rule 11.7: On the request list the packet headers precede the data.
        let header = request_header::encode(&landing.request, landing.back.nid, settings);
        bytes.splice(..0, header.into_iter().take(landing.header as usize));
    }
    let head = (!bytes.is_empty()).then(|| dma::Access::Write(to, 0, bytes));
    Ok((head, remote))
}

/// Checks the memory of a get. Returns where the bytes go.
fn prepare_get(
    landing: &Landing,
    data: Data,
    translation: &Translation,
) -> Result<Moves, ReturnCode> {
    let context = (landing.rgid, landing.entry.lac);
    // Rule 8.8: A get reads from the entry and stores at the initiator before its REPLY.
    translation.translate(context, landing.iova, landing.mlength.into(), Access::Read)?;
    Ok(match data {
        Data::Memory(to) => (None, Some(to)),
        _ => (None, None),
    })
}
