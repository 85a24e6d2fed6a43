//! A job's services on a mock node with two NICs: created, listed, used, refused with a reason, and
//! destroyed. No hardware is touched.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;

use cxi::lni::{CountingEvent, Txq, TxqOptions};
use cxi::{
    Device, Limit, Limits, Lni, Member, Resource, ServiceId, ServiceSpec, TrafficClass,
    TrafficClasses, Vni,
};
use cxi_mock::{Credentials, MockNode, Nic, NicConfig};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const JOB_USER: u32 = 1000;
const OTHER_USER: u32 = 2000;
const JOB_VNI: u16 = 1024;
/// More than the job has reserved, so that it also uses some of the shared part.
const QUEUES: usize = 20;
const COUNTERS: usize = 4;

fn main() -> Result<()> {
    play(&mut io::stdout().lock())
}

fn play(out: &mut impl Write) -> Result<()> {
    let config = NicConfig::new();
    let node = MockNode::with_nics(2, &config)?;
    let open = |caller: Credentials| {
        let devices = (0..).zip(node.nics());
        devices
            .map(|(number, nic)| open_as(number, nic, caller.clone()))
            .collect::<Result<Vec<_>>>()
    };
    let root = open(Credentials::root())?;
    writeln!(
        out,
        "A mock node with {} NICs\n   This program simulates them and their driver ({}).",
        root.len(),
        config.release
    )?;

    heading(out, 1, "The scheduler gives a job a service on each NIC")?;
    let spec = job_service()?;
    let mut services = Vec::new();
    for device in &root {
        let service = device.services().create(&spec)?;
        writeln!(out, "   {}: created service {service}", device.id())?;
        services.push(service);
    }

    heading(out, 2, "These services exist now")?;
    list(out, &root)?;

    heading(out, 3, "The job starts and opens the NICs; another user may not")?;
    let mut processes = Vec::new();
    for (device, &service) in open(Credentials::user(JOB_USER, JOB_USER))?.iter().zip(&services) {
        let process = Process::start(device, service)?;
        writeln!(out, "   {}: user {JOB_USER} has LNI {}", device.id(), process.lni.id())?;
        processes.push(process);
    }
    for (device, &service) in open(Credentials::user(OTHER_USER, OTHER_USER))?.iter().zip(&services)
    {
        refused(out, device.alloc_lni(service))?;
    }

    heading(out, 4, "What the job has")?;
    for (device, &service) in root.iter().zip(&services) {
        usage(out, device, service)?;
    }
    writeln!(out, "   # in use  = reserved, not in use  . up to the maximum")?;

    heading(out, 5, "Another job asks for more than is left, and learns what is short")?;
    for device in &root {
        refused(out, device.services().create(&too_large()?))?;
    }

    heading(out, 6, "The job is over: its service can be destroyed once its last process is gone")?;
    for (device, &service) in root.iter().zip(&services) {
        refused(out, device.services().destroy(service))?;
    }
    drop(processes);
    for (device, &service) in root.iter().zip(&services) {
        device.services().destroy(service)?;
        writeln!(out, "   {}: destroyed service {service}", device.id())?;
    }

    heading(out, 7, "Nothing of it is left")?;
    list(out, &root)
}

fn heading(out: &mut impl Write, number: u8, text: &str) -> Result<()> {
    Ok(writeln!(out, "\n{number}. {text}")?)
}

fn open_as(number: u32, nic: &Arc<Nic>, caller: Credentials) -> Result<Device> {
    let file = nic.open_as(caller)?;
    Ok(Device::with_transport(number.into(), Arc::new(file)))
}

fn job_service() -> Result<ServiceSpec> {
    let limits = [
        (Resource::Ptes, 48, 256),
        (Resource::Txqs, 16, 128),
        (Resource::Tgqs, 8, 64),
        (Resource::Eqs, 16, 128),
        (Resource::Cts, 8, 64),
        (Resource::Les, 128, 4096),
        (Resource::Tles, 8, 8),
        (Resource::Acs, 16, 64),
    ];
    service(JOB_USER, JOB_VNI, &limits)
}

