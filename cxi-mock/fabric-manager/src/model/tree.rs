//! Multicast trees.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Model, Refusal};

/// The maximum timeout of a reduction engine, in microseconds.
const LONGEST_TIMEOUT: u64 = 20_000_000;

/// The 20-bit address of a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct NicAddress(u32);

impl NicAddress {
    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The form of a root in responses: six octets, the first three zero.
    #[must_use]
    pub fn six_octets(self) -> String {
        let [_, high, middle, low] = self.0.to_be_bytes();
        format!("00:00:00:{high:02X}:{middle:02X}:{low:02X}")
    }
}

/// The form of a NIC in requests, such as `1:44:33`.
impl fmt::Display for NicAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [_, high, middle, low] = self.0.to_be_bytes();
        write!(f, "{high:X}:{middle:02X}:{low:02X}")
    }
}

impl Serialize for NicAddress {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl TryFrom<String> for NicAddress {
    type Error = Refusal;

    fn try_from(text: String) -> Result<Self, Refusal> {
        text.parse()
    }
}

impl FromStr for NicAddress {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let octet = |text: &str, digits: usize| {
            let hexadecimal = text.bytes().all(|digit| digit.is_ascii_hexdigit());
            u32::from_str_radix(text, 16).ok().filter(|_| hexadecimal && text.len() == digits)
        };
        let parts: Vec<&str> = text.split(':').collect();
        let address = match parts[..] {
            [high, middle, low] => {
                (|| Some(octet(high, 1)? << 16 | octet(middle, 2)? << 8 | octet(low, 2)?))()
            }
            _ => None,
        };
        address.map(Self).ok_or_else(|| {
            Refusal::Malformed(format!(
                "invalid NIC {text:?}: expected three octets such as 1:44:33"
            ))
        })
    }
}

/// A request for a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::exhaustive_structs, reason = "what the request has")]
pub struct TreeRequest {
    /// Its job.
    #[serde(rename = "jobID")]
    pub job: String,
    /// The job's step.
    #[serde(rename = "jobStepID")]
    pub step: String,
    /// Its NICs, one for each endpoint.
    #[serde(rename = "macs")]
    pub nics: Vec<NicAddress>,
    /// The VNI of its packets.
    pub vni: u64,
    /// The timeout of reduction engines, in microseconds.
    pub timeout: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Creating(Duration),
    Active,
    Deleting(Duration),
}

/// A multicast tree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tree {
    /// The request.
    pub request: TreeRequest,
    /// The NIC that is its root.
    pub root: NicAddress,
    phase: Phase,
}

impl TreeRequest {
    /// A request like libfabric's, for NICs with these numbers.
    #[must_use]
    pub fn of_libfabric(job: &str, step: &str, nics: &[u32], vni: u16) -> Self {
        Self {
            job: job.to_owned(),
            step: step.to_owned(),
            nics: nics.iter().copied().map(NicAddress).collect(),
            vni: vni.into(),
            timeout: LONGEST_TIMEOUT,
        }
    }

    /// Checks the form, which happens before the caller is checked.
    pub(crate) fn check(&self, model: &Model) -> Result<(), Refusal> {
        let malformed = |message| Err(Refusal::Malformed(message));
        let most = model.settings.most_nics;
        if self.nics.is_empty() || self.nics.len() > most {
            return malformed(format!("{} NICs: expected 1 to {most}", self.nics.len()));
        }
        if model.settings.refuses_repeated_nics {
            let mut sorted = self.nics.clone();
            sorted.sort_unstable();
            let repeated = sorted.iter().zip(sorted.iter().skip(1)).find(|(one, next)| one == next);
            if let Some((nic, _)) = repeated {
                return malformed(format!("NIC {nic} is named twice"));
            }
        }
        let Some(vni) = u16::try_from(self.vni).ok().filter(|vni| *vni > 0) else {
            return malformed(format!("invalid VNI {}: expected 1 to 65535", self.vni));
        };
        if !(1..=LONGEST_TIMEOUT).contains(&self.timeout) {
            return malformed(format!(
                "invalid timeout {}: expected 1 to {LONGEST_TIMEOUT} microseconds",
                self.timeout
            ));
        }
        match model.vnis.get(&self.job) {
            Some(vnis) if !vnis.contains(&vni) => {
                malformed(format!("VNI {vni} does not belong to job {}", self.job))
            }
            _ => Ok(()),
        }
    }
}

