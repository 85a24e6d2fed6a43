//! The served node: functions of NICs, and the files that programs have opened.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;
use std::{fmt, io};

use fuser::{INodeNo, ReplyOpen};
use parking_lot::{Mutex, RwLock};

use cxi_ioctl::socket::wire::Token;
use cxi_ioctl::{Errno, PciAddress};

use super::budget::{Budgets, Share};
use super::credentials::Authority;
use super::endpoints::Endpoints;
use super::error::{ServeError, say};
use super::interrupts::Interrupts;
use super::namespaces::Home;
use super::setup::{Doorbells, NicArguments};
use super::sysfs::{self, VIRTUAL_FUNCTIONS};
use super::topology::{Locality, Machine};
use super::trace::Trace;
use super::traffic::Traffic;
use super::trap::Traps;
use super::tree::Tree;
use super::windows::{self, Backing};
use cxi_mock::serve::Runner;
use cxi_mock::{Client, Nic};

/// The name of the driver, and of its module.
pub(crate) const DRIVER: &str = "cxi_ss1";

/// A PCI function that has its own character device.
#[derive(Debug)]
pub(crate) struct Function {
    /// N of `/dev/cxiN`.
    pub(crate) number: u16,
    /// The NIC.
    pub(crate) nic: Arc<Nic>,
    /// Counted from 0; `None` for the physical function.
    pub(crate) vf: Option<u32>,
    /// Its PCI address.
    pub(crate) address: PciAddress,
    /// Its directory in sysfs.
    pub(crate) tree: Tree,
    /// State of windows: mapped by programs or not.
    pub(crate) windows: Mutex<Windows>,
    /// `true` once a program has been said to be of another release.
    pub(crate) said_differs: Arc<AtomicBool>,
}

/// Ability of programs to map windows of a function.
#[derive(Debug, Default)]
pub(crate) enum Windows {
    /// No program has opened the device yet.
    #[default]
    Unknown,
    /// They can.
    Mappable,
    /// They cannot, and why.
    Refused(String),
}

/// More functions than these have no place in inode numbers.
const MOST_FUNCTIONS: usize = 511;

/// Sets how many virtual functions a physical one has.
type Virtualize = Box<dyn Fn(u16, u32) -> Result<(), Errno> + Send + Sync>;

/// Action when an administrator writes `sriov_numvfs`, once the node is there: it gets the number
/// of the physical function, and how many virtual ones there are to be.
#[derive(Default)]
pub(crate) struct Virtualization(OnceLock<Virtualize>);

impl Virtualization {
    /// Says what happens.
    pub(crate) fn set(&self, act: impl Fn(u16, u32) -> Result<(), Errno> + Send + Sync + 'static) {
        self.0.get_or_init(|| Box::new(act));
    }

    /// Lets it happen.
    pub(crate) fn request(&self, number: u16, count: u32) -> Result<(), Errno> {
        self.0.get().map_or(Err(Errno::EAGAIN), |act| act(number, count))
    }
}

impl fmt::Debug for Virtualization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Virtualization").finish_non_exhaustive()
    }
}

impl Function {
    fn new(
        nic: &Arc<Nic>,
        (physical, number): (u16, u16),
        virtual_function: Option<u32>,
        locality: &Locality,
        virtualization: &Arc<Virtualization>,
    ) -> Self {
        let address = sysfs::address_of(nic, virtual_function);
        let place = (virtual_function, address);
        let nic = Arc::clone(nic);
        let tree = sysfs::describe(&nic, (physical, number), place, locality, virtualization);
        let (windows, said_differs) = (Mutex::default(), Arc::default());
        Self { number, nic, vf: virtual_function, address, tree, windows, said_differs }
    }

    /// Returns whether it is not a virtual function that was removed.
    fn exists(&self) -> bool {
        self.vf.is_none_or(|function| function < self.nic.virtual_functions())
    }

    /// Returns whether an entry of its directory is there: the links to virtual functions come and go.
    pub(crate) fn has_entry(&self, path: &str) -> bool {
        let function = path.strip_prefix("virtfn").and_then(|number| number.parse::<u32>().ok());
        function.is_none_or(|function| function < self.nic.virtual_functions())
    }

    /// Opens the function as a program does.
    pub(crate) fn open(&self) -> Result<Client, Errno> {
        match self.vf {
            None => self.nic.open(),
            Some(function) => self.nic.open_vf(function),
        }
    }

