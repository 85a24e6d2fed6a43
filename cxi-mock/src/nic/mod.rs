//! A NIC with its driver.

mod boot;
pub(crate) mod command;
pub(crate) mod device;
mod dump;
mod inconsistency;
mod parts;
mod snapshot;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cxi_engine::{PortalSnapshot, Telemetry};
use cxi_ioctl::abi::device::DevInfoUse;
use cxi_ioctl::{DriverRelease, Errno, LniForm};

use crate::data_path::DataPath;
use crate::rules::Rules;
use crate::sweep::Part;
use crate::{Client, Credentials, Faults, Hazard, InProcess, LoadError, NicConfig, NicState};
use boot::VIRTUAL_FUNCTIONS;
use device::{Device, Keeper};
pub use inconsistency::Inconsistency;
pub use snapshot::{NicSnapshot, SnapshotError};

/// A mock NIC with its driver loaded.
///
/// All methods can be called from several threads; NICs share no lock.
#[derive(Debug)]
pub struct Nic {
    config: NicConfig,
    faults: Faults,
    /// Commands that change both lock this before the data path. The data path must therefore never
    /// ask for the device.
    device: Mutex<Device>,
    data_path: Arc<DataPath>,
    /// Number of virtual functions.
    virtual_functions: AtomicU32,
    /// The script that it follows in a sweep.
    part: OnceLock<Part>,
}

impl Nic {
    /// Loads the driver.
    ///
    /// # Errors
    ///
    /// The driver does not load with these parameters.
    pub fn new(config: NicConfig) -> Result<Arc<Self>, LoadError> {
        let device = Device::load(&config)?;
        Ok(Self::with(config, device))
    }

    /// A NIC as it was, without open files.
    ///
    /// # Errors
    ///
    /// The snapshot contradicts itself, or its configuration is bad.
    pub fn restore(snapshot: &NicSnapshot) -> Result<Arc<Self>, SnapshotError> {
        let mut device = Device::empty(&snapshot.config)?;
        let (tx, rx) = (&snapshot.tx_profiles, &snapshot.rx_profiles);
        device.vnis.restore(tx, rx)?;
        let (services, pools) = (&snapshot.services, &snapshot.pools);
        device.services.restore(services, pools, &device.vnis)?;
        for (_, group) in device.services.iter() {
            device.wire_pools(group);
        }
        Ok(Self::with(snapshot.config.clone(), device))
    }

    fn with(config: NicConfig, device: Device) -> Arc<Self> {
        Arc::new(Self {
            virtual_functions: config.virtual_functions.into(),
            config,
            faults: Faults::of(&device.data_path),
            data_path: Arc::clone(&device.data_path),
            device: Mutex::new(device),
            part: OnceLock::new(),
        })
    }

    /// The NIC's configuration.
    #[must_use]
    pub fn config(&self) -> &NicConfig {
        &self.config
    }

    /// The release of the driver: that of the configuration, unless [`follow`](Self::follow) has
    /// changed it.
    #[must_use]
    pub fn release(&self) -> DriverRelease {
        self.device().rules.release
    }

    /// Continues as the driver whose LNI_ALLOC has this form, SHS 14.0.1 or the development branch,
    /// and keeps its services. Returns whether the form is understood now. It is not if the driver
    /// is older, or if there are LNIs, which the other driver would not know.
    pub fn follow(&self, form: LniForm) -> bool {
        let mut device = self.device();
        let other = match form {
            LniForm::Long => DriverRelease::Main2026_07,
            _ => DriverRelease::Shs14_0_1,
        };
        let release = device.rules.release;
        if LniForm::for_release(release) == form {
            return true;
        }
        let idle = device.lnis.live.count() == 0 && device.lnis.ending.is_empty();
        let alike = device.rules.records_of_14_0_1 && idle;
        if alike {
            device.rules = Rules::of(other);
        }
        alike
    }

    /// Opens the physical function.
    ///
    /// # Errors
    ///
    /// EIO if the NIC has been removed.
    pub fn open(self: &Arc<Self>) -> Result<Client, Errno> {
        self.open_function(None)
    }

