//! The mock in the process that uses it.

use std::sync::Arc;

use cxi_ioctl::{Errno, Mapping, Request, Transport};

use crate::{CallerMemory, Client, Credentials};

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
        let command = request.command();
        let (response, list) = request.buffers();
        let mut memory = Buffers { response, list };
        self.client
            .write(&self.caller, command, &mut memory)
            .map(drop)
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
    to.get_mut(..from.len())
        .ok_or(Errno::EFAULT)?
        .copy_from_slice(from);
    Ok(())
}
