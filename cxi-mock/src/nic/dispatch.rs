//! From the bytes of a write to a command's handler and back, in the driver's order of checks.

use cxi_ioctl::abi::device::DevInfoGetCmd;
use cxi_ioctl::abi::domain::{
    DomainAllocCmd, DomainAllocResp, DomainFreeCmd, DomainReserveCmd, DomainReserveResp,
};
use cxi_ioctl::abi::lni::{LniAllocCmd, LniAllocCmdV1, LniAllocResp, LniFreeCmd};
use cxi_ioctl::abi::profile::{CpAllocCmd, CpAllocResp, CpFreeCmd, CpModifyCmd, TrigCpAllocCmd};
use cxi_ioctl::abi::service::{
    SvcAllocCmd, SvcAllocResp, SvcDestroyCmd, SvcEnableCmd, SvcFailInfo, SvcGetCmd,
    SvcGetExclusiveCpCmd, SvcGetExclusiveCpResp, SvcGetLprCmd, SvcGetNetnsCmd, SvcGetValueResp,
    SvcGetVniRangeCmd, SvcGetVniRangeResp, SvcListGetCmd, SvcListGetResp, SvcRsrcGetCmd,
    SvcRsrcListGetCmd, SvcRsrcListGetResp, SvcSetExclusiveCpCmd, SvcSetLprCmd, SvcSetNetnsCmd,
    SvcSetVniRangeCmd, SvcUpdateCmd, SvcUpdateResp,
};
use cxi_ioctl::{Errno, Opcode, Privilege, RequestLen};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

use super::answer::{Answer, NOT_HANDED_OVER, handed_over};
use super::cp::{CpKind, CpRequest};
use super::{Caller, Device, Nic};
use crate::rules::Rules;
use crate::{CallerMemory, Credentials};

/// A call on its way through its handler.
pub(super) struct Call<'a> {
    pub(super) nic: &'a Nic,
    pub(super) caller: Caller<'a>,
    pub(super) command: &'a [u8],
    pub(super) memory: &'a mut Answer,
}

impl Call<'_> {
    /// The command as a struct; its length was checked.
    pub(super) fn command<T: FromBytes>(&self) -> Result<T, Errno> {
        T::read_from_bytes(self.command).map_err(|_| Errno::EINVAL)
    }

    /// A word of a command that has no layout.
    pub(super) fn word(&self, at: usize) -> Result<u32, Errno> {
        let bytes = self.command.get(at..).and_then(<[u8]>::first_chunk);
        Ok(u32::from_ne_bytes(*bytes.ok_or(Errno::EINVAL)?))
    }

    /// Keeps the response until the handler is done.
    #[expect(clippy::unnecessary_wraps, reason = "the last step of most handlers")]
    pub(super) fn respond<T: IntoBytes + Immutable>(&mut self, response: &T) -> Result<(), Errno> {
        self.memory.respond(response.as_bytes());
        Ok(())
    }
}

pub(super) fn write(
    nic: &Nic,
    file: u32,
    caller: &Credentials,
    command: &[u8],
    memory: &mut dyn CallerMemory,
) -> Result<usize, Errno> {
    let mut answer = Answer::new(command, memory);
    let process = handed_over(command, memory);
    let mut device = nic.device();
    let (opcode, privilege) = admit(&device.rules, command)?;
    let function = device
        .files
        .get(file)
        .and_then(|file| file.virtual_function);
    let kernel;
    let mut credentials = caller;
    if privilege == Privilege::Admin && (!caller.sys_admin || function.is_some()) {
        return Err(Errno::EPERM);
    }
    if nic.faults.is_removed() {
        return Err(Errno::EIO);
    }
    let strike = nic.faults.strike(opcode, command);
    if let Some(strike) = strike.filter(|strike| !strike.carried_out) {
        if let Some(response) = strike.response {
            memory.respond(response.as_bytes())?;
        }
        return Err(strike.errno);
    }
    if function.is_some() {
        if !device.rules.vf_relay && !is_local(opcode) {
            return Err(Errno::EOPNOTSUPP);
        }
        // The physical function's kernel thread makes the call.
        kernel = Credentials::root();
        credentials = &kernel;
    }
    let mut call = Call {
        nic,
        caller: Caller {
            file,
            credentials,
            memory: process.as_ref().unwrap_or(&NOT_HANDED_OVER),
            traps_stores: memory.traps_stores(),
        },
        command,
        memory: &mut answer,
    };
    let result = device.handle(opcode, &mut call);
    drop(device);
    if let Err(errno) = answer.deliver(memory) {
        nic.device().undo(opcode, file, &answer, errno)?;
    }
    match strike {
        Some(strike) => Err(strike.errno),
        None => result.map(|()| command.len()),
    }
}

