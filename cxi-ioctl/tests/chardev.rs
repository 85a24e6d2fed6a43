//! The real transport over files that are no CXI device but take `write(2)` as one does.

#![allow(missing_docs, reason = "a test has no users")]
#![allow(unsafe_code, reason = "raw requests are unsafe to make")]

use std::io::{ErrorKind, PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use cxi_ioctl::abi::counter::CtAllocCmd;
use cxi_ioctl::abi::device::DevInfoGetCmd;
use cxi_ioctl::abi::memory::{AtuMapCmd, AtuUpdateMdCmd, MapFlags};
use cxi_ioctl::abi::portal::{PteStatus, PteStatusCmd};
use cxi_ioctl::abi::service::{SvcDestroyCmd, SvcGetCmd, SvcListGetCmd};
use cxi_ioctl::memory::read_at;
use cxi_ioctl::{
    CharDev, Command, CommandError, DeviceMemory, Errno, Opcode, Pointers, Request, Transport,
    atu_map, atu_update_md, ct_alloc, execute, fetch_list,
};
use zerocopy::{FromBytes, IntoBytes};

fn piped() -> (PipeReader, CharDev) {
    let (reader, writer) = std::io::pipe().unwrap();
    (reader, CharDev::from(OwnedFd::from(writer)))
}

fn received<T: FromBytes>(reader: &mut PipeReader) -> T {
    let mut bytes = vec![0; size_of::<T>()];
    reader.read_exact(&mut bytes).unwrap();
    T::read_from_bytes(&bytes).ok().unwrap()
}

fn request<'a>(command: &'a [u8], pointers: Pointers, response: &'a mut [u8]) -> Request<'a> {
    // SAFETY: the driver is a pipe, which follows no address.
    unsafe { Request::from_raw(Opcode::SVC_GET, command, pointers, response, &mut []) }
}

#[test]
fn a_device_that_is_not_there_says_so() {
    let error = CharDev::open("/dev/cxi-of-nobody").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn the_null_device_takes_a_command_and_answers_nothing() {
    let device = CharDev::open("/dev/null").unwrap();
    assert_eq!(execute(&device, &SvcDestroyCmd::new()), Ok(()));
    assert_eq!(
        execute(&device, &DevInfoGetCmd::new()),
        Err(CommandError::AbiMismatch { opcode: Opcode::DEV_INFO_GET, expected: 120, written: 0 })
    );
    assert_eq!(device.map(0, 4096).unwrap_err(), Errno::ENODEV);
    assert_eq!(device.map(0, 0).unwrap_err(), Errno::EINVAL);
}

#[test]
fn a_full_device_refuses() {
    let device = CharDev::open("/dev/full").unwrap();
    let error = execute(&device, &SvcDestroyCmd::new()).unwrap_err();
    assert_eq!(error, CommandError::refused(Opcode::SVC_DESTROY, Errno::ENOSPC));
}

#[test]
fn a_file_that_is_not_open_for_writing_is_refused() {
    let (reader, _writer) = std::io::pipe().unwrap();
    let device = CharDev::from(OwnedFd::from(reader));
    let error = execute(&device, &SvcDestroyCmd::new()).unwrap_err();
    assert_eq!(error.errno(), Errno::EBADF);
}

#[test]
fn a_pipe_without_reader_is_an_error_and_no_signal() {
    let (reader, device) = piped();
    drop(reader);
    let error = execute(&device, &SvcDestroyCmd::new()).unwrap_err();
    assert_eq!(error.errno(), Errno::EPIPE);
}

#[test]
fn a_command_goes_out_whole_with_its_exact_length_and_addresses() {
    let (mut reader, device) = piped();
    execute(&device, &SvcDestroyCmd::of(9)).unwrap();
    let command: SvcDestroyCmd = received(&mut reader);
    assert_eq!((command.op, command.svc_id), (29, 9));

    let mut response = [0_u8; 80];
    let address = response.as_ptr().addr() as u64;
    let command = SvcGetCmd::of(4);
    device.submit(request(command.as_bytes(), SvcGetCmd::POINTERS, &mut response)).unwrap();
    let sent: SvcGetCmd = received(&mut reader);
    let expected = SvcGetCmd { resp: address, ..command };
    assert_eq!(sent, expected);

    // Nothing behind the commands.
    drop(device);
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, []);
}

#[test]
fn a_list_has_its_address_and_an_empty_one_has_none() {
    let (mut reader, device) = piped();
    // A pipe writes no response.
    fetch_list::<SvcListGetCmd>(&device, 0).unwrap_err();
    let sent: SvcListGetCmd = received(&mut reader);
    assert_eq!(sent.count, 32);
    assert_ne!(sent.svc_list, 0);
    assert_ne!(sent.resp, 0);

    let command = SvcListGetCmd { svc_list: 4096, ..SvcListGetCmd::new() };
    execute(&device, &command).unwrap_err();
    let sent: SvcListGetCmd = received(&mut reader);
    assert_eq!(sent.svc_list, 0);
}

#[test]
fn an_address_can_go_into_the_response_buffer() {
    let (_reader, device) = piped();
    let pointers = PteStatusCmd::POINTERS;
    for (list, address) in [(&mut [0; 16][..], true), (&mut [], false)] {
        let expected = if address { list.as_ptr().addr() } else { 0 };
        let mut response = [0xFF; 96];
        let command = PteStatusCmd::new();
        let (opcode, bytes) = (Opcode::PTE_STATUS, command.as_bytes());
        // SAFETY: the driver is a pipe, which follows no address.
        let request = unsafe { Request::from_raw(opcode, bytes, pointers, &mut response, list) };
        device.submit(request).unwrap();
        let (status, _) = PteStatus::read_from_prefix(&response).unwrap();
        assert_eq!(status.ule_offsets, expected as u64);
    }
}

/// A pipe takes the command and answers nothing: the number of the registration is unknown.
#[test]
fn memory_that_a_command_without_a_readable_answer_got_is_kept() {
    let (_reader, device) = piped();
    let memory = Arc::new(DeviceMemory::new(1).unwrap());
    let address = memory.address();
    let command = AtuMapCmd { flags: MapFlags::CONFINED.bits(), ..AtuMapCmd::new() };
    let error = atu_map(&device, &memory, &command).unwrap_err();
    assert_eq!(error.errno(), Errno::EPROTO);
    drop(memory);
    drop(device);
    assert_eq!(read_at(address, &mut [0; 8]), Ok(()));
}

#[test]
fn memory_of_a_refused_command_is_given_back() {
    let device = CharDev::open("/dev/full").unwrap();
    let memory = Arc::new(DeviceMemory::new(1).unwrap());
    let address = memory.address();
    ct_alloc(&device, &memory, &CtAllocCmd::new()).unwrap_err();
    drop(memory);
    assert_eq!(read_at(address, &mut [0; 8]), Err(Errno::EFAULT));
}

#[test]
fn a_part_that_is_not_in_the_memory_is_not_sent() {
    let (mut reader, device) = piped();
    let memory = Arc::new(DeviceMemory::new(8192).unwrap());
    for part in [0..0, 4096..4096, 4096..8193] {
        let error = atu_update_md(&device, &memory, part, &AtuUpdateMdCmd::new()).unwrap_err();
        assert_eq!(error.errno(), Errno::EINVAL);
    }
    atu_update_md(&device, &memory, 4096..8192, &AtuUpdateMdCmd::new()).unwrap();
    drop(device);
    let sent: AtuUpdateMdCmd = received(&mut reader);
    assert_eq!((sent.va, sent.len), (memory.address() + 4096, 4096));
    assert_eq!(reader.read(&mut [0]).unwrap(), 0);
}

#[test]
fn what_cannot_be_sent_is_refused_before_the_write() {
    let (mut reader, device) = piped();
    let mut response = [0; 8];
    let long = [0; 129];
    let submit = device.submit(request(&long, Pointers::NONE, &mut response));
    assert_eq!(submit, Err(Errno::EINVAL));
    for offset in [1, 8, usize::MAX] {
        let pointers = Pointers { response: Some(offset), ..Pointers::NONE };
        let submit = device.submit(request(&[0; 8], pointers, &mut response));
        assert_eq!(submit, Err(Errno::EINVAL), "address at {offset} of 8 bytes");
    }
    let pointers = Pointers { list_in_response: Some(1), ..Pointers::NONE };
    let submit = device.submit(request(&[0; 8], pointers, &mut response));
    assert_eq!(submit, Err(Errno::EINVAL));
    drop(device);
    let mut sent = Vec::new();
    reader.read_to_end(&mut sent).unwrap();
    assert_eq!(sent, []);
}

#[test]
fn the_file_can_be_borrowed() {
    let device = CharDev::open("/dev/null").unwrap();
    let again = CharDev::from(device.as_fd().try_clone_to_owned().unwrap());
    assert_eq!(execute(&again, &SvcDestroyCmd::new()), Ok(()));
}
