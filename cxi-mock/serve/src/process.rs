//! The memory of a process, for as long as the NIC uses it.

use std::any::Any;
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::Pid;
use rustix::process::{PidfdFlags, pidfd_open};

use cxi_mock::{ClientMemory, MemoryFault};

use super::procfs;
use super::{memory, trap};

/// Bytes from which on it pays that a stopped program copies them.
const LENT: usize = 1 << 16;

/// A process. Its number may outlive it.
#[derive(Debug)]
pub(crate) struct ProcessMemory {
    pid: Pid,
    /// Readable once the process has ended; `None` if it had ended before.
    alive: Option<OwnedFd>,
    /// Whether it has executed another program since.
    replaced: AtomicBool,
    inside: OnceLock<Option<(u64, i32)>>,
}

/// Memory of a process that has not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteAddress {
    pub(crate) process: Pid,
    /// Its PID namespace, and its number there.
    pub(crate) namespace: u64,
    pub(crate) number: i32,
    pub(crate) va: u64,
}

/// The processes whose memory is in use: one object for each, so that what goes to one process can
/// go together.
static IN_USE: Mutex<BTreeMap<Pid, Weak<ProcessMemory>>> = Mutex::new(BTreeMap::new());

impl ProcessMemory {
    /// The process of a thread that waits for an answer.
    pub(crate) fn of(thread: Pid) -> Arc<Self> {
        let pid = process_of(thread).unwrap_or(Pid::from_raw(0));
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        let known = in_use.get(&pid).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| known.pid().is_ok()) {
            return known;
        }
        let alive = rustix::process::Pid::from_raw(pid.as_raw());
        let memory = Arc::new(Self {
            pid,
            alive: alive.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()),
            replaced: AtomicBool::new(false),
            inside: OnceLock::new(),
        });
        in_use.retain(|_, memory| memory.strong_count() > 0);
        in_use.insert(pid, Arc::downgrade(&memory));
        memory
    }

    /// A process has executed another program, whose memory the NIC was never given: for the NIC,
    /// the process has ended.
    pub(crate) fn replaced(process: Pid) {
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(memory) = in_use.remove(&process).and_then(|it| it.upgrade()) {
            memory.replaced.store(true, Ordering::Release);
        }
    }

    /// The number, if the process has not ended.
    fn pid(&self) -> Result<Pid, MemoryFault> {
        let same = !self.replaced.load(Ordering::Acquire);
        let alive = self.alive.as_ref().filter(|_| same).ok_or(MemoryFault)?;
        let mut ended = [PollFd::new(alive.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ended, PollTimeout::ZERO) {
            Ok(0) => Ok(self.pid),
            _ => Err(MemoryFault),
        }
    }

    /// An address of the process, unless it has ended.
    pub(crate) fn address(&self, va: u64) -> Option<RemoteAddress> {
        let process = self.pid().ok()?;
        let (namespace, number) = (*self.inside.get_or_init(|| inside(process)))?;
        Some(RemoteAddress {
            process,
            namespace,
            number,
            va,
        })
    }
}

/// The PID namespace of a process, and its number there.
fn inside(process: Pid) -> Option<(u64, i32)> {
    let namespace = fs::metadata(format!("/proc/{process}/ns/pid")).ok()?;
    let status = procfs::status(process)?;
    let number = status.words("NSpid").last()?.parse().ok()?;
    Some((namespace.ino(), number))
}

/// The process of a thread, unless it has ended.
pub(crate) fn process_of(thread: Pid) -> Option<Pid> {
    procfs::process(&procfs::head(thread)?)
}

impl ClientMemory for ProcessMemory {
    fn read(&self, va: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        memory::read(self.pid()?, va, into).map_err(|_| MemoryFault)
    }

    fn write(&self, parts: &[(u64, &[u8])]) -> Result<(), MemoryFault> {
        memory::write(self.pid()?, parts).map_err(|_| MemoryFault)
    }

    fn copy(&self, va: u64, (to, there): (&dyn ClientMemory, u64), len: usize) -> bool {
        let to: &dyn Any = to;
        let Some(to) = to.downcast_ref::<Self>().filter(|_| len >= LENT) else {
            return false;
        };
        let places = self.address(va).zip(to.address(there));
        places.is_some_and(|(from, to)| trap::copy(from, to, len))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use cxi_ioctl::DeviceMemory;

    use super::*;

    #[test]
    fn parts_arrive_and_bad_addresses_are_faults() {
        let memory = ProcessMemory::of(nix::unistd::gettid());
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

    #[test]
    fn a_process_that_has_ended_has_no_memory() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let memory = ProcessMemory::of(Pid::from_raw(child.id().try_into().unwrap()));
        assert!(memory.pid().is_ok());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(memory.read(4096, &mut [0]), Err(MemoryFault));
        let gone = ProcessMemory::of(memory.pid);
        assert_eq!(gone.write(&[(4096, &[1])]), Err(MemoryFault));
    }
}