/// Commands that a virtual function answers itself.
fn is_local(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::DEV_INFO_GET | Opcode::GET_DEV_PROPERTIES)
}

/// A command that may be handled, by its length, and who may send it.
fn admit(rules: &Rules, command: &[u8]) -> Result<(Opcode, Privilege), Errno> {
    if rules
        .longest_command
        .is_some_and(|most| command.len() > most)
    {
        return Err(Errno::EINVAL);
    }
    let (number, _) = u32::read_from_prefix(command).map_err(|_| Errno::EINVAL)?;
    let opcode = Opcode::from_number(number);
    let known = opcode.info().filter(|info| info.since <= rules.release);
    let info = known.ok_or(Errno::EINVAL)?;
    let handler = info.handler.ok_or(Errno::EOPNOTSUPP)?;
    let fits = match opcode.request_len(rules.release) {
        Some(RequestLen::Exact(len)) => command.len() == len,
        // Only the relay of virtual functions may send these.
        _ => return Err(Errno::EOPNOTSUPP),
    };
    fits.then_some((opcode, handler.privilege))
        .ok_or(Errno::EINVAL)
}

impl Device {
    fn handle(&mut self, opcode: Opcode, call: &mut Call<'_>) -> Result<(), Errno> {
        match opcode {
            Opcode::DEV_INFO_GET => {
                let _: DevInfoGetCmd = call.command()?;
                let info = self.device_info(call.nic.config());
                call.respond(&info)
            }
            Opcode::GET_DEV_PROPERTIES => self.get_dev_properties(call),
            Opcode::LNI_ALLOC => {
                let svc = if self.rules.lni_alloc_long {
                    call.command::<LniAllocCmd>()?.svc_id
                } else {
                    call.command::<LniAllocCmdV1>()?.svc_id
                };
                let lni = self.lni_alloc(&call.caller, svc)?;
                call.respond(&LniAllocResp { lni })
            }
            Opcode::LNI_FREE => {
                let command: LniFreeCmd = call.command()?;
                self.lni_free(call.caller.file, command.lni)
            }
            _ => self.handle_traffic(opcode, call),
        }
    }

    fn handle_traffic(&mut self, opcode: Opcode, call: &mut Call<'_>) -> Result<(), Errno> {
        let file = call.caller.file;
        match opcode {
            Opcode::CP_ALLOC => {
                let CpAllocCmd {
                    lni,
                    vni,
                    tc,
                    tc_type,
                    ..
                } = call.command()?;
                self.handle_cp_alloc(
                    call,
                    CpRequest {
                        lni,
                        vni,
                        tc,
                        tc_type,
                        kind: CpKind::Any,
                    },
                )
            }
            Opcode::TRIG_CP_ALLOC => {
                let TrigCpAllocCmd {
                    lni,
                    vni,
                    tc,
                    tc_type,
                    cp_type,
                    ..
                } = call.command()?;
                self.handle_cp_alloc(
                    call,
                    CpRequest {
                        lni,
                        vni,
                        tc,
                        tc_type,
                        kind: CpKind::of(cp_type),
                    },
                )
            }
            Opcode::CP_FREE => {
                let command: CpFreeCmd = call.command()?;
                self.cp_free(file, command.cp_hndl)
            }
            Opcode::CP_MODIFY => {
                let command: CpModifyCmd = call.command()?;
                self.cp_modify(&call.caller, command.cp_hndl, command.vni)
            }
            Opcode::DOMAIN_RESERVE => {
                let command: DomainReserveCmd = call.command()?;
                let DomainReserveCmd {
                    lni,
                    vni,
                    pid,
                    count,
                    ..
                } = command;
                let pid = self.domain_reserve(&call.caller, lni, vni, pid, count)?;
                call.respond(&DomainReserveResp { pid })
            }
            Opcode::DOMAIN_ALLOC => {
                let DomainAllocCmd { lni, vni, pid, .. } = call.command()?;
                let (domain, pid) = self.domain_alloc(&call.caller, lni, vni, pid)?;
                call.respond(&DomainAllocResp { domain, vni, pid })
            }
            Opcode::DOMAIN_FREE => {
                let command: DomainFreeCmd = call.command()?;
                self.domain_free(file, command.domain)
            }
            _ => self.handle_service(opcode, call),
        }
    }

