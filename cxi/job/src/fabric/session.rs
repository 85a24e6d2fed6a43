//! The job's side: programs with a reservation's session token.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::call::{Authority, Call, Patience, object, text};
use super::manager::{JOBS, MULTICASTS, end_step};
use super::transport::{HttpTransport, Method};
use super::{FabricError, Problem, escaped};
use crate::StepId;
use crate::collectives::Reservation;

/// Multicast ids have 13 bits.
const MOST_IDS: u64 = 1 << 13;
/// NIC addresses have 20 bits.
const MOST_NICS: u32 = 1 << 20;

/// A fabric manager, for a sub-instance or a job that inherited a reservation.
#[derive(Debug)]
pub struct Session {
    reservation: Reservation,
    transport: Arc<dyn HttpTransport>,
    patience: Patience,
}

/// A tree to make.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "what the request has")]
pub struct TreeRequest<'a> {
    /// The step that it is for.
    pub step: &'a StepId,
    /// Addresses of the NICs, 20 bits each.
    pub nics: &'a [u32],
    /// The VNI of its packets.
    pub vni: cxi::Vni,
    /// When reduction engines give up: 1 µs to 20 s.
    pub timeout: Duration,
}

/// A multicast tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tree {
    /// Its multicast id.
    pub id: u16,
    /// The address of the NIC that is its root.
    pub root: u32,
}

/// A session token does not change.
struct Bearer<'a>(&'a str);

impl Authority for Bearer<'_> {
    fn authorization(&self, _timeout: Duration) -> Result<String, Problem> {
        Ok(format!("Bearer {}", self.0))
    }

    fn forget(&self) -> bool {
        false
    }
}

impl Session {
    /// A session for a reservation.
    #[must_use]
    pub fn new(reservation: Reservation, transport: Arc<dyn HttpTransport>) -> Self {
        let patience = Patience::default();
        Self {
            reservation,
            transport,
            patience,
        }
    }

    /// How long to try.
    #[must_use]
    pub const fn patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    /// Ends a step of the job: the trees that its processes left are deleted.
    ///
    /// # Errors
    /// [`FabricError`]; a fabric manager may allow this only for the workload manager.
    pub fn end_step(&self, step: &StepId) -> Result<bool, FabricError> {
        let action = format!("end step {step} of {}", self.reservation.id());
        let multicasts = self.reservation.url().trim_end_matches('/');
        let Some(base) = multicasts.strip_suffix(MULTICASTS) else {
            let message =
                format!("fabric manager address {multicasts:?}: expected {MULTICASTS} at its end");
            return Err(FabricError::new(&action, Problem::Name(message)));
        };
        let url = format!("{base}{JOBS}/{}", escaped(self.reservation.id().as_str()));
        let answer = self.call(&end_step(&action, &url, step))?;
        Ok(answer.status != 404)
    }

    /// Makes a tree, as libfabric would, and checks the answer as libfabric does not: a tree that
    /// it cannot use is an error here, and is deleted again. Use it to test whether hardware
    /// collectives work at all.
    ///
    /// # Errors
    /// [`FabricError`].
    pub fn create_tree(&self, request: &TreeRequest<'_>) -> Result<Tree, FabricError> {
        let action = format!("make a multicast tree for {}", self.reservation.id());
        let of = |problem| FabricError::new(&action, problem);
        if let Some(nic) = request.nics.iter().find(|nic| **nic >= MOST_NICS) {
            return Err(of(Problem::Name(format!(
                "invalid NIC address {nic:#x}: expected 20 bits"
            ))));
        }
        let nics = request.nics.iter().map(|nic| {
            let [_, high, middle, low] = nic.to_be_bytes();
            format!("{high:X}:{middle:02X}:{low:02X}")
        });
        let body = json!({
            "macs": nics.collect::<Vec<_>>(),
            "vni": request.vni.get(),
            "timeout": u64::try_from(request.timeout.as_micros()).unwrap_or(u64::MAX),
            "jobID": self.reservation.id().as_str(),
            "jobStepID": request.step.as_str(),
        });
        let answer = self.call(&Call {
            action: &action,
            method: Method::Post,
            url: self.reservation.url(),
            body: Some(body),
            also: &[],
        })?;
        let document = object(&answer).map_err(of)?;
        let id = tree_id(&document).map_err(of)?;
        match root(&document, request.nics) {
            Ok(root) => Ok(Tree { id, root }),
            Err(problem) => {
                // The tree exists, and cannot be used.
                let _ = self.delete_tree(id);
                Err(of(problem))
            }
        }
    }

    /// Deletes a tree. Returns whether it existed.
    ///
    /// # Errors
    /// [`FabricError`].
    pub fn delete_tree(&self, id: u16) -> Result<bool, FabricError> {
        let url = format!("{}/{id}", self.reservation.url().trim_end_matches('/'));
        let action = format!("delete multicast tree {id}");
        let answer = self.call(&Call::delete(&action, &url))?;
        Ok(answer.status != 404)
    }

    fn call(&self, call: &Call<'_>) -> Result<super::HttpAnswer, FabricError> {
        call.make(
            &*self.transport,
            &Bearer(self.reservation.token()),
            &self.patience,
        )
    }
}

fn tree_id(document: &Value) -> Result<u16, Problem> {
    let id = document.get("mcastID").unwrap_or(&Value::Null);
    let number = id.as_u64().filter(|id| *id < MOST_IDS);
    let number = number.and_then(|id| id.try_into().ok());
    number.ok_or_else(|| {
        Problem::Answer(format!(
            "has mcastID {id}: expected a number from 0 to 8191"
        ))
    })
}

/// The root as libfabric would read it: six octets, the first two zero. It reads other forms as
/// other NICs.
fn root(document: &Value, nics: &[u32]) -> Result<u32, Problem> {
    let said = text(document, "hwRoot")?;
    let octet = |part: &str| {
        let octet = u8::from_str_radix(part, 16).ok();
        octet.filter(|_| (1..=2).contains(&part.len()) && !part.starts_with('+'))
    };
    let octets: Option<Vec<u8>> = said.split(':').map(octet).collect();
    match octets.as_deref() {
        Some([0, 0, a, b, c, d]) => {
            let root = u32::from_be_bytes([*a, *b, *c, *d]);
            if nics.contains(&root) {
                return Ok(root);
            }
            Err(Problem::Answer(format!(
                "has hwRoot {said:?}, which is not one of the NICs"
            )))
        }
        _ => Err(Problem::Answer(format!(
            "has hwRoot {said:?}: expected six octets, the first two 00"
        ))),
    }
}
