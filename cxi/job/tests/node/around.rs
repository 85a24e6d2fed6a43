//! Something that happens between a look at a NIC and an act on it.

use std::fmt;
use std::sync::{Arc, Mutex};

use cxi::Device;
use cxi_ioctl::{Errno, Mapping, Opcode, Request, Transport};
use cxi_job::Node;
use cxi_mock::{InProcess, MockNode};

use crate::support::{cxi, open};

pub(crate) type Act = Box<dyn FnOnce() + Send>;

/// Does something once, around a command.
pub(crate) struct Around {
    inner: InProcess,
    opcode: Opcode,
    pub(crate) before: Mutex<Option<Act>>,
    pub(crate) after: Mutex<Option<Act>>,
    pub(crate) answer: Option<Errno>,
}

impl fmt::Debug for Around {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Around")
    }
}

impl Transport for Around {
    fn submit(&self, request: Request<'_>) -> Result<(), Errno> {
        if request.opcode() != self.opcode {
            return self.inner.submit(request);
        }
        let act = |act: &Mutex<Option<Act>>| {
            let act = act.lock().unwrap().take();
            let some = act.is_some();
            if let Some(act) = act {
                act();
            }
            some
        };
        if act(&self.before)
            && let Some(errno) = self.answer
        {
            return Err(errno);
        }
        let result = self.inner.submit(request);
        act(&self.after);
        result
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        self.inner.map(offset, len)
    }
}

pub(crate) fn around(mock: &MockNode, opcode: Opcode) -> Around {
    Around {
        inner: open(&mock.nics()[0]),
        opcode,
        before: Mutex::default(),
        after: Mutex::default(),
        answer: None,
    }
}

pub(crate) fn node_of(transport: Around) -> Node {
    Node::from_devices([Device::with_transport(cxi(0), Arc::new(transport))])
}
