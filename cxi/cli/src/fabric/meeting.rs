//! The directory where the nodes of a check meet, without MPI: each writes files that the others read.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cxi::DeviceId;
use cxi_site::durable::{self, Owner};
use cxi_site::{NodeName, input};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::exit::Failure;

/// Interval at which a node looks for files: a file system of a network does not notify it.
const POLL: Duration = Duration::from_millis(100);
/// Far more than the files of the largest check have.
const LONGEST: u64 = 8 << 20;
/// The file of whoever has found that all nodes have come, or that the time is over.
const START: &str = "start.json";

/// Arrival of a node: what it has opened on each NIC.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Arrival {
    pub(super) nics: BTreeMap<DeviceId, NicArrival>,
}

/// Address of a node on one NIC, or the reason for which it has none.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum NicArrival {
    Address { nid: u32, pid: u16, vni: u16 },
    Problem(String),
}

/// Start of a check, which all nodes read.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Start {
    /// A number by which messages of this check are known.
    pub(super) session: u32,
    /// The nodes that were to come.
    pub(super) nodes: Vec<NodeName>,
    /// Those that have come.
    pub(super) came: Vec<NodeName>,
}

/// Answers that one node got of each other, on each NIC.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) nics: BTreeMap<DeviceId, BTreeMap<NodeName, Answers>>,
}

/// Answers of one node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Answers {
    pub(super) answered: u32,
    pub(super) retries: u32,
    /// In nanoseconds; absent if nothing was answered at once.
    pub(super) least_ns: Option<u64>,
    pub(super) median_ns: Option<u64>,
    /// The reason for which it is not reached.
    pub(super) problem: Option<String>,
}

/// Operations of all nodes together, as one of them has seen them on each NIC.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Together {
    pub(super) nics: BTreeMap<DeviceId, Collectives>,
}

/// Times of operations, or the reason for which there are none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Collectives {
    Times { barrier_ns: u64, allreduce_ns: u64 },
    Problem(String),
}

/// Name of a file that every node writes.
#[derive(Clone, Copy)]
pub(super) enum Word {
    Arrival,
    Asked,
    Together,
}

impl Word {
    fn file_of(self, node: &NodeName) -> String {
        let name = match self {
            Self::Arrival => "arrival",
            Self::Asked => "asked",
            Self::Together => "together",
        };
        format!("{node}.{name}.json")
    }
}

/// The directory of a check.
pub(super) struct Meeting {
    directory: PathBuf,
}

