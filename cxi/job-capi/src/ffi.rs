//! Arguments and results of a C caller: pointers, and the frame around each entry point.
//!
//! Values of the pointer types come from C alone (their fields are private), so what the C API
//! promises about arguments holds for each of them: it is NULL, or it points to what the
//! parameter's type says for as long as the call lasts.

#![allow(unsafe_code, reason = "pointers of C callers")]

use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use cxi_ioctl::Errno;

use crate::failure::{self, Failure, Result};

/// Runs the body of an entry point: 0, or a negative errno.
///
/// A panic would be a bug; it must not reach C, where nothing can catch it.
pub(crate) fn status(body: impl FnOnce() -> Result<()>) -> c_int {
    let panicked = |_| Err(Failure::new(Errno::EIO, "the library has failed: this is a bug"));
    match catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(panicked) {
        Ok(()) => 0,
        Err(failure) => {
            let errno = failure.errno();
            failure::keep(failure);
            -errno.raw()
        }
    }
}

/// A string that the caller passes.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Text(*const c_char);

impl Text {
    /// The string. EINVAL if it is NULL or not UTF-8.
    pub(crate) fn required(&self, what: &str) -> Result<&str> {
        self.optional(what)?.ok_or_else(|| Failure::null(what))
    }

    /// The string, unless it is NULL. EINVAL if it is not UTF-8.
    pub(crate) fn optional(&self, what: &str) -> Result<Option<&str>> {
        if self.0.is_null() {
            return Ok(None);
        }
        // SAFETY: not NULL, so it points to a string with its NUL, which the caller leaves alone
        // during the call; the result does not outlive this argument.
        let text = unsafe { CStr::from_ptr(self.0) };
        let wrong = |_| Failure::new(Errno::EINVAL, format!("{what}: expected UTF-8"));
        text.to_str().map(Some).map_err(wrong)
    }
}

/// Pointer to the place of a result.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Checks, before anything else is done, that it is not NULL (EINVAL).
    pub(crate) fn required(self, what: &str) -> Result<Self> {
        if self.0.is_null() {
            return Err(Failure::null(what));
        }
        Ok(self)
    }

    fn set(&self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not NULL, so it points to room for a `T`, whatever was there.
            unsafe { self.0.write_unaligned(value) };
        }
    }
}

/// The number of an open node. To C it is a pointer, but it is never dereferenced.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Handle(*mut ());

impl Handle {
    /// 0 for NULL.
    pub(crate) fn number(self) -> usize {
        self.0.addr()
    }
}

impl Out<Handle> {
    pub(crate) fn set_number(&self, number: usize) {
        self.set(Handle(ptr::without_provenance_mut(number)));
    }
}

impl Out<*mut c_char> {
    /// Hands a string to the caller, unless the pointer for it is NULL.
    pub(crate) fn set_text(&self, text: &str) -> Result<()> {
        if !self.0.is_null() {
            self.set(block(0, &[text])?.cast());
        }
        Ok(())
    }
}

impl Out<*mut *mut c_char> {
    /// Hands an array of strings to the caller.
    pub(crate) fn set_list(&self, texts: &[String]) -> Result<()> {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        self.set(block(texts.len() + 1, &texts)?);
        Ok(())
    }
}

/// One block allocated with malloc: an array of `pointers` pointers to the strings, NULL after the last,
/// then the strings, each with its NUL. With 0 pointers it holds only the strings.
fn block(pointers: usize, texts: &[&str]) -> Result<*mut *mut c_char> {
    let strings = pointers * size_of::<*mut c_char>();
    let len: usize = strings + texts.iter().map(|text| text.len() + 1).sum::<usize>();
    // SAFETY: calloc has no preconditions.
    let block = unsafe { libc::calloc(1, len) }.cast::<*mut c_char>();
    if block.is_null() {
        return Err(Failure::new(Errno::ENOMEM, "out of memory"));
    }
    let mut place = block.cast::<u8>().wrapping_add(strings);
    for (index, text) in texts.iter().enumerate() {
        if index < pointers {
            let pointer = block.wrapping_add(index);
            // SAFETY: inside the block, before the strings, and aligned as malloc aligns.
            unsafe { pointer.write(place.cast()) };
        }
        // SAFETY: the length counts this string, the block is this function's own, and so cannot
        // overlap with a string of Rust. Its NUL is there, as all was zeros.
        unsafe { ptr::copy_nonoverlapping(text.as_ptr(), place, text.len()) };
        place = place.wrapping_add(text.len() + 1);
    }
    Ok(block)
}
