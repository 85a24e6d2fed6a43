//! Memory that a device reads and writes on its own.

use std::os::fd::AsFd;

use memmap2::{MmapOptions, MmapRaw};

use crate::Errno;

/// A window of device memory, mapped shared for reading and writing.
///
/// Never a slice: the device changes it at any time. Access is volatile, one aligned word at a
/// time.
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
    /// The errno of `mmap(2)`; EINVAL for an empty window.
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

    /// Length in bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a mapping is never empty")]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Reads the word at `offset` bytes.
    ///
    /// # Errors
    ///
    /// EINVAL if the offset is not a multiple of eight, ERANGE if it is outside the window.
    pub fn read_u64(&self, offset: usize) -> Result<u64, Errno> {
        let word = self.word(offset)?;
        // SAFETY: `word` returns an aligned pointer to eight bytes inside the mapping, which
        // lives as long as `self`. The read is volatile, so that it happens once and is not
        // assumed to agree with any other access; every bit pattern is a `u64`.
        Ok(unsafe { word.read_volatile() })
    }

    /// Writes the word at `offset` bytes.
    ///
    /// # Errors
    ///
    /// As [`Mapping::read_u64`].
    pub fn write_u64(&self, offset: usize, value: u64) -> Result<(), Errno> {
        let word = self.word(offset)?;
        // SAFETY: `word` returns an aligned pointer to eight bytes inside the mapping, which is
        // writable and lives as long as `self`. No reference to the memory is ever made, so the
        // write aliases none; it is volatile, so that it happens once.
        unsafe { word.write_volatile(value) };
        Ok(())
    }

    fn word(&self, offset: usize) -> Result<*mut u64, Errno> {
        if !offset.is_multiple_of(align_of::<u64>()) {
            return Err(Errno::EINVAL);
        }
        let end = offset.checked_add(size_of::<u64>()).ok_or(Errno::ERANGE)?;
        if end > self.map.len() {
            return Err(Errno::ERANGE);
        }
        Ok(self.map.as_mut_ptr().wrapping_add(offset).cast())
    }
}
