//! The one place where commands go to a NIC.

#![allow(unsafe_code, reason = "addresses of C callers, and descriptors in blocks that C may free")]

use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, OwnedFd};

use cxi::explain::Attempt;
use cxi_ioctl::abi::portal::{PteStatus, PteStatusCmd};
use cxi_ioctl::socket::SocketFile;
use cxi_ioctl::{
    CharDev, Command, CommandError, Errno, ListCommand, LniForm, Pointers, Request, Transport,
    execute_unchecked,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::device::Dev;
use crate::failure::{Failure, Result};

/// Extra space after a response, because another driver generation may write a longer one.
const HEADROOM: usize = 64;

/// Sends a command and returns the response.
#[inline]
pub(crate) fn send<C: Command>(dev: &Dev, command: &C) -> Result<C::Response> {
    send_on(&open_file(dev)?, command).map_err(|error| refused(dev, error))
}

#[cold]
fn refused(dev: &Dev, error: CommandError) -> Failure {
    Failure::command(dev.number, error, Attempt::Other)
}

/// As [`send`], for a command about a service.
#[inline]
pub(crate) fn send_about<C: Command>(dev: &Dev, service: u32, command: &C) -> Result<C::Response> {
    send(dev, command).map_err(|failure| failure.about(service))
}

/// Sends a command on an open file, for a caller that explains the refusal.
#[inline]
pub(crate) fn send_on<C: Command>(
    device: &Open<'_>,
    command: &C,
) -> std::result::Result<C::Response, CommandError> {
    // SAFETY: the addresses in commands are those that C has passed for this purpose, and the C API
    // makes the caller responsible for keeping that memory until the handle is destroyed. Registers
    // are mapped only for C.
    unsafe { execute_unchecked(device, command) }
}

/// Sends a command that fills a list, which has space for more elements than requested. Returns how
/// many elements there are.
#[inline]
pub(crate) fn send_list<C: ListCommand>(dev: &Dev, count: u32, list: &mut [u8]) -> Result<u32> {
    let mut room = [0; size_of::<u32>() + HEADROOM];
    let command = C::with_count(count);
    let pointers = C::POINTERS;
    // SAFETY: the driver writes a number and `count` elements; the caller's list has space for
    // twice as many.
    let request =
        unsafe { Request::from_raw(C::OPCODE, command.as_bytes(), pointers, &mut room, list) };
    submit(dev, request)?;
    let response = C::Response::read_from_prefix(&room);
    response.map(|(response, _)| C::count(&response)).map_err(|_| Failure::argument())
}

/// Sends PTE_STATUS, whose response is also an input: it contains an address of the caller's memory.
pub(crate) fn pte_status(dev: &Dev, pte_index: u32, input: &PteStatus) -> Result<PteStatus> {
    let command = PteStatusCmd { pte_index, ..PteStatusCmd::new() };
    let pointers = Pointers { list_in_response: None, ..PteStatusCmd::POINTERS };
    let mut room = [0; size_of::<PteStatus>() + HEADROOM];
    room[..size_of::<PteStatus>()].copy_from_slice(input.as_bytes());
    // SAFETY: the driver writes a response, and writes offsets of entries to the address that the
    // caller passed, at most as many as the caller says there is space for.
    let request = unsafe {
        Request::from_raw(PteStatusCmd::OPCODE, command.as_bytes(), pointers, &mut room, &mut [])
    };
    submit(dev, request)?;
    let status = PteStatus::read_from_prefix(&room);
    status.map(|(status, _)| status).map_err(|_| Failure::argument())
}

#[inline(always)]
#[allow(clippy::inline_always, reason = "as in `CharDev::submit`")]
fn submit(dev: &Dev, request: Request<'_>) -> Result<()> {
    let opcode = request.opcode();
    open_file(dev)?
        .submit(request)
        .map_err(|errno| refused(dev, CommandError::refused(opcode, errno)))
}

/// Allocates an LNI, in the form that the driver understands.
pub(crate) fn alloc_lni(dev: &Dev, service: u32) -> Result<u32> {
    with(dev, |device| dev.lnis.alloc(device, service).map(|(lni, _)| lni))
        .map_err(|failure| failure.about(service))
}

/// Changes how many slots of an event queue are reserved for flow control.
pub(crate) fn adjust_reserved_fc(dev: &Dev, form: LniForm, eq: u32, value: i32) -> Result<i32> {
    with(dev, |device| cxi_ioctl::eq_adjust_reserved_fc(device, form, eq, value))
}

fn with<R>(
    dev: &Dev,
    command: impl FnOnce(&dyn Transport) -> std::result::Result<R, CommandError>,
) -> Result<R> {
    command(&open_file(dev)?).map_err(|error| refused(dev, error))
}

/// The open file of a device.
#[derive(Debug)]
pub(crate) enum Open<'a> {
    /// The descriptor, which belongs to the block of the device.
    Device(ManuallyDrop<CharDev>),
    /// A NIC behind a socket.
    Socket(&'a SocketFile),
}

impl Transport for Open<'_> {
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "as in `CharDev::submit`")]
    fn submit(&self, request: Request<'_>) -> std::result::Result<(), Errno> {
        match self {
            Self::Device(file) => file.submit(request),
            Self::Socket(file) => file.submit(request),
        }
    }
}

/// The open file of a device; EBADF once it is closed.
#[inline]
pub(crate) fn open_file(dev: &Dev) -> Result<Open<'_>> {
    if let Some(file) = dev.socket() {
        return Ok(Open::Socket(file));
    }
    let fd = dev.descriptor().ok_or(Errno::EBADF)?;
    // SAFETY: the number is that of a descriptor which the block owns, and which stays open until
    // `cxil_close_device`; it is not closed here. Closing it in another thread at the same time breaks
    // the contract of the C API.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    Ok(Open::Device(ManuallyDrop::new(CharDev::from(file))))
}
