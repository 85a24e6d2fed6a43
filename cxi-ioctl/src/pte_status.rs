//! PTE_STATUS, which reads its response buffer before it writes there.

#![allow(
    unsafe_code,
    reason = "the room for a list has to be what the command says"
)]

use zerocopy::{FromZeros, IntoBytes};

use crate::abi::portal::{PteStatus, PteStatusCmd};
use crate::command::{Extra, submit};
use crate::{Command, CommandError, LIST_HEADROOM, Transport};

/// More LEs than any NIC has: a response that still contains this was not written, or only in part.
const NO_LES: u16 = 0xB5B5;

/// Returns the state of a PtlTE, and the remote offsets of its first unexpected list entries, at
/// most `room` (PTE_STATUS, `cxil_pte_status`). [`PteStatus::ule_count`] is how many there are in
/// total.
///
/// # Errors
///
/// EINVAL for an unknown PtlTE; otherwise as [`execute`](crate::execute). A response that ends
/// after the numbers of LEs cannot be distinguished from a complete one, because the rest of it is
/// also an input.
pub fn pte_status(
    transport: &dyn Transport,
    pte_index: u32,
    room: u16,
) -> Result<(PteStatus, Vec<u64>), CommandError> {
    let mut offsets = vec![0_u64; LIST_HEADROOM * usize::from(room)];
    let mut input = PteStatus::new_zeroed();
    input.ule_count = room;
    input.les_reserved = NO_LES;
    input.les_allocated = NO_LES;
    input.les_max = NO_LES;
    let command = PteStatusCmd {
        pte_index,
        ..PteStatusCmd::new()
    };
    let extra = Extra {
        input: Some(&input),
        list: offsets.as_mut_bytes(),
        ..Extra::default()
    };
    // SAFETY: the driver writes at most `ule_count` offsets, and there is room for twice as many.
    let status = unsafe { submit(transport, &command, extra) }.map_err(|refusal| refusal.error)?;
    if status.les_max >> 8 == NO_LES >> 8 {
        return Err(CommandError::AbiMismatch {
            opcode: PteStatusCmd::OPCODE,
            expected: size_of::<PteStatus>(),
            written: if status.les_reserved == NO_LES { 0 } else { 8 },
        });
    }
    offsets.truncate(room.min(status.ule_count).into());
    Ok((status, offsets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Errno, Mapping, Request};

    /// Writes this many bytes of a response, all of value 1.
    #[derive(Debug)]
    struct Answers(usize);

    impl Transport for Answers {
        fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
            let (count, _) = request.response()[24..26].split_first_chunk::<2>().unwrap();
            assert_eq!(
                usize::from(u16::from_ne_bytes(*count)) * 8 * LIST_HEADROOM,
                request.list().len()
            );
            request.response()[..self.0].fill(1);
            Ok(())
        }

        fn map(&self, _offset: u64, _len: usize) -> Result<Mapping, Errno> {
            Err(Errno::ENODEV)
        }
    }

    #[test]
    fn an_answer_that_ends_early_is_a_mismatch() {
        let status = |len| pte_status(&Answers(len), 7, 3);
        assert_eq!(status(32).unwrap().0.les_max, 0x0101);
        for len in [0, 4, 8, 9, 10, 11, 33, 36] {
            let error = status(len).unwrap_err();
            assert_eq!(error.errno(), Errno::EPROTO, "{len} bytes");
        }
    }
}
