//! PTE_STATUS, which reads its response buffer before it writes there.

use zerocopy::{FromZeros, IntoBytes};

use crate::abi::portal::{PteStatus, PteStatusCmd};
use crate::{Command, CommandError, Transport, execute_inout};

/// What no NIC has of LEs: an answer that still holds it was not written, or half of it.
const NO_LES: u16 = 0xB5B5;

/// The state of a PtlTE, and the remote offsets of its unexpected list entries, as many as there
/// is room for (PTE_STATUS, `cxil_pte_status`).
///
/// # Errors
///
/// EINVAL for an unknown PtlTE; else as [`execute`](crate::execute). A response that ends behind
/// the numbers of LEs cannot be told from a whole one, as the rest of it is an input too.
pub fn pte_status(
    transport: &dyn Transport,
    pte_index: u32,
    offsets: &mut [u64],
) -> Result<PteStatus, CommandError> {
    let room = u16::try_from(offsets.len()).unwrap_or(u16::MAX);
    let mut input = PteStatus::new_zeroed();
    input.ule_count = room;
    input.les_reserved = NO_LES;
    input.les_allocated = NO_LES;
    input.les_max = NO_LES;
    let command = PteStatusCmd {
        pte_index,
        ..PteStatusCmd::new()
    };
    let list = &mut offsets[..room.into()];
    let status = execute_inout(transport, &command, &input, list.as_mut_bytes())?;
    if status.les_max >> 8 == NO_LES >> 8 {
        return Err(CommandError::AbiMismatch {
            opcode: PteStatusCmd::OPCODE,
            expected: size_of::<PteStatus>(),
            written: if status.les_reserved == NO_LES { 0 } else { 8 },
        });
    }
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Errno, Mapping, Request};

    /// Writes so many bytes of an answer in which every byte is 1.
    #[derive(Debug)]
    struct Answers(usize);

    impl Transport for Answers {
        fn submit(&self, request: Request<'_>) -> Result<(), Errno> {
            let (count, _) = request.response[24..26].split_first_chunk::<2>().unwrap();
            assert_eq!(
                usize::from(u16::from_ne_bytes(*count)) * 8,
                request.list.len()
            );
            request.response[..self.0].fill(1);
            Ok(())
        }

        fn map(&self, _offset: u64, _len: usize) -> Result<Mapping, Errno> {
            Err(Errno::ENODEV)
        }
    }

    #[test]
    fn an_answer_that_ends_early_is_a_mismatch() {
        let status = |len| pte_status(&Answers(len), 7, &mut [0; 3]);
        assert_eq!(status(32).unwrap().les_max, 0x0101);
        for len in [0, 4, 8, 9, 10, 11, 33, 36] {
            let error = status(len).unwrap_err();
            assert_eq!(error.errno(), Errno::EPROTO, "{len} bytes");
        }
    }

    #[test]
    fn more_room_than_a_count_can_name_is_not_named() {
        let mut offsets = vec![0; 70_000];
        assert!(pte_status(&Answers(32), 7, &mut offsets).is_ok());
    }
}
