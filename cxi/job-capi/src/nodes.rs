//! The nodes that C programs have open, by number. Numbers are not reused, so that a closed node is
//! never mistaken for another one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cxi_ioctl::Errno;
use cxi_job::Node;

use crate::failure::{Failure, Result};
use crate::ffi::Handle;

struct Nodes {
    open: BTreeMap<usize, Arc<Node>>,
    /// The last number that was assigned.
    last: usize,
}

static NODES: Mutex<Nodes> = Mutex::new(Nodes { open: BTreeMap::new(), last: 0 });

fn nodes() -> MutexGuard<'static, Nodes> {
    NODES.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn add(node: Node) -> usize {
    let mut nodes = nodes();
    nodes.last += 1;
    let number = nodes.last;
    nodes.open.insert(number, Arc::new(node));
    number
}

pub(crate) fn get(handle: Handle) -> Result<Arc<Node>> {
    nodes().open.get(&handle.number()).cloned().ok_or_else(not_open)
}

pub(crate) fn close(handle: Handle) -> Result<()> {
    nodes().open.remove(&handle.number()).map(drop).ok_or_else(not_open)
}

fn not_open() -> Failure {
    Failure::new(Errno::EINVAL, "node: expected an open node, got NULL or a closed one")
}
