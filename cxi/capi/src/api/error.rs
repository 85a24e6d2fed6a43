//! Reasons of failed calls: not in HPE's library.

use std::ffi::{CStr, c_char};

use crate::explain;
use crate::ffi::guarded;

/// One line in the words of the crate `cxi` about the last call of this thread that failed; empty
/// if none has. The text belongs to the library and is valid until this is called again in this
/// thread.
#[unsafe(no_mangle)]
extern "C" fn cxi_last_error() -> *const c_char {
    guarded(CStr::as_ptr(c""), explain::last)
}
