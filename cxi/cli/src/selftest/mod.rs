//! `cxi selftest`: asks a NIC what it is and what it does, and compares the answers with those of the
//! mock of its driver's release.

mod file;
mod steps;
mod write;

use std::io::{self, BufRead, BufReader, IsTerminal as _, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{env, thread};

use clap::Args;
use cxi::{Device, DeviceId, DriverRelease, ErrorKind, ServiceId, Vni};
use cxi_ioctl::Replay;
use cxi_mock::{Credentials, Nic, NicConfig};
use cxi_site::durable::LockGuard;
use cxi_site::settings::test_lock;
use nix::unistd::geteuid;
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::files;
use crate::node::{Node, reading};
use crate::options::Common;
use crate::output::{Progress, Report, log, nic_names, wrapped};
use crate::service::found::{all, unnamed_vni};
use crate::settings::{Settings, WAIT};
use file::{Part, TestOfNic, Tested, Watched};
use steps::{Steps, read};
use write::{Own, write};

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option")]
pub(crate) struct SelftestArgs {
    /// Also use each NIC, with a separate service for this user that reserves nothing, on a VNI
    /// that no other service has. Everything is removed at the end, even if this command is killed
    /// (needs CAP_SYS_ADMIN)
    #[arg(long, conflicts_with = "replay")]
    write: bool,
    /// Do not ask before --write
    #[arg(long, requires = "write")]
    yes: bool,
    /// VNI of --write [default: the highest that no service has]
    #[arg(long)]
    vni: Option<Vni>,
    /// Write all commands and answers to a file, without user IDs, NIC addresses and serial numbers
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Leave IDs and addresses in the report as they are
    #[arg(long, requires = "report")]
    unmasked: bool,
    /// Compare a report with the mock again, without a NIC
    #[arg(long, value_name = "FILE", conflicts_with = "report")]
    replay: Option<PathBuf>,
    /// Lock the NICs, read VNIs until the input ends, and destroy what is left of --write on them
    #[arg(long, hide = true)]
    keep: bool,
    /// Allocate an LNI of a service, and wait for the end of the input
    #[arg(long, hide = true, value_name = "ID")]
    hold: Option<ServiceId>,
}

pub(crate) fn run(arguments: &SelftestArgs, common: &Common) -> Result<Report, Failure> {
    if let Some(path) = &arguments.replay {
        return replay(path);
    }
    // A mock node is not saved: nothing is left of the test in its file.
    reading(common, |node| match arguments.hold {
        Some(id) => hold(node, id),
        None if arguments.keep => keep(node, &common.settings),
        None => test(arguments, node),
    })
}

fn test(arguments: &SelftestArgs, node: &Node) -> Result<Report, Failure> {
    let mut writing = if arguments.write { Some(Writing::start(arguments, node)?) } else { None };
    let (mut nics, mut failures) = (Vec::new(), Vec::new());
    // On a mock node it takes no time.
    let progress = (!node.is_mock()).then(Progress::new);
    working(node.mock_nics(), || {
        let count = node.devices().len();
        for (number, device) in (1..).zip(node.devices()) {
            if let Some(progress) = &progress {
                progress.tell(format_args!("Testing {}, {number} of {count}", device.id()));
            }
            match test_nic(device, node, writing.as_mut()) {
                Ok(nic) => nics.push(nic),
                Err(failure) => failures.push(failure),
            }
        }
    });
    drop(writing);
    drop(progress);
    let tested = Tested::new(nics);
    // If no NIC could be tested, an earlier report is left as it is.
    if let (Some(path), false) = (&arguments.report, tested.nics.is_empty()) {
        let tested = if arguments.unmasked { tested.clone() } else { tested.clone().masked() };
        files::replace(path, &files::print(file::FORMAT, &tested)?)?;
    }
    Ok(report(&tested).with_failures(failures))
}

fn own(node: &Node, vni: Vni) -> Own {
    // This command is root on the NICs of a mock node.
    let uid = if node.is_mock() { 0 } else { geteuid().as_raw() };
    Own { vni, uid }
}

/// The highest VNI up to `most` that no service names, on any of the NICs.
fn free_vni(node: &Node, most: u16) -> Result<Vni, Failure> {
    let found = all(node.devices())?;
    let services = found.iter().map(|(_, found)| &found.service);
    unnamed_vni((1..=most).rev(), services)
        .ok_or_else(|| Failure::new(Exit::NotEnough, "services have all VNIs: name one with --vni"))
}

/// Says what --write does, and asks.
fn agree(arguments: &SelftestArgs, node: &Node, vni: Vni) -> Result<(), Failure> {
    if arguments.yes || node.is_mock() {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        return Err(Failure::bad_input(
            "selftest --write asks before it starts, and standard input is not a terminal",
        )
        .hint("Add --yes to agree."));
    }
    let nics: Vec<DeviceId> = node.devices().iter().map(Device::id).collect();
    let mut out = anstream::stderr().lock();
    let _ = write!(
        out,
        "On {}, one NIC after the other, this creates a service for yourself on VNI {vni} that \
         reserves nothing, allocates an LNI, two counters, an event queue, two command queues and a \
         PtlTE of it, puts 4 KiB from the NIC to itself, and destroys everything again, even if it \
         is killed. Jobs are not disturbed. Go on? [y/N] ",
        nic_names(&nics)
    );
    let _ = out.flush();
    let mut line = String::new();
    let _ = io::stdin().lock().read_line(&mut line);
    match line.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::new(Exit::NothingToDo, "nothing was done")),
    }
}

