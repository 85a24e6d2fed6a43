//! Any text where a person, a file or the environment gives one: what is read is printed the same.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::{Debug, Display};
use std::os::unix::ffi::OsStringExt as _;
use std::str::FromStr;

use cxi::{DeviceId, PciAddress, Resource, ServiceId, TrafficClass, TrafficClasses, Vni, VniRange};
use cxi_ioctl::{DriverRelease, Errno};
use cxi_job::SlingshotEnv;
use cxi_mock::FaultSpec;
use cxi_site::collectives::CollectivesEnv;
use cxi_site::{IdSet, JobId, NodeName, StepId, TenantName};

use crate::told;

type Reader = fn(&[u8]);

/// Readers of texts, and texts that are right.
const TEXTS: [(Reader, &[&str]); 18] = [
    (round::<Vni>, &["1024"]),
    (round::<VniRange>, &["1024-1039"]),
    (round::<DeviceId>, &["cxi12"]),
    (round::<ServiceId>, &["7"]),
    (round::<TrafficClass>, &["BEST_EFFORT"]),
    (round::<TrafficClasses>, &["BEST_EFFORT,LOW_LATENCY"]),
    (round::<Resource>, &["TXQs"]),
    (round::<PciAddress>, &["0000:c1:00.0"]),
    (id_set, &["1024-2047,4096,5000-5001", "[1-3,7,9-65535]"]),
    (
        environment,
        &[
            "SLINGSHOT_VNIS=4034,5\nSLINGSHOT_DEVICES=cxi0,cxi1\nSLINGSHOT_SVC_IDS=11,12\n\
             SLINGSHOT_TCS=0x0a",
            "FI_CXI_COLL_JOB_ID=8\nFI_CXI_COLL_JOB_STEP_ID=0\nFI_CXI_COLL_MCAST_TOKEN=abc\n\
             FI_CXI_COLL_FABRIC_MGR_URL=https://fm:8443\nFI_CXI_HWCOLL_MIN_NODES=4",
        ],
    ),
    (round::<DriverRelease>, &["shs-14.0.1"]),
    (round::<Errno>, &["EINVAL"]),
    (round::<JobId>, &["job-17.2"]),
    (round::<StepId>, &["0"]),
    (round::<TenantName>, &["blue"]),
    (round::<NodeName>, &["node-17"]),
    (fault, &["cxi1:SVC_DESTROY:EBUSY:times=3:after=1", "SVC_ALLOC:delay=20ms"]),
    (
        command_line,
        &[
            "--device\ncxi0-3,cxi7\n--json\ndevices",
            "--mock\n--mock-nics\n4\n--mock-release\nshs-13.1\nservice\nlist",
            "service\ncreate\n--uid\n1000\n--vni\n1024,1025\n--tc\nlow-latency\n--limit\ntxqs=16:256,acs=1:2",
            "service\ndestroy\n2\n3\n--wait\n5",
            "job\nprolog\n--job\n17\n--uid\n1000\n--gid\n100\n--vni-range\n1024-1039\n--cores\n64\n--lnis-per-rgid\n4",
            "job\nepilog\n--job\n17\n--retry-busy\n5m",
            "job\nrun\n--uid\n1000\n--cores\n4\n--\nPROGRAM\n--option",
            "vni\nconfigure\n1024-65535\n--tenant\nblue=1024-2047",
            "audit\n--vni-pool\n1024-2047\n--idle-file\nidle.json\n--idle-after\n1h30m",
        ],
    ),
];

/// One byte says as what the rest is read.
///
/// # Panics
///
/// When something is not read as it was printed.
pub fn run(data: &[u8]) {
    if let Some((choice, bytes)) = data.split_first() {
        let (read, _) = TEXTS[usize::from(*choice) % TEXTS.len()];
        read(bytes);
    }
}

/// Texts that are right.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let kinds = (0..).zip(TEXTS);
    let seeds = kinds.flat_map(|(choice, (_, texts))| {
        let seed = move |text: &&str| [&[choice], text.as_bytes()].concat();
        texts.iter().map(seed)
    });
    seeds.collect()
}

/// Checks that a text that is read is printed as one that is read as the same; others are refused
/// with a text.
fn round<T>(bytes: &[u8])
where
    T: FromStr + Display + PartialEq + Debug,
    T::Err: Display,
{
    if let Some(value) = read::<T>(bytes) {
        let printed = value.to_string();
        let again = printed.parse::<T>();
        assert!(again.is_ok_and(|again| again == value), "{value:?} is printed as {printed:?}");
    }
}

fn read<T: FromStr<Err: Display>>(bytes: &[u8]) -> Option<T> {
    let text = String::from_utf8_lossy(bytes);
    let read = text.parse::<T>();
    if let Err(error) = &read {
        let said = error.to_string();
        assert!(!said.is_empty(), "{text:?}: an error has a text");
        assert!(said.len() < 4 * text.len() + 1024, "{said}: a text has an end");
    }
    read.ok()
}

fn fault(bytes: &[u8]) {
    if let Some(fault) = read::<FaultSpec>(bytes) {
        assert!(fault.device().is_none_or(|device| fault.concerns(device)));
    }
}

fn id_set(bytes: &[u8]) {
    round::<IdSet>(bytes);
    let Some(set) = read::<IdSet>(bytes) else { return };
    let bracketed = format!("[{set}]");
    assert_eq!(bracketed.parse().as_ref(), Ok(&set));
    assert_eq!(set.iter().count(), set.len());
    assert_eq!(set.iter().collect::<IdSet>(), set);
    let ranges: usize = set.ranges().map(Iterator::count).sum();
    assert_eq!(ranges, set.len());
    if let (Some(first), Some(last)) = (set.first(), set.last()) {
        let outside = IdSet::from(first..=last).difference(&set);
        assert!(outside.intersection(&set).is_empty());
        assert_eq!(outside.union(&set), IdSet::from(first..=last));
    }
}

/// Lines `NAME=value`, with any bytes in a value, as the variables of a process.
fn environment(bytes: &[u8]) {
    let variables: HashMap<String, OsString> = bytes
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            let at = line.iter().position(|byte| *byte == b'=')?;
            let name = String::from_utf8(line[..at].to_vec()).ok()?;
            Some((name, OsString::from_vec(line[at + 1..].to_vec())))
        })
        .collect();
    let get = |name: &'static str| variables.get(name).cloned();
    match SlingshotEnv::parse(get) {
        Ok(Some(read)) => {
            let vars: HashMap<_, _> = read.vars().into_iter().collect();
            let again = SlingshotEnv::parse(|name| vars.get(name).map(OsString::from));
            assert_eq!(again.as_ref(), Ok(&Some(read)), "read as it was set");
        }
        other => drop(told(other)),
    }
    let Ok(step) = "7".parse::<StepId>() else { return };
    match CollectivesEnv::inherit(get, step.clone()) {
        Ok(Some(read)) => {
            let vars: HashMap<_, _> = read.vars().into_iter().collect();
            let again = CollectivesEnv::inherit(|name| vars.get(name).map(OsString::from), step);
            assert_eq!(again.as_ref(), Ok(&Some(read)), "read as it was set");
        }
        other => drop(told(other)),
    }
}

/// A line for each argument. A namespace may be named by a file, so no path of this machine's is.
fn command_line(bytes: &[u8]) {
    let lines = bytes.split(|byte| *byte == b'\n');
    let arguments = lines.map(|line| OsString::from_vec(line.to_vec()));
    let line = std::iter::once("cxi".into()).chain(arguments);
    told(cxi_cli::read::command_line(line));
}
