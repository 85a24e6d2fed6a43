//! Lists: those whose length only the driver knows, and that of PTE_STATUS, which reads its response
//! buffer before it writes there.

#![allow(unsafe_code, reason = "the room for a list has to be what the command says")]

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

use crate::abi::portal::{PteStatus, PteStatusCmd};
use crate::abi::service::{
    RsrcUse, SvcDesc, SvcListGetCmd, SvcListGetResp, SvcRsrcListGetCmd, SvcRsrcListGetResp,
};
use crate::command::{CANARIES, Extra, LIST_MAX, LIST_ROUNDS, RESPONSE_ROOM, submit};
use crate::{Command, CommandError, SafeCommand, Transport};

/// The fewest entries to make room for.
const FIRST_ROOM: usize = 32;

/// Number of bytes at the end of a list that cannot all look like canaries; no entry ends with a
/// shorter number.
const TAIL: usize = 4;

/// Factor by which a buffer of [`fetch_list`] is larger than the announced number of entries needs:
/// the driver's entries may be longer than those of this crate, and it does not say how long they
/// are.
pub const LIST_HEADROOM: usize = 2;

/// A command that answers with a list: it announces how many entries there is room for, and the
/// driver reports how many there are, and copies them if all of them fit.
///
/// # Safety
///
/// A driver that receives [`with_count`](Self::with_count) writes at most that many entries of its
/// own length, which is at most [`LIST_HEADROOM`] times that of [`Item`](Self::Item).
pub unsafe trait ListCommand: SafeCommand {
    /// One entry.
    type Item: FromBytes + IntoBytes + Immutable + Clone;

    /// The request for this many entries.
    fn with_count(count: u32) -> Self;

    /// Returns the number of entries that the driver has.
    fn count(response: &Self::Response) -> u32;
}

// SAFETY: the driver does not copy a list longer than `count`.
unsafe impl ListCommand for SvcListGetCmd {
    type Item = SvcDesc;

    fn with_count(count: u32) -> Self {
        Self { count, ..Self::new() }
    }

    fn count(response: &SvcListGetResp) -> u32 {
        response.count
    }
}

// SAFETY: the driver does not copy a list longer than `count`.
unsafe impl ListCommand for SvcRsrcListGetCmd {
    type Item = RsrcUse;

    fn with_count(count: u32) -> Self {
        Self { count, ..Self::new() }
    }

    fn count(response: &SvcRsrcListGetResp) -> u32 {
        response.count
    }
}

/// Fetches a whole list.
///
/// This takes one command if the list has not grown by more than a quarter since it had `expected`
/// entries, or has at most 32. Otherwise the room grows and the command is repeated. The driver's
/// count is never trusted beyond the room that it was given.
///
/// There is as much room again for a driver whose entries are longer. Only what was written shows
/// how long they are: if that is not as many entries as the driver reports, of the length that this
/// crate knows, the list is refused.
///
/// ```no_run
/// use cxi_ioctl::{CharDev, abi::service::SvcListGetCmd, fetch_list};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = CharDev::open("/dev/cxi0")?;
/// let services = fetch_list::<SvcListGetCmd>(&device, 0)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`execute`](crate::execute); also [`CommandError::AbiMismatch`] for entries of another
/// length, and [`CommandError::ListTooLong`] if the driver reports more than [`LIST_MAX`] entries
/// or the list outgrew the room [`LIST_ROUNDS`] times.
pub fn fetch_list<C: ListCommand>(
    transport: &dyn Transport,
    expected: usize,
) -> Result<Vec<C::Item>, CommandError> {
    // A little extra room, so that a list that grows meanwhile does not cost another round.
    let room_for =
        |count: usize| count.saturating_add(count / 4).clamp(FIRST_ROOM, LIST_MAX as usize);
    let mut room = room_for(expected);
    let mut items = Vec::new();
    let mut rounds = 0;
    loop {
        items.resize_with(room * LIST_HEADROOM, C::Item::new_zeroed);
        fill(items.as_mut_slice().as_mut_bytes());
        let offered = u32::try_from(room).unwrap_or(LIST_MAX);
        let extra = Extra { list: items.as_mut_slice().as_mut_bytes(), ..Extra::default() };
        // SAFETY: a `ListCommand` promises that the driver fills at most `LIST_HEADROOM` times the
        // announced room, which is what there is.
        let response = unsafe { submit(transport, &C::with_count(offered), extra) }?;
        rounds += 1;
        let count = C::count(&response);
        if count <= offered {
            check::<C>(items.as_slice().as_bytes(), count as usize)?;
            items.truncate(count as usize);
            return Ok(items);
        }
        if count > LIST_MAX || rounds == LIST_ROUNDS {
            return Err(CommandError::ListTooLong { opcode: C::OPCODE, count, rounds });
        }
        room = room_for(count as usize);
    }
}

