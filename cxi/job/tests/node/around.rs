//! Something that happens around a command, or instead of it.

use std::fmt;
use std::sync::{Arc, Mutex};

use cxi::Device;
use cxi_ioctl::{Errno, Mapping, Opcode, Request, Transport};
use cxi_job::Node;
use cxi_mock::{InProcess, MockNode};

use crate::support::{cxi, open};

/// A file whose commands pass through a function.
struct Through<F> {
    file: InProcess,
    submit: F,
}

impl<F> fmt::Debug for Through<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

impl<F> Transport for Through<F>
where
    F: Fn(&InProcess, Request<'_>) -> Result<(), Errno> + Send + Sync,
{
    fn submit(&self, request: Request<'_>) -> Result<(), Errno> {
        (self.submit)(&self.file, request)
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        self.file.map(offset, len)
    }
}

/// A node with the NICs of a mock, all commands of which pass through a function.
pub(crate) fn through<F>(mock: &MockNode, submit: F) -> Node
where
    F: Fn(&InProcess, Request<'_>) -> Result<(), Errno> + Clone + Send + Sync + 'static,
{
    let nics = mock.nics().iter().zip(0..);
    Node::from_devices(nics.map(|(nic, number)| {
        let (file, submit) = (open(nic), submit.clone());
        Device::with_transport(cxi(number), Arc::new(Through { file, submit }))
    }))
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
