//! Memory that a device reads and writes on its own.

#![allow(unsafe_code, reason = "memory shared with a device has no safe reference")]

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use memmap2::{MmapOptions, MmapRaw};

use crate::Errno;
use crate::memory::page_size;

const WORD: usize = size_of::<u64>();

/// A window of device memory, mapped shared for reading and writing.
///
/// It is never a slice, because the device may change it at any time. Access is atomic, one aligned
/// 64-bit word at a time, at byte offsets from the start of the window; all registers of the NIC
/// have that size, and accesses of different sizes to the same place from several threads would be
/// a data race. Several threads may use a window at once.
///
/// ```
/// # fn main() -> Result<(), cxi_ioctl::Errno> {
/// let window = cxi_ioctl::Mapping::anonymous(4096)?;
/// window.write_u64(64, 7)?;
/// window.ring(0, 1)?;
/// assert_eq!(window.read_u64(64)?, 7);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Mapping {
    map: MmapRaw,
}

impl Mapping {
    /// Maps `len` bytes of a file from `offset`.
    ///
    /// The file must not shrink below the window while the mapping exists, or the process would get
    /// SIGBUS. A driver's windows do not shrink; seal a memfd (`F_SEAL_SHRINK`).
    ///
    /// # Errors
    ///
    /// EINVAL for an empty window, an offset that is not a multiple of the page size, or a length
    /// that is not a multiple of eight; otherwise the errno of `mmap(2)`: ENODEV for a file that
    /// cannot be mapped, EACCES for one that is not open for writing.
    pub fn from_file(file: impl AsFd, offset: u64, len: usize) -> Result<Self, Errno> {
        if !offset.is_multiple_of(page_size() as u64) {
            return Err(Errno::EINVAL);
        }
        Self::map(len, |options| options.offset(offset).map_raw(&file.as_fd()))
    }

    /// A window of `len` zeroed bytes with no device behind it, for transports without one.
    ///
    /// # Errors
    ///
    /// EINVAL for an empty window or a length that is not a multiple of eight, ENOMEM.
    pub fn anonymous(len: usize) -> Result<Self, Errno> {
        Self::map(len, |options| options.map_anon().map(MmapRaw::from))
    }

    /// Length in bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a mapping is never empty")]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Reads the 64-bit word at `offset`.
    ///
    /// # Errors
    ///
    /// EINVAL if the offset is not a multiple of eight, ERANGE if the word is not inside the
    /// window.
    pub fn read_u64(&self, offset: usize) -> Result<u64, Errno> {
        Ok(self.at(offset)?.load(Ordering::Relaxed))
    }

    /// Writes the 64-bit word at `offset`.
    ///
    /// # Errors
    ///
    /// As [`Mapping::read_u64`].
    pub fn write_u64(&self, offset: usize, value: u64) -> Result<(), Errno> {
        self.at(offset)?.store(value, Ordering::Relaxed);
        Ok(())
    }

    /// Replaces the 64-bit word at `offset` and returns the previous one, atomically: what a device
    /// does with a doorbell that it polls.
    ///
    /// # Errors
    ///
    /// As [`Mapping::read_u64`].
    pub fn swap_u64(&self, offset: usize, value: u64) -> Result<u64, Errno> {
        Ok(self.at(offset)?.swap(value, Ordering::Relaxed))
    }

    /// Writes a doorbell: the 64-bit word at `offset`, after everything that this thread has
    /// written before to this or any other window and to [`DeviceMemory`](crate::DeviceMemory).
    ///
    /// A full fence precedes the write. A release fence would not be enough: windows may be mapped
    /// write-combining, and on x86-64 only a full or a store fence flushes those buffers.
    ///
    /// # Errors
    ///
    /// As [`Mapping::read_u64`].
    pub fn ring(&self, offset: usize, value: u64) -> Result<(), Errno> {
        fence(Ordering::SeqCst);
        self.write_u64(offset, value)
    }
}

impl Mapping {
    fn map(
        len: usize,
        map: impl FnOnce(&mut MmapOptions) -> std::io::Result<MmapRaw>,
    ) -> Result<Self, Errno> {
        if len == 0 || !len.is_multiple_of(WORD) {
            return Err(Errno::EINVAL);
        }
        let map = map(MmapOptions::new().len(len)).map_err(|error| Errno::from_io(&error))?;
        Ok(Self { map })
    }

