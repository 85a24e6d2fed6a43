//! An open NIC.

#![allow(unsafe_code, reason = "a descriptor in a block that C may free")]

use std::ops::Deref;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, Ordering};

use cxi_ioctl::LniAllocForm;

use crate::handle::{Handle, Shared, Tag, blocks, free};
use crate::info::DevInfo;
use crate::window::Window;

const CLOSED: RawFd = -1;

blocks! {
    /// The block behind a `struct cxil_dev`.
    ///
    /// The descriptor follows the public part, where tools with HPE's private header read it.
    struct Dev = b"cdev", info: DevInfo {
        pub(crate) info: Shared<DevInfo>,
        fd: AtomicI32,
        tag: Tag,
        /// Counts the handle while it is open, and each child.
        uses: AtomicU32,
        /// N of `/dev/cxiN`.
        pub(crate) number: u32,
        pub(crate) registers: Window,
        pub(crate) lnis: LniAllocForm,
        pub(crate) profiles: AtomicU8,
    }
}

const _: () = assert!(std::mem::offset_of!(Dev, fd) == 152);

impl Dev {
    pub(crate) fn new(number: u32, file: OwnedFd, info: DevInfo) -> Self {
        Self {
            info: Shared::new(info),
            fd: AtomicI32::new(file.into_raw_fd()),
            tag: Tag::of::<Self>(),
            uses: AtomicU32::new(1),
            number,
            registers: Window::new(),
            lnis: LniAllocForm::new(),
            profiles: AtomicU8::new(0),
        }
    }

    /// The descriptor, until the device is closed.
    pub(crate) fn descriptor(&self) -> Option<RawFd> {
        // No other memory is published with the number. A stronger ordering would only prevent the
        // compiler from building a command in the place that it is sent from.
        let fd = self.fd.load(Ordering::Relaxed);
        (fd != CLOSED).then_some(fd)
    }

    /// Closes the device now, even if handles still refer to it; the driver frees all its objects.
    fn close(&self) {
        self.tag.clear();
        // There is no way to handle an error.
        let _ = self.registers.unmap();
        let fd = self.fd.swap(CLOSED, Ordering::Relaxed);
        if fd != CLOSED {
            // SAFETY: the block owned the descriptor, and has just given it up.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
        }
    }
}

/// A counted pointer to an open NIC, whose handle C may return earlier.
#[derive(Debug)]
pub(crate) struct Counted(NonNull<Dev>);

impl Counted {
    pub(crate) fn new(dev: &Dev) -> Self {
        dev.uses.fetch_add(1, Ordering::Relaxed);
        Self(NonNull::from(dev))
    }
}

impl Deref for Counted {
    type Target = Dev;

    fn deref(&self) -> &Dev {
        // SAFETY: the block lives as long as it is counted.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if self.uses.fetch_sub(1, Ordering::AcqRel) == 1 {
            free(self.0);
        }
    }
}

/// Closes a device and ends its handle; the memory is freed with the last pointer.
pub(crate) fn close(handle: &Handle<Dev>) {
    if let Ok(block) = handle.find() {
        // The handle was counted when it was made, and this is the end of it.
        Counted(block).close();
    }
}
