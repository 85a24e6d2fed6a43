//! The node of a job: all its NICs, including those that are not usable.

use std::sync::OnceLock;

use cxi::{DeviceId, Host, Service};
use cxi_job::Node as Nics;
use cxi_job::cluster::{ComputeNode, Site, SiteError, keys};
use cxi_site::NodeName;
use cxi_site::pool::Timestamp;
use serde::Serialize;

use super::cli::NicsOptional;
use crate::exit::Failure;
use crate::node::{Intent, Node, named, no_device, no_stray_option, this_node, warn_of_mock};
use crate::options::Common;
use crate::output::Report;

/// The NICs that a command for jobs works on: all, unless --device is given.
pub(crate) struct JobNode {
    pub(crate) nics: Nics,
    /// Saves a mock node.
    mock: Option<Node>,
}

impl JobNode {
    /// Opens the node for a command that changes services; only one such command runs at a time.
    pub(super) fn locked(common: &Common) -> Result<Self, Failure> {
        let mut node = Self::open(common, Intent::Change)?;
        // A mock node is protected by the lock of its file.
        if node.mock.is_none() {
            node.nics = node.nics.with_lock(keys::node_lock(&common.settings)?);
        }
        Ok(node)
    }

    pub(crate) fn open(common: &Common, intent: Intent) -> Result<Self, Failure> {
        if common.mock.is_none() && named(common).is_none() {
            no_stray_option(common)?;
            // This includes NICs that no job can use, with the reasons.
            let host = Host::system();
            if intent == Intent::Change {
                warn_of_mock(&host, common);
            }
            let nics = Nics::discover(&host)?;
            if nics.nics().is_empty() {
                return Err(no_device());
            }
            return Ok(Self { nics, mock: None });
        }
        let node = Node::open(common, intent)?;
        let nics = Nics::from_devices(node.devices().iter().cloned()).with_proc(node.proc());
        Ok(Self { nics, mock: node.is_mock().then_some(node) })
    }

    /// Saves the changes of a mock node with a state file.
    pub(crate) fn save(&self) -> Result<(), Failure> {
        self.mock.as_ref().map_or(Ok(()), Node::save)
    }

    /// The node while a job runs on it. It is `None` for a mock node in a file, which must be opened again
    /// because other commands may change it in the meantime.
    pub(super) fn keep_open(self) -> Option<Self> {
        let in_file = self.mock.as_ref().is_some_and(Node::has_file);
        (!in_file).then_some(self)
    }
}

/// The services of this node of which no record says who made them.
pub(crate) fn foreign(common: &Common) -> Result<Vec<(DeviceId, Service)>, Failure> {
    Ok(SiteNode::new(common, Intent::Read)?.node(None)?.foreign()?)
}

/// Time of this node's last cleanup.
pub(crate) fn last_cleanup(common: &Common) -> Result<Option<Timestamp>, Failure> {
    Ok(SiteNode::new(common, Intent::Read)?.node(None)?.last_cleanup()?)
}

/// This node of the site that the settings describe. It opens the NICs when the library needs them,
/// and saves the changes of a mock node.
pub(crate) struct SiteNode<'a> {
    site: Site,
    common: &'a Common,
    intent: Intent,
    /// `true` if this node has no NIC, and that is not a failure.
    has_no_nic: bool,
    node: OnceLock<JobNode>,
}

impl<'a> SiteNode<'a> {
    pub(crate) fn new(common: &'a Common, intent: Intent) -> Result<Self, Failure> {
        Ok(Self {
            site: Site::open(common.settings.clone())?,
            common,
            intent,
            has_no_nic: false,
            node: OnceLock::new(),
        })
    }

    /// Sets whether it is no failure that the node has no NIC.
    pub(super) fn nics_optional(mut self, optional: NicsOptional) -> Self {
        self.has_no_nic = optional.applies(self.common);
        self
    }

    /// The report of a command on a node without NICs, if that is not a failure.
    pub(super) fn without_nics(&self) -> Option<Report> {
        #[derive(Serialize)]
        struct Nothing {
            status: &'static str,
            services: [(); 0],
            nics: [(); 0],
        }
        let json = Nothing { status: "nothing_to_do", services: [], nics: [] };
        let nothing = || Report::new("Nothing to do: this node has no NIC\n", &json);
        self.has_no_nic.then(nothing)
    }

    pub(crate) fn node(&self, name: Option<&NodeName>) -> Result<ComputeNode<'_>, Failure> {
        let name = name.cloned().map_or_else(this_node, Ok)?;
        Ok(self.site.node(name)?.nics(|| self.open()))
    }

    /// The NICs, which are opened at the first call.
    pub(super) fn open(&self) -> Result<Nics, SiteError> {
        if let Some(node) = self.node.get() {
            return Ok(node.nics.clone());
        }
        if self.has_no_nic {
            return Ok(Nics::from_devices([]));
        }
        let node = match self.intent {
            Intent::Change => JobNode::locked(self.common),
            Intent::Read => JobNode::open(self.common, Intent::Read),
        };
        let node = node.map_err(|failure| SiteError::Nics(failure.into()))?;
        Ok(self.node.get_or_init(|| node).nics.clone())
    }

    /// Saves the changes of a mock node, even after a failure.
    pub(super) fn save(&self) -> Result<(), Failure> {
        self.node.get().map_or(Ok(()), JobNode::save)
    }
}