/// Needs of --write on all NICs.
struct Writing {
    own: Own,
    /// `true` if the user named the VNI.
    named: bool,
    /// On NICs that outlive this process.
    keeper: Option<Keeper>,
}

impl Writing {
    fn start(arguments: &SelftestArgs, node: &Node) -> Result<Self, Failure> {
        // Only one selftest at a time chooses a VNI and uses it: where a driver lets services share
        // a VNI, the services of two would be the same, and each would destroy the other's.
        let keeper = if node.is_mock() { None } else { Some(Keeper::start(node)?) };
        let vni = arguments.vni.map_or_else(|| free_vni(node, u16::MAX), Ok)?;
        agree(arguments, node, vni)?;
        Ok(Self { own: own(node, vni), named: arguments.vni.is_some(), keeper })
    }

    /// Uses a NIC. Something that no service list shows may have the VNI: root's communication
    /// profile, or a service created meanwhile. Then the next lower VNI is tried.
    fn write(&mut self, device: &Device, node: &Node) -> Result<Steps, Failure> {
        let mut others = 0..if self.named { 0 } else { 8 };
        loop {
            if let Some(keeper) = &mut self.keeper {
                keeper.watch(self.own.vni)?;
            }
            let killed = (!node.is_mock()).then_some(|id| killed(device.id(), id));
            match write(device, self.own, killed) {
                Err(error)
                    if matches!(error.kind(), ErrorKind::VniTaken(_))
                        && others.next().is_some() =>
                {
                    self.own.vni = free_vni(node, self.own.vni.get() - 1)?;
                }
                result => return Ok(result?),
            }
        }
    }
}

fn test_nic(
    device: &Device,
    node: &Node,
    writing: Option<&mut Writing>,
) -> Result<TestOfNic, Failure> {
    let watched = Watched::new(device);
    let driver = watched.device.driver()?.clone();
    let as_root = node.is_mock() || geteuid().is_root();
    let (release, read) = compared(device.id(), &driver, as_root, read(&watched.device)?)?;
    let read = watched.part(read);
    let written = match writing {
        Some(writing) => {
            let mut steps = writing.write(&watched.device, node)?;
            let (nic, mock) = mock(device.id(), release, true)?;
            let of_root = Own { uid: 0, ..writing.own };
            let same = working(&[nic], || write(&mock, of_root, None::<fn(ServiceId) -> String>))?;
            steps.expect(&same);
            Some(watched.part(steps))
        }
        None => None,
    };
    Ok(TestOfNic {
        device: device.id(),
        driver: driver.to_string(),
        mock: release,
        as_root,
        read,
        write: written,
    })
}

/// A NIC of the mock.
fn mock(
    id: DeviceId,
    release: DriverRelease,
    as_root: bool,
) -> Result<(Arc<Nic>, Device), Failure> {
    let broken =
        |error: &dyn std::fmt::Display| Failure::failed(format!("the mock fails: {error}"));
    let caller = if as_root {
        Credentials::root()
    } else {
        // Which user it is makes no difference to what is asked.
        Credentials::user(1000, 1000)
    };
    let nic = Nic::new(NicConfig::new().release(release)).map_err(|error| broken(&error))?;
    let file = nic.open_as(caller).map_err(|error| broken(&error))?;
    Ok((nic, Device::with_transport(id, file)))
}

