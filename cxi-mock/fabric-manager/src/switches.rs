//! Programs the switches with multicast trees.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::model::{Model, Tree};

/// A change to the multicast trees of the switches.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TreeChange {
    /// A tree is added.
    #[non_exhaustive]
    Made {
        /// Its multicast ID.
        id: u16,
        /// Addresses of its NICs, one for each endpoint.
        nics: Vec<u32>,
        /// Address of the NIC that is its root.
        root: u32,
        /// The timeout of reduction engines.
        timeout: Duration,
    },
    /// A tree is removed.
    #[non_exhaustive]
    Deleted {
        /// Its multicast ID.
        id: u16,
    },
}

/// Switches, and the trees that they have.
pub(crate) struct Switches {
    program: Box<dyn FnMut(TreeChange) + Send>,
    trees: BTreeMap<u16, Tree>,
}

impl Switches {
    pub(crate) fn new(program: impl FnMut(TreeChange) + Send + 'static) -> Self {
        Self { program: Box::new(program), trees: BTreeMap::new() }
    }

    /// Programs the switches with the changes since the last call.
    pub(crate) fn update(&mut self, model: &Model) {
        let active = model.active_trees();
        let trees: BTreeMap<_, _> = active.map(|(id, tree)| (id, tree.clone())).collect();
        for (id, before) in &self.trees {
            if trees.get(id) != Some(before) {
                (self.program)(TreeChange::Deleted { id: *id });
            }
        }
        for (id, now) in &trees {
            if self.trees.get(id) != Some(now) {
                (self.program)(TreeChange::Made {
                    id: *id,
                    nics: now.request.nics.iter().map(|nic| nic.get()).collect(),
                    root: now.root.get(),
                    timeout: Duration::from_micros(now.request.timeout),
                });
            }
        }
        self.trees = trees;
    }
}

impl fmt::Debug for Switches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Switches").field("trees", &self.trees).finish_non_exhaustive()
    }
}
