//! Something that happens around a command, or instead of it.

use std::sync::{Arc, Mutex};

use cxi_ioctl::{Errno, Intercept, Opcode, Request, Transport as _};
use cxi_job::Node;
use cxi_mock::{InProcess, MockNode};

use crate::support::ROOT;

/// A node with the NICs of a mock, all commands of which pass through a function.
pub(crate) fn through<F>(mock: &MockNode, submit: F) -> Node
where
    F: Fn(&InProcess, Request<'_>) -> Result<(), Errno> + Clone + Send + Sync + 'static,
{
    let files = mock.devices(&ROOT).unwrap().into_iter();
    let nics = files.map(|(number, file)| (number, Intercept::new(file, submit.clone())));
    Node::from_transports(nics)
}

/// Does something once before a command, which then fails if there is an errno for it.
pub(crate) fn before(
    mock: &MockNode,
    opcode: Opcode,
    act: impl FnOnce() + Send + 'static,
    answer: Option<Errno>,
) -> Node {
    let act = Arc::new(Mutex::new(Some(act)));
    through(mock, move |file, request| {
        let mine = request.opcode() == opcode;
        let Some(act) = mine.then(|| act.lock().unwrap().take()).flatten() else {
            return file.submit(request);
        };
        act();
        answer.map_or_else(|| file.submit(request), Err)
    })
}

/// Does something once after a command.
pub(crate) fn after(mock: &MockNode, opcode: Opcode, act: impl FnOnce() + Send + 'static) -> Node {
    let act = Arc::new(Mutex::new(Some(act)));
    through(mock, move |file, request| {
        let mine = request.opcode() == opcode;
        let result = file.submit(request);
        if let Some(act) = mine.then(|| act.lock().unwrap().take()).flatten() {
            act();
        }
        result
    })
}