    /// Opens the physical function for a caller, as a [`Transport`](cxi_ioctl::Transport).
    ///
    /// ```
    /// use cxi_mock::{Credentials, Nic, NicConfig};
    ///
    /// let nic = Nic::new(NicConfig::new())?;
    /// let user = nic.open_as(Credentials::user(1000, 100))?;
    /// assert_eq!(user.caller().uid, 1000);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_as(self: &Arc<Self>, caller: Credentials) -> Result<InProcess, Errno> {
        Ok(self.open()?.transport(caller))
    }

    /// As [`open_as`](Self::open_as) for root, with all capabilities: what an administrator's
    /// program has. With the crate `cxi`, `Device::cxi0(nic.root()?)` is the device.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn root(self: &Arc<Self>) -> Result<InProcess, Errno> {
        self.open_as(Credentials::root())
    }

    /// The number of virtual functions: that of the configuration, unless
    /// [`set_virtual_functions`](Self::set_virtual_functions) has changed it.
    #[must_use]
    pub fn virtual_functions(&self) -> u32 {
        self.virtual_functions.load(Ordering::Acquire)
    }

    /// The parent service of a virtual function, counted from 0: the service from which those of
    /// the function get their VNIs and resources. 0 without one.
    #[must_use]
    pub fn parent_service(&self, function: u32) -> u32 {
        self.device().parents.get(&function).copied().unwrap_or(0)
    }

    /// Assigns a parent service to a virtual function, as an administrator does who writes
    /// `vf/N/svc_id`; 0 takes it away.
    ///
    /// # Errors
    ///
    /// EINVAL for a service that is none, or no parent; EKEYREVOKED for a disabled one; EBUSY while
    /// the function has services below its parent.
    pub fn set_parent_service(&self, function: u32, service: u32) -> Result<(), Errno> {
        self.device().assign_parent(function, service)
    }

    /// Returns whether the NIC has this virtual function, counted from 0.
    pub(crate) fn has_virtual_function(&self, function: u32) -> bool {
        function < self.virtual_functions()
    }

    /// Sets how many virtual functions there are, as an administrator does who writes `sriov_numvfs`.
    /// Open files of those that are removed answer EIO from then on.
    ///
    /// # Errors
    ///
    /// As the kernel: ERANGE for more than 64; EBUSY for another number than 0 while there are some.
    /// From [`Main2026_11`](DriverRelease::Main2026_11) on, EINVAL for a function without a
    /// [parent service](Self::set_parent_service): HPE's guide to SR-IOV says that it is rejected, and
    /// the errno is assumed.
    pub fn set_virtual_functions(&self, count: u32) -> Result<(), Errno> {
        if count > *VIRTUAL_FUNCTIONS.end() {
            return Err(Errno::ERANGE);
        }
        // The lock of the device keeps two callers apart.
        let mut device = self.device();
        match (self.virtual_functions(), count) {
            (now, wanted) if now == wanted => Ok(()),
            (now, wanted) if now > 0 && wanted > 0 => Err(Errno::EBUSY),
            (_, wanted) => {
                let is_alone = |function| !device.parents.contains_key(&function);
                if device.rules.functions_need_parents && (0..wanted).any(is_alone) {
                    return Err(Errno::EINVAL);
                }
                self.virtual_functions.store(wanted, Ordering::Release);
                device.destroy_children();
                Ok(())
            }
        }
    }

    /// Opens a virtual function, counted from 0.
    ///
    /// # Errors
    ///
    /// ENODEV if there is no such function, EIO if the NIC has been removed.
    pub fn open_vf(self: &Arc<Self>, function: u32) -> Result<Client, Errno> {
        if !self.has_virtual_function(function) {
            return Err(Errno::ENODEV);
        }
        self.open_function(Some(function))
    }

    fn open_function(self: &Arc<Self>, virtual_function: Option<u32>) -> Result<Client, Errno> {
        if self.faults.is_unplugged() {
            return Err(Errno::EIO);
        }
        let file = self.device().files.open(virtual_function)?;
        Ok(Client::new(Arc::clone(self), file))
    }

    /// Returns the answer of DEV_INFO_GET, whatever faults there are.
    #[must_use]
    pub fn device_info(&self) -> DevInfoUse {
        self.device().device_info(&self.config)
    }

    /// The faults of the NIC.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Has the NIC follow a script, once.
    pub(crate) fn set_part(&self, part: Part) {
        let _ = self.part.set(part);
    }

    /// The script that it follows, if any.
    pub(crate) fn part(&self) -> Option<&Part> {
        self.part.get()
    }

    /// Runs the cleanup of freed LNIs whose queues were busy, which a driver does every second
    /// while there are any. Also gives up accesses to memory of processes that have not answered for
    /// ten seconds. Returns whether the cleanup was scheduled.
    pub fn tick(&self) -> bool {
        self.data_path.expire_accesses();
        self.device().tick()
    }

    /// Returns the driver's accounting.
    #[must_use]
    pub fn state(&self) -> NicState {
        self.device().dump()
    }

    /// Returns the services, profiles and pools that survive closing all files.
    #[must_use]
    pub fn snapshot(&self) -> NicSnapshot {
        self.device().snapshot(&self.config)
    }

    /// Keeps everything that outlives open files. `keep` gets it now, and before the answer to each
    /// command that may change it. A command whose change cannot be kept fails with the errno of
    /// `keep`, and changes nothing.
    ///
    /// The NIC is locked during the call, which must not use it. Otherwise, an LNI could be
    /// allocated from a service that is then taken back.
    ///
    /// # Errors
    ///
    /// The errno of the first call. `keep` is called for later changes all the same.
    pub fn keep(
        &self,
        keep: impl Fn(NicSnapshot) -> Result<(), Errno> + Send + Sync + 'static,
    ) -> Result<(), Errno> {
        let mut device = self.device();
        device.keeper = Some(Keeper(Box::new(keep)));
        device.keep(&self.config)
    }

    /// The events so far that a real kernel may not survive, oldest first.
    #[must_use]
    pub fn hazards(&self) -> Vec<Hazard> {
        self.device().hazards.clone()
    }

    /// The open files of a function.
    #[must_use]
    pub fn clients_of(&self, virtual_function: Option<u32>) -> Vec<u32> {
        self.device().files.of_function(virtual_function)
    }

    /// The wait objects of an open file of a function.
    #[must_use]
    pub fn waits_of(&self, virtual_function: Option<u32>, file: u32) -> Option<Vec<u32>> {
        let device = self.device();
        let file = device.files.numbered(virtual_function, file)?;
        Some(file.waits.iter().map(|(id, _)| id).collect())
    }

    /// Takes the NIC off its fabric for good and closes all its files: its node has lost power.
    pub(crate) fn power_off(&self) {
        self.faults.power_off();
        let mut device = self.device();
        for file in device.files.all() {
            device.close(file);
        }
        drop(device);
        self.data_path.connect(&Arc::default());
    }

    pub(crate) fn data_path(&self) -> &Arc<DataPath> {
        &self.data_path
    }

    /// Polls the doorbells of all queues, executes the commands whose doorbells were rung, and
    /// everything that follows from them, also on other NICs of the node. Returns whether there was
    /// anything to do.
    ///
    /// The data path runs only in this, unless the NIC is [served](crate::serve).
    pub fn run_until_idle(&self) -> bool {
        let mut worked = false;
        while self.data_path.step() {
            worked = true;
        }
        worked
    }

    /// The counters of the data path.
    #[must_use]
    pub fn telemetry(&self) -> Telemetry {
        self.data_path.state().engine.telemetry()
    }

    /// All PtlTEs with their lists.
    #[must_use]
    pub fn portals(&self) -> Vec<PortalSnapshot> {
        self.data_path.state().engine.portals()
    }

    pub(crate) fn device(&self) -> MutexGuard<'_, Device> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