fn fill(bytes: &mut [u8]) {
    for chunk in bytes.chunks_mut(RESPONSE_ROOM) {
        chunk.copy_from_slice(&CANARIES[..chunk.len()]);
    }
}

/// Refuses a list that does not end exactly with its last entry.
fn check<C: ListCommand>(bytes: &[u8], count: usize) -> Result<(), CommandError> {
    let expected = count * size_of::<C::Item>();
    let untouched = |(index, byte): (usize, &u8)| *byte == CANARIES[index % RESPONSE_ROOM];
    let tail = expected.saturating_sub(TAIL)..expected;
    let too_short =
        count > 0 && bytes.iter().enumerate().take(tail.end).skip(tail.start).all(untouched);
    let too_long = bytes.chunks(RESPONSE_ROOM).enumerate().any(|(index, chunk)| {
        let behind = expected.saturating_sub(index * RESPONSE_ROOM).min(chunk.len());
        chunk[behind..] != CANARIES[behind..chunk.len()]
    });
    if !too_short && !too_long {
        return Ok(());
    }
    let last = bytes.iter().enumerate().rposition(|place| !untouched(place));
    Err(CommandError::AbiMismatch {
        opcode: C::OPCODE,
        expected,
        written: last.map_or(0, |last| last + 1),
    })
}

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
    let command = PteStatusCmd { pte_index, ..PteStatusCmd::new() };
    let extra = Extra { input: Some(&input), list: offsets.as_mut_bytes(), ..Extra::default() };
    // SAFETY: the driver writes at most `ule_count` offsets, and there is room for twice as many.
    let status = unsafe { submit(transport, &command, extra) }?;
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
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::{Errno, Request};

    /// A driver whose list has `count` entries at first and grows with each command.
    #[derive(Debug)]
    struct Services {
        count: AtomicU32,
        growth: fn(u32) -> u32,
        commands: AtomicU32,
    }

    impl Services {
        fn new(count: u32, growth: fn(u32) -> u32) -> Self {
            Self { count: count.into(), growth, commands: 0.into() }
        }

        fn commands(&self) -> u32 {
            self.commands.load(Ordering::Relaxed)
        }
    }

    impl Transport for Services {
        fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
            let command = SvcListGetCmd::read_from_bytes(request.command()).unwrap();
            self.commands.fetch_add(1, Ordering::Relaxed);
            let count = self.count.load(Ordering::Relaxed);
            self.count.store((self.growth)(count), Ordering::Relaxed);
            assert_eq!(request.list().len(), LIST_HEADROOM * command.count as usize * 68);
            if count <= command.count {
                for (id, entry) in (1..=count).zip(request.list().chunks_exact_mut(68)) {
                    entry.fill(0);
                    entry[64..].copy_from_slice(&id.to_ne_bytes());
                }
            }
            request.response()[..4].copy_from_slice(&count.to_ne_bytes());
            Ok(())
        }
    }

    fn fetched(device: &Services) -> Vec<SvcDesc> {
        fetch_list::<SvcListGetCmd>(device, 0).unwrap()
    }

    fn ids(items: &[SvcDesc]) -> Vec<u32> {
        items.iter().map(|item| item.svc_id).collect()
    }

    #[test]
    fn the_driver_is_told_how_much_room_there_is() {
        assert_eq!(SvcListGetCmd::with_count(7).count, 7);
        assert_eq!(SvcRsrcListGetCmd::with_count(7).count, 7);
    }

    #[test]
    fn one_command_where_there_is_room() {
        let device = Services::new(3, |count| count);
        let items = fetched(&device);
        assert_eq!((ids(&items), device.commands()), (vec![1, 2, 3], 1));

        let device = Services::new(100, |count| count);
        let items = fetch_list::<SvcListGetCmd>(&device, 80).unwrap();
        assert_eq!((items.len(), device.commands()), (100, 1));
    }

    #[test]
    fn the_room_grows_until_the_list_fits() {
        let device = Services::new(33, |count| count);
        let items = fetched(&device);
        assert_eq!(ids(&items), (1..=33).collect::<Vec<_>>());
        assert_eq!(device.commands(), 2);

        let device = Services::new(40, |count| count + 20);
        let items = fetched(&device);
        assert!(device.commands() > 1 && device.commands() < LIST_ROUNDS);
        assert_eq!(u32::try_from(items.len()), Ok(40 + 20 * (device.commands() - 1)));
    }

    #[test]
    fn a_driver_that_makes_numbers_up_is_not_believed() {
        let device = Services::new(u32::MAX, |count| count);
        let error = fetch_list::<SvcListGetCmd>(&device, 0).unwrap_err();
        assert_eq!(device.commands(), 1);
        assert_eq!(error.errno(), Errno::EOVERFLOW);
        assert_eq!(
            error.to_string(),
            "SVC_LIST_GET: the driver reports 4294967295 entries after 1 attempts: more than can \
             be \
             fetched (at most 65536 entries in at most 8 attempts)"
        );

        let device = Services::new(33, |count| count * 2);
        let error = fetch_list::<SvcListGetCmd>(&device, 0).unwrap_err();
        assert_eq!(device.commands(), LIST_ROUNDS);
        assert_eq!(
            error,
            CommandError::ListTooLong {
                opcode: SvcListGetCmd::OPCODE,
                count: 33 * 128,
                rounds: LIST_ROUNDS
            }
        );
    }

    #[test]
    #[cfg_attr(miri, ignore = "65,536 entries take Miri an hour")]
    fn the_longest_list_is_one_too() {
        let device = Services::new(LIST_MAX, |count| count);
        for expected in [0, LIST_MAX as usize, usize::MAX] {
            let items = fetch_list::<SvcListGetCmd>(&device, expected).unwrap();
            assert_eq!(items.len(), LIST_MAX as usize);
            assert_eq!(items.last().map(|item| item.svc_id), Some(LIST_MAX));
        }
    }

    #[test]
    fn an_empty_list_is_a_list() {
        let device = Services::new(0, |count| count);
        assert_eq!(fetched(&device), []);
    }

    /// A driver with three services, whose entries have another length.
    #[derive(Debug)]
    struct Entries(usize);

    impl Transport for Entries {
        fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
            let len = (3 * self.0).min(request.list().len());
            request.list()[..len].fill(1);
            request.response()[..4].copy_from_slice(&3_u32.to_ne_bytes());
            Ok(())
        }
    }

    #[test]
    fn entries_of_another_length_are_no_services() {
        for expected in [0, 3, 100] {
            let fetch = |len| {
                let result = fetch_list::<SvcListGetCmd>(&Entries(len), expected);
                result.map(|items| items.len())
            };
            assert_eq!(fetch(68), Ok(3));
            for len in (0..=64).step_by(4).chain((72..=136).step_by(4)) {
                let mismatch = CommandError::AbiMismatch {
                    opcode: SvcListGetCmd::OPCODE,
                    expected: 3 * 68,
                    written: 3 * len,
                };
                assert_eq!(fetch(len), Err(mismatch), "room for {expected}");
            }
        }
    }

    /// Writes this many bytes of a response, all of value 1.
    #[derive(Debug)]
    struct Status(usize);

    impl Transport for Status {
        fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
            let (count, _) = request.response()[24..26].split_first_chunk::<2>().unwrap();
            assert_eq!(
                usize::from(u16::from_ne_bytes(*count)) * 8 * LIST_HEADROOM,
                request.list().len()
            );
            request.response()[..self.0].fill(1);
            Ok(())
        }
    }

    #[test]
    fn an_answer_that_ends_early_is_a_mismatch() {
        let status = |len| pte_status(&Status(len), 7, 3);
        assert_eq!(status(32).unwrap().0.les_max, 0x0101);
        for len in [0, 4, 8, 9, 10, 11, 33, 36] {
            let error = status(len).unwrap_err();
            assert_eq!(error.errno(), Errno::EPROTO, "{len} bytes");
        }
    }
}
