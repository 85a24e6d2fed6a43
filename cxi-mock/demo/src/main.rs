//! A job's service on a mock NIC: created, listed, used, refused with a reason, and destroyed. No
//! hardware is touched.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;

use cxi::lni::{CountingEvent, Txq, TxqOptions};
use cxi::{
    Device, Limit, Limits, Lni, Member, Resource, ServiceId, ServiceSpec, TrafficClass,
    TrafficClasses, Vni,
};
use cxi_mock::{Credentials, Nic, NicConfig};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const JOB_USER: u32 = 1000;
const OTHER_USER: u32 = 2000;
const JOB_VNI: u16 = 1024;
/// More than the job has reserved, so that it also uses some of the shared part.
const QUEUES: usize = 20;
const COUNTERS: usize = 4;
/// Commands that do the same, printed at the end.
const COMMANDS: [&str; 3] = [
    "cargo install --locked --path cxi/cli",
    "cxi --mock=node.json service create --uid 1000 --vni 1024",
    "cxi --mock=node.json service list",
];

fn main() -> Result<()> {
    play(&mut io::stdout().lock())
}

fn play(out: &mut impl Write) -> Result<()> {
    let config = NicConfig::new();
    let nic = Nic::new(config.clone())?;
    let root = open_as(&nic, Credentials::root())?;
    let job = open_as(&nic, Credentials::user(JOB_USER, JOB_USER))?;
    let other = open_as(&nic, Credentials::user(OTHER_USER, OTHER_USER))?;
    writeln!(out, "A mock NIC\n   This program simulates it and its driver ({}).", config.release)?;

    heading(out, 1, "The scheduler gives a job a service on the NIC")?;
    let service = root.services().create(&job_service()?)?;
    writeln!(out, "   {}: created service {service}", root.id())?;

    heading(out, 2, "These services exist now")?;
    list(out, &root)?;

    heading(out, 3, "The job starts and opens the NIC; another user may not")?;
    let process = Process::start(&job, service)?;
    writeln!(out, "   {}: user {JOB_USER} has LNI {}", job.id(), process.lni.id())?;
    refused(out, other.alloc_lni(service))?;

    heading(out, 4, "What the job has")?;
    usage(out, &root, service)?;
    writeln!(out, "   # in use  = reserved, not in use  . free")?;

    heading(out, 5, "Another job asks for more than is left, and learns what is short")?;
    refused(out, root.services().create(&too_large()?))?;

    heading(out, 6, "The job is over: its service can be destroyed once its last process is gone")?;
    refused(out, root.services().destroy(service))?;
    drop(process);
    root.services().destroy(service)?;
    writeln!(out, "   {}: destroyed service {service}", root.id())?;

    heading(out, 7, "Nothing of it is left")?;
    list(out, &root)?;

    heading(out, 8, "The command cxi does the same")?;
    Ok(COMMANDS.iter().try_for_each(|command| writeln!(out, "   {command}"))?)
}

fn heading(out: &mut impl Write, number: u8, text: &str) -> Result<()> {
    Ok(writeln!(out, "\n{number}. {text}")?)
}

fn open_as(nic: &Arc<Nic>, caller: Credentials) -> Result<Device> {
    let file = nic.open_as(caller)?;
    Ok(Device::with_transport(0.into(), Arc::new(file)))
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

fn list(out: &mut impl Write, device: &Device) -> Result<()> {
    for service in device.services().list()? {
        writeln!(out, "   {}: {service}", device.id())?;
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
            "A mock NIC",
            "cxi0: created service 2",
            "cxi0: service 2: uid 1000; VNIs 1024; low-latency,best-effort",
            "cxi0: user 1000 has LNI 1",
            "cxi0: LNI_ALLOC: not permitted",
            "TXQs         20        16   128  #####...........................",
            "CTs           4         8    64  ##==............................",
            "not enough TXQs: 1020 requested, 1008 available",
            "service 2 is still in use",
            "cxi0: destroyed service 2",
            "cxi --mock=node.json service list",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        assert!(text.lines().count() < 50, "too long for two screens");
    }
}
