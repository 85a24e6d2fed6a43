//! The interface to a device on which scenarios are replayed.

use cxi_ioctl::{DriverRelease, Errno};
use cxi_mock::{CallerMemory, Credentials};
use serde::Deserialize;
use serde_json::Value;

use crate::scenario::Setup;

/// A value that the hardware should report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "what")]
pub enum Report {
    /// Commands in flight in a transmit queue.
    #[serde(rename = "txq_ack")]
    TxqInFlight {
        /// The queue.
        index: u32,
        /// Number of them.
        value: u32,
    },
    /// Commands in flight in a target queue.
    #[serde(rename = "tgq_ack")]
    TgqInFlight {
        /// The queue.
        index: u32,
        /// Number of them.
        value: u32,
    },
    /// TLEs in use in a pool.
    #[serde(rename = "tle_in_use")]
    TlesInUse {
        /// The pool.
        pool: u32,
        /// Number of them.
        value: u16,
    },
    /// LEs allocated in a pool of a processing element.
    #[serde(rename = "le_alloc")]
    LesAllocated {
        /// The processing element.
        #[serde(rename = "pe")]
        element: u32,
        /// The pool.
        pool: u32,
        /// Number of them.
        value: u16,
    },
}

impl Report {
    /// Commands in flight in a queue; target queues are numbered from 1024 on.
    pub fn in_flight(index: u32, value: u32) -> Self {
        if index < 1024 {
            Self::TxqInFlight { index, value }
        } else {
            Self::TgqInFlight { index, value }
        }
    }
}

/// Reason for which a driver was not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadFailure {
    /// The driver refuses.
    Refused(Errno),
    /// The scenario requires something that no device has.
    Scenario(String),
}

/// A device on which scenarios can be replayed. It is loaded anew for each scenario.
pub trait Device: Sized {
    /// An open file. Dropping it closes it.
    type File;

    /// Loads the driver of a release.
    ///
    /// # Errors
    ///
    /// See [`LoadFailure`].
    fn load(release: DriverRelease, setup: &Setup) -> Result<Self, LoadFailure>;

    /// Opens the physical function, or the virtual one.
    ///
    /// # Errors
    ///
    /// The driver's errno.
    fn open(&self, caller: &Credentials, virtual_function: bool) -> Result<Self::File, Errno>;

    /// One `write(2)`.
    ///
    /// # Errors
    ///
    /// The driver's errno.
    fn write(
        &self,
        file: &Self::File,
        caller: &Credentials,
        command: &[u8],
        memory: &mut dyn CallerMemory,
    ) -> Result<usize, Errno>;

    /// Runs the periodic cleanup. Returns whether it was scheduled.
    fn tick(&self) -> bool;

    /// Makes the hardware report something.
    ///
    /// # Errors
    ///
    /// The hardware has no such register.
    fn report(&self, report: Report) -> Result<(), String>;

    /// The accounting, with the names of `STATE`.
    ///
    /// # Errors
    ///
    /// Returns the accounting, or the reason for which there is none.
    fn state(&self) -> Result<Value, String>;
}

/// The buffers of a replayed command.
#[derive(Debug, Default)]
pub struct Buffers {
    /// The response, as written by the device.
    pub response: Option<Vec<u8>>,
    /// The list, as written by the device.
    pub list: Vec<u8>,
    /// The command's addresses cannot be written.
    pub bad: bool,
}

impl CallerMemory for Buffers {
    fn respond(&mut self, response: &[u8]) -> Result<(), Errno> {
        if self.bad {
            return Err(Errno::EFAULT);
        }
        self.response = Some(response.to_vec());
        Ok(())
    }

    fn read_response(&mut self, bytes: &mut [u8]) -> Result<(), Errno> {
        if self.bad {
            return Err(Errno::EFAULT);
        }
        bytes.fill(0);
        Ok(())
    }

    fn write_list(&mut self, list: &[u8]) -> Result<(), Errno> {
        if self.bad {
            return Err(Errno::EFAULT);
        }
        self.list.extend_from_slice(list);
        Ok(())
    }
}
