//! Wait objects.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cxi_ioctl::abi::wait::{WaitAllocCmd, WaitFreeCmd};
use cxi_ioctl::socket::rearm;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::object::{Object, closable};
use super::{Lni, LniInner};
use crate::Device;
use crate::error::Result;

/// A wait object: lets a thread sleep until an event queue reports something new.
#[derive(Debug)]
pub struct WaitObject {
    pub(super) inner: Arc<WaitInner>,
}

#[derive(Debug)]
pub(super) struct WaitInner {
    object: Object<WaitFreeCmd>,
    client: u32,
    _lni: Arc<LniInner>,
}

impl WaitInner {
    pub(super) fn device(&self) -> &Device {
        self.object.device()
    }
}

impl Lni {
    /// Allocates a wait object (WAIT_ALLOC).
    ///
    /// ```
    /// # use cxi_mock::{MockNode, NicConfig};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let node = MockNode::with_nics(1, &NicConfig::new())?;
    /// # let device = cxi::Device::cxi0(node.nics()[0].root()?);
    /// # use cxi::{ServiceSpec, Vni};
    /// # let spec = ServiceSpec::builder().vni(Vni::new(1024)?).build()?;
    /// # let lni = device.alloc_lni(device.services().create(&spec)?)?;
    /// use cxi::lni::EventQueueOptions;
    ///
    /// let wait = lni.alloc_wait()?;
    /// let events = lni.alloc_eq(&EventQueueOptions::new(4096).event_wait(&wait))?;
    /// assert!(wait.close().is_err(), "the queue wakes it up");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// EINVAL when the LNI is gone.
    #[doc(alias = "cxil_alloc_wait_obj")]
    pub fn alloc_wait(&self) -> Result<WaitObject> {
        let response = self.inner.send(&WaitAllocCmd::of(self.id()), None)?;
        Ok(WaitObject {
            inner: Arc::new(WaitInner {
                object: Object::new(self.device(), WaitFreeCmd::of(response.wait)),
                client: response.client_id,
                _lni: Arc::clone(&self.inner),
            }),
        })
    }
}

impl WaitObject {
    /// The wait object's number within the open file.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.inner.object.command().wait
    }

    /// The file to poll, below the root of sysfs (usually `/sys`).
    #[must_use]
    pub fn path(&self, sysfs: &Path) -> PathBuf {
        sysfs.join(format!(
            "class/cxi_user/{}/clients/{}/wait/{}/intr",
            self.inner.object.device().id(),
            self.inner.client,
            self.id(),
        ))
    }

    /// Opens the file to poll.
    ///
    /// # Errors
    ///
    /// The errors of `open(2)` and the first `read(2)`; ENOENT on a device without sysfs, such as
    /// an in-process mock.
    pub fn open(&self, sysfs: &Path) -> io::Result<Interrupt> {
        let node = self.inner.device().directory().and_then(|directory| directory.sysfs().node());
        let interrupt = match node {
            Some(node) => {
                Interrupt { file: node.watch(&self.path(sysfs))?.into(), is_socket: true }
            }
            None => Interrupt { file: File::open(self.path(sysfs))?, is_socket: false },
        };
        interrupt.rearm()?;
        Ok(interrupt)
    }
}

closable! {
    /// EBUSY while an event queue wakes it up.
    WaitObject.inner.object by WAIT_FREE ("cxil_destroy_wait_obj")
}

/// The file of a wait object; can also be used with `poll(2)` for POLLPRI.
#[derive(Debug)]
pub struct Interrupt {
    file: File,
    /// Of a node behind a socket.
    is_socket: bool,
}

impl Interrupt {
    /// Sleeps until something new is reported or the timeout expires; returns whether something
    /// was.
    ///
    /// # Errors
    ///
    /// The errors of `poll(2)`, EINTR included.
    pub fn wait(&self, timeout: Option<Duration>) -> io::Result<bool> {
        let timeout = timeout.map_or(PollTimeout::NONE, |timeout| {
            PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX)
        });
        let mut files = [PollFd::new(self.file.as_fd(), PollFlags::POLLPRI | PollFlags::POLLERR)];
        let news = poll(&mut files, timeout)? > 0;
        if news {
            self.rearm()?;
        }
        Ok(news)
    }

    /// Reading acknowledges what was reported, so that the next wait is for something newer.
    fn rearm(&self) -> io::Result<()> {
        if self.is_socket {
            rearm(&self.file);
            return Ok(());
        }
        self.file.read_at(&mut [0], 0).map(drop)
    }
}

impl AsFd for Interrupt {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.file.as_fd()
    }
}
