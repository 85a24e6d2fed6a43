//! A NIC with its driver.

mod registers;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cxi_ioctl::{Errno, Mapping};

use crate::{
    CallerMemory, Client, Credentials, Faults, Hardware, Hazard, LoadError, NicConfig, NicState,
};
use registers::Registers;

/// A mock NIC with its driver loaded.
#[derive(Debug)]
pub struct Nic {
    config: NicConfig,
    faults: Faults,
    device: Mutex<Device>,
}

impl Nic {
    /// Loads the driver.
    ///
    /// # Errors
    ///
    /// The driver does not load with these parameters.
    pub fn new(config: NicConfig) -> Result<Arc<Self>, LoadError> {
        let device = Mutex::new(Device::default());
        Ok(Arc::new(Self {
            config,
            faults: Faults::default(),
            device,
        }))
    }

    /// How the NIC was set up.
    #[must_use]
    pub fn config(&self) -> &NicConfig {
        &self.config
    }

    /// Opens the physical function.
    ///
    /// # Errors
    ///
    /// EIO if the NIC was taken out.
    pub fn open(self: &Arc<Self>) -> Result<Client, Errno> {
        if self.faults.removed() {
            return Err(Errno::EIO);
        }
        let mut device = self.device();
        device.files += 1;
        Ok(Client::new(Arc::clone(self), device.files))
    }

    /// Opens a virtual function, counted from 0.
    ///
    /// # Errors
    ///
    /// ENODEV if there is no such function, EIO if the NIC was taken out.
    pub fn open_vf(self: &Arc<Self>, function: u32) -> Result<Client, Errno> {
        if function >= self.config.virtual_functions {
            return Err(Errno::ENODEV);
        }
        self.open()
    }

    /// Sets what the hardware reports.
    #[must_use]
    pub fn hardware(&self) -> Hardware<'_> {
        Hardware::new(self)
    }

    /// Faults to come.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Runs the cleanup of freed LNIs whose queues were busy, which a driver does every second
    /// while there is any. Says whether it was scheduled.
    pub fn tick(&self) -> bool {
        false
    }

    /// Dumps the driver's accounting.
    #[must_use]
    pub fn state(&self) -> NicState {
        NicState::default()
    }

    /// What happened so far that a real kernel may not survive, oldest first.
    #[must_use]
    pub fn events(&self) -> Vec<Hazard> {
        Vec::new()
    }

    pub(crate) fn write(
        &self,
        _file: u32,
        _caller: &Credentials,
        _command: &[u8],
        _memory: &mut dyn CallerMemory,
    ) -> Result<usize, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    pub(crate) fn close(&self, _file: u32) {}

    /// Maps a window of the NIC's memory.
    ///
    /// # Errors
    ///
    /// EINVAL if there is no such window.
    pub fn map_window(&self, _offset: u64, _len: usize) -> Result<Mapping, Errno> {
        Err(Errno::EINVAL)
    }

    pub(crate) fn with_registers<T>(&self, change: impl FnOnce(&mut Registers) -> T) -> T {
        change(&mut self.device().registers)
    }

    fn device(&self) -> MutexGuard<'_, Device> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
struct Device {
    files: u32,
    registers: Registers,
}
