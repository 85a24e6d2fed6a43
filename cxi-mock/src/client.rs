//! An open file of the device.

use cxi_ioctl::Errno;

use crate::Credentials;

/// The memory of a caller, as far as one command reaches it.
pub trait CallerMemory {
    /// Writes the response to where the command says.
    ///
    /// # Errors
    ///
    /// EFAULT if the caller's memory cannot be written.
    fn respond(&mut self, response: &[u8]) -> Result<(), Errno>;

    /// Reads what the caller left in the response buffer (PTE_STATUS).
    ///
    /// # Errors
    ///
    /// EFAULT if the caller's memory cannot be read.
    fn read_response(&mut self, bytes: &mut [u8]) -> Result<(), Errno>;

    /// Writes the list to where the command says.
    ///
    /// # Errors
    ///
    /// EFAULT if the caller's memory cannot be written.
    fn write_list(&mut self, list: &[u8]) -> Result<(), Errno>;
}

/// An open file of a mock NIC. Dropping it is closing the file.
#[derive(Debug)]
pub struct Client {}

impl Client {
    /// One `write(2)` of a command by a caller.
    ///
    /// # Errors
    ///
    /// The driver's errno.
    pub fn write(
        &self,
        _caller: &Credentials,
        _command: &[u8],
        _memory: &mut dyn CallerMemory,
    ) -> Result<usize, Errno> {
        Err(Errno::EOPNOTSUPP)
    }
}
