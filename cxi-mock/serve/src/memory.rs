//! The memory of other processes: of a caller that waits for an answer, and of a process for as long
//! as the NIC uses it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{IoSlice, IoSliceMut};
use std::iter;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Weak};

use nix::errno::Errno as SysErrno;
use nix::libc::{SYS_pwrite64, SYS_write};
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;
use parking_lot::Mutex;

use cxi_ioctl::Errno;
use cxi_mock::{Backing, ClientMemory, MemoryFault};

use super::procfs;

pub(crate) const PAGE: u64 = 4096;
/// Pages that a pin makes present at most, 4 GiB, because a range can be longer than any memory.
const MOST_PRESENT: usize = 1 << 20;
/// Parts that the kernel accepts in one call.
const MOST_PARTS: usize = 1024;
/// The address of random bytes, in what the kernel tells a program that it starts.
const AT_RANDOM: u64 = 25;
/// Type of procfs in `fstatfs(2)`.
const PROC_SUPER_MAGIC: rustix::fs::FsWord = 0x9fa0;

/// A process, and the random bytes that the kernel has given its program. The process gets others
/// when it executes another program, whereas its number stays.
type Program = (Pid, [u8; 16]);

/// The memory of a process while it executes one program.
///
/// A process number would not do: it stays when the process executes another program, which may
/// have more privileges, and no number reaches a process whose main thread has ended. The
/// descriptor of `/proc/PID/mem` belongs to the address space instead: when that is gone, it reads
/// and writes nothing.
#[derive(Debug)]
pub(crate) struct ProcessMemory {
    file: Option<File>,
    owner: u32,
}

/// The memories in use: one object for each program, because the object keeps the order of stores.
static IN_USE: Mutex<BTreeMap<Program, Weak<ProcessMemory>>> = Mutex::new(BTreeMap::new());

impl ProcessMemory {
    /// The memory of a thread that waits for an answer. While the thread waits, its process cannot
    /// execute another program.
    pub(crate) fn of(thread: Pid) -> Arc<Self> {
        Self::found(thread, || {
            let mut options = File::options();
            options.read(true).write(true).open(format!("/proc/{thread}/mem")).ok()
        })
    }

    /// The memory that a process has passed: its `/proc/self/mem`. `None` if it is another file, which
    /// could make the NIC wait.
    pub(crate) fn passed(file: OwnedFd, process: Pid) -> Option<Arc<Self>> {
        let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        let is_memory = rustix::fs::fstatfs(&file).is_ok_and(|at| at.f_type == PROC_SUPER_MAGIC)
            && path.ends_with("mem");
        is_memory.then(|| Self::found(process, || Some(file.into())))
    }

    /// The memory of a process that did not let it be reached.
    pub(crate) fn none(process: Pid) -> Arc<Self> {
        Arc::new(Self { file: None, owner: procfs::user_of(process).unwrap_or_default() })
    }

    fn found(thread: Pid, open: impl FnOnce() -> Option<File>) -> Arc<Self> {
        let owner = procfs::user_of(thread).unwrap_or_default();
        let Some(program) = program_of(thread) else {
            return Arc::new(Self { file: open(), owner });
        };
        let mut in_use = IN_USE.lock();
        if let Some(known) = in_use.get(&program).and_then(Weak::upgrade) {
            return known;
        }
        let memory = Arc::new(Self { file: open(), owner });
        in_use.retain(|_, memory| memory.strong_count() > 0);
        in_use.insert(program, Arc::downgrade(&memory));
        memory
    }

    fn file(&self) -> Result<&File, MemoryFault> {
        self.file.as_ref().ok_or(MemoryFault)
    }
}

fn program_of(thread: Pid) -> Option<Program> {
    let told = fs::read(format!("/proc/{thread}/auxv")).ok()?;
    let words: Vec<u64> = told.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    let (pairs, _) = words.as_chunks();
    let [_, address] = *pairs.iter().find(|[key, _]| *key == AT_RANDOM)?;
    let mut random = [0; 16];
    read(thread, address, &mut random).ok()?;
    Some((procfs::process_of(thread)?, random))
}

impl ClientMemory for ProcessMemory {
    fn owner(&self) -> Option<u32> {
        Some(self.owner)
    }

    fn read(&self, va: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        let file = self.file()?;
        let (head, pages) = into.split_at_mut(head(va, into.len()));
        let after = va.wrapping_add(head.len() as u64);
        file.read_exact_at(head, va)
            .and_then(|()| file.read_exact_at(pages, after))
            .map_err(|_| MemoryFault)
    }

    fn write(&self, parts: &[(u64, &[u8])]) -> Result<(), MemoryFault> {
        let file = self.file()?;
        parts.iter().try_for_each(|(va, part)| {
            let (head, pages) = part.split_at(head(*va, part.len()));
            let after = va.wrapping_add(head.len() as u64);
            file.write_all_at(head, *va)
                .and_then(|()| file.write_all_at(pages, after))
                .map_err(|_| MemoryFault)
        })
    }
}

