//! Memory for operations.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use cxi::lni::{MapOptions, Md};
use cxi::{DeviceMemory, Lni};

use crate::{Error, Result};

/// Registered memory: the NIC may read and write it at any time, for as long as the buffer exists.
///
/// There is no reference to its bytes, only copies in and out, so nothing that the NIC does can
/// break a guarantee of Rust's. Dropping the buffer unmaps it before it is freed. Operations that
/// are under way then fail with [`ReturnCode::NO_TRANSLATION`](crate::ReturnCode::NO_TRANSLATION),
/// and access nothing.
#[derive(Debug)]
pub struct Buffer {
    md: Md,
    memory: Arc<DeviceMemory>,
}

impl Buffer {
    /// At least `len` bytes, all zero: whole pages (ATU_MAP).
    ///
    /// # Errors
    ///
    /// As [`Lni::map_memory`]; [`Error::Memory`] when there is not enough memory.
    pub fn new(lni: &Lni, len: usize) -> Result<Self> {
        let memory = Arc::new(DeviceMemory::new(len)?);
        let md = lni.map_memory(&memory, &MapOptions::new())?;
        Ok(Self { md, memory })
    }

    /// The length in bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a buffer is never empty")]
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// The whole buffer.
    #[must_use]
    pub fn whole(&self) -> Slice<'_> {
        self.part(0, self.len())
    }

    /// A part of the buffer.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`].
    pub fn slice(&self, range: Range<usize>) -> Result<Slice<'_>> {
        let len = self.len();
        if range.start > range.end || range.end > len {
            return Err(Error::OutOfBounds { range, len });
        }
        Ok(self.part(range.start, range.end - range.start))
    }

    fn part(&self, start: usize, len: usize) -> Slice<'_> {
        Slice { iova: self.md.iova() + start as u64, lac: self.md.lac(), len, buffer: PhantomData }
    }

    /// The offset in the buffer of an address that an event names, such as
    /// [`Arrival::start`](crate::Arrival::start).
    #[must_use]
    pub fn position(&self, iova: u64) -> Option<usize> {
        let position = usize::try_from(iova.checked_sub(self.md.iova())?).ok()?;
        (position < self.len()).then_some(position)
    }

    /// Copies bytes out. The copy is not atomic: the NIC may write in between.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`].
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<()> {
        let len = into.len();
        self.memory.copy_out(offset, into).map_err(|_| self.beyond(offset, len))
    }

    /// Copies bytes in. The copy is not atomic: the NIC may read in between.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`].
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        self.memory.copy_in(offset, bytes).map_err(|_| self.beyond(offset, bytes.len()))
    }

    fn beyond(&self, offset: usize, len: usize) -> Error {
        Error::OutOfBounds { range: offset..offset.saturating_add(len), len: self.len() }
    }

    /// Returns the memory to the driver (ATU_UNMAP) and reports any error. Dropping the buffer does
    /// the same without a report.
    ///
    /// # Errors
    ///
    /// As [`Md::close`].
    pub fn close(self) -> Result<()> {
        self.md.close().map_err(|refused| refused.error.into())
    }
}

/// A part of a [`Buffer`], for commands.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'a> {
    pub(crate) iova: u64,
    pub(crate) lac: u8,
    pub(crate) len: usize,
    buffer: PhantomData<&'a Buffer>,
}

impl Slice<'_> {
    /// The length in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The length for a command that moves bytes.
    pub(crate) fn request_len(&self) -> Result<u32> {
        u32::try_from(self.len)
            .map_err(|_| Error::TooLong { len: self.len, most: u32::MAX as usize })
    }
}
