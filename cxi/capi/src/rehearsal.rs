//! A NIC that repeats one refusal, and otherwise only answers queries.

use cxi_ioctl::abi::lni::LniAllocResp;
use cxi_ioctl::abi::memory::AtuMapResp;
use cxi_ioctl::abi::profile::CpAllocResp;
use cxi_ioctl::abi::service::SvcDesc;
use cxi_ioctl::{CharDev, CommandError, Effect, Errno, Mapping, Opcode, Request, Transport};
use zerocopy::{FromZeros, Immutable, IntoBytes};

/// Id of the service that was refused: it has none.
pub(crate) const PRETENDED: u32 = 0x7FFF_FFFE;

#[derive(Debug)]
pub(crate) struct Rehearsal {
    device: CharDev,
    refused: Opcode,
    errno: Errno,
    response: Vec<u8>,
    service: Option<SvcDesc>,
}

impl Rehearsal {
    /// The refusal, with what the driver wrote all the same; `None` if the NIC cannot be opened
    /// once more.
    pub(crate) fn of(device: u32, error: CommandError, response: &[u8]) -> Option<Self> {
        Some(Self {
            device: CharDev::open(format!("/dev/cxi{device}")).ok()?,
            refused: error.opcode(),
            errno: error.errno(),
            response: response.to_vec(),
            service: None,
        })
    }

    /// Pretends that this service exists.
    pub(crate) fn with_service(mut self, desc: SvcDesc) -> Self {
        self.service = Some(SvcDesc {
            svc_id: PRETENDED,
            ..desc
        });
        self
    }

    /// Whether a command is the one that was refused, in any form.
    fn is_refused(&self, opcode: Opcode) -> bool {
        let makes_the_same = matches!(opcode.effect(), Some(Effect::Makes(_)))
            && opcode.effect() == self.refused.effect();
        opcode == self.refused || makes_the_same
    }
}

/// Of SVC_GET and the other questions about a service: which.
const SERVICE_AT: usize = 16;

impl Transport for Rehearsal {
    fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
        let opcode = request.opcode();
        if self.is_refused(opcode) {
            fill(request.response(), &self.response);
            return Err(self.errno);
        }
        let asked = request.command().get(SERVICE_AT..SERVICE_AT + 4);
        if asked == Some(&PRETENDED.to_ne_bytes()[..]) {
            let desc = self.service.filter(|_| opcode == Opcode::SVC_GET);
            fill(request.response(), desc.ok_or(Errno::EINVAL)?.as_bytes());
            return Ok(());
        }
        match opcode {
            // The parent of the refused object.
            Opcode::LNI_ALLOC => answer_zeros::<LniAllocResp>(request),
            Opcode::CP_ALLOC | Opcode::TRIG_CP_ALLOC => answer_zeros::<CpAllocResp>(request),
            Opcode::ATU_MAP => answer_zeros::<AtuMapResp>(request),
            Opcode::LNI_FREE | Opcode::CP_FREE | Opcode::ATU_UNMAP => {}
            _ if opcode.effect() == Some(Effect::Reads) => return self.device.submit(request),
            _ => return Err(Errno::EINVAL),
        }
        Ok(())
    }

    fn map(&self, _offset: u64, _len: usize) -> Result<Mapping, Errno> {
        Err(Errno::ENODEV)
    }
}

fn answer_zeros<R: FromZeros + IntoBytes + Immutable>(mut request: Request<'_>) {
    fill(request.response(), R::new_zeroed().as_bytes());
}

fn fill(room: &mut [u8], bytes: &[u8]) {
    for (byte, from) in room.iter_mut().zip(bytes) {
        *byte = *from;
    }
}
