//! Several nodes on one fabric, each in namespaces of its own: `cxi-mock cluster`.

mod args;
mod lan;
mod member;
mod names;
mod orders;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cxi_mock::{ClusterError, MockCluster};

pub(crate) use args::ClusterArguments;

use super::credentials::Authority;
use super::data_path;
use super::error::{Doing, ServeError};
use super::namespaces::{self, Home, Inside};
use super::nic_args::NicArguments;
use super::setup::Setup;
use super::trap::Doorbells;
use super::{preset, privileges};
use lan::Lan;
use member::Member;

/// The most nodes that are served together.
const MOST_NODES: u16 = 256;

/// Nodes that this process serves. The process itself runs on none of them.
pub(super) struct Cluster {
    model: MockCluster,
    authority: Authority,
    doorbells: Doorbells,
    cleanup: bool,
    preset: Option<PathBuf>,
    lan: Option<Lan>,
    home: Arc<Home>,
    /// By number; none that is down.
    members: Vec<Mutex<Option<Member>>>,
}

impl Cluster {
    /// Makes and boots the nodes.
    pub(super) fn start(nodes: Option<u16>, nics: &NicArguments) -> Result<Arc<Self>, ServeError> {
        let model = model(nodes, nics)?;
        let route = privileges::check()?;
        namespaces::separate(route, Inside::Root)?;
        let cluster = Arc::new(Self {
            authority: nics.authority(),
            doorbells: nics.doorbells,
            cleanup: !nics.manual_cleanup,
            preset: nics.preset.clone(),
            lan: nics.network.then(Lan::new).transpose()?,
            home: Home::here()?,
            members: (0..model.len()).map(|_| Mutex::default()).collect(),
            model,
        });
        data_path::start_clock(cluster.model.clock()).doing(|| "start the clock".to_owned())?;
        for number in 0..cluster.members.len() {
            cluster.bring_up(number)?;
        }
        for fault in &nics.fault {
            cluster.inject(fault).map_err(ServeError::Input)?;
        }
        Ok(cluster)
    }

    /// Serves a node whose NICs exist and are unused.
    fn bring_up(&self, number: usize) -> Result<(), ServeError> {
        if let (Some(preset), Some(node)) = (&self.preset, self.model.node(number)) {
            preset::make(&node, preset)?;
        }
        let member = Member::start(self, number)?;
        *self.member(number) = Some(member);
        Ok(())
    }

    /// Ends all processes of a node; then its NICs are gone.
    fn kill(&self, number: usize) {
        let member = self.member(number).take();
        if let (Some(_), Some(lan)) = (&member, &self.lan) {
            // Otherwise the kernel removes it with the node's network, a little later.
            let _ = lan.detach(number);
        }
        drop(member);
        self.model.kill(number);
    }

    fn reboot(&self, number: usize) -> Result<(), String> {
        self.kill(number);
        self.model.boot(number).map_err(|error| error.to_string())?;
        self.bring_up(number).map_err(|error| error.to_string())
    }

    fn member(&self, number: usize) -> MutexGuard<'_, Option<Member>> {
        let member = &self.members[number];
        member.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn model(nodes: Option<u16>, nics: &NicArguments) -> Result<MockCluster, ServeError> {
    let refused = |error: ClusterError| ServeError::Input(error.to_string());
    match nics.setup()? {
        Setup::Alike(config) => {
            MockCluster::with_nodes(nodes.unwrap_or(2), nics.nics.unwrap_or(1), &config)
                .map_err(refused)
        }
        Setup::Nodes(_) if nodes.is_some() => Err(ServeError::Input(
            "the configuration lists its nodes: leave out --nodes".to_owned(),
        )),
        Setup::Nodes(nodes) if nodes.len() > MOST_NODES.into() => Err(ServeError::Input(format!(
            "the configuration lists {} nodes: expected at most {MOST_NODES}",
            nodes.len()
        ))),
        Setup::Nodes(nodes) => MockCluster::new(nodes).map_err(refused),
        Setup::Each(_) => Err(ServeError::Input(
            "the configuration lists NICs: expected a list with a list of NICs for each node, or \
             an object for NICs that are alike"
                .to_owned(),
        )),
    }
}
