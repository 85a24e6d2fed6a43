//! Answers of both stand-ins.

use cxi_ioctl::{Errno, Opcode};

/// Bytes that no buffer holds by chance; none of them is zero.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (1..=u8::MAX).cycle().take(len).collect()
}

/// Length of an entry of the usage list here; the library knows 24 bytes.
pub(crate) const LONGER_ENTRY: usize = 40;

/// Room that the library leaves behind a response.
pub(crate) const HEADROOM: usize = 64;

/// Something to write into the caller's memory: an address and bytes.
pub(crate) type Store = (u64, Vec<u8>);

fn address(command: &[u8], offset: usize) -> u64 {
    command.get(offset..offset + 8).map_or(0, |bytes| u64::from_ne_bytes(bytes.try_into().unwrap()))
}

/// Returns the bytes that a driver stores before it answers a command, and its answer.
pub(crate) fn answer(command: &[u8]) -> (Vec<Store>, Result<u32, Errno>) {
    let number = command.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
    let opcode = Opcode::from_number(number);
    let response = address(command, 8);
    let taken = Ok(u32::try_from(command.len()).unwrap());
    match opcode {
        Opcode::SVC_LIST_GET => {
            let mut list = Vec::new();
            for id in 1..=3_u32 {
                list.extend(pattern(64));
                list.extend(id.to_ne_bytes());
            }
            let count = 3_u32.to_ne_bytes().to_vec();
            (vec![(address(command, 24), list), (response, count)], taken)
        }
        // Entries of another release: as many as were asked for, each of them longer.
        Opcode::SVC_RSRC_LIST_GET => {
            let count = command
                .get(16..20)
                .map_or(0, |bytes| u32::from_ne_bytes(bytes.try_into().unwrap()));
            let list = pattern(LONGER_ENTRY * usize::try_from(count).unwrap());
            let count = count.to_ne_bytes().to_vec();
            (vec![(address(command, 24), list), (response, count)], taken)
        }
        Opcode::SVC_ALLOC => (vec![(response, pattern(24))], Err(Errno::ENOSPC)),
        Opcode::GET_DEV_PROPERTIES => (vec![(response, pattern(80))], taken),
        Opcode::SVC_GET_NETNS => (vec![(response, pattern(12))], taken),
        // As much as a response of four bytes has room for.
        Opcode::SVC_GET_LPR => (vec![(response, pattern(4 + HEADROOM))], taken),
        Opcode::INBOUND_WAIT => (Vec::new(), Ok(4)),
        _ => {
            let len = opcode.handler().map_or(0, |handler| handler.response_len);
            (vec![(response, pattern(len))], taken)
        }
    }
}
