//! Windows of device memory that callers map: one shared memory for each open file.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use cxi_ioctl::abi::memory::Mminfo;
use cxi_ioctl::memory::page_size;
use cxi_ioctl::{Errno, Mapping};
use nix::fcntl::{FallocateFlags, fallocate};

use super::pages::{arm, clear};
use super::window_memory::WindowMemory;

/// Size of a page of this machine. Windows start and end on page boundaries.
pub(crate) fn page_bytes() -> u64 {
    page_size() as u64
}

/// Windows from this offset on are past the end of the memory. A store to them raises SIGBUS, and
/// the front end that traps it tells the NIC.
const BEHIND_THE_END: u64 = 1 << 40;
/// Windows of target queues come before all others there, so that the end can be moved between
/// them.
const NOT_OF_TARGETS: u64 = 1 << 41;
/// Number of bytes that each file has past the end. They are more than there are doorbells and
/// belong to no other file, so that an offset identifies the file.
const BEHIND_THE_END_EACH: u64 = 1 << 24;
/// Number of doorbells of target queues that can be in front of the end.
const MOST_OPEN: u64 = 8;

/// The object that stores to a window of doorbells are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Doorbell {
    /// A command queue.
    Queue(u32),
    /// A target queue, where the difference counts.
    Target(u32),
    /// A counter.
    Counter(u32),
}

/// Purpose of a window that the NIC maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The commands of a queue whose low-latency windows may be polled.
    Ring,
    Doorbell(Doorbell),
    /// Anything that a program may find empty.
    Plain,
}

/// A memory that receives stores to doorbells of target queues, and the queues by the page of their
/// doorbell.
pub(crate) type OpenTargets = (Arc<WindowMemory>, Vec<(usize, u32)>);

/// A window as the NIC maps it, which is not before a program can.
pub(crate) type Page = Arc<OnceLock<Mapping>>;

/// The windows of an open file, in its own offset space and memory, so that a program cannot map
/// windows of another file.
///
/// The memory is made when a program first maps a window, because most tests never do. Until then
/// the NIC has nothing to read.
#[derive(Clone, Debug)]
pub(crate) struct Windows {
    /// Length by offset.
    live: BTreeMap<u64, u64>,
    /// Offsets to use again, by length.
    freed: BTreeMap<u64, Vec<u64>>,
    /// Offset 0 is left out, so that it never looks like a window.
    next: u64,
    memory: Option<Arc<WindowMemory>>,
    /// Pages that the NIC maps once there is a memory, by offset: the purpose, and the page.
    unmapped: BTreeMap<u64, (Purpose, Page)>,
    /// Doorbells in the memory, by offset.
    polled: BTreeMap<u64, Doorbell>,
    /// Programs map windows only after the NIC has been told.
    shared: bool,
    /// Doorbells past the end of the memory, by offset.
    trapped: BTreeMap<u64, Doorbell>,
    /// The offsets for doorbells of target queues, and for others.
    targets: Offsets,
    others: Offsets,
}

/// Offsets of pages past the end of the memory.
#[derive(Clone, Debug)]
struct Offsets {
    first: u64,
    next: u64,
    freed: Vec<u64>,
}

impl Offsets {
    /// The offsets of a file by its number, in the files' part that starts at `part`.
    fn new(part: u64, file: u32) -> Self {
        let first = part + u64::from(file) * BEHIND_THE_END_EACH;
        Self { first, next: first, freed: Vec::new() }
    }

    fn alloc(&mut self) -> u64 {
        let offset = self.freed.pop().unwrap_or(self.next);
        self.next = self.next.max(offset + page_bytes());
        offset
    }
}

impl Windows {
    /// The windows of a file by its number.
    pub(crate) fn new(file: u32) -> Self {
        Self {
            live: BTreeMap::new(),
            freed: BTreeMap::new(),
            next: page_bytes(),
            memory: None,
            unmapped: BTreeMap::new(),
            polled: BTreeMap::new(),
            shared: false,
            trapped: BTreeMap::new(),
            targets: Offsets::new(BEHIND_THE_END, file),
            others: Offsets::new(NOT_OF_TARGETS, file),
        }
    }

    /// Allocates a window for the doorbells of a `target` queue or of another object. If stores of
    /// the caller are `trapped`, the window has no memory.
    pub(crate) fn alloc_doorbell(&mut self, trapped: bool, target: bool) -> Result<Mminfo, Errno> {
        let offset = match (trapped, target) {
            (false, _) => return self.alloc(page_bytes()),
            (true, true) => self.targets.alloc(),
            (true, false) => self.others.alloc(),
        };
        self.live.insert(offset, page_bytes());
        Ok(Mminfo { offset, size: page_bytes() })
    }