/// Compares answers with those of the mock of the release, or of the release that comes nearest,
/// where several are possible or none is.
fn compared(
    id: DeviceId,
    driver: &cxi::Driver,
    as_root: bool,
    steps: Steps,
) -> Result<(DriverRelease, Steps), Failure> {
    let detected = driver.detected_release();
    let may_be = |release: &DriverRelease| detected.may_be(*release) || detected.bounds().is_none();
    let mut nearest: Option<(usize, DriverRelease, Steps)> = None;
    for release in DriverRelease::ALL.into_iter().filter(may_be) {
        let (_nic, mock) = mock(id, release, as_root)?;
        let mut steps = Steps(steps.0.clone());
        let found = steps.expect(&read(&mock)?);
        if nearest.as_ref().is_none_or(|(least, ..)| found < *least) {
            nearest = Some((found, release, steps));
        }
    }
    let (_, release, mut steps) = nearest.unwrap_or((0, DriverRelease::NEWEST, steps));
    if detected.bounds().is_none() {
        steps.must("release", driver, release.name());
    }
    Ok((release, steps))
}

/// Runs something while the NICs of a mock node work, as real ones do by themselves.
fn working<T>(nics: &[Arc<Nic>], work: impl FnOnce() -> T) -> T {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        if !nics.is_empty() {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    for nic in nics {
                        nic.run_until_idle();
                    }
                    thread::yield_now();
                }
            });
        }
        let result = work();
        ended.store(true, Ordering::Relaxed);
        result
    })
}

/// Line by which a process says that it waits for the one that started it.
const READY: &str = "ready";

/// This program in a separate process, with a pipe that ends when this process does.
fn another(devices: &[DeviceId], arguments: &[&str]) -> io::Result<Child> {
    let devices: Vec<String> = devices.iter().map(DeviceId::to_string).collect();
    let mut child = Command::new(env::current_exe()?)
        .args(["--device", &devices.join(","), "selftest"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Ctrl-C reaches every process of the group.
        .process_group(0)
        .spawn()?;
    let mut ready = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut ready)?;
    }
    let error = match ready.trim_end() {
        READY => return Ok(child),
        "" => io::Error::other("it does not start"),
        busy => io::Error::new(io::ErrorKind::ResourceBusy, busy),
    };
    let _ = child.wait();
    Err(error)
}

/// Says that this process is ready, and waits for the one that started it. Returns what it said.
fn wait_for_parent() -> Result<String, Failure> {
    let failed =
        |error: io::Error| Failure::failed(format!("the process that started this: {error}"));
    writeln!(io::stdout(), "{READY}").map_err(failed)?;
    let mut said = String::new();
    io::stdin().read_to_string(&mut said).map_err(failed)?;
    Ok(said)
}

/// The process that cleans up when this one has ended, however that was. Until it has ended, it has
/// the NICs locked.
struct Keeper(Child);

impl Keeper {
    fn start(node: &Node) -> Result<Self, Failure> {
        let ids: Vec<DeviceId> = node.devices().iter().map(Device::id).collect();
        another(&ids, &["--keep"]).map(Self).map_err(|error| match error.kind() {
            io::ErrorKind::ResourceBusy => Failure::new(Exit::Busy, error),
            _ => Self::failed(&error),
        })
    }

    /// Has it destroy what is left on a VNI, too.
    fn watch(&mut self, vni: Vni) -> Result<(), Failure> {
        let input = self.0.stdin.as_mut();
        input.map_or(Ok(()), |input| writeln!(input, "{vni}")).map_err(|error| Self::failed(&error))
    }