/// Returns the number of bytes to copy first, so that the rest starts with a page.
///
/// The kernel copies 4 KiB at a time from the first address on. In the middle of a page, each time
/// takes two pages, and finding a page costs more than copying it. Fewer than eight pages are not
/// worth the call.
fn head(va: u64, len: usize) -> usize {
    if (len as u64) < 8 * PAGE {
        return 0;
    }
    usize::try_from(va.wrapping_neg() % PAGE).unwrap_or(0)
}

/// Returns the memory behind a range of a thread's process, and makes its pages present. If that
/// cannot be determined, the best is assumed.
///
/// The driver's pin does so too, and programs rely on it: libfabric watches registered memory with
/// userfaultfd, and then the kernel gives the server no page that is not present. Only private
/// memory without a file is touched, for whose pages nothing can be waited for.
pub(crate) fn pin(pid: Pid, va: u64, len: u64) -> Backing {
    let Some(maps) = procfs::maps(pid) else { return Backing::Writable };
    let end = va.saturating_add(len);
    let backing = procfs::backing(&maps, va, end);
    if backing != Backing::Missing {
        let mut pages = procfs::anonymous(&maps, va..end).flat_map(pages).take(MOST_PRESENT);
        while touch(pid, &mut pages) {}
    }
    backing
}

/// The first address of each page of a range.
fn pages(range: Range<u64>) -> impl Iterator<Item = u64> {
    let next = |at: &u64| (at - at % PAGE).checked_add(PAGE);
    iter::successors(Some(range.start), next).take_while(move |at| *at < range.end)
}

/// Reads a byte of each of the next pages. Returns whether there may be more.
fn touch(pid: Pid, pages: &mut impl Iterator<Item = u64>) -> bool {
    let mut bytes = [0; MOST_PARTS];
    let parts = pages.map_while(|page| remote(page, 1).ok()).take(MOST_PARTS);
    let parts: Vec<_> = parts.collect();
    let into = &mut bytes[..parts.len()];
    let read =
        !parts.is_empty() && process_vm_readv(pid, &mut [IoSliceMut::new(into)], &parts).is_ok();
    read && parts.len() == MOST_PARTS
}

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
    complete(process_vm_readv(pid, &mut [IoSliceMut::new(bytes)], &from), len)
}

fn remote(address: u64, len: usize) -> Result<RemoteIoVec, Errno> {
    let base = usize::try_from(address).map_err(|_| Errno::EFAULT)?;
    Ok(RemoteIoVec { base, len })
}

/// Reads from the memory of a thread's process as far as its page reaches, if there is one.
pub(crate) fn read_some(pid: Pid, address: u64, bytes: &mut [u8]) -> &[u8] {
    if read(pid, address, bytes).is_ok() {
        return bytes;
    }
    let part = usize::try_from(PAGE - address % PAGE).unwrap_or(0).min(bytes.len());
    match read(pid, address, &mut bytes[..part]) {
        Ok(()) => &bytes[..part],
        Err(_) => &[],
    }
}

/// Returns whether that many bytes can be read from where a thread's `write(2)` takes what it
/// writes.
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

/// If fewer bytes were moved than requested, a page further on is bad.
fn complete(moved: nix::Result<usize>, wanted: usize) -> Result<(), Errno> {
    match moved {
        Ok(moved) if moved == wanted => Ok(()),
        Ok(_) | Err(SysErrno::EFAULT) => Err(Errno::EFAULT),
        Err(errno) => Err(Errno::from(errno)),
    }
}

