//! Memory that a device reads and writes on its own. All unsafe code of the crate is here.

#![allow(
    unsafe_code,
    reason = "memory shared with a device has no safe reference"
)]

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use memmap2::{MmapOptions, MmapRaw};

use crate::Errno;

/// Bytes of one command slot of a command queue.
pub const SLOT_SIZE: usize = 64;

const WORD: usize = size_of::<u64>();

/// A window of device memory, mapped shared for reading and writing.
///
/// Never a slice: the device changes it at any time. Access is volatile, one aligned word at a
/// time, at offsets in bytes from the start of the window.
///
/// ```
/// # fn main() -> Result<(), cxi_ioctl::Errno> {
/// let window = cxi_ioctl::Mapping::anonymous(4096)?;
/// window.write_slot(64, &[7; 64])?;
/// window.ring(0, 1)?;
/// assert_eq!(window.read_u64(64)?, 0x0707_0707_0707_0707);
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
    /// The file must not shrink below the window while the mapping exists: the process would get
    /// SIGBUS. A driver's windows do not shrink; seal a memfd (`F_SEAL_SHRINK`).
    ///
    /// # Errors
    ///
    /// The errno of `mmap(2)`: EINVAL for an empty window or an offset that is no multiple of the
    /// page size, ENODEV for a file that cannot be mapped, EACCES for one not open for writing.
    pub fn of_file(file: impl AsFd, offset: u64, len: usize) -> Result<Self, Errno> {
        if len == 0 {
            return Err(Errno::EINVAL);
        }
        let map = MmapOptions::new()
            .offset(offset)
            .len(len)
            .map_raw(&file.as_fd())
            .map_err(|error| Errno::from_io(&error))?;
        Ok(Self { map })
    }

    /// A window of `len` zeroed bytes with no device behind it, for transports without one.
    ///
    /// # Errors
    ///
    /// EINVAL for an empty window, ENOMEM.
    pub fn anonymous(len: usize) -> Result<Self, Errno> {
        let map = zeroed(len)?;
        Ok(Self { map })
    }

    /// Length in bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a mapping is never empty")]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Reads the 32-bit word at `offset`.
    ///
    /// # Errors
    ///
    /// EINVAL if the offset is not a multiple of four, ERANGE if the word is not inside the window.
    pub fn read_u32(&self, offset: usize) -> Result<u32, Errno> {
        let word = self.at::<u32>(offset)?;
        // SAFETY: `at` returns an aligned pointer to a word inside the mapping, which lives as
        // long as `self`. The read is volatile: it happens once and is not assumed to agree with
        // any other access. Every bit pattern is a `u32`.
        Ok(unsafe { word.read_volatile() })
    }

    /// Reads the 64-bit word at `offset`.
    ///
    /// # Errors
    ///
    /// EINVAL if the offset is not a multiple of eight, ERANGE if the word is not inside the
    /// window.
    pub fn read_u64(&self, offset: usize) -> Result<u64, Errno> {
        let word = self.at::<u64>(offset)?;
        // SAFETY: as in `read_u32`; every bit pattern is a `u64`.
        Ok(unsafe { word.read_volatile() })
    }

    /// Writes the 32-bit word at `offset`.
    ///
    /// # Errors
    ///
    /// As [`Mapping::read_u32`].
    pub fn write_u32(&self, offset: usize, value: u32) -> Result<(), Errno> {
        let word = self.at::<u32>(offset)?;
        // SAFETY: `at` returns an aligned pointer to a word inside the mapping, which is writable
        // and lives as long as `self`. No reference to the memory is ever made, so the write
        // aliases none; it is volatile: it happens once.
        unsafe { word.write_volatile(value) };
        Ok(())
    }

    /// Writes the 64-bit word at `offset`.
    ///
    /// # Errors
    ///
    /// As [`Mapping::read_u64`].
    pub fn write_u64(&self, offset: usize, value: u64) -> Result<(), Errno> {
        let word = self.at::<u64>(offset)?;
        // SAFETY: as in `write_u32`.
        unsafe { word.write_volatile(value) };
        Ok(())
    }

    /// Writes one 64-byte command slot as eight words in ascending order.
    ///
    /// The device may look at the slot before the last word has arrived: tell it about the slot
    /// with [`Mapping::ring`] only.
    ///
    /// # Errors
    ///
    /// EINVAL if the offset is not a multiple of 64, ERANGE if the slot is not inside the window.
    pub fn write_slot(&self, offset: usize, slot: &[u8; SLOT_SIZE]) -> Result<(), Errno> {
        if !offset.is_multiple_of(SLOT_SIZE) {
            return Err(Errno::EINVAL);
        }
        let end = offset.checked_add(SLOT_SIZE).ok_or(Errno::ERANGE)?;
        if end > self.map.len() {
            return Err(Errno::ERANGE);
        }
        for (word, at) in slot
            .as_chunks::<WORD>()
            .0
            .iter()
            .zip((offset..).step_by(WORD))
        {
            self.write_u64(at, u64::from_ne_bytes(*word))?;
        }
        Ok(())
    }

    /// Writes a doorbell: the 64-bit word at `offset`, after everything this thread has written
    /// before to this or any other window and to [`DeviceMemory`](crate::DeviceMemory).
    ///
    /// A full fence stands before the write. A release fence would not do: windows may be mapped
    /// write-combining, and on x86-64 only a full or a store fence empties those buffers.
    ///
    /// # Errors
    ///
    /// As [`Mapping::read_u64`].
    pub fn ring(&self, offset: usize, value: u64) -> Result<(), Errno> {
        fence(Ordering::SeqCst);
        self.write_u64(offset, value)
    }

    fn at<T>(&self, offset: usize) -> Result<*mut T, Errno> {
        if !offset.is_multiple_of(align_of::<T>()) {
            return Err(Errno::EINVAL);
        }
        let end = offset.checked_add(size_of::<T>()).ok_or(Errno::ERANGE)?;
        if end > self.map.len() {
            return Err(Errno::ERANGE);
        }
        Ok(self.map.as_mut_ptr().wrapping_add(offset).cast())
    }
}

