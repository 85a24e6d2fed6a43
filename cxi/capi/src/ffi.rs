//! Arguments of C callers: pointers, and the frame around each entry point.
//!
//! Values of the pointer types come from C alone (their fields are private and only the null
//! pointer can be made here), so what the C API promises about arguments holds for each of them:
//! it is NULL, or it points to what the parameter's type says for as long as the call lasts.

#![allow(unsafe_code, reason = "pointers of C callers")]

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use cxi_ioctl::Errno;
use zerocopy::FromBytes;

use crate::explain;
use crate::failure::{Failure, Result};

/// Value that an entry point that reports by a number returns on success.
pub(crate) trait Success {
    fn number(self) -> c_int;
}

impl Success for () {
    fn number(self) -> c_int {
        0
    }
}

impl Success for c_int {
    fn number(self) -> c_int {
        self
    }
}

/// Runs the body of an entry point that reports by a number: a negative errno, or not negative.
///
/// A panic would be a bug; it must not reach C, where nothing can catch it.
#[inline]
pub(crate) fn status<T: Success>(body: impl FnOnce() -> Result<T>) -> c_int {
    let number = || body().map_or_else(failed, Success::number);
    catch_unwind(AssertUnwindSafe(number)).unwrap_or_else(|_| failed(Errno::EIO.into()))
}

#[cold]
fn failed(failure: Failure) -> c_int {
    guarded((), || explain::failed(failure));
    -failure.errno.raw()
}

/// Runs the body of any other entry point.
#[inline]
pub(crate) fn guarded<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

/// Something that the caller passes in by address, or NULL.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct In<T>(Option<Given<T>>);

impl<T: FromBytes> In<T> {
    /// EINVAL for NULL.
    #[inline]
    pub(crate) fn required(self) -> Result<Given<T>> {
        self.0.ok_or_else(Failure::argument)
    }

    /// A copy of it; EINVAL for NULL.
    pub(crate) fn get(self) -> Result<T> {
        self.required().map(|given| given.get())
    }

    /// A copy of it, unless it is NULL.
    pub(crate) fn optional(self) -> Option<T> {
        self.0.map(|given| given.get())
    }

    /// The first `count` of an array; EINVAL for NULL.
    pub(crate) fn array(self, count: usize) -> Result<Vec<T>> {
        let first = self.required()?.0;
        // SAFETY: the caller says how many there are, and lets them be read; see `Given::get`.
        let at = |index| unsafe { first.as_ptr().wrapping_add(index).read_unaligned() };
        Ok((0..count).map(at).collect())
    }
}

/// Something that the caller passes in by address.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Given<T>(NonNull<T>);

impl<T: FromBytes> Given<T> {
    /// A copy of it.
    #[inline]
    pub(crate) fn get(&self) -> T {
        // SAFETY: not NULL, so it points to a `T` that the caller lets be read; any bytes are a
        // `T`. Nothing is assumed about its alignment.
        unsafe { self.0.read_unaligned() }
    }
}

/// Pointer to the place of a result.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Checks, before anything else is done, that it is not NULL (EINVAL).
    pub(crate) fn required(self) -> Result<Self> {
        if self.0.is_null() {
            return Err(Failure::argument());
        }
        Ok(self)
    }

    /// Writes the result, unless the caller wants none.
    pub(crate) fn set(&self, value: T) {
        self.set_at(0, value);
    }

    /// Writes an element of an array of results.
    pub(crate) fn set_at(&self, index: usize, value: T) {
        if !self.0.is_null() {
            // SAFETY: not NULL, so it points to room for as many `T` as the caller has said, and
            // an index is below that. Nothing is assumed about alignment or about what was there.
            unsafe { self.0.wrapping_add(index).write_unaligned(value) };
        }
    }
}

impl<T: FromBytes> Out<T> {
    /// The value before the call, because some results are also inputs.
    pub(crate) fn current(&self) -> Option<T> {
        In(NonNull::new(self.0).map(Given)).optional()
    }
}

/// Memory of the caller that the library or the NIC accesses.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Memory(*mut c_void);

impl Memory {
    /// No memory.
    pub(crate) const NONE: Self = Self(std::ptr::null_mut());

    /// Memory at an address that a caller wrote into a struct.
    pub(crate) fn at(address: u64) -> Self {
        Self(std::ptr::with_exposed_provenance_mut(address as usize))
    }

