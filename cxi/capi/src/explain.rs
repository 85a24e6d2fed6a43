//! Says why a call failed, in one line, in the words of the crate `cxi`.
//!
//! Explaining may query the NIC, so it happens only when a program asks for it.

use std::cell::Cell;
use std::ffi::c_char;
use std::io::Write as _;

use crate::failure::{Details, Failure};

/// The size of the buffer for a line, with its NUL.
const ROOM: usize = 512;

thread_local! {
    /// The last call of this thread that failed, until a program asks why. Nothing here needs a
    /// destructor, which would keep the library from being unloaded.
    static LAST: Cell<Option<(Failure, Option<Details>)>> = const { Cell::new(None) };
    static TEXT: Cell<[u8; ROOM]> = const { Cell::new([0; ROOM]) };
}

/// Remembers a failure, and prints its cause if the environment asks for that.
pub(crate) fn failed(failure: Failure) {
    let details = failure.details();
    LAST.set(Some((failure, details)));
    if cxi::environment::var_os("CXI_EXPLAIN").is_some_and(|value| value == "1") {
        let explanation = failure.explain(details);
        if !explanation.is_answer {
            print(&explanation.text);
        }
    }
}

/// Writes a line to standard error. If that is closed, there is no way to report it.
pub(crate) fn print(text: &str) {
    let _ = writeln!(std::io::stderr(), "libcxi: {text}");
}

/// Returns the reason for which the last failed call of this thread failed; empty if none has
/// failed. It is valid until the next call of this function.
pub(crate) fn last() -> *const c_char {
    if let Some((failure, details)) = LAST.take() {
        let mut text = [0; ROOM];
        let line = failure.explain(details).text;
        for (byte, from) in text.iter_mut().zip(line.bytes().take(ROOM - 1)) {
            *byte = from;
        }
        TEXT.set(text);
    }
    TEXT.with(|text| text.as_ptr().cast())
}
