//! An open file of the device.

use std::sync::Arc;

use cxi_ioctl::{Errno, Mapping, Request, Transport};

use crate::nic::command;
use crate::sweep::script::InThisProcess;
use crate::{CallerMemory, Credentials, Nic};

/// An open file of a mock NIC: what a process has after `open("/dev/cxi0")`.
///
/// Handles of objects mean nothing in another file. Dropping the client closes the file: everything
/// except services is freed.
#[derive(Debug)]
pub struct Client {
    nic: Arc<Nic>,
    pub(crate) file: u32,
}

impl Client {
    pub(crate) fn new(nic: Arc<Nic>, file: u32) -> Self {
        Self { nic, file }
    }

    /// One `write(2)` of a command by a caller.
    ///
    /// The driver checks the process that calls, at the time of the call, not the one that opened
    /// the file.
    /// Returns the length of the command. A command of fewer than four bytes is refused without
    /// being read.
    ///
    /// # Errors
    ///
    /// The driver's errno. `memory` may have received a response nevertheless: SVC_ALLOC explains a
    /// refusal there.
    pub fn write(
        &self,
        caller: &Credentials,
        command: &[u8],
        memory: &mut dyn CallerMemory,
    ) -> Result<usize, Errno> {
        command::write(&self.nic, self.file, caller, command, memory)
    }

    /// Maps a window of this file, or a part of one starting at its start or a page boundary.
    ///
    /// # Errors
    ///
    /// EINVAL if this file has no such window, EIO if the NIC has been removed; the errno of
    /// creating or mapping the memory.
    pub fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        if self.nic.faults().is_unplugged() {
            return Err(Errno::EIO);
        }
        let mut device = self.nic.device();
        device.files.get_mut(self.file)?.windows.map(offset, len)
    }

    /// The NIC that the file belongs to.
    #[must_use]
    pub fn nic(&self) -> &Arc<Nic> {
        &self.nic
    }

    /// The number of the open file, as in `clients/<number>` of sysfs and in WAIT_ALLOC's response:
    /// the lowest number that was free in its function when the file was opened.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.nic.device().files.get(self.file).map_or(0, |file| file.number)
    }

    /// The file as a [`Transport`](cxi_ioctl::Transport), used by this caller.
    #[must_use]
    pub fn transport(self, caller: Credentials) -> InProcess {
        InProcess::new(Arc::new(self), caller)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let queues = self.nic.device().queues_of(self.file);
        self.nic.data_path().finish_queues(&queues);
        let mut device = self.nic.device();
        device.show_registers();
        device.close(self.file);
    }
}

/// An open file of a mock NIC, used by one caller, as a [`Transport`].
///
/// A clone, or one made for [another caller](Self::with_credentials), is the same open file;
/// dropping the last one closes it.
#[derive(Clone, Debug)]
pub struct InProcess {
    client: Arc<Client>,
    caller: Credentials,
}

impl InProcess {
    /// The open file, used by this caller.
    #[must_use]
    pub fn new(client: Arc<Client>, caller: Credentials) -> Self {
        Self { client, caller }
    }

    /// The same open file, used by another caller, as after `setuid` or passing the descriptor on.
    #[must_use]
    pub fn with_credentials(&self, caller: Credentials) -> Self {
        Self::new(Arc::clone(&self.client), caller)
    }

    /// The open file.
    #[must_use]
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// The caller.
    #[must_use]
    pub fn caller(&self) -> &Credentials {
        &self.caller
    }
}

impl Transport for InProcess {
    /// A buffer that is too small for the answer is EFAULT, like bad memory for the driver: the
    /// command was executed.
    fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
        if let Some(delay) = self.client.nic().faults().delay_of(request.opcode()) {
            std::thread::sleep(delay);
        }
        let (opcode, command) = (request.opcode(), request.command());
        let (response, list) = request.buffers();
        let mut memory = Buffers { response, list };
        let nic = self.client.nic();
        nic.perform(opcode, &InThisProcess(nic), || {
            self.client.write(&self.caller, command, &mut memory).map(drop)
        })
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        self.client.map(offset, len)
    }
}

/// The buffers of a request as a caller's memory.
struct Buffers<'a> {
    response: &'a mut [u8],
    list: &'a mut [u8],
}

impl CallerMemory for Buffers<'_> {
    fn respond(&mut self, response: &[u8]) -> Result<(), Errno> {
        copy(self.response, response)
    }

    fn read_response(&mut self, bytes: &mut [u8]) -> Result<(), Errno> {
        let length = bytes.len();
        bytes.copy_from_slice(self.response.get(..length).ok_or(Errno::EFAULT)?);
        Ok(())
    }

    fn write_list(&mut self, list: &[u8]) -> Result<(), Errno> {
        copy(self.list, list)
    }
}

fn copy(to: &mut [u8], from: &[u8]) -> Result<(), Errno> {
    to.get_mut(..from.len()).ok_or(Errno::EFAULT)?.copy_from_slice(from);
    Ok(())
}
