//! From the bytes of a write to a command's handler and back, in the driver's order of checks.

mod answer;
mod command_queue;
mod counter;
mod device;
mod domain;
mod event_queue;
mod lni;
mod memory;
mod parent;
mod portal;
mod profile;
mod service;
mod table;
mod virtual_function;

use std::sync::Arc;

use cxi_ioctl::{Effect, Errno, Family, Handler, Object, Opcode, Privilege, RequestLen};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use answer::{Answer, NOT_HANDED_OVER, handed_over};

use super::Nic;
use super::device::Device;
use crate::rules::Rules;
use crate::{CallerMemory, ClientMemory, Credentials};

/// The caller, and the open file.
#[derive(Clone, Copy, Debug)]
struct Caller<'a> {
    file: u32,
    credentials: &'a Credentials,
    memory: &'a Arc<dyn ClientMemory>,
    /// `true` if the doorbells that it gets are trapped.
    traps_stores: bool,
}

/// A call on its way through its handler.
struct Call<'a> {
    pub(super) nic: &'a Nic,
    opcode: Opcode,
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

    /// As [`respond`](Self::respond), for an object that was made, given by its handle.
    pub(super) fn made<T: IntoBytes + Immutable>(
        &mut self,
        handle: u32,
        response: &T,
    ) -> Result<(), Errno> {
        self.memory.made = Some(handle);
        self.respond(response)
    }

    /// Keeps the response until the handler is done.
    #[expect(clippy::unnecessary_wraps, reason = "the last step of most handlers")]
    pub(super) fn respond<T: IntoBytes + Immutable>(&mut self, response: &T) -> Result<(), Errno> {
        self.memory.response = Some(response.as_bytes().to_vec());
        Ok(())
    }
}

pub(crate) fn write(
    nic: &Nic,
    file: u32,
    caller: &Credentials,
    command: &[u8],
    memory: &mut dyn CallerMemory,
) -> Result<usize, Errno> {
    // This precedes locking the NIC, because reading the caller's memory may block.
    let opcode = command.first_chunk().copied().map(u32::from_ne_bytes).map(Opcode::from_number);
    let mut answer = Answer::new(opcode, command, memory);
    let process = opcode.and_then(|opcode| handed_over(opcode, memory));
    let mut device = nic.device();
    device.show_registers();
    let (opcode, handler) = admit(&device.rules, opcode, command)?;
    if handler.effect == Effect::Frees(Object::CommandQueue) {
        let id = u32::read_from_prefix(&command[4..]).map_or(0, |(id, _)| id);
        drop(device);
        nic.data_path.finish_queues(&[id]);
        device = nic.device();
    }
    let virtual_function = device.files.virtual_function(file);
    let is_virtual = virtual_function.is_some();
    let kernel;
    let mut credentials = caller;
    // The driver checks the caller before it notices that the device is gone, so EPERM takes
    // precedence over EIO.
    let is_refused = virtual_function.is_some_and(|it| !device.is_for_child(it, opcode, command));
    if handler.privilege == Privilege::Admin && (!caller.sys_admin || is_refused) {
        return Err(Errno::EPERM);
    }
    let is_removed = virtual_function.is_some_and(|it| !nic.has_virtual_function(it));
    if nic.faults.is_unplugged() || is_removed {
        return Err(Errno::EIO);
    }
    let strike = nic.faults.strike(opcode, command);
    if let Some(strike) = strike.filter(|strike| !strike.carried_out) {
        if let Some(response) = strike.response {
            memory.respond(response.as_bytes())?;
        }
        return Err(strike.errno);
    }
    if is_virtual {
        if !device.rules.vf_relay && handler.family != Family::Device {
            return Err(Errno::EOPNOTSUPP);
        }
        if handler.family != Family::Device {
            device.files.relay(file);
        }
        // The physical function's kernel thread makes the call.
        kernel = Credentials::root();
        credentials = &kernel;
    }
    let mut call = Call {
        nic,
        opcode,
        caller: Caller {
            file,
            credentials,
            memory: process.as_ref().unwrap_or(&NOT_HANDED_OVER),
            traps_stores: memory.traps_stores(),
        },
        command,
        memory: &mut answer,
    };
    let changes_services = handler.family == Family::Service && handler.effect != Effect::Reads;
    let before = changes_services.then(|| device.checkpoint()).flatten();
    let takes_memory = process.is_some() || matches!(handler.effect, Effect::Frees(_));
    if takes_memory {
        // What was freed without a command must not be charged to this one.
        nic.data_path.state().engine.take_releases();
    }
    let result = device.handle(handler, &mut call);
    // Even a refused command may have changed something, because the driver has such bugs.
    if let Some(before) = before
        && let Err(errno) = device.keep(nic.config())
    {
        device.roll_back(before);
        return Err(errno);
    }
    let releases =
        if takes_memory { nic.data_path.state().engine.take_releases() } else { Vec::new() };
    drop(device);
    nic.data_path.settle(&releases);
    if let Err(errno) = answer.deliver(memory) {
        nic.device().undo(opcode, file, &answer, errno)?;
    }
    match strike {
        Some(strike) => Err(strike.errno),
        None => result.map(|()| command.len()),
    }
}

