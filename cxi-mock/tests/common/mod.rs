//! Helpers that the tests share: NICs, services, commands.
#![allow(dead_code, reason = "not every test needs everything")]

use std::sync::Arc;

use cxi_ioctl::abi::domain::{DomainAllocCmd, DomainAllocResp};
use cxi_ioctl::abi::lni::{LniAllocCmd, LniAllocCmdV1};
use cxi_ioctl::abi::memory::AtuMapCmd;
use cxi_ioctl::abi::profile::{CpAllocCmd, CpAllocResp};
use cxi_ioctl::abi::service::{MEMBER_UID, SvcAllocCmd, SvcDesc, SvcFlags, SvcMember};
use cxi_ioctl::{Command, DriverRelease, Errno};
use cxi_mock::{CallerMemory, InProcess, Nic, NicConfig};
use zerocopy::FromBytes;

pub(crate) fn nic(release: DriverRelease) -> Arc<Nic> {
    Nic::new(NicConfig::new().release(release)).unwrap()
}

pub(crate) fn root(nic: &Arc<Nic>) -> InProcess {
    nic.root().unwrap()
}

/// Sends any command, even one with addresses: the mock does not follow them.
pub(crate) fn send<C: Command>(transport: &InProcess, command: &C) -> Result<C::Response, Errno> {
    let mut response = vec![0; size_of::<C::Response>()];
    write(transport, command.as_bytes(), &mut response)?;
    Ok(C::Response::read_from_bytes(&response).ok().unwrap())
}

/// Sends bytes, with a response buffer that is as long as it is.
pub(crate) fn write(
    transport: &InProcess,
    command: &[u8],
    response: &mut [u8],
) -> Result<(), Errno> {
    let mut memory = Memory(response);
    let written = transport.client().write(transport.caller(), command, &mut memory)?;
    assert_eq!(written, command.len());
    Ok(())
}

/// A response buffer, and none for a list.
struct Memory<'a>(&'a mut [u8]);

impl CallerMemory for Memory<'_> {
    fn respond(&mut self, response: &[u8]) -> Result<(), Errno> {
        let room = self.0.get_mut(..response.len()).ok_or(Errno::EFAULT)?;
        room.copy_from_slice(response);
        Ok(())
    }

    fn read_response(&mut self, bytes: &mut [u8]) -> Result<(), Errno> {
        bytes.copy_from_slice(&self.0[..bytes.len()]);
        Ok(())
    }

    fn write_list(&mut self, list: &[u8]) -> Result<(), Errno> {
        if list.is_empty() { Ok(()) } else { Err(Errno::EFAULT) }
    }
}

/// A service that lists VNIs, open to everyone.
pub(crate) fn desc(vnis: &[u16]) -> SvcDesc {
    let mut desc = SvcAllocCmd::new().svc_desc;
    desc.flags = SvcFlags::RESTRICTED_VNIS.bits() | SvcFlags::RESOURCE_LIMITS.bits();
    desc.num_vld_vnis = u8::try_from(vnis.len()).unwrap();
    desc.vnis[..vnis.len()].copy_from_slice(vnis);
    for limit in &mut desc.limits.types {
        limit.max = 100;
    }
    desc.limits.types[cxi_ioctl::abi::service::RSRC_TLE].max = 0;
    desc
}

/// Restricts a service to one user.
pub(crate) fn only(mut desc: SvcDesc, uid: u32) -> SvcDesc {
    desc.flags |= SvcFlags::RESTRICTED_MEMBERS.bits();
    let member = SvcMember { id: uid, kind: MEMBER_UID };
    // Twice would be refused; an IGNORE slot opens a service on one release.
    desc.members = [member, SvcMember { id: uid + 100_000, ..member }];
    desc
}

pub(crate) fn alloc(transport: &InProcess, desc: SvcDesc) -> Result<u32, Errno> {
    send(transport, &SvcAllocCmd::of(desc)).map(|response| response.svc_id)
}

pub(crate) fn lni(transport: &InProcess, svc: u32) -> Result<u32, Errno> {
    if transport.client().nic().config().release >= DriverRelease::Main2026_07 {
        send(transport, &LniAllocCmd::of(svc)).map(|response| response.lni)
    } else {
        send(transport, &LniAllocCmdV1::of(svc)).map(|response| response.lni)
    }
}

pub(crate) fn cp(transport: &InProcess, lni: u32, vni: u32) -> Result<CpAllocResp, Errno> {
    let mut command = CpAllocCmd::new();
    command.lni = lni;
    command.vni = vni;
    command.tc = cxi_ioctl::abi::profile::TC_BEST_EFFORT;
    send(transport, &command)
}

pub(crate) fn domain(
    transport: &InProcess,
    lni: u32,
    vni: u32,
    pid: u32,
) -> Result<DomainAllocResp, Errno> {
    send(transport, &DomainAllocCmd::of(lni, vni, pid))
}

/// A memory descriptor of 16 pages at 1 MiB.
pub(crate) fn md(transport: &InProcess, lni: u32) -> u32 {
    let mut command = AtuMapCmd::new();
    command.lni = lni;
    command.va = 1 << 20;
    command.len = 16 * 4096;
    command.flags = 13;
    send(transport, &command).unwrap().id
}
