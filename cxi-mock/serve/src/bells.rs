//! Doorbells that a program has mapped through the socket.
//!
//! While nothing happens, stores to them wait for a thread of the server, so that nobody has to look. The
//! first store opens all doorbells of its process, and they are polled until nobody has rung for a while.

use std::io::PipeWriter;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Weak};
use std::time::Duration;
use std::{io, thread};

use cxi_ioctl::Errno;
use cxi_mock::Nic;
use cxi_mock::serve::{Runner, Windows};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use parking_lot::Mutex;

use super::server::OpenFile;
use super::userfault::{Range, Userfault};

/// Time without a store after which doorbells are closed.
const QUIET: Duration = Duration::from_millis(1);
/// Mappings of doorbells that a process can have trapped.
const PAGES: usize = 4096;
const STACK: usize = 64 << 10;

/// The doorbells of one process in an open file. Dropping it lets all stores through.
#[derive(Debug)]
pub(crate) struct Bells {
    shared: Arc<Shared>,
    /// Closed at the end.
    _end: PipeWriter,
}

#[derive(Debug)]
struct Shared {
    userfault: Userfault,
    /// It may be closed earlier.
    file: Weak<OpenFile>,
    nic: Arc<Nic>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The mappings, and the offsets of their windows.
    pages: Vec<(Range, u64)>,
    open: bool,
    /// Nobody waits for stores anymore.
    ended: bool,
}

impl Bells {
    /// Starts the thread that waits for stores.
    pub(crate) fn new(userfault: Userfault, file: &Arc<OpenFile>) -> io::Result<Self> {
        let nic = Arc::clone(file.client.nic());
        let file = Arc::downgrade(file);
        let shared = Arc::new(Shared { userfault, file, nic, state: Mutex::default() });
        let (ended, end) = io::pipe()?;
        let waits = Arc::clone(&shared);
        let thread = thread::Builder::new().name("bells".to_owned()).stack_size(STACK);
        thread.spawn(move || waits.run(&ended))?;
        Ok(Self { shared, _end: end })
    }

    /// Adds a mapping of the window at an offset, which was polled until now.
    pub(crate) fn add(&self, range: Range, offset: u64) -> Result<(), Errno> {
        let Shared { userfault, file, state, .. } = &*self.shared;
        let file = file.upgrade().ok_or(Errno::EBADF)?;
        let mut state = state.lock();
        // Another window was there.
        state.pages.retain(|(known, _)| known.start != range.start);
        if state.pages.len() >= PAGES {
            return Err(Errno::ENOSPC);
        }
        userfault.register(range)?;
        if !state.open {
            userfault.protect(range, true)?;
            Windows::of(&file.client).trap(&[offset]);
        }
        state.pages.push((range, offset));
        Ok(())
    }
}

impl Drop for Bells {
    /// The file may be open for others, whose stores nobody would see.
    fn drop(&mut self) {
        self.shared.state.lock().ended = true;
        self.shared.open();
    }
}

impl Shared {
    fn run(&self, ended: &io::PipeReader) {
        let goes_on = |timeout, userfault: Option<&Userfault>| {
            let end = PollFd::new(ended.as_fd(), PollFlags::empty());
            let mut files = vec![end];
            let faults = userfault.map(|it| PollFd::new(it.as_fd(), PollFlags::POLLIN));
            files.extend(faults);
            let _ = poll(&mut files, timeout);
            files[0].any() != Some(true)
        };
        let quiet = PollTimeout::try_from(QUIET).unwrap_or(PollTimeout::ZERO);
        while goes_on(PollTimeout::NONE, Some(&self.userfault)) {
            if !self.userfault.take() {
                continue;
            }
            // A store that waits must not wait for another one.
            while !self.open() {
                if !goes_on(quiet, None) {
                    return;
                }
            }
            let mut rung = Runner::of(&self.nic).times_rung();
            loop {
                if !goes_on(quiet, None) {
                    return;
                }
                let before = std::mem::replace(&mut rung, Runner::of(&self.nic).times_rung());
                if before == rung {
                    break;
                }
            }
            self.close();
        }
    }

    /// Lets stores through. Returns whether all go on; if not, the program is changing its memory.
    fn open(&self) -> bool {
        let state = &mut *self.state.lock();
        if state.open {
            return true;
        }
        state.open = true;
        state.pages.retain(|(range, _)| match self.userfault.protect(*range, false) {
            Ok(()) => true,
            Err(Errno::EAGAIN) => {
                state.open = false;
                true
            }
            // A window that is gone has no store.
            Err(_) => false,
        });
        if let Some(file) = self.file.upgrade() {
            Windows::of(&file.client).untrap(&state.offsets());
        }
        state.open
    }

    fn close(&self) {
        let state = &mut *self.state.lock();
        if state.ended {
            return;
        }
        state.open = false;
        state.pages.retain(|(range, _)| self.userfault.protect(*range, true).is_ok());
        // This looks once more, as a store may have come in between.
        if let Some(file) = self.file.upgrade() {
            Windows::of(&file.client).trap(&state.offsets());
        }
    }
}

impl State {
    fn offsets(&self) -> Vec<u64> {
        self.pages.iter().map(|(_, offset)| *offset).collect()
    }
}
