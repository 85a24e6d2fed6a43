//! The node of a job: all its NICs, those too that cannot be used.

use cxi::Host;
use cxi_job::{Node as Nics, NodeNic};

use super::cli::LockArgs;
use crate::args::NicChoice;
use crate::exit::{Exit, Failure, of_device};
use crate::node::{Intent, Node, no_device, no_stray_option, no_such_nic};
use crate::options::Common;

/// The NICs that a command for jobs works on: all, unless told otherwise.
pub(crate) struct JobNode {
    pub(crate) nics: Nics,
    /// What keeps a mock node.
    mock: Option<Node>,
}

/// A node while the job runs.
pub(crate) enum Paused {
    /// It lives in a file that others may change meanwhile.
    InFile,
    Open(Box<JobNode>),
}

impl JobNode {
    /// For a command that changes services: one at a time on this node.
    pub(super) fn locked(common: &Common, lock: &LockArgs) -> Result<Self, Failure> {
        let mut node = Self::open(common, true)?;
        // The lock of a mock node is that of its file.
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

    /// Keeps what was done to a mock node with a state file.
    pub(crate) fn save(&self) -> Result<(), Failure> {
        self.mock.as_ref().map_or(Ok(()), Node::save)
    }

    /// Lets others change a mock node with a state file.
    pub(crate) fn pause(self) -> Paused {
        if self.mock.as_ref().is_some_and(Node::has_file) {
            Paused::InFile
        } else {
            Paused::Open(Box::new(self))
        }
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