    fn failed(error: &io::Error) -> Failure {
        Failure::failed(format!("the process that cleans up does not run: {error}"))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn keep(node: &Node, settings: &Settings) -> Result<Report, Failure> {
    // In the order of their numbers, so that no two processes wait for each other.
    let ids = node.devices().iter().map(Device::id);
    let locks = ids.map(|id| lock(id, settings)).collect::<Result<Vec<_>, _>>();
    let _locks = match locks {
        // The process that started this reports it.
        Err(failure) if failure.kind() == Exit::Busy => {
            return Ok(Report::verbatim(format!("{failure}\n")));
        }
        locks => locks?,
    };
    let vnis = wait_for_parent()?;
    let vnis = || vnis.lines().filter_map(|vni| vni.parse().ok());
    let left = node.devices().iter().flat_map(|device| {
        let cleaned = vnis().map(move |vni| own(node, vni).clean(device));
        cleaned.filter_map(|cleaned| cleaned.err().map(Failure::from))
    });
    Ok(Report::verbatim("").with_failures(left.collect()))
}

/// Waits for other processes that test or measure a NIC, and locks it.
fn lock(id: DeviceId, settings: &Settings) -> Result<LockGuard, Failure> {
    let file = test_lock(settings, id)?;
    let lock = match file.clone().wait(Duration::ZERO).acquire() {
        Err(error) if error.is_busy() => {
            log::print_info(&format!("waiting for another selftest or benchmark of {id}"));
            file.wait(settings.get(&WAIT)?).acquire()
        }
        lock => lock,
    };
    lock.map_err(|error| {
        let (kind, why) = if error.is_busy() {
            (Exit::Busy, "another selftest or benchmark uses it: ")
        } else {
            (Exit::Failed, "")
        };
        Failure::new(kind, format!("{id}: {why}{error}"))
    })
}

fn hold(node: &Node, id: ServiceId) -> Result<Report, Failure> {
    let lnis = node.devices().iter().map(|device| device.alloc_lni(id));
    let lnis = lnis.collect::<cxi::Result<Vec<_>>>()?;
    let _counters = lnis.iter().map(cxi::Lni::alloc_ct).collect::<cxi::Result<Vec<_>>>()?;
    wait_for_parent()?;
    Ok(Report::verbatim(""))
}

/// Kills a process that uses a service.
fn killed(device: DeviceId, id: ServiceId) -> String {
    let killed = another(&[device], &["--hold", &id.to_string()]).and_then(|mut child| {
        child.kill()?;
        child.wait()
    });
    killed.map_or_else(|error| error.to_string(), |_| "killed".to_owned())
}

/// Compares the answers of a report with those of the mock, by asking the recording again.
fn replay(path: &Path) -> Result<Report, Failure> {
    let missing = || Failure::bad_input(format!("{}: there is no such file", path.display()));
    let mut tested: Tested = files::load(file::FORMAT, path)?.ok_or_else(missing)?;
    for nic in &mut tested.nics {
        let replay = Arc::new(Replay::new(nic.read.recording.clone()));
        let device = Device::with_transport(nic.device, Arc::clone(&replay));
        let asked = read(&device);
        replay.finish().map_err(|error| {
            Failure::bad_input(format!("{}: {}: {error}", path.display(), nic.device))
                .hint("Another version of cxi wrote the report: use that one.")
        })?;
        let driver = device.driver()?;
        let (release, steps) = compared(nic.device, driver, nic.as_root, asked?)?;
        nic.mock = release;
        nic.read.steps = steps.0;
    }
    Ok(report(&tested))
}

#[derive(Serialize)]
struct Found<'a> {
    /// Number of answers that are not as expected.
    findings: usize,
    #[serde(flatten)]
    tested: &'a Tested,
}

fn report(tested: &Tested) -> Report {
    let mut text = String::new();
    let mut findings = 0;
    for nic in &tested.nics {
        let parts: Vec<&Part> = std::iter::once(&nic.read).chain(&nic.write).collect();
        let steps = || parts.iter().flat_map(|part| &part.steps);
        let judged = steps().filter(|step| step.expected.is_some()).count();
        let found: Vec<_> = steps().filter(|step| step.is_finding()).collect();
        let TestOfNic { device, driver, mock, .. } = nic;
        let some = match found.len() {
            0 => format!("{judged} answers are as expected"),
            different => format!("{different} of {judged} answers are not as expected"),
        };
        text += &format!("{device} (driver {driver}): {some}; compared with the mock of {mock}\n");
        for step in &found {
            let expected = step.expected.as_deref().unwrap_or_default();
            text += &format!("  {}: expected {expected}, found {}\n", step.name, step.answer);
        }
        for step in steps().filter(|step| step.expected.is_none() && step.name != "evidence") {
            text += &format!("  {}: {}\n", step.name, step.answer);
        }
        findings += found.len();
    }
    let report = Report::new(wrapped(&text), &Found { findings, tested });
    if findings > 0 {
        return report.ending_with(Exit::Findings as u8);
    }
    report
}