    /// Memory that this library has mapped for C.
    pub(crate) fn of(pointer: *mut u8) -> Self {
        Self(pointer.cast())
    }

    /// EINVAL for NULL.
    pub(crate) fn required(self) -> Result<Self> {
        if self.0.is_null() {
            return Err(Failure::argument());
        }
        Ok(self)
    }

    /// The address, for a command.
    pub(crate) fn address(self) -> u64 {
        self.0.expose_provenance() as u64
    }

    /// The pointer, to be stored where C finds it.
    pub(crate) fn pointer<T>(self) -> *mut T {
        self.0.cast()
    }

    /// Fills memory with zeros.
    pub(crate) fn clear(self, len: usize) {
        if !self.0.is_null() {
            // SAFETY: not NULL, so `len` bytes there are the caller's to give, and given to this
            // library to write to.
            unsafe { self.0.write_bytes(0, len) };
        }
    }

    /// Initializes the status word that the NIC keeps at the start of a command queue, if this process
    /// can write there. It describes a queue that has executed nothing: the first command is in slot 4,
    /// and the return code, in the low six bits of its byte, is that of success.
    pub(crate) fn begin_commands(self) {
        const FIRST_SLOT: u16 = 4;
        const RETURN_CODE: usize = 6;
        const SUCCESS: u8 = 1;
        if self.0.is_null() {
            return;
        }
        // SAFETY: not NULL, so this is the memory of a queue, which is never shorter than its
        // status. The NIC writes there too, so the access is volatile.
        unsafe { self.pointer::<u16>().write_volatile(FIRST_SLOT) };
        let code = self.pointer::<u8>().wrapping_add(RETURN_CODE);
        // SAFETY: as above.
        let old = unsafe { code.read_volatile() };
        // SAFETY: as above.
        unsafe { code.write_volatile(old & 0xC0 | SUCCESS) };
    }

    /// The word at that index.
    pub(crate) fn word(self, index: usize) -> u64 {
        // SAFETY: the caller says how many bytes there are, and lets them be read.
        unsafe { self.pointer::<u64>().wrapping_add(index).read_unaligned() }
    }

    /// Changes the word at that index.
    pub(crate) fn set_word(self, index: usize, value: u64) {
        let word = self.pointer::<u64>().wrapping_add(index);
        // SAFETY: as in `word`, for writing.
        unsafe { word.write_unaligned(value) };
    }

    /// The byte at that index.
    pub(crate) fn byte(self, index: usize) -> u8 {
        // SAFETY: as in `word`.
        unsafe { self.pointer::<u8>().wrapping_add(index).read() }
    }
}

/// A block allocated with malloc that the caller returns, as it might with free(3).
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Owned(*mut c_void);

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: NULL, or a block of malloc: made by `Fresh`, or handed in by a caller to whom it
        // was given. It is not used afterward.
        unsafe { libc::free(self.0) };
    }
}

/// A block allocated with malloc that no caller has yet.
#[derive(Debug)]
pub(crate) struct Fresh {
    block: Owned,
    len: usize,
}

impl Fresh {
    /// `len` zeroed bytes, aligned for anything.
    pub(crate) fn zeroed(len: usize) -> Result<Self> {
        // SAFETY: calloc has no preconditions.
        let block = unsafe { libc::calloc(1, len.max(1)) };
        if block.is_null() {
            return Err(Errno::ENOMEM.into());
        }
        Ok(Self { block: Owned(block), len })
    }

    /// The bytes.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the block has this length, its bytes are initialized, and nothing else
        // has a reference to them: it is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.block.0.cast(), self.len) }
    }

    /// Copies a value to an offset in the block, unless it does not fit.
    pub(crate) fn put<T: Copy>(&mut self, offset: usize, value: T) {
        if offset.saturating_add(size_of::<T>()) <= self.len {
            let place = self.block.0.cast::<u8>().wrapping_add(offset).cast::<T>();
            // SAFETY: inside the block, which is this library's; no alignment is assumed.
            unsafe { place.write_unaligned(value) };
        }
    }

    /// Hands the block to the caller.
    pub(crate) fn into_raw<T>(self) -> *mut T {
        std::mem::ManuallyDrop::new(self.block).0.cast()
    }
}
