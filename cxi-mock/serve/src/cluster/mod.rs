//! Several nodes on one fabric, each in its own namespaces: `cxi-mock cluster`.

mod args;
mod graph;
mod lan;
mod manager;
mod member;
mod mpi;
mod names;
mod orders;

use std::path::PathBuf;
use std::sync::Arc;

use cxi_ioctl::abi::device::PLATFORM_Z1;
use cxi_mock::{ClusterError, FabricFaults, Identity, MockCluster, NicConfig};
use parking_lot::{Mutex, MutexGuard};

pub(crate) use args::{ClusterArguments, ClusterOptions};
pub(crate) use mpi::MpiArguments;

use super::error::{Doing, ServeError, show_progress};
use super::server::Common;
use super::setup::{Records, Setup};
use super::state_file::{Saver, StateFile, another_configuration};
use super::view::View;
use super::{data_path, setup};
use lan::Lan;
use manager::Manager;
use member::Member;

/// The most nodes that are served together.
pub(crate) const MOST_NODES: u16 = 256;

/// Nodes that this process serves. The process itself runs on none of them.
pub(crate) struct Cluster {
    model: Arc<MockCluster>,
    common: Common,
    view: View,
    preset: Option<PathBuf>,
    lan: Option<Lan>,
    manager: Option<Arc<Manager>>,
    records: Records,
    saver: Option<Arc<Saver>>,
    /// By number; `None` for a node that is down.
    members: Vec<Mutex<Option<Member>>>,
}

impl Cluster {
    /// Makes and boots the nodes.
    pub(crate) fn start(arguments: &ClusterOptions) -> Result<Arc<Self>, ServeError> {
        let (nics, files) = (&arguments.nics, &arguments.files);
        let state = files.state()?;
        let restored = state.as_ref().map(StateFile::read_cluster).transpose()?.flatten();
        let is_new = restored.is_none();
        let model = Arc::new(arguments.model(restored)?);
        let saver = state.map(|file| Saver::of_cluster(file, &model));
        let records = files.records()?;
        let view = match arguments.view.separate()? {
            // Each node has namespaces of its own.
            View::Nothing(missing) => return Err(missing),
            view => view,
        };
        let lan = nics.network.then(Lan::new).transpose()?;
        let manager = arguments.fabric_manager.as_ref();
        let manager =
            manager.map(|config| Manager::start(config.as_deref(), lan.as_ref(), model.fabric()));
        let cluster = Arc::new(Self {
            common: Common::new(nics, arguments.view.authority(&view, nics))?,
            view,
            preset: nics.preset.clone(),
            lan,
            manager: manager.transpose()?.map(Arc::new),
            records,
            saver,
            members: (0..model.len()).map(|_| Mutex::default()).collect(),
            model,
        });
        data_path::start_clock(cluster.model.clock()).doing(|| "start the clock".to_owned())?;
        let count = cluster.members.len();
        let started = (0..count).try_for_each(|number| {
            show_progress(format_args!("Starting node {} of {count}", number + 1));
            if is_new {
                cluster.make_presets(number)?;
            }
            cluster.bring_up(number)
        });
        show_progress(format_args!(""));
        started?;
        if let Some(loss) = arguments.loss {
            cluster.model.fabric().set_faults(FabricFaults { loss, ..FabricFaults::default() });
        }
        for fault in &nics.fault {
            cluster.inject(fault).map_err(ServeError::Input)?;
        }
        // It is better to notice a file that cannot be written before the program runs than
        // afterward.
        if let Some(saver) = &cluster.saver {
            saver.save()?;
        }
        Ok(cluster)
    }

    /// Makes the services that NICs have from the start.
    fn make_presets(&self, number: usize) -> Result<(), ServeError> {
        match (&self.preset, self.model.node(number)) {
            (Some(preset), Some(node)) => setup::make_presets(&node, preset),
            _ => Ok(()),
        }
    }

