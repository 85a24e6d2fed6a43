use std::sync::Mutex;

use zerocopy::FromZeros;

use super::*;
use crate::abi::device::{DevInfoGetCmd, DevInfoUse, InboundWaitCmd};
use crate::abi::portal::PteStatus;
use crate::abi::service::{SvcAllocCmd, SvcGetExclusiveCpCmd, SvcGetLprCmd, SvcUpdateCmd};
use crate::pte_status;

/// A driver that writes given bytes and answers a given errno.
#[derive(Debug)]
struct Fake {
    bytes: Vec<u8>,
    result: Result<(), Errno>,
    seen: Mutex<Vec<u8>>,
}

impl Fake {
    fn answering(bytes: &[u8], result: Result<(), Errno>) -> Self {
        Self { bytes: bytes.to_vec(), result, seen: Mutex::default() }
    }
}

impl Transport for Fake {
    fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
        assert_eq!(request.command()[..4], request.opcode().number().to_ne_bytes());
        assert!(request.response().len() >= self.bytes.len(), "no headroom");
        *self.seen.lock().unwrap() = request.response().to_vec();
        request.response()[..self.bytes.len()].copy_from_slice(&self.bytes);
        self.result
    }
}

fn lpr(bytes: &[u8]) -> Result<u32, CommandError> {
    let fake = Fake::answering(bytes, Ok(()));
    execute(&fake, &SvcGetLprCmd::new()).map(|response| response.value)
}

#[test]
fn a_response_of_the_right_length_arrives() {
    assert_eq!(lpr(&7_u32.to_ne_bytes()), Ok(7));
    assert_eq!(lpr(&[0; 4]), Ok(0));
    assert_eq!(lpr(&[0xFF; 4]), Ok(u32::MAX));
}

#[test]
fn a_response_of_another_length_is_told_with_both_lengths() {
    let opcode = Opcode::SVC_GET_LPR;
    for written in [0, 5, 6, 8, 64, 4 + HEADROOM] {
        assert_eq!(
            lpr(&vec![0; written]),
            Err(CommandError::AbiMismatch { opcode, expected: 4, written }),
        );
    }
    let fake = Fake::answering(&[0; 116], Ok(()));
    let error = execute(&fake, &DevInfoGetCmd::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "DEV_INFO_GET: the driver wrote 116 bytes of response, this library expects 120: it does \
         not know this version of the driver's interface"
    );
    assert_eq!(error.errno(), Errno::EPROTO);
    assert_eq!(error.opcode(), Opcode::DEV_INFO_GET);
}

#[test]
fn a_command_without_response_has_no_buffer() {
    let fake = Fake::answering(&[], Ok(()));
    assert_eq!(execute(&fake, &InboundWaitCmd::new()), Ok(()));
    assert!(fake.seen.lock().unwrap().is_empty());
}

#[test]
fn last_bytes_that_equal_the_canaries_are_no_mismatch() {
    let expected = size_of::<DevInfoUse>();
    for equal in 1..=SLACK {
        let mut bytes = vec![0; expected];
        bytes[expected - equal..].copy_from_slice(&CANARIES[expected - equal..expected]);
        let fake = Fake::answering(&bytes, Ok(()));
        let info = execute(&fake, &DevInfoGetCmd::new()).unwrap();
        assert_eq!(info.as_bytes(), bytes);
    }
    let mut bytes = vec![1; expected];
    bytes[expected - 4..].copy_from_slice(&CANARIES[expected - 4..expected]);
    let fake = Fake::answering(&bytes, Ok(()));
    assert_eq!(
        execute(&fake, &DevInfoGetCmd::new()),
        Err(CommandError::AbiMismatch {
            opcode: Opcode::DEV_INFO_GET,
            expected,
            written: expected - 4
        })
    );
}

