//! An open NIC.

#![allow(unsafe_code, reason = "a descriptor in a block that C may free")]

use std::ops::Deref;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cxi::environment::{WINDOWS_VARIABLE, var_os};
use cxi_ioctl::socket::{Beside, SocketFile};
use cxi_ioctl::{CharDev, LniAllocForm, Transport};

use crate::failure::Result;
use crate::handle::{Handle, Shared, Tag, blocks, free};
use crate::info::DevInfo;
use crate::window::Window;

const CLOSED: RawFd = -1;

/// A NIC that was opened.
#[derive(Debug)]
pub(crate) enum OpenFile {
    Device(CharDev),
    Socket(Box<SocketFile>),
}

impl OpenFile {
    /// Transport that carries commands to it.
    pub(crate) fn transport(&self) -> &dyn Transport {
        match self {
            Self::Device(file) => file,
            Self::Socket(file) => &**file,
        }
    }
}

blocks! {
    /// The block behind a `struct cxil_dev`.
    ///
    /// The descriptor follows the public part, where tools with HPE's private header read it.
    struct Dev = b"cdev", info: DevInfo {
        pub(crate) info: Shared<DevInfo>,
        fd: AtomicI32,
        tag: Tag,
        /// The NIC behind a socket, whose connection the descriptor is a duplicate of.
        socket: AtomicPtr<SocketFile>,
        /// The socket beside a device node, once a window could not be mapped without it.
        beside: Mutex<Option<Arc<Beside>>>,
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
    pub(crate) fn new(number: u32, file: OpenFile, info: DevInfo) -> Result<Self> {
        let (file, socket) = match file {
            OpenFile::Device(file) => (file.into(), null_mut()),
            OpenFile::Socket(file) => (file.connection()?, Box::into_raw(file)),
        };
        Ok(Self {
            info: Shared::new(info),
            fd: AtomicI32::new(OwnedFd::into_raw_fd(file)),
            tag: Tag::of::<Self>(),
            socket: AtomicPtr::new(socket),
            beside: Mutex::new(None),
            uses: AtomicU32::new(1),
            number,
            registers: Window::new(),
            lnis: LniAllocForm::new(),
            profiles: AtomicU8::new(0),
        })
    }

    /// The NIC behind a socket, until the device is closed; `None` for one with a device node.
    pub(crate) fn socket(&self) -> Option<&SocketFile> {
        // SAFETY: the pointer is null, or came from a box that is freed by `cxil_close_device` only.
        // Closing the device in another thread at the same time breaks the contract of the C API.
        unsafe { self.socket.load(Ordering::Acquire).as_ref() }
    }

    /// The socket at which whoever serves the device node passes windows, if the environment names one.
    pub(crate) fn beside(&self) -> Option<Arc<Beside>> {
        let mut beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        if beside.is_none() {
            *beside = var_os(WINDOWS_VARIABLE).map(|socket| Arc::new(Beside::new(socket)));
        }
        beside.clone()
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
        *self.beside.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let socket = self.socket.swap(null_mut(), Ordering::AcqRel);
        if !socket.is_null() {
            // SAFETY: the block owned the box, and has just given it up.
            drop(unsafe { Box::from_raw(socket) });
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