    /// The memory of a file that is being opened, as far as the kernel lets programs map it.
    pub(crate) fn back(&self, client: &Client, reply: &ReplyOpen) -> io::Result<Option<Backing>> {
        let mut windows = self.windows.lock();
        if matches!(*windows, Windows::Refused(_)) {
            return Ok(None);
        }
        match (Backing::new(client, reply), &*windows) {
            (Ok(backing), _) => {
                *windows = Windows::Mappable;
                Ok(Some(backing))
            }
            (Err(error), Windows::Mappable) => Err(error),
            (Err(error), _) => {
                *windows = Windows::Refused(format!(
                    "{error}: mmap(2) of a queue or counter, and so fi_enable(3), fails with ENODEV, \
                     except in programs on this project's libraries; it needs root in the initial user \
                     namespace, and Linux 6.9"
                ));
                Ok(None)
            }
        }
    }

    /// The reason why programs cannot map windows, if a program that opened the device has shown it.
    pub(crate) fn why_unmappable(&self) -> Option<String> {
        match &*self.windows.lock() {
            Windows::Refused(why) => Some(why.clone()),
            Windows::Unknown | Windows::Mappable => None,
        }
    }

    /// Says once why programs cannot map windows, if that is so.
    pub(crate) fn say_unmappable(&self) {
        static SAID: Once = Once::new();
        if let Some(why) = self.why_unmappable() {
            SAID.call_once(|| {
                let name = self.device_name();
                say(format_args!("windows of {name} are not mappable: {why}"));
            });
        }
    }

    /// The name of the character device.
    pub(crate) fn device_name(&self) -> String {
        format!("cxi{}", self.number)
    }
}

/// A device that a program has open.
#[derive(Debug)]
pub(crate) struct OpenFile {
    /// The driver's side of it.
    pub(crate) client: Client,
    /// N of `/dev/cxiN`.
    pub(crate) function: u16,
    /// The inode that was opened.
    pub(crate) inode: INodeNo,
    /// Memory that programs map, if they can.
    pub(crate) backing: Option<Backing>,
    /// Form of the LNI_ALLOCs: one was in the driver's form (`LNI_FORM_FITS`), or all were those of
    /// another release (`LNI_FORM_DIFFERS`).
    pub(crate) lni_forms: AtomicU8,
    /// That of its function.
    pub(crate) said_differs: Arc<AtomicBool>,
    /// Its identity for the socket of the node, once a program has asked.
    pub(crate) token: OnceLock<Token>,
    /// Its place among the files of its user; `None` where the connections of a socket are counted.
    pub(crate) _share: Option<Share>,
}

impl OpenFile {
    /// Its identity for the socket of the node, which nobody can guess.
    pub(crate) fn token(&self) -> Result<Token, Errno> {
        if let Some(token) = self.token.get() {
            return Ok(*token);
        }
        let mut token = Token::default();
        let random = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut token));
        random.map_err(|error| Errno::from_io(&error))?;
        Ok(*self.token.get_or_init(|| token))
    }

    pub(crate) fn is_identified_by(&self, token: &Token) -> bool {
        self.token.get() == Some(token)
    }
}

pub(crate) const LNI_FORM_DIFFERS: u8 = 1;
/// This is the larger of the two, because one success decides.
pub(crate) const LNI_FORM_FITS: u8 = 2;

impl Drop for OpenFile {
    /// The verdict is made when the file is closed rather than at the command, because this
    /// project's libraries try both forms.
    fn drop(&mut self) {
        let differs = self.lni_forms.load(Ordering::Relaxed) == LNI_FORM_DIFFERS;
        // Any user can open the device as often as they like.
        if differs && !self.said_differs.swap(true, Ordering::Relaxed) {
            say(format_args!(
                "a program's libcxi and the driver of cxi{} are of different releases (LNI_ALLOC \
                 has another length), so it got no LNI: the driver is {}. With --release auto, it \
                 follows the first program's libcxi. This is said once for each NIC",
                self.function,
                self.client.nic().release()
            ));
        }
    }
}

impl OpenFile {
    fn is_mapped(&self) -> bool {
        self.backing.as_ref().is_some_and(Backing::is_in_use)
    }
}

