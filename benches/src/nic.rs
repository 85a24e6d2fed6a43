//! The NIC to measure on: a mock, or the one that is named.
//!
//! On a named NIC the caller needs CAP_SYS_ADMIN in the initial user namespace for the series that
//! create services. Their VNIs start at 64,200, and no other service is for their user. Whatever they
//! create is destroyed when they end, even if they panic or are killed.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write, stdin, stdout};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;

use cxi::{
    Device, DeviceId, Limits, Lni, Member, Service, ServiceId, ServiceSpec, ServiceSpecBuilder, Vni,
};
use cxi_mock::{Nic, NicConfig};
use cxi_site::settings::{Settings, test_lock};

use crate::run::skip;

/// Anything that can go wrong before a measurement.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The variable that names a NIC.
const VARIABLE: &str = "CXI_BENCH_DEVICE";
/// The variable that makes a benchmark the keeper of a NIC.
const KEEPER: &str = "CXI_BENCH_KEEPER";
/// The VNIs of benchmarks.
const VNIS: std::ops::Range<u16> = 64_200..65_200;
/// The user that services of benchmarks are for, and no others: a job may have one of the VNIs.
pub const USER: u32 = 4_200_064_200;
/// Longest time that a NIC may take to clean up after an LNI.
const IDLE: Duration = Duration::from_secs(10);

/// The NIC that is named, if one is.
///
/// # Panics
///
/// The name is not that of a device.
#[must_use]
pub fn named() -> Option<DeviceId> {
    static NAMED: LazyLock<Option<DeviceId>> = LazyLock::new(|| {
        let name = std::env::var(VARIABLE).ok()?;
        let id = name.parse();
        Some(id.unwrap_or_else(|error| panic!("{VARIABLE}={name}: {error}")))
    });
    *NAMED
}

/// Returns whether a benchmark of the mock itself must be left out because a NIC is named; says so.
#[must_use]
pub fn only_on_a_mock(series: &str) -> bool {
    let named = named();
    if let Some(id) = named {
        skip(series, format_args!("it measures the mock, not {id}"));
    }
    named.is_some()
}

/// The NIC, opened: the named one, or a new mock as root.
///
/// # Errors
///
/// It cannot be opened.
pub fn device() -> Result<Device> {
    static CHILD: OnceLock<Child> = OnceLock::new();
    let Some(id) = named() else { return mock() };
    if CHILD.get().is_none() {
        // Its input stays open as long as this process lives.
        let _ = CHILD.set(start_keeper(id)?);
    }
    Ok(Device::open(id)?)
}

/// A new mock NIC, opened by root.
///
/// # Errors
///
/// The mock does not start.
pub fn mock() -> Result<Device> {
    Ok(Device::cxi0(Nic::new(NicConfig::new())?.root()?))
}

/// Takes `--device cxi0` from the command line, which criterion would refuse, by starting this
/// program again with the variable.
///
/// # Panics
///
/// There is no name after `--device`, or this program cannot be started.
pub fn take_option() {
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let Some(at) = arguments.iter().position(|argument| argument == "--device") else { return };
    assert!(at + 1 < arguments.len(), "--device: expected a NIC, such as cxi0");
    let device = arguments.drain(at..at + 2).next_back();
    let mut again = Command::new(std::env::current_exe().expect("this program"));
    let error = again.args(arguments).envs(device.map(|device| (VARIABLE, device))).exec();
    panic!("this program cannot be started again: {error}");
}