    /// Address of the first byte, as a command carries it.
    pub(crate) fn address(&self) -> u64 {
        self.map.as_mut_ptr().expose_provenance() as u64
    }

    /// The word at this byte offset: EINVAL if it is not aligned, ERANGE if it is not inside.
    pub(crate) fn at(&self, offset: usize) -> Result<&AtomicU64, Errno> {
        if !offset.is_multiple_of(WORD) {
            return Err(Errno::EINVAL);
        }
        self.word(offset / WORD)
    }

    /// The word with this index.
    pub(crate) fn word(&self, index: usize) -> Result<&AtomicU64, Errno> {
        if index >= self.map.len() / WORD {
            return Err(Errno::ERANGE);
        }
        let word = self.map.as_mut_ptr().wrapping_add(index * WORD).cast();
        // SAFETY: the mapping starts on a page boundary, as nothing is mapped from an offset that
        // is not on one, and `index` was checked. So `word` is an aligned pointer to eight bytes
        // inside it, which are mapped for reading and writing as long as `self` lives; the
        // reference borrows `self`. In this process the memory is reached only through such
        // references, so all accesses are atomic and of this size. What a device or another
        // process does to it are changes that an atomic admits.
        Ok(unsafe { AtomicU64::from_ptr(word) })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom, Write};

    use super::*;

    #[test]
    fn a_window_refuses_what_is_not_inside_or_not_aligned() {
        let window = Mapping::anonymous(128).unwrap();
        assert_eq!(window.len(), 128);
        assert_eq!(window.read_u64(4), Err(Errno::EINVAL));
        assert_eq!(window.read_u64(128), Err(Errno::ERANGE));
        assert_eq!(window.read_u64(usize::MAX - 7), Err(Errno::ERANGE));
        assert_eq!(window.write_u64(4, 0), Err(Errno::EINVAL));
        assert_eq!(window.write_u64(128, 0), Err(Errno::ERANGE));
        assert_eq!(window.ring(120, 5), Ok(()));
        assert_eq!(window.read_u64(120), Ok(5));
        for len in [0, 7, 12, 4097] {
            assert_eq!(Mapping::anonymous(len).unwrap_err(), Errno::EINVAL);
        }
    }

    #[test]
    fn two_windows_of_a_file_show_each_others_writes() {
        let mut file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        let one = Mapping::from_file(&file, 0, 8192).unwrap();
        let two = Mapping::from_file(&file, 4096, 4096).unwrap();
        one.write_u64(4096 + 16, 0xDEAD_BEEF).unwrap();
        assert_eq!(two.read_u64(16), Ok(0xDEAD_BEEF));
        file.seek(SeekFrom::Start(4096)).unwrap();
        file.write_all(&7_u64.to_ne_bytes()).unwrap();
        assert_eq!(two.read_u64(0), Ok(7));
        // What a response of a driver of another version may ask for.
        let page = page_size();
        for (offset, len) in [
            (0, 0),
            (1, 64),
            (8, 64),
            (page as u64 - 8, 64),
            (0, 63),
            (4095, usize::MAX),
            (u64::MAX, 8),
            (u64::MAX - (page as u64 - 1), 8),
            (u64::MAX, usize::MAX),
            (0, usize::MAX - 7),
            (0, isize::MAX as usize + 1),
        ] {
            assert!(Mapping::from_file(&file, offset, len).is_err(), "{offset} {len}");
        }
        let (read_only, _other) = std::io::pipe().unwrap();
        assert_eq!(Mapping::from_file(&read_only, 0, 4096).unwrap_err(), Errno::EACCES);
    }

    #[test]
    fn threads_share_a_window() {
        let window = Mapping::anonymous(64).unwrap();
        std::thread::scope(|scope| {
            for value in 1..=2 {
                let window = &window;
                scope.spawn(move || {
                    for _ in 0..100 {
                        window.write_u64(0, value).unwrap();
                        window.ring(56, value).unwrap();
                        let seen = window.read_u64(0).unwrap();
                        assert!([1, 2].contains(&seen), "{seen:#x}");
                    }
                });
            }
        });
    }
}
