//! An open file of the device.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use cxi_ioctl::{Errno, Mapping, Request, Transport};

use crate::data_path::{Doorbell, NOT_RUNG, Reach};
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
    file: u32,
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

    /// The memory behind the windows of this file: a memfd that never shrinks to less than its
    /// windows, with the offsets from the responses. It is created at the first call.
    ///
    /// # Errors
    ///
    /// The errno of creating it.
    pub fn window_memory(&self) -> Result<Arc<OwnedFd>, Errno> {
        let mut device = self.nic.device();
        let memory = device.files.get_mut(self.file)?.windows.memory()?;
        Ok(Arc::clone(memory.file()))
    }

    /// The memory behind the windows of this file, as [`window_memory`](Self::window_memory), for a
    /// program that maps a window of it: the memory never shrinks again, whatever the program does. It
    /// does not have windows whose stores are trapped.
    ///
    /// # Errors
    ///
    /// As [`map`](Self::map), which it checks the window with.
    pub fn share_window(&self, offset: u64, len: usize) -> Result<SharedWindow, Errno> {
        self.map(offset, len)?;
        let mut device = self.nic.device();
        let windows = &mut device.files.get_mut(self.file)?.windows;
        let memory = Arc::clone(windows.memory()?.shared()?);
        let doorbell = windows.polled_at(offset);
        if let Some(doorbell) = doorbell {
            self.nic.data_path().poll(doorbell);
        }
        Ok(SharedWindow { memory, is_doorbell: doorbell.is_some() })
    }

    /// Promises that windows are mapped only after [`share_window`](Self::share_window), so that doorbells
    /// need not be polled before.
    pub fn share_all_windows(&self) {
        if let Ok(file) = self.nic.device().files.get_mut(self.file) {
            file.windows.share();
        }
    }

    /// Polls doorbells in shared windows at some offsets because their stores are not trapped in one
    /// mapping each, until [`trap`](Self::trap). Those of a window that is shared are polled at first.
    pub fn untrap(&self, offsets: &[u64]) {
        for doorbell in self.doorbells_at(offsets) {
            self.nic.data_path().poll(doorbell);
        }
    }

    /// Stops to poll doorbells in shared windows as far as one mapping of each is concerned: whoever maps
    /// them is stopped at the next store. What was stored before is taken.
    pub fn trap(&self, offsets: &[u64]) {
        self.nic.data_path().unpoll(&self.doorbells_at(offsets));
    }

    fn doorbells_at(&self, offsets: &[u64]) -> Vec<Doorbell> {
        let device = self.nic.device();
        let Ok(file) = device.files.get(self.file) else { return Vec::new() };
        offsets.iter().filter_map(|offset| file.windows.polled_at(*offset)).collect()
    }

    /// Returns whether a store to a window, at an offset, is to be passed to
    /// [`store`](Self::store). No other file of the NIC has such a window at that offset.
    #[must_use]
    pub fn has_doorbell(&self, offset: u64) -> bool {
        let device = self.nic.device();
        let file = device.files.get(self.file);
        file.is_ok_and(|file| file.windows.doorbell_at(offset).is_some())
    }

    /// Executes what a store to a doorbell rings. A program of a user was stopped at the store, at an
    /// offset in the windows of this file, of eight bytes; `value` is `None` if it is not known. Any
    /// store rings a low-latency window, whereas other doorbells need eight bytes.
    ///
    /// Returns the previous word, which is that of a doorbell that has not been rung, or `None` if
    /// nothing was rung. The caller has to take the wake-ups. Memory of processes of other users is
    /// left to [`Nic::step`], because a user could make the calling thread wait there.
    ///
    /// If stores to the doorbells of target queues follow each other closely and cause no events,
    /// the end of the memory is moved past these doorbells, until [`Nic::tend_doorbells`] moves it
    /// back.
    #[must_use]
    pub fn store(&self, user: u32, offset: u64, value: Option<u64>) -> Option<u64> {
        let mut device = self.nic.device();
        let windows = &mut device.files.get_mut(self.file).ok()?.windows;
        let path = self.nic.data_path();
        // The device stays locked, so that no number is reused between finding the doorbell and
        // ringing it.
        let rang = windows.doorbell_at(offset).is_some_and(|at| path.ring(self.file, at, value));
        // If they cannot be opened, every store is still trapped.
        if path.wants_open(self.file)
            && let Ok((memory, queues)) = windows.open_targets()
        {
            path.opened(self.file, memory, &queues);
        }
        drop(device);
        path.run(Reach::User(user));
        rang.then_some(NOT_RUNG)
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

/// The memory of a window for a program that maps it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SharedWindow {
    /// The memory, to be mapped at the offset of the window.
    pub memory: Arc<OwnedFd>,
    /// Stores to the window ring a doorbell, which is polled until [`Client::trap`].
    pub is_doorbell: bool,
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
