//! Any text where a person, a file or the environment gives one: what is read is printed the same.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::{Debug, Display};
use std::os::unix::ffi::OsStringExt as _;
use std::str::FromStr;

use cxi::{DeviceId, PciAddress, Resource, ServiceId, TrafficClass, TrafficClasses, Vni, VniRange};
use cxi_ioctl::{DriverRelease, Errno, Recording};
use cxi_job::collectives::CollectivesEnv;
use cxi_job::{IdSet, JobId, NodeName, SlingshotEnv, StepId, TenantName};
use cxi_mock::FaultSpec;

use crate::told;

/// What is read must be printed as something that is read as the same; what is not read is
/// refused with a text.
fn round<T>(text: &str)
where
    T: FromStr + Display + PartialEq + Debug,
    T::Err: Display,
{
    if let Some(value) = read::<T>(text) {
        let printed = value.to_string();
        let again = printed.parse::<T>();
        assert!(
            again.is_ok_and(|again| again == value),
            "{text:?} is read as {value:?} and printed as {printed:?}"
        );
    }
}

fn read<T: FromStr<Err: Display>>(text: &str) -> Option<T> {
    let read = text.parse::<T>();
    if let Err(error) = &read {
        let said = error.to_string();
        assert!(!said.is_empty(), "{text:?}: an error has a text");
        assert!(
            said.len() < 4 * text.len() + 1024,
            "{said}: a text has an end"
        );
    }
    read.ok()
}

/// One byte says as what the rest is read.
///
/// # Panics
///
/// When something is not read as it was printed.
pub fn run(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else {
        return;
    };
    let text = &*String::from_utf8_lossy(bytes);
    match choice % 19 {
        0 => round::<Vni>(text),
        1 => round::<VniRange>(text),
        2 => round::<DeviceId>(text),
        3 => round::<ServiceId>(text),
        4 => round::<TrafficClass>(text),
        5 => round::<TrafficClasses>(text),
        6 => round::<Resource>(text),
        7 => round::<PciAddress>(text),
        8 => id_set(text),
        9 => environment(bytes),
        10 => round::<DriverRelease>(text),
        11 => round::<Errno>(text),
        12 => round::<Recording>(text),
        13 => round::<JobId>(text),
        14 => round::<StepId>(text),
        15 => round::<TenantName>(text),
        16 => round::<NodeName>(text),
        17 => {
            if let Some(fault) = read::<FaultSpec>(text) {
                assert!(fault.device().is_none_or(|device| fault.concerns(device)));
            }
        }
        _ => command_line(bytes),
    }
}

fn id_set(text: &str) {
    round::<IdSet>(text);
    let Ok(set) = text.parse::<IdSet>() else {
        return;
    };
    let bracketed = format!("[{set}]");
    assert_eq!(bracketed.parse().as_ref(), Ok(&set), "{text:?}");
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
    let Ok(step) = "7".parse::<StepId>() else {
        return;
    };
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

/// Texts that are right.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let texts: &[(u8, &str)] = &[
        (0, "1024"),
        (1, "1024-1039"),
        (2, "cxi12"),
        (3, "7"),
        (4, "BEST_EFFORT"),
        (5, "BEST_EFFORT,LOW_LATENCY"),
        (6, "TXQs"),
        (7, "0000:c1:00.0"),
        (8, "1024-2047,4096,5000-5001"),
        (8, "[1-3,7,9-65535]"),
        (9, "ofi+cxi://cxi0:5"),
        (10, "5:1024:1"),
        (
            11,
            "SLINGSHOT_VNIS=4034,5\nSLINGSHOT_DEVICES=cxi0,cxi1\nSLINGSHOT_SVC_IDS=11,12\n\
             SLINGSHOT_TCS=0x0a",
        ),
        (
            11,
            "FI_CXI_COLL_JOB_ID=8\nFI_CXI_COLL_JOB_STEP_ID=0\nFI_CXI_COLL_MCAST_TOKEN=abc\n\
             FI_CXI_COLL_FABRIC_MGR_URL=https://fm:8443\nFI_CXI_HWCOLL_MIN_NODES=4",
        ),
        (12, "shs-14.0.1"),
        (13, "EINVAL"),
        (
            14,
            "cxi-recording 1\ncommand 14000000 ok response 0102 list -  # SVC_GET\n\
             command 15 EINVAL response - list ff\nmap 4096 64 ok\n",
        ),
        (15, "5:1024-1031"),
        (16, "job-17.2"),
        (17, "0"),
        (18, "blue"),
        (19, "node-17"),
        (20, "cxi1:SVC_DESTROY:EBUSY:times=3:after=1"),
        (20, "SVC_ALLOC:delay=20ms"),
    ];
    let texts = texts
        .iter()
        .copied()
        .map(|(choice, text)| (choice, text.to_owned()));
    let lines = COMMAND_LINES.map(|line| (21, line.replace(' ', "\n")));
    texts
        .chain(lines)
        .map(|(choice, text)| {
            let mut seed = vec![choice];
            seed.extend(text.into_bytes());
            seed
        })
        .collect()
}

const COMMAND_LINES: [&str; 9] = [
    "--device cxi0-3,cxi7 --json devices",
    "--mock --mock-nics 4 --mock-release shs-13.1 service list",
    "service create --uid 1000 --vni 1024,1025 --tc low-latency --limit txqs=16:256,acs=1:2",
    "service destroy 2 3 --wait 5",
    "job prolog --job 17 --uid 1000 --gid 100 --vni-range 1024-1039 --cores 64 --lnis-per-rgid 4",
    "job epilog --job 17 --retry-busy 5m",
    "job run --uid 1000 --cores 4 -- PROGRAM --option",
    "vni configure 1024-65535 --tenant blue=1024-2047",
    "audit --vni-pool 1024-2047 --idle-file idle.json --idle-after 1h30m",
];