#[test]
fn canaries_are_no_likely_values() {
    for pair in CANARIES.windows(2) {
        assert_ne!(pair[0], pair[1]);
    }
    assert!(CANARIES.iter().all(|byte| (0xA0..=0xBF).contains(byte)));
    for flag in [0, 1] {
        let fake = Fake::answering(&[flag], Ok(()));
        let response = execute(&fake, &SvcGetExclusiveCpCmd::new()).unwrap();
        assert_eq!(response.exclusive_cp, flag);
    }
}

#[test]
fn a_refusal_keeps_its_errno_whatever_was_written() {
    let refused = CommandError::refused(Opcode::SVC_ALLOC, Errno::ENOSPC);
    let mut bytes = [0; 24];
    bytes[4..6].copy_from_slice(&2048_u16.to_ne_bytes());
    let explained = Fake::answering(&bytes, Err(Errno::ENOSPC));
    let error = execute(&explained, &SvcAllocCmd::new()).unwrap_err();
    assert_eq!((error.opcode(), error.errno()), (refused.opcode(), refused.errno()));
    assert_eq!(error.fail_info().map(|info| info.rsrc_avail[0]), Some(2048));
    // SVC_UPDATE says it without an ID in front.
    let updated = Fake::answering(&bytes[4..], Err(Errno::ENOSPC));
    let error = execute(&updated, &SvcUpdateCmd::new()).unwrap_err();
    assert_eq!(error.fail_info().map(|info| info.rsrc_avail[0]), Some(2048));

    for garbage in [0, 4, 20, 25, 28, 24 + HEADROOM] {
        let fake = Fake::answering(&vec![3; garbage], Err(Errno::ENOSPC));
        let error = execute(&fake, &SvcAllocCmd::new()).unwrap_err();
        assert_eq!(error, refused, "{garbage} bytes");
    }
    // Other commands have nothing of that kind in their response.
    let fake = Fake::answering(&3_u32.to_ne_bytes(), Err(Errno::EFAULT));
    let error = execute(&fake, &SvcGetLprCmd::new()).unwrap_err();
    assert_eq!(error, CommandError::refused(Opcode::SVC_GET_LPR, Errno::EFAULT));
    let fake = Fake::answering(&[], Err(Errno::EBUSY));
    let error = execute(&fake, &InboundWaitCmd::new()).unwrap_err();
    assert_eq!(error, CommandError::refused(Opcode::INBOUND_WAIT, Errno::EBUSY));
    assert_eq!(refused.to_string(), "SVC_ALLOC: ENOSPC");
    assert_eq!(std::io::Error::from(refused).raw_os_error(), Some(Errno::ENOSPC.raw()));
}

#[test]
fn the_driver_reads_the_input_of_pte_status() {
    let mut answer = PteStatus::new_zeroed();
    answer.ule_count = 3;
    answer.les_max = 12;
    let fake = Fake::answering(answer.as_bytes(), Ok(()));
    let (status, offsets) = pte_status(&fake, 1, 5).unwrap();
    assert_eq!((status, offsets.len()), (answer, 3));
    let seen = fake.seen.lock().unwrap();
    let (input, _) = PteStatus::read_from_prefix(&seen).unwrap();
    assert_eq!(input.ule_count, 5);
    assert_eq!(&seen[32..], &CANARIES[32..seen.len()]);
    assert_eq!(seen.len(), 32 + HEADROOM);
}

/// A struct whose opcode was changed would be another command, with other addresses.
#[test]
fn a_command_under_a_foreign_opcode_is_not_sent() {
    let fake = Fake::answering(&[0; 24], Ok(()));
    let forged = SvcAllocCmd { op: Opcode::ATU_MAP.number(), ..SvcAllocCmd::new() };
    let error = execute(&fake, &forged).unwrap_err();
    assert_eq!((error.opcode(), error.errno()), (Opcode::SVC_ALLOC, Errno::EINVAL));
    assert!(fake.seen.lock().unwrap().is_empty());
}
