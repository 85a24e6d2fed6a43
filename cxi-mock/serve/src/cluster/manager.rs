//! The fabric manager of a cluster, and the jobs that use it.

use std::fmt;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cxi_fabric_manager::{Access, Config, MockFabricManager, TreeChange};
use cxi_mock::{Fabric, MulticastTree};
use cxi_site::collectives::{Certificate, CollectivesEnv, Reservation};
use cxi_site::{JobId, StepId};
use serde_json::{Value, json};

use super::lan::Lan;
use crate::control::Job;
use crate::error::ServeError;
use crate::fabric_manager::{read, serve, urls};
use crate::mount::CREDENTIALS;
use crate::namespaces::{Variable, variables};
use crate::trace::merge;

/// The prefix of this cluster's reservations.
const CLUSTER: &str = "mock";
/// Multicast trees of a job that `cluster run` starts.
const TREES: u32 = 16;
/// The only step of such a job.
const STEP: &str = "0";

/// A fabric manager that all nodes reach.
#[derive(Debug)]
pub(super) struct Manager {
    server: MockFabricManager,
    access: Access,
    jobs: AtomicU32,
}

impl Manager {
    /// Starts it on the network of the nodes if they have one, or else on the loopback interface.
    /// It makes its trees in the fabric of the cluster.
    pub(super) fn start(
        config: Option<&Path>,
        lan: Option<&Lan>,
        fabric: &Fabric,
    ) -> Result<Self, ServeError> {
        let config: Config = config.map(read).transpose()?.unwrap_or_default();
        let access = config.access.clone();
        let serve = |at: Ipv4Addr| serve(config, (at, 0).into(), (at, 0).into());
        let server = match lan {
            Some(lan) => lan.inside(serve)?,
            None => serve(Ipv4Addr::LOCALHOST)?,
        };
        let fabric = fabric.clone();
        server.program(move |change| match change {
            TreeChange::Made { id, nics, root, timeout, .. } => {
                // The fabric ticks every millisecond.
                let ticks = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX).max(1);
                fabric.set_tree(id, &MulticastTree::new(root, nics).timeout(ticks));
            }
            TreeChange::Deleted { id, .. } => fabric.remove_tree(id),
            _ => {}
        });
        Ok(Self { server, access, jobs: AtomicU32::new(1) })
    }

    /// Reserves multicast trees for a job. The error is for a person to read.
    pub(super) fn start_job(self: &Arc<Self>) -> Result<Box<dyn Job>, String> {
        Ok(Box::new(ReservedJob::start(self)?))
    }

    /// Returns the variables of programs on nodes, for `cxi collectives`.
    pub(super) fn variables(&self) -> Vec<Variable> {
        variables([
            ("CXI_FABRIC_MANAGER", self.server.url()),
            ("CXI_FABRIC_CREDENTIALS", CREDENTIALS.to_owned()),
            // It has no TLS, and with --network an address of the cluster's own network.
            ("CXI_FABRIC_MANAGER_ALLOW_CLEAR_SECRETS", "true".to_owned()),
            ("CXI_CLUSTER", CLUSTER.to_owned()),
        ])
    }

    /// The files with the credentials of workload managers.
    pub(super) fn credentials(&self) -> Vec<(&'static str, String)> {
        vec![
            ("endpoint", self.server.token_url()),
            ("client-id", self.access.client_id.clone()),
            ("client-secret", self.access.client_secret.clone()),
            ("passwd", self.access.password.clone()),
        ]
    }

    pub(super) fn state(&self) -> Value {
        let mut state = urls(&self.server);
        merge(&mut state, json!({"state": self.server.state()}));
        state
    }
}

/// A job with a reservation at the fabric manager, which ends when this is dropped.
struct ReservedJob {
    manager: Arc<Manager>,
    name: String,
    variables: Vec<Variable>,
}

impl ReservedJob {
    /// Reserves multicast trees. The error is for a person to read.
    fn start(manager: &Arc<Manager>) -> Result<Self, String> {
        let number = manager.jobs.fetch_add(1, Ordering::Relaxed);
        let name = format!("{CLUSTER}-{number}");
        let token = manager.server.reserve(&name, TREES).map_err(|refusal| refusal.to_string())?;
        let mut job = Self { manager: Arc::clone(manager), name, variables: Vec::new() };
        job.variables = job.environment(&token)?;
        Ok(job)
    }

    fn environment(&self, token: &str) -> Result<Vec<Variable>, String> {
        let name: JobId = self.name.parse().map_err(said)?;
        let step: StepId = STEP.parse().map_err(said)?;
        let url = self.manager.server.multicasts_url();
        let reservation = Reservation::new(name, token, &url, Certificate::System).map_err(said)?;
        let env = CollectivesEnv::new(reservation, step).min_nodes(1).addresses_per_job(TREES);
        Ok(variables(env.vars()))
    }
}

impl Job for ReservedJob {
    fn variables(&self) -> &[Variable] {
        &self.variables
    }
}

impl Drop for ReservedJob {
    fn drop(&mut self) {
        // A client of the fabric manager may have released it already.
        let _ = self.manager.server.release(&self.name);
    }
}

fn said(error: impl fmt::Display) -> String {
    error.to_string()
}