/// Anonymous memory of whole 64-bit words that several threads and a device use at once.
///
/// Every access is an atomic access to one aligned 64-bit word, also for single bytes: accesses
/// of different sizes to the same place from several threads would be a data race.
#[derive(Debug)]
pub(crate) struct Words {
    map: MmapRaw,
}

impl Words {
    /// `len` zeroed bytes, a multiple of eight.
    pub(crate) fn zeroed(len: usize) -> Result<Self, Errno> {
        if !len.is_multiple_of(WORD) {
            return Err(Errno::EINVAL);
        }
        Ok(Self { map: zeroed(len)? })
    }

    /// Address of the first byte, as a command carries it.
    pub(crate) fn address(&self) -> u64 {
        self.map.as_mut_ptr().expose_provenance() as u64
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    /// The word of that index.
    pub(crate) fn word(&self, index: usize) -> Result<&AtomicU64, Errno> {
        if index >= self.map.len() / WORD {
            return Err(Errno::ERANGE);
        }
        let word = self.map.as_mut_ptr().wrapping_add(index * WORD).cast();
        // SAFETY: the mapping is page aligned and `index` was checked, so `word` is an aligned
        // pointer to eight bytes inside it, which are mapped for reading and writing as long as
        // `self` lives; the reference borrows `self`. In this process the memory is reached only
        // through these references, so all accesses are atomic and of this size. What a device
        // or another process does to it are changes that an atomic admits.
        Ok(unsafe { AtomicU64::from_ptr(word) })
    }
}

fn zeroed(len: usize) -> Result<MmapRaw, Errno> {
    if len == 0 {
        return Err(Errno::EINVAL);
    }
    MmapOptions::new()
        .len(len)
        .map_anon()
        .map(MmapRaw::from)
        .map_err(|error| Errno::from_io(&error))
}

const _: () = {
    const fn send_sync<T: Send + Sync>() {}
    send_sync::<Mapping>();
    send_sync::<Words>();
};

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom, Write};

    use super::*;

    #[test]
    fn a_window_refuses_what_is_not_inside_or_not_aligned() {
        let window = Mapping::anonymous(128).unwrap();
        assert_eq!(window.len(), 128);
        assert_eq!(window.read_u64(4), Err(Errno::EINVAL));
        assert_eq!(window.read_u32(2), Err(Errno::EINVAL));
        assert_eq!(window.read_u64(128), Err(Errno::ERANGE));
        assert_eq!(window.read_u32(128), Err(Errno::ERANGE));
        assert_eq!(window.read_u64(usize::MAX - 7), Err(Errno::ERANGE));
        assert_eq!(window.write_slot(8, &[0; 64]), Err(Errno::EINVAL));
        assert_eq!(window.write_slot(128, &[0; 64]), Err(Errno::ERANGE));
        assert_eq!(window.ring(120, 5), Ok(()));
        assert_eq!(window.read_u64(120), Ok(5));
        assert_eq!(Mapping::anonymous(0).unwrap_err(), Errno::EINVAL);
    }

    #[test]
    fn a_slot_arrives_byte_by_byte_in_order() {
        let window = Mapping::anonymous(128).unwrap();
        let slot: [u8; 64] = std::array::from_fn(|index| u8::try_from(index).unwrap());
        window.write_slot(64, &slot).unwrap();
        for (index, byte) in slot.as_chunks::<4>().0.iter().enumerate() {
            assert_eq!(
                window.read_u32(64 + 4 * index),
                Ok(u32::from_ne_bytes(*byte))
            );
        }
        assert_eq!(window.read_u64(56), Ok(0));
    }

    #[test]
    fn two_windows_of_a_file_show_each_others_writes() {
        let mut file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        let one = Mapping::of_file(&file, 0, 8192).unwrap();
        let two = Mapping::of_file(&file, 4096, 4096).unwrap();
        one.write_u32(4096 + 12, 0xDEAD_BEEF).unwrap();
        assert_eq!(two.read_u32(12), Ok(0xDEAD_BEEF));
        file.seek(SeekFrom::Start(4096)).unwrap();
        file.write_all(&7_u64.to_ne_bytes()).unwrap();
        assert_eq!(two.read_u64(0), Ok(7));
        assert_eq!(Mapping::of_file(&file, 0, 0).unwrap_err(), Errno::EINVAL);
        // What a response of a driver of another version may ask for.
        for (offset, len) in [(4095, usize::MAX), (u64::MAX, 1), (u64::MAX, usize::MAX)] {
            assert!(Mapping::of_file(&file, offset, len).is_err());
        }
        let (read_only, _other) = std::io::pipe().unwrap();
        assert_eq!(
            Mapping::of_file(&read_only, 0, 4096).unwrap_err(),
            Errno::EACCES
        );
    }
}
