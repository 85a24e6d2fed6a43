//! The memory of other processes.

use std::io::{IoSlice, IoSliceMut};

use nix::errno::Errno as SysErrno;
use nix::libc::{SYS_pwrite64, SYS_write};
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;

use cxi_ioctl::Errno;

use super::procfs;

/// Writes parts into the memory of a thread's process; all of them, or an error.
///
/// As with the kernel's own copy, an error leaves written what precedes the bad page.
pub(crate) fn write(pid: Pid, parts: &[(u64, &[u8])]) -> Result<(), Errno> {
    let (mut from, mut to, mut len) = (Vec::with_capacity(4), Vec::with_capacity(4), 0);
    for (address, part) in parts.iter().filter(|(_, part)| !part.is_empty()) {
        from.push(IoSlice::new(part));
        to.push(remote(*address, part.len())?);
        len += part.len();
    }
    if len == 0 {
        return Ok(());
    }
    complete(process_vm_writev(pid, &from, &to), len)
}

/// Reads from the memory of a thread's process; all of it, or an error.
pub(crate) fn read(pid: Pid, address: u64, bytes: &mut [u8]) -> Result<(), Errno> {
    let len = bytes.len();
    if len == 0 {
        return Ok(());
    }
    let from = [remote(address, len)?];
    complete(
        process_vm_readv(pid, &mut [IoSliceMut::new(bytes)], &from),
        len,
    )
}

fn remote(address: u64, len: usize) -> Result<RemoteIoVec, Errno> {
    let base = usize::try_from(address).map_err(|_| Errno::EFAULT)?;
    Ok(RemoteIoVec { base, len })
}

/// Reads from the memory of a thread's process as far as its page reaches, if there is one.
pub(crate) fn read_some(pid: Pid, address: u64, bytes: &mut [u8]) -> &[u8] {
    const PAGE: u64 = 4096;
    if read(pid, address, bytes).is_ok() {
        return bytes;
    }
    let left = usize::try_from(PAGE - address % PAGE).unwrap_or(0);
    let part = left.min(bytes.len());
    match read(pid, address, &mut bytes[..part]) {
        Ok(()) => &bytes[..part],
        Err(_) => &[],
    }
}

/// Whether that many bytes can be read from where a thread's `write(2)` takes what it writes.
///
/// The file system gets the bytes of a write, not their address: that is among the arguments
/// of the system call that the thread waits in. Where that cannot be seen, yes.
pub(crate) fn check_written_from(pid: Pid, len: usize) -> Result<(), Errno> {
    let call = procfs::text(pid, "syscall").unwrap_or_default();
    match address_of_write(&call) {
        Some(address) => read(pid, address, &mut vec![0; len]),
        None => Ok(()),
    }
}

/// The address in the number and arguments of a system call, if it is a write.
fn address_of_write(call: &str) -> Option<u64> {
    let mut words = call.split_whitespace();
    let number: i64 = words.next()?.parse().ok()?;
    if number != SYS_write && number != SYS_pwrite64 {
        return None;
    }
    let address = words.nth(1)?.strip_prefix("0x")?;
    u64::from_str_radix(address, 16).ok()
}

/// Fewer bytes than asked means that a page further on is bad.
fn complete(moved: nix::Result<usize>, wanted: usize) -> Result<(), Errno> {
    match moved {
        Ok(moved) if moved == wanted => Ok(()),
        Ok(_) | Err(SysErrno::EFAULT) => Err(Errno::EFAULT),
        Err(errno) => Err(Errno::from(errno)),
    }
}

/// Whether the system lets this process use the calls at all.
pub(crate) fn self_test() -> Result<(), Errno> {
    let mut target = [0_u8; 8];
    let address = target.as_mut_ptr().expose_provenance();
    write(Pid::this(), &[(address as u64, &[1; 8])])?;
    std::hint::black_box(target);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_can_be_written() {
        assert_eq!(self_test(), Ok(()));
    }

    #[test]
    fn bad_addresses_are_efault() {
        assert_eq!(write(Pid::this(), &[(16, &[1, 2, 3])]), Err(Errno::EFAULT));
        assert_eq!(write(Pid::this(), &[(u64::MAX, &[1])]), Err(Errno::EFAULT));
        assert_eq!(read(Pid::this(), 16, &mut [0; 3]), Err(Errno::EFAULT));
    }

    #[test]
    fn writes_show_their_address() {
        let call = format!("{SYS_write} 0x3 0x7ffe10 0x8 0x0 0x0 0x0 0x7ffc 0x7f\n");
        assert_eq!(address_of_write(&call), Some(0x7f_fe10));
        assert_eq!(address_of_write("running\n"), None);
        assert_eq!(address_of_write("-1 0x7ffc 0x7f"), None);
        assert_eq!(address_of_write(""), None);
    }

    #[test]
    fn nothing_to_move_needs_no_address() {
        assert_eq!(write(Pid::this(), &[(0, &[])]), Ok(()));
        assert_eq!(read(Pid::this(), 0, &mut []), Ok(()));
    }
}
