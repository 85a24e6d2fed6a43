//! A node on which a program replays scenarios, as the users that they name.

#![allow(unsafe_code, reason = "scenarios have raw commands")]

use std::process::Command;
use std::sync::Arc;

use cxi_ioctl::abi::portal::{PteStatus, PteStatusCmd};
use cxi_ioctl::abi::queue::{EqAdjustReservedFcCmd, EqAdjustReservedFcCmdV1};
use cxi_ioctl::abi::service::SvcListGetCmd;
use cxi_ioctl::{
    CharDev, Command as _, DriverRelease, Errno, Opcode, Pointers, Request, Transport,
};
use cxi_mock::{CallerMemory, Credentials};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::process::{Gid, Uid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, set_capabilities, set_keep_capabilities, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};
use serde_json::Value;

use crate::device::{Buffers, Device, LoadFailure, Report};
use crate::scenario::Setup;

/// Fills buffers before a command; a byte that differs afterward was written.
const UNTOUCHED: u8 = 0xa5;
/// Room for a response.
const RESPONSE_ROOM: usize = 256;
/// Room for a list.
const LIST_ROOM: usize = 1 << 16;
/// An address that nothing can be written to.
const BAD_ADDRESS: u64 = 8;
/// The variable that names the command `cxi-mock`.
pub const SERVER: &str = "SERVER";

/// The node that this process runs on, with the driver loaded for the scenario.
#[derive(Debug)]
pub struct OnNode(DriverRelease);

impl Device for OnNode {
    type File = Arc<CharDev>;

    fn load(release: DriverRelease, _setup: &Setup) -> Result<Self, LoadFailure> {
        let provided = provide_memory();
        provided.map_err(|errno| LoadFailure::Scenario(format!("no memory for it: {errno}")))?;
        Ok(Self(release))
    }

    fn open(&self, caller: &Credentials, virtual_function: bool) -> Result<Self::File, Errno> {
        let device = format!("/dev/cxi{}", u8::from(virtual_function));
        let opened = by(caller, move || CharDev::open(device));
        opened.map(Arc::new).map_err(|error| Errno::from_io(&error))
    }

    fn write(
        &self,
        file: &Self::File,
        caller: &Credentials,
        command: &[u8],
        memory: &mut dyn CallerMemory,
    ) -> Result<usize, Errno> {
        let (file, release, sent) = (Arc::clone(file), self.0, command.to_vec());
        let bad = memory.write_list(&[]).is_err();
        let (result, buffers) = by(caller, move || submit(&file, sent, release, bad));
        if let Some(response) = buffers.response {
            memory.write_list(&buffers.list)?;
            memory.respond(&response)?;
        }
        result.map(|()| command.len())
    }

    fn tick(&self) -> bool {
        control(&["tick"]).is_ok_and(|printed| printed.trim() == "true")
    }

    fn report(&self, report: Report) -> Result<(), String> {
        let words = match report {
            Report::TxqInFlight { index, value } => format!("txq {index} {value}"),
            Report::TgqInFlight { index, value } => format!("tgq {index} {value}"),
            Report::TlesInUse { pool, value } => format!("tles {pool} {value}"),
            Report::LesAllocated { element, pool, value } => {
                format!("les {element} {pool} {value}")
            }
        };
        let words: Vec<&str> = words.split(' ').collect();
        control(&[&["hardware"], &words[..]].concat()).map(drop)
    }

    fn state(&self) -> Result<Value, String> {
        let state: Value =
            serde_json::from_str(&control(&["state"])?).map_err(|error| error.to_string())?;
        Ok(state["nics"][0]["state"].clone())
    }
}

