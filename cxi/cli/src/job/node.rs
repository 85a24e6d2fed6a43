//! The node of a job: all its NICs, including those that are not usable.

use std::cell::OnceCell;

use cxi::Host;
use cxi_job::site::{ComputeNode, Site, SiteError};
use cxi_job::{Node as Nics, NodeName, NodeNic};

use super::cli::LockArgs;
use crate::args::NicChoice;
use crate::exit::{Exit, Failure, of_device};
use crate::node::{Intent, Node, no_device, no_stray_option, no_such_nic};
use crate::options::Common;
use crate::vni::this_node;

/// The NICs that a command for jobs works on: all, unless --device is given.
pub(crate) struct JobNode {
    pub(crate) nics: Nics,
    /// Saves a mock node.
    mock: Option<Node>,
}

/// A node while the job is running.
pub(crate) enum Paused {
    /// It is in a file that other commands may change in the meantime.
    InFile,
    Open(Box<JobNode>),
}

impl JobNode {
    /// Opens the node for a command that changes services, of which only one runs at a time.
    pub(super) fn locked(common: &Common, lock: &LockArgs) -> Result<Self, Failure> {
        let mut node = Self::open(common, true)?;
        // A mock node is protected by the lock of its file.
        if node.mock.is_none() {
            node.nics = node.nics.with_lock(lock.file(&common.settings)?);
        }
        Ok(node)
    }

    pub(crate) fn open(common: &Common, change: bool) -> Result<Self, Failure> {
        no_stray_option(common)?;
        if common.mock.is_none() {
            return Ok(Self {
                nics: real(common)?,
                mock: None,
            });
        }
        let intent = if change {
            Intent::ChangeAll
        } else {
            Intent::Read
        };
        let mock = Node::open(common, intent)?;
        Ok(Self {
            nics: Nics::from_devices(mock.devices().iter().cloned()).with_proc(mock.proc()),
            mock: Some(mock),
        })
    }

    /// Saves the changes of a mock node with a state file.
    pub(crate) fn save(&self) -> Result<(), Failure> {
        self.mock.as_ref().map_or(Ok(()), Node::save)
    }

    /// Lets other commands change a mock node with a state file.
    pub(crate) fn pause(self) -> Paused {
        if self.mock.as_ref().is_some_and(Node::has_file) {
            Paused::InFile
        } else {
            Paused::Open(Box::new(self))
        }
    }
}

/// This node of the site that the settings describe. Opens the NICs when the library needs them, and
/// saves what it did to a mock node.
pub(super) struct Here<'a> {
    site: Site,
    common: &'a Common,
    /// `None` to read only.
    lock: Option<&'a LockArgs>,
    node: OnceCell<JobNode>,
}

impl<'a> Here<'a> {
    pub(super) fn new(common: &'a Common, lock: Option<&'a LockArgs>) -> Result<Self, Failure> {
        Ok(Self {
            site: Site::open(common.settings.clone())?,
            common,
            lock,
            node: OnceCell::new(),
        })
    }

    pub(super) fn node(&self, name: Option<&NodeName>) -> Result<ComputeNode<'_>, Failure> {
        let name = name.cloned().map_or_else(this_node, Ok)?;
        Ok(self.site.node(name)?.nics(|| self.open()))
    }

    fn open(&self) -> Result<Nics, SiteError> {
        let node = match self.lock {
            Some(lock) => JobNode::locked(self.common, lock),
            None => JobNode::open(self.common, false),
        };
        let node = node.map_err(|failure| SiteError::Nics(Box::new(failure)))?;
        Ok(self.node.get_or_init(|| node).nics.clone())
    }

    /// Saves the changes of a mock node, even after a failure.
    pub(super) fn save(&self) -> Result<(), Failure> {
        self.node.get().map_or(Ok(()), JobNode::save)
    }
}

impl Paused {
    pub(super) fn resume(self, common: &Common, lock: &LockArgs) -> Result<JobNode, Failure> {
        match self {
            Self::InFile => JobNode::locked(common, lock),
            Self::Open(node) => Ok(*node),
        }
    }
}

fn real(common: &Common) -> Result<Nics, Failure> {
    let all = Nics::discover(&Host::system()).map_err(|error| of_device(&error))?;
    if all.nics().is_empty() {
        return Err(no_device());
    }
    let Some(NicChoice::These(ids)) = &common.device else {
        return Ok(all);
    };
    let there: Vec<_> = all.nics().iter().map(NodeNic::id).collect();
    let mut chosen = Vec::new();
    for id in ids {
        let nic = all.nic(*id).ok_or_else(|| no_such_nic(*id, &there))?;
        let Some(device) = nic.device() else {
            let problems: Vec<_> = nic.problems().iter().map(ToString::to_string).collect();
            let problems = problems.join("; ");
            return Err(Failure::new(Exit::NoDevice, format!("{id}: {problems}")));
        };
        chosen.push(device.clone());
    }
    Ok(Nics::from_devices(chosen))
}
