//! One node that this process serves and is part of: `run` and `serve`.

use std::sync::Arc;

use clap::Args;
use cxi_mock::{MockNode, NicConfig};

use super::control::{Control, ControlGuard};
use super::door::{Door, DoorGuard};
use super::error::{Doing, ServeError, say};
use super::namespaces::{NamespaceKind, Variable};
use super::network::Network;
use super::node::{Node, NodeSetup};
use super::server::Common;
use super::setup::{FileArguments, NicArguments, Setup};
use super::state_file::{Saver, StateFile, another_configuration};
use super::view::{View, ViewArguments};
use super::{data_path, setup};

#[derive(Debug, Args)]
pub(crate) struct NodeArguments {
    #[command(flatten)]
    nics: NicArguments,
    #[command(flatten)]
    files: FileArguments,
    #[command(flatten)]
    view: ViewArguments,
}

/// A node that is served by this process.
pub(crate) struct Running {
    node: Arc<Node>,
    variables: Vec<Variable>,
    _control: Option<ControlGuard>,
    _door: Option<DoorGuard>,
}

impl Running {
    /// The node.
    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Waits until everything that was recorded is written.
    pub(crate) fn end(&self) {
        self.node.end();
    }

    /// Variables of programs' environment.
    pub(crate) fn variables(&self) -> Vec<Variable> {
        self.variables.clone()
    }
}

impl NodeArguments {
    /// A node of which nothing is kept or recorded.
    pub(crate) fn plain(nics: NicArguments, as_user: bool) -> Self {
        let view = ViewArguments { as_user, door: None };
        Self { nics, files: FileArguments::default(), view }
    }

    /// Makes the node, and moves this process to where programs see it.
    pub(crate) fn start(&self, control: Option<Control>) -> Result<Running, ServeError> {
        let state = self.files.state()?;
        let model = self.node(state.as_ref())?;
        let records = self.files.records()?;
        let view = self.separate()?;
        let seen = !matches!(view, View::Nothing(_));
        let door = Door::of_node(&view, control.as_ref().map(Control::dir))?;
        let mut variables: Vec<_> = door.iter().map(|door| door.variable(&view)).collect();
        let node_setup = NodeSetup {
            records,
            network: (seen && self.nics.network).then(Network::separate).transpose()?,
            hosts: None,
            credentials: Vec::new(),
            own: if seen {
                &[NamespaceKind::User, NamespaceKind::Net, NamespaceKind::Mnt]
            } else {
                &[]
            },
            variables: variables.clone(),
        };
        let common = Common::new(&self.nics, self.view.authority(&view, &self.nics))?;
        let node = Arc::new(Node::start(model.nics(), &common, node_setup, &view)?);
        data_path::start_clock(model.clock()).doing(|| "start the clock".to_owned())?;
        for fault in &self.nics.fault {
            node.inject(fault).map_err(ServeError::Input)?;
        }
        node.refresh().doing(|| "refresh the copies of sysfs".to_owned())?;
        if let Some(file) = state {
            let saver = Saver::of_node(file, &model);
            saver.watch(0, &model)?;
            // It is better to notice a file that cannot be written before the program runs than
            // afterward.
            saver.save()?;
        }
        variables.extend(control.iter().map(Control::variable));
        let serve = |control: Control| control.serve(Arc::<Node>::clone(&node));
        Ok(Running {
            _door: door.map(|door| door.serve(node.server())).transpose()?,
            _control: control.map(serve).transpose()?,
            variables,
            node,
        })
    }

    /// Moves this process to where programs see the node, and says what they do not see.
    fn separate(&self) -> Result<View, ServeError> {
        let view = self.view.separate()?;
        match view {
            View::Nothing(missing) if self.nics.network => Err(missing),
            View::Nothing(missing) => {
                say(format_args!(
                    "programs that look for NICs in /sys themselves, as libfabric does, find none: \
                     {missing}"
                ));
                Ok(View::Nothing(missing))
            }
            view => Ok(view),
        }
    }

    fn node(&self, state: Option<&StateFile>) -> Result<MockNode, ServeError> {
        let restored = state.map(StateFile::read_node).transpose()?;
        let Some(node) = restored.flatten() else {
            let node = self.fresh_node()?;
            if let Some(path) = &self.nics.preset {
                setup::make_presets(&node, path)?;
            }
            return Ok(node);
        };
        if self.nics.says_what() && node.configs() != self.fresh_node()?.configs() {
            return Err(another_configuration("a node"));
        }
        Ok(node)
    }

    fn fresh_node(&self) -> Result<MockNode, ServeError> {
        let node = match self.nics.setup(NicConfig::new())? {
            Setup::Alike(config) => MockNode::with_nics(self.nics.count(), &config),
            Setup::Each(configs) => MockNode::new(configs),
            Setup::Nodes(_) => {
                return Err(ServeError::Input(
                    "the configuration lists nodes: expected NICs of one node, or cxi-mock cluster"
                        .to_owned(),
                ));
            }
        };
        node.map_err(|error| ServeError::Input(format!("cannot load the driver: {error}")))
    }
}