/// State that all nodes of a process have in common.
#[derive(Debug)]
pub(crate) struct Common {
    /// Namespace in which capabilities count.
    pub(crate) authority: Authority,
    pub(crate) doorbells: Doorbells,
    /// `true` if the driver has the release that programs are written for.
    pub(crate) release_follows: bool,
    /// Counts of the messages that NICs have received.
    pub(crate) traffic: Traffic,
    /// Shares of this process that users have taken.
    pub(crate) budgets: Arc<Budgets>,
    /// Receiving processes.
    pub(crate) endpoints: Endpoints,
    /// Places of the NICs in the machine.
    pub(crate) machine: Machine,
    /// The second name of the driver.
    pub(crate) alias: Option<String>,
    /// Freed LNIs whose queues were busy are cleaned up every second.
    pub(crate) cleanup: bool,
    /// Threads that examine processes.
    pub(crate) home: Arc<Home>,
}

impl Common {
    /// As the arguments say, for a process whose threads are to examine processes where it is now.
    pub(crate) fn new(arguments: &NicArguments, authority: Authority) -> Result<Self, ServeError> {
        Ok(Self {
            authority,
            doorbells: arguments.doorbells,
            release_follows: arguments.release_follows(),
            traffic: Traffic::default(),
            budgets: Budgets::new(),
            endpoints: Endpoints::default(),
            machine: Machine::read(arguments.topology()),
            alias: arguments.alias.clone(),
            cleanup: !arguments.manual_cleanup,
            home: Home::here()?,
        })
    }
}

/// Things that a failure of a sweep does on the node.
pub(crate) struct Scene {
    /// Delay of late commands.
    pub(crate) late: Duration,
    /// Removes a NIC.
    pub(crate) unplug: Box<dyn Fn(u16) + Send + Sync>,
    /// Lets another process do something.
    pub(crate) between: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scene").field("late", &self.late).finish_non_exhaustive()
    }
}

/// Everything that the file system, the control socket and the launcher share.
#[derive(Debug)]
pub(crate) struct Server {
    /// The physical functions by number, including those of NICs that are unplugged.
    physical: Vec<Function>,
    /// The virtual functions by number. One that is removed keeps its place, in case that it comes
    /// back.
    virtuals: Vec<OnceLock<Function>>,
    localities: Vec<Locality>,
    /// Action when an administrator changes the number of virtual functions.
    pub(crate) virtualization: Arc<Virtualization>,
    /// Directories that belong to no function: `module`, which is `/sys/module/cxi_ss1`, and
    /// `pci_bus`.
    pub(crate) shared: Tree,
    /// Namespace in which capabilities count.
    pub(crate) authority: Authority,
    /// `true` if the driver has the release that programs are written for.
    pub(crate) release_follows: bool,
    /// Destination of recorded commands.
    pub(crate) trace: Option<Trace>,
    /// Receiving processes.
    pub(crate) endpoints: Endpoints,
    /// Things that users have taken of this process.
    pub(crate) budgets: Arc<Budgets>,
    /// Readiness that wait objects report to programs that poll them.
    pub(crate) interrupts: Interrupts,
    /// The processes whose stores to doorbells are trapped.
    pub(crate) traps: Traps,
    /// The file system of the node, once it is mounted.
    pub(crate) mounted: OnceLock<windows::FileSystem>,
    /// Things that happen around commands in a sweep.
    pub(crate) scene: OnceLock<Scene>,
    /// `true` if copies of sysfs may differ from it.
    pub(crate) stale: AtomicBool,
    files: RwLock<HashMap<u64, Arc<OpenFile>>>,
    /// Files without a descriptor, which may have a window mapped.
    closing: Mutex<Vec<Arc<OpenFile>>>,
    closer: Mutex<()>,
    next_file: AtomicU64,
    ended: AtomicBool,
}

