//! Faults of files, for tests: a disk that is full, or a process that is killed before it changes one.

use std::cell::RefCell;
use std::io;

type Before = Box<dyn FnMut() -> io::Result<()>>;

thread_local! {
    static BEFORE: RefCell<Option<Before>> = const { RefCell::new(None) };
}

/// Ends what [`during`] began, even if what it ran was stopped.
struct Reset;

impl Drop for Reset {
    fn drop(&mut self) {
        BEFORE.with_borrow_mut(Option::take);
    }
}

/// Calls `before` before each change that this crate makes to records, marks and pools in this thread,
/// while `run` runs. An error is the change's, and nothing has changed then.
pub fn during<T>(before: impl FnMut() -> io::Result<()> + 'static, run: impl FnOnce() -> T) -> T {
    let _reset = Reset;
    BEFORE.set(Some(Box::new(before)));
    run()
}

pub(super) fn check() -> io::Result<()> {
    BEFORE.with_borrow_mut(|before| before.as_mut().map_or(Ok(()), |before| before()))
}