impl Model {
    /// The trees that can be used, by multicast ID.
    pub fn active_trees(&self) -> impl Iterator<Item = (u16, &Tree)> {
        let active = self.trees.iter().filter(|(_, tree)| tree.phase == Phase::Active);
        active.map(|(id, tree)| (*id, tree))
    }

    /// Creates a tree, or continues with one that is being created. Returns its ID.
    ///
    /// # Errors
    /// [`Refusal`]: malformed, no such job, quota, no ID, no root, in this order; or the tree is not
    /// ready yet.
    pub fn create_tree(&mut self, request: TreeRequest, now: Duration) -> Result<u16, Refusal> {
        request.check(self)?;
        let limit = self.job(&request.job)?.limit;
        if let Some(answer) = self.go_on_creating(&request, now) {
            return answer;
        }
        if self.trees_of(&request.job).count() as u64 >= u64::from(limit) {
            return Err(Refusal::Quota(limit));
        }
        let id = self.free_address(now).ok_or(Refusal::NoAddress)?;
        let is_root = |nic: &NicAddress| self.trees.values().any(|tree| tree.root == *nic);
        let root = request.nics.iter().copied().find(|nic| !is_root(nic)).ok_or(Refusal::NoRoot)?;
        let creation = Duration::from_millis(self.settings.creation_ms);
        let phase = if creation.is_zero() {
            Phase::Active
        } else {
            Phase::Creating(now.saturating_add(creation))
        };
        let tree = Tree { request, root, phase };
        self.trees.insert(id, tree);
        self.last_address = Some(id);
        if phase == Phase::Active { Ok(id) } else { Err(Refusal::Busy("made")) }
    }

    /// The response for a tree that is being created for an earlier request, which this one repeats.
    fn go_on_creating(
        &mut self,
        request: &TreeRequest,
        now: Duration,
    ) -> Option<Result<u16, Refusal>> {
        self.trees.iter_mut().find_map(|(id, tree)| match tree.phase {
            Phase::Creating(until) if tree.request == *request => {
                if now < until {
                    return Some(Err(Refusal::Busy("made")));
                }
                tree.phase = Phase::Active;
                Some(Ok(*id))
            }
            _ => None,
        })
    }

    /// Deletes a tree. If a job is given, the tree must belong to it.
    ///
    /// # Errors
    /// [`Refusal`]: no such tree, a tree of another job, or the tree is not ready yet.
    pub fn delete_tree(&mut self, id: u16, of: Option<&str>, now: Duration) -> Result<(), Refusal> {
        let deletion = Duration::from_millis(self.settings.deletion_ms);
        let tree = self.trees.get_mut(&id).ok_or(Refusal::NoSuchTree(id))?;
        if of.is_some_and(|job| job != tree.request.job) {
            return Err(Refusal::Forbidden("the multicast tree belongs to another job"));
        }
        match tree.phase {
            Phase::Deleting(until) if now < until => return Err(Refusal::Busy("deleted")),
            Phase::Creating(_) | Phase::Active if !deletion.is_zero() => {
                tree.phase = Phase::Deleting(now.saturating_add(deletion));
                return Err(Refusal::Busy("deleted"));
            }
            _ => {}
        }
        self.free(id, now);
        Ok(())
    }

    pub(super) fn free(&mut self, id: u16, now: Duration) {
        self.trees.remove(&id);
        let rest = Duration::from_millis(self.settings.rest_ms);
        if !rest.is_zero() {
            self.resting.insert(id, now.saturating_add(rest));
        }
    }

    fn free_address(&mut self, now: Duration) -> Option<u16> {
        self.resting.retain(|_, until| now < *until);
        let (first, last) = self.settings.addresses;
        let free = |id: &u16| !self.trees.contains_key(id) && !self.resting.contains_key(id);
        let start = match self.last_address {
            Some(id) if self.settings.round_robin && id < last => id + 1,
            _ => first,
        };
        (start..=last).chain(first..start).find(free)
    }
}