/// The output of `cxi-mock ctl`.
fn control(order: &[&str]) -> Result<String, String> {
    let server = std::env::var_os(SERVER).ok_or("SERVER does not name cxi-mock")?;
    let output = Command::new(server).arg("ctl").args(order).output();
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Maps memory wherever a scenario may have its own, as there was when it was recorded.
fn provide_memory() -> rustix::io::Result<()> {
    let (start, end) = (1_usize << 16, 1 << 46);
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE;
    // SAFETY: nothing is replaced that is mapped already, and nothing uses what is new.
    let at = unsafe {
        mmap_anonymous(
            std::ptr::without_provenance_mut(start),
            end - start,
            ProtFlags::READ | ProtFlags::WRITE,
            flags,
        )
    }?;
    (at.addr() == start).then_some(()).ok_or(rustix::io::Errno::EXIST)
}

/// Runs a function on a thread with these credentials, which Linux keeps per thread.
fn by<T: Send + 'static>(caller: &Credentials, act: impl FnOnce() -> T + Send + 'static) -> T {
    let caller = caller.clone();
    let thread = std::thread::spawn(move || {
        let become_caller = become_caller(&caller);
        become_caller.unwrap_or_else(|error| panic!("become {caller:?}: {error}"));
        act()
    });
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn become_caller(caller: &Credentials) -> rustix::io::Result<()> {
    let (uid, gid) = (Uid::from_raw(caller.uid), Gid::from_raw(caller.gid));
    let groups: Vec<_> = caller.groups.iter().copied().map(Gid::from_raw).collect();
    set_keep_capabilities(true)?;
    set_thread_groups(&groups)?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    let mut capabilities = CapabilitySet::empty();
    capabilities.set(CapabilitySet::SYS_ADMIN, caller.sys_admin);
    capabilities.set(CapabilitySet::NET_RAW, caller.net_raw);
    set_capabilities(
        None,
        CapabilitySets {
            effective: capabilities,
            permitted: capabilities,
            inheritable: CapabilitySet::empty(),
        },
    )
}

fn submit(
    file: &CharDev,
    mut command: Vec<u8>,
    release: DriverRelease,
    bad: bool,
) -> (Result<(), Errno>, Buffers) {
    let number = command.first_chunk().copied().unwrap_or_default();
    let opcode = Opcode::from_number(u32::from_le_bytes(number));
    let mut pointers = pointers(opcode, release);
    let mut response = vec![UNTOUCHED; RESPONSE_ROOM];
    let mut list = vec![UNTOUCHED; LIST_ROOM];
    if bad {
        for at in [pointers.response, pointers.list].into_iter().flatten() {
            if let Some(address) = command.get_mut(at..at + 8) {
                address.copy_from_slice(&BAD_ADDRESS.to_ne_bytes());
            }
        }
        pointers = Pointers::NONE;
    } else if pointers.list_in_response.is_some() {
        // The driver reads what the caller left there, as far as the response goes.
        response[..size_of::<PteStatus>()].fill(0);
    }
    // SAFETY: the driver is a mock, which follows no address but those of the two buffers. These
    // are longer than anything that the scenarios ask for, or nowhere.
    let request =
        unsafe { Request::from_raw(opcode, &command, pointers, &mut response, &mut list) };
    let result = file.submit(request);
    // Scenarios do not have the address of the list, which differs from run to run.
    if let Some(address) = pointers.list_in_response.and_then(|at| response.get_mut(at..at + 8)) {
        address.fill(0);
    }
    let written = |bytes: &[u8]| {
        let end = bytes.iter().rposition(|byte| *byte != UNTOUCHED);
        end.map(|last| bytes[..=last].to_vec())
    };
    let buffers =
        Buffers { response: written(&response), list: written(&list).unwrap_or_default(), bad };
    (result, buffers)
}

fn pointers(opcode: Opcode, release: DriverRelease) -> Pointers {
    let answers =
        opcode.info().and_then(|info| info.handler).is_some_and(|handler| handler.response_len > 0);
    match opcode {
        Opcode::SVC_LIST_GET | Opcode::SVC_RSRC_LIST_GET => SvcListGetCmd::POINTERS,
        Opcode::PTE_STATUS => PteStatusCmd::POINTERS,
        Opcode::EQ_ADJUST_RESERVED_FC if release < DriverRelease::Main2026_07 => {
            EqAdjustReservedFcCmdV1::POINTERS
        }
        Opcode::EQ_ADJUST_RESERVED_FC => EqAdjustReservedFcCmd::POINTERS,
        _ if answers => Pointers { response: Some(8), list: None, list_in_response: None },
        _ => Pointers::NONE,
    }
}