/// The opcode of a command that may be handled. The driver checks the opcode before the length:
/// both are EINVAL, but a reserved opcode is EOPNOTSUPP whatever its length.
fn admit(
    rules: &Rules,
    opcode: Option<Opcode>,
    command: &[u8],
) -> Result<(Opcode, &'static Handler), Errno> {
    if rules.longest_command.is_some_and(|most| command.len() > most) {
        return Err(Errno::EINVAL);
    }
    let opcode = opcode.ok_or(Errno::EINVAL)?;
    let info = opcode.info().filter(|info| info.since <= rules.release).ok_or(Errno::EINVAL)?;
    let handler = info.handler.as_ref().ok_or(Errno::EOPNOTSUPP)?;
    let fits = match opcode.request_len(rules.release) {
        Some(RequestLen::Exact(len)) => command.len() == len,
        // Only the relay of virtual functions may send these.
        _ => return Err(Errno::EOPNOTSUPP),
    };
    fits.then_some((opcode, handler)).ok_or(Errno::EINVAL)
}

impl Device {
    fn handle(&mut self, handler: &Handler, call: &mut Call<'_>) -> Result<(), Errno> {
        if let Effect::Frees(object) = handler.effect {
            // Some of these commands have room for a pointer to a response, which is never written.
            let at = if call.command.len() == 8 { 4 } else { 16 };
            return self.free(object, call.caller.file, call.word(at)?);
        }
        let handle = table::handle_of(call.opcode).ok_or(Errno::EOPNOTSUPP)?;
        handle(self, call)
    }

    /// Frees an object of a file; services belong to none.
    fn free(&mut self, object: Object, file: u32, handle: u32) -> Result<(), Errno> {
        match object {
            Object::Lni => self.lni_free(file, handle),
            Object::Profile => self.cp_free(file, handle),
            Object::Domain => self.domain_free(file, handle),
            Object::CommandQueue => self.cq_free(file, handle),
            Object::EventQueue => self.eq_free(file, handle),
            Object::Portal => self.pte_free(file, handle),
            Object::PortalMapping => self.pte_unmap(file, handle),
            Object::Counter => self.ct_free(file, handle),
            Object::Wait => self.wait_free(file, handle),
            Object::Memory => self.atu_unmap(file, handle),
            Object::Registers => self.unmap_csrs(file),
            Object::Service => self.svc_destroy(handle),
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    /// The command queues of a file.
    pub(crate) fn queues_of(&self, file: u32) -> Vec<u32> {
        self.cqs.of_file(file)
    }

    /// Closes a file and frees everything that it holds. Users are freed before what they use, so
    /// that nothing is still in use when it is freed.
    pub(crate) fn close(&mut self, id: u32) {
        let Ok(file) = self.files.get(id) else { return };
        let (waits, cps) = (file.waits.of_file(id), file.cps.of_file(id));
        let (ptes, lnis) = (self.portals.ptes.of_file(id), self.lnis.live.of_file(id));
        // A failed PTE_STATUS may still refer to an entry, and a PHYS_LAC_ALLOC to an LNI.
        for pte in &ptes {
            self.portals.ptes.abandon(*pte);
        }
        let held = [
            (Object::PortalMapping, self.portals.maps.of_file(id)),
            (Object::Portal, ptes),
            (Object::CommandQueue, self.cqs.of_file(id)),
            (Object::EventQueue, self.eqs.queues.of_file(id)),
            (Object::Memory, self.mds.of_file(id)),
            (Object::Wait, waits),
            (Object::Domain, self.domains.objects.of_file(id)),
            (Object::Counter, self.cts.of_file(id)),
            (Object::Profile, cps),
            (Object::Lni, lnis),
        ];
        for (object, handles) in held {
            for handle in handles {
                if object == Object::Lni {
                    self.lnis.live.abandon(handle);
                }
                let _ = self.free(object, id, handle);
            }
        }
        self.data_path.forget_doorbells(id);
        self.files.remove(id);
    }
}