impl Meeting {
    pub(super) fn at(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    fn path(&self, node: &NodeName, word: Word) -> PathBuf {
        self.directory.join(word.file_of(node))
    }

    /// Names of all files. One look at the directory costs a file server less than one at each file that
    /// may be there, which many nodes do often.
    fn listed(&self) -> io::Result<HashSet<OsString>> {
        durable::answers(&self.directory)?;
        fs::read_dir(&self.directory)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    /// Joins as a node, which must not have been here before.
    pub(super) fn join(&self, node: &NodeName, arrival: &Arrival) -> Result<(), Failure> {
        let shown = self.directory.display();
        let there = match self.listed() {
            Ok(there) => there,
            Err(error) => return Err(Failure::bad_input(format!("{shown}: {error}"))),
        };
        if there.contains(OsStr::new(&Word::Arrival.file_of(node))) {
            return Err(Failure::bad_input(format!(
                "{shown} has the files of an earlier check, or node {node} is there twice: expected an \
                 empty directory"
            )));
        }
        if there.contains(OsStr::new(START)) {
            return Err(Failure::bad_input(format!(
                "{shown}: the check has begun without node {node}, or is an earlier one: expected an \
                 empty directory, and all nodes within --wait"
            )));
        }
        self.say(node, Word::Arrival, arrival)
    }

    pub(super) fn say(
        &self,
        node: &NodeName,
        word: Word,
        what: &impl Serialize,
    ) -> Result<(), Failure> {
        let path = self.path(node, word);
        let written = serde_json::to_vec(what).map_err(io::Error::from).and_then(|bytes| {
            durable::replace(&path, &bytes, Owner::Set { uid: None, mode: 0o644 })
        });
        written.map_err(|error| cannot_write(&path, &error))
    }

    pub(super) fn start(&self) -> Option<Result<Start, String>> {
        read(&self.directory.join(START))
    }

    /// Waits until all nodes have come, or the time is over. All get the same answer, which is that of
    /// whoever decides first.
    pub(super) fn gather(&self, nodes: &[NodeName], wait: Duration) -> Result<Start, Failure> {
        let begun = Instant::now();
        loop {
            match self.start() {
                Some(Ok(start)) => return Ok(start),
                Some(Err(error)) => return Err(Failure::bad_input(error)),
                None => {}
            }
            let listed = self.listed().unwrap_or_default();
            let is_there =
                |node: &&NodeName| listed.contains(OsStr::new(&Word::Arrival.file_of(node)));
            let came: Vec<NodeName> = nodes.iter().filter(is_there).cloned().collect();
            if came.len() == nodes.len() || begun.elapsed() >= wait {
                self.decide(&Start { session: session(), nodes: nodes.to_vec(), came })?;
            } else {
                sleep(POLL);
            }
        }
    }

    fn decide(&self, start: &Start) -> Result<(), Failure> {
        let path = self.directory.join(START);
        let decide = || {
            durable::answers(&path)?;
            let mut file = tempfile::Builder::new()
                .permissions(Permissions::from_mode(0o644))
                .tempfile_in(&self.directory)?;
            file.write_all(&serde_json::to_vec(start)?)?;
            file.as_file().sync_all()?;
            match file.persist_noclobber(&path) {
                Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => {
                    Err(error.error)
                }
                _ => Ok(()),
            }
        };
        decide().map_err(|error| cannot_write(&path, &error))
    }

    /// Waits until all these nodes have said something, or none has for this time. Returns who has.
    pub(super) fn wait_for<T: DeserializeOwned>(
        &self,
        nodes: &[NodeName],
        word: Word,
        wait: Duration,
    ) -> BTreeMap<NodeName, Result<T, String>> {
        let mut patience = Patience::new(Instant::now(), wait);
        let mut heard = BTreeMap::new();
        loop {
            let listed = self.listed().unwrap_or_default();
            let before = heard.len();
            for node in nodes {
                if !heard.contains_key(node)
                    && listed.contains(OsStr::new(&word.file_of(node)))
                    && let Some(said) = read(&self.path(node, word))
                {
                    heard.insert(node.clone(), said);
                }
            }
            let now = Instant::now();
            if heard.len() > before {
                patience.hears(now);
            }
            if heard.len() == nodes.len() || patience.is_over(now) {
                return heard;
            }
            sleep(POLL);
        }
    }
}

/// Limit of a wait for others. They are usually done at about the same time, so that one who was heard shows
/// how long this takes, which a node that had nothing to do itself cannot know.
struct Patience {
    begun: Instant,
    heard: Instant,
    wait: Duration,
}

impl Patience {
    fn new(begun: Instant, wait: Duration) -> Self {
        Self { begun, heard: begun, wait }
    }

    fn hears(&mut self, now: Instant) {
        self.heard = now;
    }

    /// Returns whether nobody was heard for the whole time, or the time is over twice.
    fn is_over(&self, now: Instant) -> bool {
        let for_long = |since: Instant, wait| now.saturating_duration_since(since) >= wait;
        for_long(self.heard, self.wait) || for_long(self.begun, self.wait.saturating_mul(2))
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::bad_input(format!("{}: cannot be written: {error}", path.display()))
}

fn read<T: DeserializeOwned>(path: &Path) -> Option<Result<T, String>> {
    let shown = path.display();
    match durable::exists(path) {
        Ok(true) => {}
        Ok(false) => return None,
        Err(error) => return Some(Err(format!("{shown}: {error}"))),
    }
    let bytes = match input::read(path, LONGEST) {
        Ok(bytes) => bytes,
        Err(error) => return Some(Err(format!("{shown}: cannot be read: {error}"))),
    };
    Some(serde_json::from_slice(&bytes).map_err(|error| format!("{shown}: {error}")))
}

/// A number that no earlier check on these nodes had, in all likelihood.
fn session() -> u32 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.subsec_nanos()
        ^ u32::try_from(now.as_secs() & 0xffff_ffff).unwrap_or_default().rotate_left(16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_hears_others_waits_longer_and_not_for_ever() {
        let begun = Instant::now();
        let after = |seconds: u64| begun + Duration::from_secs(seconds);
        let mut patience = Patience::new(begun, Duration::from_secs(60));
        assert_eq!((patience.is_over(after(59)), patience.is_over(after(60))), (false, true));
        patience.hears(after(50));
        assert_eq!((patience.is_over(after(109)), patience.is_over(after(110))), (false, true));
        patience.hears(after(100));
        assert_eq!((patience.is_over(after(119)), patience.is_over(after(120))), (false, true));
        let none = Patience::new(begun, Duration::ZERO);
        assert!(none.is_over(begun));
    }
}