/// Starts this program as the keeper of a NIC: a process that waits for the end of this one and then
/// destroys the services that it left behind.
fn start_keeper(id: DeviceId) -> Result<Child> {
    let mut keeper = Command::new(std::env::current_exe()?)
        .env(KEEPER, id.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Ctrl-C reaches every process of the group.
        .process_group(0)
        .spawn()?;
    let output = keeper.stdout.take().ok_or("no output")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    if line.is_empty() {
        return Err("the process that cleans up has ended".into());
    }
    Ok(keeper)
}

/// Does the work of the keeper and ends, if this process is one.
pub fn keep_if_asked() {
    let Ok(name) = std::env::var(KEEPER) else { return };
    let kept = keep(&name);
    if let Err(error) = &kept {
        skip(format_args!("the cleanup of {name}"), error);
    }
    std::process::exit(i32::from(kept.is_err()));
}

fn keep(name: &str) -> Result<()> {
    let device = Device::open(name.parse()?)?;
    // Benchmarks take turns, with each other and with `cxi selftest`: they use the same VNIs.
    let _lock = test_lock(&Settings::load(None)?, device.id())?.acquire()?;
    writeln!(stdout(), "ready")?;
    stdin().read_to_end(&mut Vec::new())?;
    let ours = |service: &&Service| {
        let members = service.members();
        members.is_some_and(|members| members.iter().any(|member| member == Member::Uid(USER)))
    };
    for left in device.services().list()?.iter().filter(ours) {
        end(&device, left.id());
    }
    Ok(())
}

/// A service of a benchmark.
pub fn spec() -> ServiceSpecBuilder {
    ServiceSpec::builder().member(Member::Uid(USER))
}

/// The VNI of a benchmark's service. On a NIC each has its own, as some drivers want it; a mock
/// takes one VNI for more services than there are VNIs.
///
/// # Errors
///
/// None.
pub fn vni(service: u16) -> Result<Vni> {
    let number = if named().is_some() { service } else { 0 };
    Ok(Vni::new(VNIS.start + number)?)
}

/// Services without a reservation and without pools: as many fit a NIC as it has numbers.
#[derive(Debug)]
pub struct Modest(Vec<(Device, ServiceId)>);

impl Modest {
    /// Creates that many. Disabled ones take no slot of the VNI table, which has 256.
    ///
    /// # Errors
    ///
    /// The device's.
    pub fn create(device: &Device, count: usize) -> Result<Self> {
        let mut made = Self(Vec::new());
        for number in 1..=count {
            let vni = vni(u16::try_from(number % VNIS.len())?)?;
            let spec = spec().vni(vni).limits(Limits::default());
            let id = device.services().create(&spec.enabled(false).build()?)?;
            made.0.push((device.clone(), id));
        }
        Ok(made)
    }

    /// The first of them.
    #[must_use]
    pub fn first(&self) -> Option<ServiceId> {
        self.0.first().map(|(_, id)| *id)
    }
}

impl Drop for Modest {
    fn drop(&mut self) {
        // A mock goes with its services.
        if named().is_some() {
            self.0.drain(..).for_each(|(device, id)| end(&device, id));
        }
    }
}

/// An LNI of a separate service without limits.
#[derive(Debug)]
pub struct Workplace {
    /// The NIC.
    pub device: Device,
    /// The service.
    pub service: ServiceId,
    lni: Option<Lni>,
}

impl Workplace {
    /// Creates the service and allocates the LNI.
    ///
    /// # Errors
    ///
    /// The device's.
    pub fn new() -> Result<Self> {
        let device = device()?;
        let user = fs::metadata("/proc/self")?.uid();
        let spec = spec().member(Member::Uid(user)).vni(vni(0)?).build()?;
        let service = device.services().create(&spec)?;
        let mut place = Self { device, service, lni: None };
        place.lni = Some(place.device.alloc_lni(service)?);
        Ok(place)
    }

    /// The LNI.
    ///
    /// # Panics
    ///
    /// Never: it is there as long as this is.
    #[must_use]
    pub fn lni(&self) -> &Lni {
        self.lni.as_ref().expect("an LNI")
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        self.lni.take();
        end(&self.device, self.service);
    }
}

/// Destroys a service, or says that it stays.
fn end(device: &Device, service: ServiceId) {
    if let Err(error) = device.services().destroy_when_idle(service, IDLE) {
        skip(format_args!("the end of service {service}"), error);
    }
}