    /// Maps a window of doorbells for the NIC; `None` if stores to it are trapped.
    pub(crate) fn map_doorbell(
        &mut self,
        window: Mminfo,
        doorbell: Doorbell,
    ) -> Result<Option<Page>, Errno> {
        if window.offset < BEHIND_THE_END {
            // Whoever polls does not tell queues apart.
            let polled = match doorbell {
                Doorbell::Target(id) => Doorbell::Queue(id),
                other => other,
            };
            self.polled.insert(window.offset, polled);
            return self.map_for_nic(window, Purpose::Doorbell(doorbell)).map(Some);
        }
        self.memory()?;
        self.trapped.insert(window.offset, doorbell);
        Ok(None)
    }

    /// Makes stores to the doorbells of target queues go to the memory.
    pub(crate) fn open_targets(&mut self) -> Result<OpenTargets, Errno> {
        let first = self.targets.first;
        let count = ((self.targets.next - first) / page_bytes()).min(MOST_OPEN);
        let memory = Arc::clone(self.memory()?);
        memory.open(first, usize::try_from(count).map_err(|_| Errno::ENOMEM)?)?;
        let trapped = self.trapped.range(first..first + count * page_bytes());
        let queues = trapped.filter_map(|(offset, doorbell)| match doorbell {
            Doorbell::Target(id) => {
                Some((usize::try_from((offset - first) / page_bytes()).ok()?, *id))
            }
            _ => None,
        });
        Ok((memory, queues.collect()))
    }

    /// The doorbell that a trapped store rings, and the place in its window.
    pub(crate) fn doorbell_at(&self, offset: u64) -> Option<(Doorbell, usize)> {
        let place = offset % page_bytes();
        let doorbell = self.trapped.get(&(offset - place))?;
        Some((*doorbell, usize::try_from(place).ok()?))
    }

    /// The doorbell whose stores go to the window at an offset.
    pub(crate) fn polled_at(&self, offset: u64) -> Option<Doorbell> {
        self.polled.get(&offset).copied()
    }

    /// Records that programs map windows only after [`polled_at`](Self::polled_at) was asked for.
    pub(crate) fn share(&mut self) {
        self.shared = true;
    }

    /// Returns whether the doorbell of a new object may be rung although nobody has been told of a mapping.
    pub(crate) fn is_polled(&self, page: Option<&Page>) -> bool {
        page.is_some() && !self.shared
    }

    /// A window of at least that many bytes.
    pub(crate) fn alloc(&mut self, bytes: u64) -> Result<Mminfo, Errno> {
        let size = bytes.max(1).next_multiple_of(page_bytes());
        let reused = self.freed.get_mut(&size).and_then(Vec::pop);
        let offset = if let Some(offset) = reused {
            offset
        } else {
            let offset = self.next;
            let end = offset.checked_add(size).ok_or(Errno::ENOMEM)?;
            if let Some(memory) = &self.memory {
                memory.grow(end)?;
            }
            self.next = end;
            offset
        };
        self.live.insert(offset, size);
        Ok(Mminfo { offset, size })
    }

    /// Gives a window back; its memory reads as zero when it is used again.
    pub(crate) fn free(&mut self, window: Mminfo) {
        let Some(size) = self.live.remove(&window.offset) else { return };
        if window.offset >= BEHIND_THE_END {
            self.trapped.remove(&window.offset);
            let of =
                if window.offset < NOT_OF_TARGETS { &mut self.targets } else { &mut self.others };
            of.freed.push(window.offset);
            return;
        }
        self.unmapped.remove(&window.offset);
        self.polled.remove(&window.offset);
        if let Some(memory) = &self.memory {
            let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
            let (offset, len) = (window.offset.cast_signed(), size.cast_signed());
            if fallocate(memory.file(), flags, offset, len).is_err() {
                // Its bytes are still another client's, so it is never reused.
                return;
            }
        }
        self.freed.entry(size).or_default().push(window.offset);
    }

    /// The memory of the windows, which never shrinks below their end.
    pub(crate) fn memory(&mut self) -> Result<&Arc<WindowMemory>, Errno> {
        if self.memory.is_none() {
            self.memory = Some(Arc::new(WindowMemory::new(self.next)?));
        }
        let memory = self.memory.as_ref().ok_or(Errno::ENOMEM)?;
        while let Some(entry) = self.unmapped.first_entry() {
            let size = self.live.get(entry.key()).copied().unwrap_or_default();
            let len = usize::try_from(size).map_err(|_| Errno::ENOMEM)?;
            let mapping = Mapping::from_file(&**memory.file(), *entry.key(), len)?;
            let (purpose, page) = entry.remove();
            match purpose {
                Purpose::Doorbell(doorbell) => arm(&mapping, doorbell),
                Purpose::Ring => clear(&mapping),
                Purpose::Plain => {}
            }
            page.get_or_init(|| mapping);
        }
        Ok(memory)
    }