impl Server {
    /// A server of these NICs. Virtual functions get the numbers after the physical ones.
    pub(crate) fn new(
        nics: &[Arc<Nic>],
        common: &Common,
        trace: Option<Trace>,
    ) -> Result<Self, ServeError> {
        let localities = (0..nics.len()).map(|nic| common.machine.locality(nic));
        let localities: Vec<_> = localities.collect();
        let located = || nics.iter().zip(&localities);
        let virtualization = Arc::new(Virtualization::default());
        let physical: Vec<_> = (0..)
            .zip(located())
            .map(|(number, (nic, locality))| {
                Function::new(nic, (number, number), None, locality, &virtualization)
            })
            .collect();
        let places = nics.len() * usize::from(VIRTUAL_FUNCTIONS);
        let virtuals = (0..places.min(MOST_FUNCTIONS - nics.len())).map(|_| OnceLock::new());
        let virtuals: Vec<_> = virtuals.collect();
        let mut shared = Tree::new();
        sysfs::describe_module(&mut shared, nics, common.alias.as_deref());
        for (nic, locality) in located() {
            sysfs::describe_bus(&mut shared, sysfs::address_of(nic, None), locality);
        }
        let server = Self {
            physical,
            virtuals,
            localities: localities.clone(),
            virtualization,
            shared,
            authority: common.authority,
            release_follows: common.release_follows,
            trace,
            endpoints: common.endpoints.clone(),
            budgets: Arc::clone(&common.budgets),
            interrupts: Interrupts::default(),
            traps: Traps::new(common.doorbells),
            mounted: OnceLock::new(),
            scene: OnceLock::new(),
            stale: AtomicBool::new(false),
            files: RwLock::default(),
            closing: Mutex::default(),
            closer: Mutex::default(),
            next_file: AtomicU64::new(1),
            ended: AtomicBool::new(false),
        };
        for function in &server.physical {
            server.number_virtual_functions(function, function.nic.virtual_functions());
        }
        // In sysfs the address is the name of a function.
        let mut taken = HashMap::new();
        for Function { number, address, .. } in server.functions() {
            if let Some(other) = taken.insert(address, number) {
                return Err(ServeError::Input(format!(
                    "cxi{other} and cxi{number} both have the PCI address {address}: expected a \
                     different address for each"
                )));
            }
        }
        drop(taken);
        Ok(server)
    }

    /// Gives the first virtual functions of a NIC their numbers: the lowest that are free, above those
    /// of the physical functions.
    fn number_virtual_functions(&self, of: &Function, count: u32) {
        let numbers = u16::try_from(self.physical.len()).unwrap_or(u16::MAX)..;
        let Some(locality) = self.localities.get(usize::from(of.number)) else { return };
        for function in 0..count {
            let is_it =
                |known: &Function| Arc::ptr_eq(&known.nic, &of.nic) && known.vf == Some(function);
            for (number, place) in numbers.clone().zip(&self.virtuals) {
                let known = place.get_or_init(|| {
                    let numbers = (of.number, number);
                    Function::new(&of.nic, numbers, Some(function), locality, &self.virtualization)
                });
                if is_it(known) {
                    break;
                }
            }
        }
    }

    /// Sets how many virtual functions the NIC of a physical function has.
    pub(crate) fn set_virtual_functions(&self, number: u16, count: u32) -> Result<(), Errno> {
        let function = self.physical.get(usize::from(number)).ok_or(Errno::ENODEV)?;
        let wanted = (0..count.min(VIRTUAL_FUNCTIONS.into()))
            .map(|virtual_function| sysfs::address_of(&function.nic, Some(virtual_function)));
        let taken = |address: PciAddress| {
            let others = self.functions().filter(|other| !Arc::ptr_eq(&other.nic, &function.nic));
            others.map(|other| other.address).any(|other| other == address)
        };
        if wanted.into_iter().any(taken) {
            return Err(Errno::EBUSY);
        }
        function.nic.set_virtual_functions(count)?;
        self.number_virtual_functions(function, count);
        Ok(())
    }

    /// Returns whether a program has a NIC open.
    pub(crate) fn is_in_use(&self) -> bool {
        self.functions().any(|function| !function.nic.clients_of(function.vf).is_empty())
    }