fn too_large() -> Result<ServiceSpec> {
    let limits = [(Resource::Ptes, 64, 256), (Resource::Txqs, 1020, 1020)];
    service(OTHER_USER, JOB_VNI + 1, &limits)
}

fn service(uid: u32, vni: u16, limits: &[(Resource, u16, u16)]) -> Result<ServiceSpec> {
    let mut all = Limits::none();
    for &(resource, reserved, max) in limits {
        all[resource] = Limit::new(reserved, max)?;
    }
    let builder = ServiceSpec::builder()
        .member(Member::Uid(uid))
        .vni(Vni::new(vni)?)
        .traffic_classes(TrafficClasses::LOW_LATENCY | TrafficClasses::BEST_EFFORT)
        .limits(all);
    Ok(builder.build()?)
}

/// A process of the job, with what it has allocated on a NIC.
struct Process {
    lni: Lni,
    _queues: Vec<Txq>,
    _counters: Vec<CountingEvent>,
}

impl Process {
    fn start(device: &Device, service: ServiceId) -> Result<Self> {
        let lni = device.alloc_lni(service)?;
        let profile = lni.alloc_cp(Vni::new(JOB_VNI)?, TrafficClass::BestEffort)?;
        let queues = (0..QUEUES).map(|_| lni.alloc_txq(&profile, &TxqOptions::new(256)));
        let queues = queues.collect::<cxi::Result<_>>()?;
        let counters = (0..COUNTERS).map(|_| lni.alloc_ct());
        let counters = counters.collect::<cxi::Result<_>>()?;
        Ok(Self { lni, _queues: queues, _counters: counters })
    }
}

/// Prints the reason of a refusal.
fn refused<T>(out: &mut impl Write, result: cxi::Result<T>) -> Result<()> {
    match result {
        Err(error) => Ok(writeln!(out, "   {error}")?),
        Ok(_) => Err("the mock allowed what a driver refuses".into()),
    }
}

fn list(out: &mut impl Write, devices: &[Device]) -> Result<()> {
    for device in devices {
        for service in device.services().list()? {
            writeln!(out, "   {}: {service}", device.id())?;
        }
    }
    Ok(())
}

fn usage(out: &mut impl Write, device: &Device, service: ServiceId) -> Result<()> {
    let limits = device.services().get(service)?.limits();
    let usage = device.services().usage(service)?;
    writeln!(out, "   {}     In use  Reserved   Max", device.id())?;
    for (resource, limit) in limits.iter() {
        let (used, reserved, max) = (usage.in_use(resource), limit.reserved(), limit.max());
        let name = resource.to_string();
        let bar = bar(used.into(), reserved.into(), max.into());
        writeln!(out, "   {name:8} {used:6} {reserved:9} {max:5}  {bar}")?;
    }
    Ok(())
}

/// 32 characters for the maximum; even a small part shows as one.
fn bar(used: usize, reserved: usize, max: usize) -> String {
    let cells = |amount: usize| (amount * 32).div_ceil(max);
    let (used, reserved) = (cells(used), cells(reserved.max(used)));
    format!("{:.<32}", "#".repeat(used) + &"=".repeat(reserved - used))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_demo_tells_the_whole_story() {
        let mut text = Vec::new();
        super::play(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for part in [
            "A mock node with 2 NICs",
            "cxi1: created service 2",
            "cxi0: service 2: uid 1000; VNIs 1024; low-latency,best-effort",
            "cxi0: user 1000 has LNI 1",
            "cxi1: LNI_ALLOC: not permitted",
            "TXQs         20        16   128  #####...........................",
            "CTs           4         8    64  ##==............................",
            "not enough TXQs: 1020 requested, 1008 available",
            "service 2 is still in use",
            "cxi1: destroyed service 2",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        assert!(text.lines().count() < 60, "too long for two screens");
    }
}
