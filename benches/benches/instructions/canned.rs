//! A device that costs as little as a device can: nothing but the system call.

use std::sync::{Mutex, OnceLock, PoisonError};

use cxi_ioctl::{CharDev, Errno, Mapping, Opcode, Pointers, Request, Transport};
use cxi_mock::InProcess;

/// More than the number of any command.
const OPCODES: usize = 128;

#[derive(Debug)]
struct Answer {
    response: Vec<u8>,
    list: Vec<u8>,
}

/// Writes commands to `/dev/null`, and answers as the mock did before it was frozen.
#[derive(Debug)]
pub(crate) struct Canned {
    sink: CharDev,
    mock: InProcess,
    heard: Mutex<Vec<Option<Answer>>>,
    frozen: OnceLock<Vec<Option<Answer>>>,
}

impl Canned {
    pub(crate) fn new(mock: InProcess) -> std::io::Result<Self> {
        Ok(Self {
            sink: CharDev::open("/dev/null")?,
            mock,
            heard: Mutex::new((0..OPCODES).map(|_| None).collect()),
            frozen: OnceLock::new(),
        })
    }

    /// From now on every command has the answer that the mock gave to the last of its kind.
    pub(crate) fn freeze(&self) {
        let heard = take(&self.heard);
        self.frozen.get_or_init(|| heard);
    }

    fn ask(&self, mut request: Request<'_>) -> Result<(), Errno> {
        let result = self.mock.submit(request.reborrow());
        let written = response_len(request.opcode());
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = heard.get_mut(request.opcode().number() as usize)
            && result.is_ok()
        {
            *place = Some(Answer {
                response: request.response()[..written].to_vec(),
                list: request.list().to_vec(),
            });
        }
        result
    }
}

impl Transport for Canned {
    fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
        let Some(answers) = self.frozen.get() else {
            return self.ask(request);
        };
        self.sink.submit(request.reborrow())?;
        let place = answers.get(request.opcode().number() as usize);
        let answer = place.and_then(Option::as_ref).ok_or(Errno::EPROTO)?;
        request.response()[..answer.response.len()].copy_from_slice(&answer.response);
        request.list()[..answer.list.len()].copy_from_slice(&answer.list);
        Ok(())
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        self.mock.map(offset, len)
    }
}

/// How much of a response the driver writes.
fn response_len(opcode: Opcode) -> usize {
    let handler = opcode.info().and_then(|info| info.handler);
    handler.map_or(0, |handler| handler.response_len)
}

/// A command as it was sent.
#[derive(Debug)]
pub(crate) struct Sent {
    request: Box<[u8]>,
    opcode: Opcode,
    pointers: Pointers,
    response: Vec<u8>,
    list: Vec<u8>,
}

impl Sent {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.request
    }

    /// Sends it again.
    pub(crate) fn submit(&mut self, transport: &dyn Transport) -> Result<(), Errno> {
        let (response, list) = (&mut self.response, &mut self.list);
        // SAFETY: the buffers are as long as those of the request that this was, and a mock
        // answers.
        let request =
            unsafe { Request::from_raw(self.opcode, &self.request, self.pointers, response, list) };
        transport.submit(request)
    }
}

/// The mock, with a note of what it is sent.
#[derive(Debug)]
pub(crate) struct Noting {
    mock: InProcess,
    sent: Mutex<Vec<Sent>>,
}

impl Noting {
    pub(crate) fn new(mock: InProcess) -> Self {
        Self {
            mock,
            sent: Mutex::default(),
        }
    }

    /// What was sent since this was asked last.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        take(&self.sent)
    }
}

impl Transport for Noting {
    fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
        let sent = Sent {
            request: request.command().into(),
            opcode: request.opcode(),
            pointers: request.pointers(),
            response: request.response().to_vec(),
            list: request.list().to_vec(),
        };
        let mut all = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(sent);
        self.mock.submit(request)
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        self.mock.map(offset, len)
    }
}

fn take<T: Default>(place: &Mutex<T>) -> T {
    std::mem::take(&mut *place.lock().unwrap_or_else(PoisonError::into_inner))
}