    fn handle_cp_alloc(&mut self, call: &mut Call<'_>, request: CpRequest) -> Result<(), Errno> {
        let (cp_hndl, lcid) = self.cp_alloc(&call.caller, request)?;
        call.respond(&CpAllocResp { cp_hndl, lcid })
    }

    fn handle_service(&mut self, opcode: Opcode, call: &mut Call<'_>) -> Result<(), Errno> {
        match opcode {
            Opcode::SVC_ALLOC => {
                let command: SvcAllocCmd = call.command()?;
                let mut fail_info = SvcFailInfo::new_zeroed();
                let result = self.svc_alloc(&command.svc_desc, &mut fail_info);
                let svc_id = result.unwrap_or(0);
                call.respond(&SvcAllocResp { svc_id, fail_info })?;
                result.map(drop)
            }
            Opcode::SVC_UPDATE => {
                let command: SvcUpdateCmd = call.command()?;
                let result = self.svc_update(&command.svc_desc);
                call.respond(&SvcUpdateResp::new_zeroed())?;
                result
            }
            Opcode::SVC_DESTROY => {
                let command: SvcDestroyCmd = call.command()?;
                self.svc_destroy(command.svc_id)
            }
            Opcode::SVC_ENABLE => {
                let command: SvcEnableCmd = call.command()?;
                self.svc_enable(command.svc_id, command.enable != 0)
            }
            Opcode::SVC_SET_LPR => {
                let command: SvcSetLprCmd = call.command()?;
                self.svc_set_lnis_per_rgid(command.svc_id, command.lnis_per_rgid)
            }
            Opcode::SVC_SET_EXCLUSIVE_CP => {
                let command: SvcSetExclusiveCpCmd = call.command()?;
                self.svc_set_exclusive_cp(command.svc_id, command.exclusive_cp != 0)
            }
            Opcode::SVC_SET_VNI_RANGE => {
                let command: SvcSetVniRangeCmd = call.command()?;
                self.svc_set_vni_range(command.svc_id, command.vni_min, command.vni_max)
            }
            Opcode::SVC_SET_NETNS => {
                let command: SvcSetNetnsCmd = call.command()?;
                self.svc_set_netns(command.svc_id, command.netns)
            }
            _ => self.handle_service_get(opcode, call),
        }
    }

    fn handle_service_get(&mut self, opcode: Opcode, call: &mut Call<'_>) -> Result<(), Errno> {
        match opcode {
            Opcode::SVC_GET => {
                let command: SvcGetCmd = call.command()?;
                call.respond(&self.svc_desc(command.svc_id)?)
            }
            Opcode::SVC_RSRC_GET => {
                let command: SvcRsrcGetCmd = call.command()?;
                call.respond(&self.svc_usage(command.svc_id)?)
            }
            Opcode::SVC_LIST_GET => {
                let command: SvcListGetCmd = call.command()?;
                let count = self.groups.count();
                if command.count >= count {
                    call.memory.write_list(self.svc_list().as_bytes());
                }
                call.respond(&SvcListGetResp { count })
            }
            Opcode::SVC_RSRC_LIST_GET => {
                let command: SvcRsrcListGetCmd = call.command()?;
                let count = self.groups.count();
                if command.count >= count {
                    call.memory.write_list(self.svc_usage_list().as_bytes());
                }
                call.respond(&SvcRsrcListGetResp { count })
            }
            Opcode::SVC_GET_LPR => {
                let command: SvcGetLprCmd = call.command()?;
                let value = self.svc_lnis_per_rgid(command.svc_id);
                call.respond(&SvcGetValueResp { value })
            }
            Opcode::SVC_GET_EXCLUSIVE_CP => {
                let command: SvcGetExclusiveCpCmd = call.command()?;
                let exclusive_cp = self.svc_exclusive_cp(command.svc_id)?.into();
                call.respond(&SvcGetExclusiveCpResp { exclusive_cp })
            }
            Opcode::SVC_GET_VNI_RANGE => {
                let command: SvcGetVniRangeCmd = call.command()?;
                let (vni_min, vni_max) = self.svc_vni_range(command.svc_id)?;
                call.respond(&SvcGetVniRangeResp { vni_min, vni_max })
            }
            Opcode::SVC_GET_NETNS => {
                let command: SvcGetNetnsCmd = call.command()?;
                let value = self.svc_netns(command.svc_id)?;
                call.respond(&SvcGetValueResp { value })
            }
            _ => self.handle_queue(opcode, call),
        }
    }
}