    /// All functions that there are, including those of NICs that are unplugged.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &Function> {
        let virtuals = self.virtuals.iter().filter_map(OnceLock::get);
        self.physical.iter().chain(virtuals.filter(|function| function.exists()))
    }

    /// The virtual functions of a physical one.
    pub(crate) fn virtual_functions_of(&self, number: u16) -> Vec<&Function> {
        let physical = self.physical.get(usize::from(number));
        let is_of = |function: &&Function| {
            function.vf.is_some()
                && physical.is_some_and(|physical| Arc::ptr_eq(&physical.nic, &function.nic))
        };
        self.functions().filter(is_of).collect()
    }

    /// Ends the threads that work for the server.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Closes all files, after the last program: the kernel may not have reported it yet.
    pub(crate) fn close_all(&self) {
        let mut files = self.files.write();
        let files = std::mem::take(&mut *files);
        let closing = std::mem::take(&mut *self.closing.lock());
        drop((files, closing));
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// The NICs themselves, without their virtual functions.
    pub(crate) fn physical(&self) -> impl Iterator<Item = &Function> {
        self.physical.iter()
    }

    /// The function of a number.
    pub(crate) fn function(&self, number: u16) -> Option<&Function> {
        let number = usize::from(number);
        let place = || self.virtuals.get(number.checked_sub(self.physical.len())?)?.get();
        self.physical.get(number).or_else(place).filter(|function| function.exists())
    }

    /// The function at a PCI address.
    pub(crate) fn function_at(&self, address: &str) -> Option<&Function> {
        let address: PciAddress = address.parse().ok()?;
        self.functions().find(|function| function.address == address)
    }

    /// The function of a device name.
    pub(crate) fn function_named(&self, name: &str) -> Option<&Function> {
        self.function(name.strip_prefix("cxi")?.parse().ok()?)
            .filter(|function| function.device_name() == name)
    }

    /// Keeps an open file; returns its handle.
    pub(crate) fn keep(&self, file: OpenFile) -> u64 {
        let handle = self.next_file.fetch_add(1, Ordering::Relaxed);
        let mut files = self.files.write();
        files.insert(handle, Arc::new(file));
        handle
    }

    /// An open file.
    pub(crate) fn file(&self, handle: u64) -> Option<Arc<OpenFile>> {
        self.files.read().get(&handle).cloned()
    }

    /// The identity of an open file for the socket of the node.
    pub(crate) fn token(&self, handle: u64) -> Result<Token, Errno> {
        self.file(handle).ok_or(Errno::EBADF)?.token()
    }

    /// The device file that a token identifies.
    pub(crate) fn file_of(&self, token: &Token) -> Option<Arc<OpenFile>> {
        let files = self.files.read();
        files.values().find(|file| file.is_identified_by(token)).cloned()
    }

    /// The open file with that inode, if its windows can be mapped.
    pub(crate) fn mappable(&self, inode: INodeNo) -> Option<Arc<OpenFile>> {
        let files = self.files.read();
        let closing = self.closing.lock();
        let mut files = files.values().chain(&*closing);
        let is_it = |file: &&Arc<OpenFile>| file.inode == inode && file.backing.is_some();
        files.find(is_it).cloned()
    }

    /// Records that the last descriptor of a file is closed. The file is closed too, by
    /// [`close_unmapped`](Self::close_unmapped), unless a window is mapped.
    pub(crate) fn close(&self, handle: u64) {
        let mut files = self.files.write();
        let closed = files.remove(&handle);
        // The file is always in one of the two, because a window of it may be in use.
        self.closing.lock().extend(closed);
    }

    /// Closes files whose last descriptor is closed and whose last window is unmapped.
    ///
    /// Nothing reports that a window is unmapped. This therefore runs before everything that could
    /// show it, and also once a second, so that the peers of a program that has ended notice. The
    /// kernel releases the memory behind a window only after it has sent the release, but before
    /// `close(2)` returns.
    pub(crate) fn close_unmapped(&self) {
        // Held until the files are closed, so that no caller overtakes this. The list is not locked
        // meanwhile: what a NIC does when a file is closed delays no other release.
        let _closer = self.closer.lock();
        let unmapped: Vec<_> =
            self.closing.lock().extract_if(.., |file| !file.is_mapped()).collect();
        for file in unmapped {
            self.interrupts.forget(file.function, file.client.number());
        }
    }

    /// Wakes the wait objects with pending interrupts on all NICs, because work on one NIC causes
    /// work on others.
    pub(crate) fn wake_all(&self) {
        for function in self.physical() {
            for wake in Runner::of(&function.nic).take_wakes() {
                let of_nic = |other: &&Function| {
                    Arc::ptr_eq(&other.nic, &function.nic) && other.vf == wake.virtual_function
                };
                if let Some(of) = self.functions().find(of_nic) {
                    self.interrupts.wake((of.number, wake.client, wake.wait));
                }
            }
        }
    }
}
