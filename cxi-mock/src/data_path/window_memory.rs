//! The memory of a file's windows. A store past its end raises SIGBUS.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cxi_ioctl::memory::page_size;
use cxi_ioctl::{Errno, Mapping};
use nix::fcntl::{FcntlArg, OFlag, SealFlag, SpliceFFlags, fcntl, splice};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::uio::pwrite;
use nix::unistd::{ftruncate, pipe2, read};

use super::pages::{NOT_RUNG, take};
use super::window::page_bytes;

/// A memory whose end moves. It moves with the windows, which only grow, and temporarily past pages
/// of doorbells.
#[derive(Debug)]
pub(crate) struct WindowMemory {
    file: Arc<OwnedFd>,
    extent: Mutex<Extent>,
}

#[derive(Debug)]
struct Extent {
    /// End of the windows.
    end: u64,
    open: Option<Open>,
}

/// Pages of doorbells in front of the end of the memory.
#[derive(Debug)]
struct Open {
    offset: u64,
    pages: Mapping,
    /// Keeps pages that the memory loses, from its end on.
    pipe: (OwnedFd, OwnedFd),
}

impl Open {
    fn count(&self) -> usize {
        self.pages.len() / page_size()
    }

    /// Puts the word of each page into the pipe, not as a copy but as the page itself. Returns
    /// whether all of them are in the pipe.
    fn keep(&self, file: &OwnedFd) -> bool {
        (0..self.count() as u64).all(|page| {
            let mut at = (self.offset + page * page_bytes()).cast_signed();
            let flags = SpliceFFlags::SPLICE_F_NONBLOCK;
            splice(file, Some(&mut at), &self.pipe.1, None, WORD, flags) == Ok(WORD)
        })
    }

    /// The word of the next page in the pipe.
    fn kept(&self) -> Option<u64> {
        let mut word = [0; WORD];
        (read(&self.pipe.0, &mut word) == Ok(WORD)).then(|| u64::from_ne_bytes(word))
    }
}

const WORD: usize = size_of::<u64>();

impl WindowMemory {
    /// An empty memory with room for windows up to an offset.
    pub(crate) fn new(end: u64) -> Result<Self, Errno> {
        let file = memfd_create("cxi-windows", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)
            .map_err(errno)?;
        ftruncate(&file, end.cast_signed()).map_err(errno)?;
        Ok(Self { file: Arc::new(file), extent: Mutex::new(Extent { end, open: None }) })
    }

    /// The memory as a file.
    pub(crate) fn file(&self) -> &Arc<OwnedFd> {
        &self.file
    }

    /// The memory for a program that has the file itself, and could otherwise take pages away that the
    /// NIC accesses. From then on it does not shrink.
    pub(crate) fn shared(&self) -> Result<&Arc<OwnedFd>, Errno> {
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_SEAL;
        match fcntl(&self.file, FcntlArg::F_ADD_SEALS(seals)) {
            // It has them.
            Ok(_) | Err(nix::errno::Errno::EPERM) => Ok(&self.file),
            Err(error) => Err(errno(error)),
        }
    }

    /// Makes room for windows up to an offset.
    pub(crate) fn grow(&self, end: u64) -> Result<(), Errno> {
        let mut extent = self.extent();
        if extent.open.is_none() {
            ftruncate(&self.file, end.cast_signed()).map_err(errno)?;
        }
        extent.end = end;
        Ok(())
    }

    /// Moves the end past some pages of doorbells, so that the memory receives stores to them. The
    /// pages are initialized before any program can store to them.
    pub(crate) fn open(&self, offset: u64, count: usize) -> Result<(), Errno> {
        let mut extent = self.extent();
        let pipe = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).map_err(errno)?;
        let end = extent.end;
        let undo = |error| {
            let _ = ftruncate(&self.file, end.cast_signed());
            error
        };
        for page in 0..count as u64 {
            let at = (offset + page * page_bytes()).cast_signed();
            pwrite(&self.file, &NOT_RUNG.to_ne_bytes(), at).map_err(errno).map_err(undo)?;
        }
        let pages = Mapping::from_file(&*self.file, offset, count * page_size());
        extent.open = Some(Open { offset, pages: pages.map_err(undo)?, pipe });
        Ok(())
    }

    /// Takes what was stored to the doorbells that are open: pages and words.
    pub(crate) fn take(&self) -> Vec<(usize, u64)> {
        let extent = self.extent();
        let Some(open) = &extent.open else { return Vec::new() };
        let word = |page| Some((page, take(&open.pages, page * page_size())?));
        (0..open.count()).filter_map(word).collect()
    }

    /// Moves the end back to where the windows end, so that stores to doorbells raise SIGBUS again.
    /// Returns what was stored before, up to the last moment, because a page that the memory loses
    /// is still in the pipe. `None` if a page cannot be kept; nothing has changed then.
    pub(crate) fn close(&self) -> Option<Vec<(usize, u64)>> {
        let mut extent = self.extent();
        let Some(open) = &extent.open else { return Some(Vec::new()) };
        if !open.keep(&self.file) || ftruncate(&self.file, extent.end.cast_signed()).is_err() {
            while open.kept().is_some() {}
            return None;
        }
        let words = (0..open.count()).map_while(|page| Some((page, open.kept()?)));
        let stored = words.filter(|(_, word)| *word != NOT_RUNG).collect();
        extent.open = None;
        Some(stored)
    }

    fn extent(&self) -> MutexGuard<'_, Extent> {
        self.extent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn errno(errno: nix::errno::Errno) -> Errno {
    Errno::from_raw(errno as i32)
}
