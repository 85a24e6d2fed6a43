//! A program on a node that does what a test outside of the node asks for, as whoever is asked.

#![allow(unsafe_code, reason = "scenarios have raw commands")]

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;

use cxi_ioctl::abi::portal::PteStatusCmd;
use cxi_ioctl::abi::queue::{EqAdjustReservedFcCmd, EqAdjustReservedFcCmdV1};
use cxi_ioctl::abi::service::SvcListGetCmd;
use cxi_ioctl::{CharDev, Command, DriverRelease, Errno, Opcode, Pointers, Request, Transport};
use cxi_mock::Credentials;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::process::{Gid, Uid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, set_capabilities, set_keep_capabilities, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};
use serde::{Deserialize, Serialize};

/// What buffers hold before a command; what is different afterwards was written.
const UNTOUCHED: u8 = 0xa5;
/// Room for a response.
const RESPONSE_ROOM: usize = 256;
/// Room for a list.
const LIST_ROOM: usize = 1 << 16;
/// An address that nobody can write to.
const BAD_ADDRESS: u64 = 8;

/// Who makes a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Caller {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
    sys_admin: bool,
    net_raw: bool,
}

impl From<&Credentials> for Caller {
    fn from(credentials: &Credentials) -> Self {
        Self {
            uid: credentials.uid,
            gid: credentials.gid,
            groups: credentials.groups.clone(),
            sys_admin: credentials.sys_admin,
            net_raw: credentials.net_raw,
        }
    }
}

/// What the actor is asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Task {
    /// Open a device.
    Open {
        /// Its path.
        device: PathBuf,
        /// Who opens it.
        caller: Caller,
    },
    /// Close a file.
    Close {
        /// Number of the file.
        file: u32,
    },
    /// Send a command.
    Write {
        /// Number of the file.
        file: u32,
        /// Who sends it.
        caller: Caller,
        /// What the command is sent to.
        release: String,
        /// The command.
        command: Vec<u8>,
        /// Its addresses are to be bad.
        bad: bool,
    },
}

/// What came of a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    /// Number of the file that was opened.
    pub file: Option<u32>,
    /// The errno of a refusal.
    pub errno: Option<i32>,
    /// The response, if one was written.
    pub response: Option<Vec<u8>>,
    /// The list as written.
    pub list: Vec<u8>,
}

/// Does one task a line until there are no more.
///
/// # Errors
///
/// The conversation broke down.
pub fn serve(input: impl BufRead, mut output: impl Write) -> Result<(), String> {
    provide_memory().map_err(|errno| format!("provide the memory of scenarios: {errno}"))?;
    let mut files = BTreeMap::new();
    let mut next = 0;
    for line in input.lines() {
        let line = line.map_err(|error| error.to_string())?;
        let task: Task = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        let answer = match task {
            Task::Open { device, caller } => {
                let opened = by(caller, move || CharDev::open(device))?;
                match opened {
                    Ok(file) => {
                        next += 1;
                        files.insert(next, Arc::new(file));
                        Answer {
                            file: Some(next),
                            ..Answer::default()
                        }
                    }
                    Err(error) => Answer {
                        errno: Some(Errno::from_io(&error).raw()),
                        ..Answer::default()
                    },
                }
            }
            Task::Close { file } => {
                files.remove(&file);
                Answer::default()
            }
            Task::Write {
                file,
                caller,
                release,
                command,
                bad,
            } => {
                let file = Arc::clone(files.get(&file).ok_or("no such file")?);
                let release: DriverRelease = release.parse().map_err(|_| "no such release")?;
                by(caller, move || submit(&file, command, release, bad))?
            }
        };
        let mut line = serde_json::to_vec(&answer).map_err(|error| error.to_string())?;
        line.push(b'\n');
        output
            .write_all(&line)
            .and_then(|()| output.flush())
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Has memory wherever a scenario may have its own: none was recorded without.
fn provide_memory() -> rustix::io::Result<()> {
    let (start, end) = (1_usize << 16, 1 << 46);
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE;
    // SAFETY: nothing is replaced that is mapped already, and nobody uses what is new.
    let at = unsafe {
        mmap_anonymous(
            std::ptr::without_provenance_mut(start),
            end - start,
            ProtFlags::READ | ProtFlags::WRITE,
            flags,
        )
    }?;
    (at.addr() == start)
        .then_some(())
        .ok_or(rustix::io::Errno::EXIST)
}

/// Does something on a thread that is somebody else: Linux has credentials by thread.
fn by<T: Send + 'static>(
    caller: Caller,
    act: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let thread = std::thread::spawn(move || {
        become_caller(&caller).map_err(|error| format!("become {caller:?}: {error}"))?;
        Ok(act())
    });
    thread
        .join()
        .map_err(|_| "the thread of a caller panicked".to_owned())?
}

fn become_caller(caller: &Caller) -> rustix::io::Result<()> {
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

fn submit(file: &CharDev, mut command: Vec<u8>, release: DriverRelease, bad: bool) -> Answer {
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
        response.fill(0);
    }
    // SAFETY: the driver is a mock, which follows no address but those of the two buffers. These
    // are longer than anything that the scenarios ask for, or nowhere.
    let request =
        unsafe { Request::from_raw(opcode, &command, pointers, &mut response, &mut list) };
    let result = file.submit(request);
    let written = |bytes: &[u8]| {
        let end = bytes.iter().rposition(|byte| *byte != UNTOUCHED);
        end.map(|last| bytes[..=last].to_vec())
    };
    Answer {
        file: None,
        errno: result.err().map(Errno::raw),
        response: written(&response),
        list: written(&list).unwrap_or_default(),
    }
}

fn pointers(opcode: Opcode, release: DriverRelease) -> Pointers {
    let answers = opcode
        .info()
        .and_then(|info| info.handler)
        .is_some_and(|handler| handler.response_len > 0);
    match opcode {
        Opcode::SVC_LIST_GET | Opcode::SVC_RSRC_LIST_GET => SvcListGetCmd::POINTERS,
        Opcode::PTE_STATUS => PteStatusCmd::POINTERS,
        Opcode::EQ_ADJUST_RESERVED_FC if release < DriverRelease::Main => {
            EqAdjustReservedFcCmdV1::POINTERS
        }
        Opcode::EQ_ADJUST_RESERVED_FC => EqAdjustReservedFcCmd::POINTERS,
        _ if answers => Pointers {
            response: Some(8),
            list: None,
            list_in_response: None,
        },
        _ => Pointers::NONE,
    }
}
