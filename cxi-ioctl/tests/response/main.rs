//! A response that another process writes while `write(2)` runs is seen by the caller.
//!
//! The compiler may only believe that if it knows that the call changes memory; where it does
//! not, an optimized build reads back what the buffer held before. So this is worth running with
//! `--release` above all.
//!
//! Two stand-ins for a driver: a file of a FUSE server, where the caller may mount one, and a
//! full pipe, which any user has. What cannot run says why.

#![allow(missing_docs, reason = "a test has no users")]
#![allow(unsafe_code, reason = "raw requests are unsafe to make")]
#![allow(clippy::print_stderr, reason = "what is skipped has to be said")]

mod driver;
mod fuse;
#[allow(unreachable_pub, reason = "another package shares it")]
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../../tests/src/fuse_file.rs"]
mod fuse_file;
mod pipe;

use cxi_ioctl::abi::device::DevInfoGetCmd;
use cxi_ioctl::abi::service::{
    SvcAllocCmd, SvcGetCmd, SvcGetLprCmd, SvcListGetCmd, SvcRsrcGetCmd, SvcRsrcListGetCmd,
};
use cxi_ioctl::{
    CharDev, Command, CommandError, Errno, Opcode, Pointers, Request, Transport, dev_properties,
    execute, fetch_list,
};
use zerocopy::IntoBytes;

use crate::driver::{HEADROOM, LONGER_ENTRY, pattern};

/// The plainest case, and the one a compiler breaks first: a zeroed local buffer.
fn into_a_zeroed_buffer(device: &CharDev) {
    // The driver of this test writes 68 bytes.
    let mut response = [0_u8; 68];
    let command = SvcGetCmd::of(3);
    let (opcode, bytes) = (Opcode::SVC_GET, command.as_bytes());
    // SAFETY: it writes to no other address.
    let request =
        unsafe { Request::from_raw(opcode, bytes, SvcGetCmd::POINTERS, &mut response, &mut []) };
    device.submit(request).unwrap();
    assert_eq!(response[..], pattern(68));
}

fn through_typed_commands(device: &CharDev) {
    let info = execute(device, &DevInfoGetCmd::new()).unwrap();
    assert_eq!(info.as_bytes(), pattern(120));
    let usage = execute(device, &SvcRsrcGetCmd::new()).unwrap();
    assert_eq!(usage.as_bytes(), pattern(24));
}

fn into_a_list(device: &CharDev) {
    let services = fetch_list::<SvcListGetCmd>(device, 0).unwrap();
    let ids: Vec<_> = services.iter().map(|service| service.svc_id).collect();
    assert_eq!(ids, [1, 2, 3]);
    assert_eq!(services.as_bytes()[..64], pattern(64));
}

fn of_another_length(device: &CharDev) {
    let properties = dev_properties(device).unwrap();
    assert_eq!(properties.nid_configured, None, "80 bytes were written");
    assert_eq!(properties.info.nid.to_ne_bytes()[..], pattern(4));

    let error = execute(device, &cxi_ioctl::abi::service::SvcGetNetnsCmd::new()).unwrap_err();
    assert_eq!(
        error,
        CommandError::AbiMismatch { opcode: Opcode::SVC_GET_NETNS, expected: 4, written: 12 }
    );
}

fn of_the_greatest_length(device: &CharDev) {
    assert_eq!(
        execute(device, &SvcGetLprCmd::new()).map(|response| response.value),
        Err(CommandError::AbiMismatch {
            opcode: Opcode::SVC_GET_LPR,
            expected: 4,
            written: 4 + HEADROOM
        })
    );
}

/// A driver that fills its list to the last entry that it may, with entries that are longer than
/// the library knows: they are refused, and they hit nothing that is not the list's.
fn into_a_list_of_longer_entries(device: &CharDev) {
    let error = fetch_list::<SvcRsrcListGetCmd>(device, 0).unwrap_err();
    assert_eq!(
        error,
        CommandError::AbiMismatch {
            opcode: Opcode::SVC_RSRC_LIST_GET,
            expected: 32 * 24,
            written: 32 * LONGER_ENTRY
        }
    );
}

#[test]
fn from_a_full_pipe() {
    let pipe = match pipe::start() {
        Ok(pipe) => pipe,
        Err(why) => return eprintln!("skipped: a full pipe as driver: {why}"),
    };
    pipe.serve(into_a_zeroed_buffer);
    pipe.serve(|device| {
        let info = execute(device, &DevInfoGetCmd::new()).unwrap();
        assert_eq!(info.as_bytes(), pattern(120));
    });
    pipe.serve(|device| {
        let usage = execute(device, &SvcRsrcGetCmd::new()).unwrap();
        assert_eq!(usage.as_bytes(), pattern(24));
    });
    pipe.serve(of_the_greatest_length);
    pipe.serve(into_a_list);
    pipe.serve(into_a_list_of_longer_entries);
}

#[test]
fn from_a_fuse_file() {
    let mounted = match fuse::mount() {
        Ok(mounted) => mounted,
        Err(why) => return eprintln!("skipped: a FUSE file as driver: {why}"),
    };
    let device = CharDev::open(mounted.device()).unwrap();
    into_a_zeroed_buffer(&device);
    through_typed_commands(&device);
    into_a_list(&device);
    into_a_list_of_longer_entries(&device);
    of_another_length(&device);
    of_the_greatest_length(&device);

    let error = execute(&device, &SvcAllocCmd::new()).unwrap_err();
    let CommandError::Refused { errno: Errno::ENOSPC, fail_info: Some(info), .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!(info.as_bytes(), &pattern(24)[4..]);

    let submit = |opcode, command: &[u8]| {
        // SAFETY: nothing stands at the address in the command, and the driver writes nowhere else.
        let request =
            unsafe { Request::from_raw(opcode, command, Pointers::NONE, &mut [], &mut []) };
        device.submit(request)
    };
    let bad = submit(Opcode::SVC_GET, SvcGetCmd::new().as_bytes());
    assert_eq!(bad, Err(Errno::EFAULT));
    let short = submit(Opcode::INBOUND_WAIT, &[43, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(short, Err(Errno::EIO), "half of the command was taken");
}