    /// Serves a node whose NICs exist.
    fn bring_up(&self, number: usize) -> Result<(), ServeError> {
        let member = Member::start(self, number)?;
        *self.member(number) = Some(member);
        match (&self.saver, self.model.node(number)) {
            (Some(saver), Some(node)) => saver.watch(number, &node),
            _ => Ok(()),
        }
    }

    /// Ends all processes of a node; then its NICs are gone.
    fn kill(&self, number: usize) -> Result<(), ServeError> {
        let member = self.member(number).take();
        if let (Some(_), Some(lan)) = (&member, &self.lan) {
            // Otherwise the kernel removes it a little later, together with the node's network.
            let _ = lan.detach(number);
        }
        drop(member);
        self.model.kill(number);
        let saver = self.saver.as_ref();
        saver.map_or(Ok(()), |saver| {
            let gone = self.model.snapshot().swap_remove(number);
            saver.change(number, |known| *known = gone)
        })
    }

    fn reboot(&self, number: usize) -> Result<(), ServeError> {
        self.kill(number)?;
        self.model.boot(number).map_err(|error| ServeError::Input(error.to_string()))?;
        self.make_presets(number)?;
        self.bring_up(number)
    }

    /// Waits until everything that was recorded is written.
    pub(super) fn end(&self) {
        for number in 0..self.members.len() {
            if let Some(member) = self.member(number).as_ref() {
                member.node.end();
            }
        }
    }

    fn member(&self, number: usize) -> MutexGuard<'_, Option<Member>> {
        let member = &self.members[number];
        member.lock()
    }
}

impl ClusterOptions {
    /// The nodes: those that a file holds, or new ones.
    fn model(&self, restored: Option<MockCluster>) -> Result<MockCluster, ServeError> {
        let Some(restored) = restored else { return self.fresh() };
        if self.says_what() && configs(&restored) != configs(&self.fresh()?) {
            return Err(another_configuration("a cluster"));
        }
        Ok(restored)
    }

    /// The default NIC configuration.
    fn base(&self) -> NicConfig {
        let mut base = NicConfig::new();
        if self.fabric_manager.is_some() {
            // On platform NETSIM, libfabric assumes that there are no switches.
            base.identity.device_platform = PLATFORM_Z1;
        }
        base
    }

    fn fresh(&self) -> Result<MockCluster, ServeError> {
        let (nodes, nics) = (self.nodes, &self.nics);
        let refused = |error: ClusterError| ServeError::Input(error.to_string());
        match nics.setup(self.base())? {
            Setup::Alike(config) => {
                MockCluster::with_nics(nodes.unwrap_or(2), nics.count(), &config).map_err(refused)
            }
            Setup::Nodes(_) if nodes.is_some() => Err(ServeError::Input(
                "the configuration lists its nodes: leave out --nodes".to_owned(),
            )),
            Setup::Nodes(nodes) if nodes.len() > MOST_NODES.into() => {
                Err(ServeError::Input(format!(
                    "the configuration lists {} nodes: expected at most {MOST_NODES}",
                    nodes.len()
                )))
            }
            Setup::Nodes(nodes) => MockCluster::new(nodes).map_err(refused),
            Setup::Each(of_node) if nics.system.is_some() => {
                let count = u32::try_from(of_node.len()).unwrap_or_default();
                let nodes = (0..u32::from(nodes.unwrap_or(2))).map(|node| {
                    let of_node = of_node.iter().cloned();
                    let apart = |nic: &mut Identity| nic.nid += node * count;
                    of_node.map(|nic| nic.identity(apart)).collect()
                });
                MockCluster::new(nodes).map_err(refused)
            }
            Setup::Each(_) => Err(ServeError::Input(
                "the configuration lists NICs: expected a list with a list of NICs for each node, \
                 or an object for NICs that are alike"
                    .to_owned(),
            )),
        }
    }
}

fn configs(cluster: &MockCluster) -> Vec<Vec<NicConfig>> {
    let nodes = (0..cluster.len()).filter_map(|number| cluster.node(number));
    nodes.map(|node| node.configs()).collect()
}
