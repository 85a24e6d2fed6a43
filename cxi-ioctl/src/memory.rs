//! Owned memory that a device may use, and the registry through which an in-process mock reaches
//! it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};

use crate::{Errno, Mapping};

/// Page-aligned, zeroed memory that a device may read and write at any time: event rings, counter
/// write-backs, registered buffers.
///
/// It cannot be borrowed as a reference or slice: accesses copy words in and out. Reads acquire and
/// writes release, so whatever a device or another thread wrote before a word that says "done" is
/// visible after reading that word. Share it between threads in an [`Arc`].
///
/// An in-process mock uses the memory by address through [`read_at`] and [`write_at`].
///
/// ```
/// use cxi_ioctl::{DeviceMemory, memory};
///
/// # fn main() -> Result<(), cxi_ioctl::Errno> {
/// let ring = DeviceMemory::new(4096)?;
/// memory::write_at(ring.address() + 16, &42_u64.to_ne_bytes())?;
/// assert_eq!(ring.read_u64(16)?, 42);
/// # Ok(())
/// # }
/// ```
pub struct DeviceMemory {
    words: Arc<Mapping>,
    address: u64,
}

type Registry = RwLock<BTreeMap<u64, Arc<Mapping>>>;

static REGISTRY: Registry = RwLock::new(BTreeMap::new());

impl DeviceMemory {
    /// Allocates at least `len` bytes: whole pages, all zero.
    ///
    /// # Errors
    ///
    /// EINVAL for a length of zero, ENOMEM if there is not enough memory.
    pub fn new(len: usize) -> Result<Self, Errno> {
        if len == 0 {
            return Err(Errno::EINVAL);
        }
        let len = len.checked_next_multiple_of(page_size()).ok_or(Errno::ENOMEM)?;
        let words = Arc::new(Mapping::anonymous(len)?);
        let address = words.address();
        REGISTRY
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(address, Arc::clone(&words));
        Ok(Self { words, address })
    }

    /// Address of the first byte, for a command.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Length in bytes, a multiple of the page size.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Reads the 64-bit word at `offset` atomically.
    ///
    /// # Errors
    ///
    /// EINVAL if the offset is not a multiple of eight, ERANGE if it is outside the memory.
    pub fn read_u64(&self, offset: usize) -> Result<u64, Errno> {
        Ok(self.words.at(offset)?.load(Ordering::Acquire))
    }

    /// Writes the 64-bit word at `offset` atomically.
    ///
    /// # Errors
    ///
    /// As [`DeviceMemory::read_u64`].
    pub fn write_u64(&self, offset: usize, value: u64) -> Result<(), Errno> {
        self.words.at(offset)?.store(value, Ordering::Release);
        Ok(())
    }

    /// Copies bytes out, starting at `offset`. Not atomic: a device may write in between.
    ///
    /// # Errors
    ///
    /// ERANGE if the range is not inside the memory; then nothing is copied.
    pub fn copy_out(&self, offset: usize, bytes: &mut [u8]) -> Result<(), Errno> {
        read(&self.words, offset, bytes)
    }

    /// Copies bytes in, starting at `offset`. Not atomic: a device may read in between.
    ///
    /// # Errors
    ///
    /// ERANGE if the range is not inside the memory; then nothing is copied.
    pub fn copy_in(&self, offset: usize, bytes: &[u8]) -> Result<(), Errno> {
        write(&self.words, offset, bytes)
    }
}

impl fmt::Debug for DeviceMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceMemory({:#x}, {} bytes)", self.address, self.len())
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        REGISTRY.write().unwrap_or_else(PoisonError::into_inner).remove(&self.address);
    }
}

/// Reads memory of a live [`DeviceMemory`] of this process by address.
///
/// For mocks of the device in the same process. The memory is not freed before an access in
/// progress has finished.
///
/// # Errors
///
/// EFAULT if the range is not inside one `DeviceMemory`; then nothing is read.
pub fn read_at(address: u64, bytes: &mut [u8]) -> Result<(), Errno> {
    let (words, offset) = find(address)?;
    read(&words, offset, bytes).map_err(|_| Errno::EFAULT)
}

/// Writes memory of a live [`DeviceMemory`] of this process by address; see [`read_at`].
///
/// # Errors
///
/// EFAULT if the range is not inside one `DeviceMemory`; then nothing is written.
pub fn write_at(address: u64, bytes: &[u8]) -> Result<(), Errno> {
    let (words, offset) = find(address)?;
    write(&words, offset, bytes).map_err(|_| Errno::EFAULT)
}

/// Returns the size of a page of this machine, in bytes: windows and memory of devices consist of pages.
#[must_use]
pub fn page_size() -> usize {
    nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE)
        .ok()
        .flatten()
        .and_then(|size| usize::try_from(size).ok())
        .filter(|size| size.is_power_of_two())
        .unwrap_or(4096)
}

const WORD: usize = size_of::<u64>();

fn find(address: u64) -> Result<(Arc<Mapping>, usize), Errno> {
    let registry = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
    let (start, words) = registry.range(..=address).next_back().ok_or(Errno::EFAULT)?;
    let offset = usize::try_from(address - start).map_err(|_| Errno::EFAULT)?;
    if offset >= words.len() {
        return Err(Errno::EFAULT);
    }
    // The clone keeps the memory mapped after the lock is released.
    Ok((Arc::clone(words), offset))
}

/// Splits a range into words, each with the bytes of it that belong to the range; ERANGE if it is
/// not inside.
fn parts(
    words: &Mapping,
    offset: usize,
    len: usize,
) -> Result<impl Iterator<Item = (usize, Range<usize>)> + use<>, Errno> {
    let end = offset.checked_add(len).ok_or(Errno::ERANGE)?;
    if end > words.len() {
        return Err(Errno::ERANGE);
    }
    Ok((offset / WORD..end.div_ceil(WORD)).filter_map(move |index| {
        let start = index * WORD;
        let range = offset.saturating_sub(start)..(end - start).min(WORD);
        (!range.is_empty()).then_some((index, range))
    }))
}

fn read(words: &Mapping, offset: usize, mut bytes: &mut [u8]) -> Result<(), Errno> {
    for (index, range) in parts(words, offset, bytes.len())? {
        let word = words.word(index)?.load(Ordering::Acquire).to_ne_bytes();
        let (part, rest) = bytes.split_at_mut_checked(range.len()).ok_or(Errno::ERANGE)?;
        part.copy_from_slice(word.get(range).ok_or(Errno::ERANGE)?);
        bytes = rest;
    }
    Ok(())
}

fn write(words: &Mapping, offset: usize, mut bytes: &[u8]) -> Result<(), Errno> {
    for (index, range) in parts(words, offset, bytes.len())? {
        let word = words.word(index)?;
        let (part, rest) = bytes.split_at_checked(range.len()).ok_or(Errno::ERANGE)?;
        if let Ok(whole) = <[u8; WORD]>::try_from(part) {
            word.store(u64::from_ne_bytes(whole), Ordering::Release);
        } else {
            let replace = |old: u64| {
                let mut new = old.to_ne_bytes();
                new.get_mut(range.clone())?.copy_from_slice(part);
                Some(u64::from_ne_bytes(new))
            };
            word.fetch_update(Ordering::AcqRel, Ordering::Acquire, replace)
                .map_err(|_| Errno::ERANGE)?;
        }
        bytes = rest;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