    /// Maps a window for the NIC, and prepares it for its purpose.
    pub(crate) fn map_for_nic(&mut self, window: Mminfo, purpose: Purpose) -> Result<Page, Errno> {
        let page = Page::default();
        self.unmapped.insert(window.offset, (purpose, Arc::clone(&page)));
        if self.memory.is_some() {
            self.memory()?;
        }
        Ok(page)
    }

    /// Maps a window, or a part of one.
    pub(crate) fn map(&mut self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        let bytes = u64::try_from(len).map_err(|_| Errno::EINVAL)?;
        let end = offset.checked_add(bytes).ok_or(Errno::EINVAL)?;
        let inside =
            self.live.range(..=offset).next_back().is_some_and(|(start, size)| end <= start + size);
        if !inside || !offset.is_multiple_of(page_bytes()) {
            return Err(Errno::EINVAL);
        }
        Mapping::from_file(&**self.memory()?.file(), offset, len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_shared_memory_and_zero_when_new() {
        let mut windows = Windows::new(1);
        let one = windows.alloc(100).unwrap();
        let two = windows.alloc(page_bytes() + 1).unwrap();
        assert_eq!((one.size, two.size), (page_bytes(), 2 * page_bytes()));
        assert!(one.offset >= page_bytes() && two.offset >= one.offset + one.size);
        let (here, there) = (
            windows.map(one.offset, page_size()).unwrap(),
            windows.map(one.offset, page_size()).unwrap(),
        );
        here.write_u64(8, 7).unwrap();
        assert_eq!(there.read_u64(8), Ok(7));
        windows.free(one);
        assert_eq!(windows.map(one.offset, page_size()).unwrap_err(), Errno::EINVAL);
        let again = windows.alloc(1).unwrap();
        assert_eq!(again.offset, one.offset);
        assert_eq!(windows.map(again.offset, page_size()).unwrap().read_u64(8), Ok(0));
        let late = windows.alloc(64 * page_bytes()).unwrap();
        windows.map(late.offset, 64 * page_size()).unwrap().write_u64(63 * page_size(), 1).unwrap();
    }

    #[test]
    fn trapped_doorbells_have_no_memory() {
        let mut windows = Windows::new(1);
        let one = windows.alloc_doorbell(true, false).unwrap();
        let two = windows.alloc_doorbell(true, false).unwrap();
        assert_eq!(two.offset, one.offset + page_bytes());
        let other = Windows::new(2).alloc_doorbell(true, false).unwrap();
        assert!(other.offset > two.offset);
        let target = Windows::new(9).alloc_doorbell(true, true).unwrap();
        assert!(target.offset < one.offset);
        assert_eq!(windows.doorbell_at(one.offset), None);
        let page = windows.map_doorbell(two, Doorbell::Queue(7));
        assert!(page.unwrap().is_none());
        let rung = Some((Doorbell::Queue(7), 64));
        assert_eq!(windows.doorbell_at(two.offset + 64), rung);
        windows.free(two);
        assert_eq!(windows.doorbell_at(two.offset), None);
        assert_eq!(windows.alloc_doorbell(true, false).unwrap().offset, two.offset);
        let polled = windows.alloc_doorbell(false, true).unwrap();
        let page = windows.map_doorbell(polled, Doorbell::Counter(1));
        assert!(page.unwrap().is_some());
        assert_eq!(windows.doorbell_at(polled.offset), None);
    }

    #[test]
    fn the_nic_maps_windows_when_a_program_can() {
        let mut windows = Windows::new(1);
        let doorbell = windows.alloc_doorbell(false, false).unwrap();
        let page = windows.map_doorbell(doorbell, Doorbell::Queue(1));
        let page = page.unwrap().unwrap();
        let freed = windows.alloc(page_bytes()).unwrap();
        let gone = windows.map_for_nic(freed, Purpose::Plain).unwrap();
        windows.free(freed);
        assert!(windows.memory.is_none() && page.get().is_none());
        // Every store finds a doorbell that is armed.
        let client = windows.map(doorbell.offset, page_size()).unwrap();
        assert_eq!(client.read_u64(0), Ok(u64::MAX));
        client.write_u64(0, 7).unwrap();
        assert_eq!(page.get().unwrap().read_u64(0), Ok(7));
        assert!(gone.get().is_none());
        let late = windows.alloc(page_bytes()).unwrap();
        assert!(windows.map_for_nic(late, Purpose::Plain).unwrap().get().is_some());
    }

    #[test]
    fn only_windows_can_be_mapped() {
        let mut windows = Windows::new(1);
        let window = windows.alloc(page_bytes()).unwrap();
        for (offset, len) in [
            (0, page_size()),
            (window.offset, 2 * page_size()),
            (window.offset + 1, 1),
            (window.offset + page_bytes(), 1),
            (u64::MAX, 1),
            (window.offset, 0),
        ] {
            assert_eq!(windows.map(offset, len).unwrap_err(), Errno::EINVAL, "{offset} {len}");
        }
    }
}