/// Returns whether the system lets this process use the calls at all.
pub(crate) fn self_test() -> Result<(), Errno> {
    let mut target = [0_u8; 8];
    let address = target.as_mut_ptr().expose_provenance();
    write(Pid::this(), &[(address as u64, &[1; 8])])?;
    std::hint::black_box(target);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Child, Command, Stdio};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;
    use std::time::Duration;

    use cxi_ioctl::DeviceMemory;
    use nix::sys::signal::{Signal, kill};
    use nix::sys::wait::waitpid;
    use nix::unistd::{ForkResult, fork, gettid};

    use super::*;

    /// A shell that has started to execute a script, with a pipe to it.
    fn started(script: &str) -> Child {
        let mut setarch = Command::new("setarch");
        let setarch = setarch.args(["-R", "sh", "-c", &format!("echo; {script}")]);
        let setarch = setarch.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = setarch.spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        child
    }

    fn memory_of(child: &Child) -> Arc<ProcessMemory> {
        ProcessMemory::of(Pid::from_raw(child.id().try_into().unwrap()))
    }

    /// An address that the child's program has.
    fn stack_of(child: &Child) -> u64 {
        let maps = fs::read_to_string(format!("/proc/{}/maps", child.id())).unwrap();
        let line = maps.lines().find(|line| line.ends_with("[stack]")).unwrap();
        let (_, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        u64::from_str_radix(end, 16).unwrap() - 8
    }

    #[test]
    fn parts_arrive_and_bad_addresses_are_faults() {
        let memory = ProcessMemory::of(gettid());
        assert!(Arc::ptr_eq(&memory, &ProcessMemory::of(Pid::this())));
        let own = DeviceMemory::new(4096).unwrap();
        let va = own.address();
        memory.write(&[(va + 8, &[1; 8]), (va, &[2; 8])]).unwrap();
        assert_eq!(own.read_u64(0), Ok(0x0202_0202_0202_0202));
        let mut bytes = [0; 16];
        memory.read(va, &mut bytes).unwrap();
        assert_eq!(bytes[8..], [1; 8]);
        assert_eq!(memory.read(16, &mut bytes), Err(MemoryFault));
        assert_eq!(memory.write(&[(u64::MAX, &[1])]), Err(MemoryFault));
        assert_eq!(memory.write(&[]), Ok(()));
    }

    /// Long enough to be copied in two parts, and short enough to be copied as a whole.
    #[test]
    fn copies_from_the_middle_of_a_page_are_whole() {
        let memory = ProcessMemory::of(gettid());
        let own = DeviceMemory::new(64 << 10).unwrap();
        for (va, len) in [(1, 40_000), (4095, 32 << 10), (4096, 50_000), (7, 30_000)] {
            let sent: Vec<u8> = (0..len).map(|at: u32| at.to_le_bytes()[1] ^ 0x5a).collect();
            memory.write(&[(own.address() + va, &sent)]).unwrap();
            let mut read = vec![0; sent.len()];
            memory.read(own.address() + va, &mut read).unwrap();
            assert!(read == sent, "{len} bytes at {va}");
        }
    }

    #[test]
    fn a_process_that_has_ended_has_no_memory() {
        let mut child = started("read line");
        let (memory, va) = (memory_of(&child), stack_of(&child));
        assert_eq!(memory.read(va, &mut [0]), Ok(()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(memory.read(va, &mut [0]), Err(MemoryFault));
        assert_eq!(memory_of(&child).write(&[(va, &[1])]), Err(MemoryFault));
    }

    #[test]
    #[allow(unsafe_code, reason = "no safe function ends the main thread alone")]
    fn a_process_without_its_main_thread_has_memory() {
        let secret = Box::new(AtomicU64::new(0));
        let address = (&raw const *secret).expose_provenance() as u64;
        let (mut from, to) = std::io::pipe().unwrap();
        // SAFETY: the child takes no lock that another thread may have held: those of the
        // allocator are free after a fork.
        let ForkResult::Parent { child } = unsafe { fork() }.unwrap() else {
            thread::spawn(move || {
                secret.store(7, Ordering::Relaxed);
                let thread = gettid().as_raw().to_ne_bytes();
                (&to).write_all(&thread).unwrap();
                thread::sleep(Duration::from_secs(60));
            });
            // SAFETY: it ends this thread, whose memory nothing uses any more.
            unsafe { nix::libc::syscall(nix::libc::SYS_exit, 0) };
            unreachable!("the thread has ended");
        };
        let mut thread = [0; 4];
        from.read_exact(&mut thread).unwrap();
        let status = || procfs::text(child, "status").unwrap();
        while !status().contains("State:\tZ") {
            thread::yield_now();
        }
        let memory = ProcessMemory::of(Pid::from_raw(i32::from_ne_bytes(thread)));
        let mut word = [0; 8];
        let read = memory.read(address, &mut word);
        kill(child, Signal::SIGKILL).unwrap();
        waitpid(child, None).unwrap();
        assert_eq!((read, u64::from_ne_bytes(word)), (Ok(()), 7));
    }

    /// Without anyone who traces it, and without random addresses, so that both programs have their
    /// memory in much the same places.
    #[test]
    fn another_program_has_other_memory() {
        let mut child = started("read line; exec sh -c 'echo; read line'");
        let (before, va) = (memory_of(&child), stack_of(&child));
        assert_eq!(before.read(va, &mut [0]), Ok(()));
        writeln!(child.stdin.as_mut().unwrap()).unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let after = memory_of(&child);
        let there = stack_of(&child);
        assert_eq!(after.read(there, &mut [0]), Ok(()));
        for va in [va, there] {
            assert_eq!(before.read(va, &mut [0]), Err(MemoryFault));
            assert_eq!(before.write(&[(va, &[1])]), Err(MemoryFault));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }

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

    /// Pages of the range that this process has in memory.
    fn present(va: u64, len: u64) -> usize {
        let map = File::open("/proc/self/pagemap").unwrap();
        let mut entries = vec![0; usize::try_from(len / PAGE * 8).unwrap()];
        map.read_exact_at(&mut entries, va / PAGE * 8).unwrap();
        entries.as_chunks().0.iter().filter(|it| u64::from_ne_bytes(**it) >> 63 == 1).count()
    }

    #[test]
    fn memory_that_is_pinned_is_present() {
        let len = 3_000 * PAGE;
        // Memory from the kernel, which has no page until it is used.
        let memory = vec![0_u8; usize::try_from(len).unwrap()];
        let va = memory.as_ptr().expose_provenance() as u64;
        assert!(present(va, len) < 3_000);
        assert_eq!(pin(Pid::this(), va, len), Backing::Writable);
        assert_eq!(present(va, len), 3_000);
        assert_eq!(pin(Pid::this(), 16, len), Backing::Missing);
        std::hint::black_box(memory);
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
