//! A program on a node that uses services and LNIs through the character device, and checks every
//! result.

use std::path::Path;
use std::sync::Arc;

use cxi_ioctl::abi::device::DevInfoGetCmd;
use cxi_ioctl::abi::lni::{LniAllocCmd, LniAllocCmdV1, LniFreeCmd};
use cxi_ioctl::abi::service::{
    MEMBER_UID, RSRC_TGQ, RSRC_TXQ, SvcAllocCmd, SvcDestroyCmd, SvcFlags, SvcGetCmd, SvcListGetCmd,
    SvcRsrcGetCmd,
};
use cxi_ioctl::{CharDev, CommandError, Errno, execute};

/// Problem, as text.
pub type Problem = String;

/// Opens the device.
///
/// # Errors
///
/// The error of `open(2)`.
pub fn open(device: &Path) -> Result<CharDev, Problem> {
    CharDev::open(device).map_err(|error| format!("open {}: {error}", device.display()))
}

/// Allocates a service for one VNI, and for one user if one is named. It takes no pool.
///
/// # Errors
///
/// The driver's error.
pub fn allocate(device: &CharDev, vni: u16, uid: Option<u32>) -> Result<u32, CommandError> {
    let mut command = SvcAllocCmd::new();
    let mut flags = SvcFlags::RESTRICTED_VNIS | SvcFlags::RESOURCE_LIMITS;
    if let Some(uid) = uid {
        flags |= SvcFlags::RESTRICTED_MEMBERS;
        command.svc_desc.members[0].id = uid;
        command.svc_desc.members[0].kind = MEMBER_UID;
    }
    command.svc_desc.flags = flags.bits();
    command.svc_desc.num_vld_vnis = 1;
    command.svc_desc.vnis[0] = vni;
    command.svc_desc.limits.types[RSRC_TXQ].max = 4;
    command.svc_desc.limits.types[RSRC_TGQ].max = 4;
    Ok(execute(device, &command)?.svc_id)
}

/// Destroys a service.
///
/// # Errors
///
/// The driver's error.
pub fn destroy(device: &CharDev, svc_id: u32) -> Result<(), CommandError> {
    execute(device, &SvcDestroyCmd::of(svc_id))
}

/// Allocates an LNI, in either form of the command.
///
/// # Errors
///
/// The driver's error.
pub fn open_lni(device: &CharDev, svc_id: u32) -> Result<u32, CommandError> {
    let command = LniAllocCmdV1::of(svc_id);
    match execute(device, &command) {
        Err(error) if error.errno() == Errno::EINVAL => {
            Ok(execute(device, &LniAllocCmd::of(svc_id))?.lni)
        }
        other => Ok(other?.lni),
    }
}

/// Frees an LNI.
///
/// # Errors
///
/// The driver's error.
pub fn close_lni(device: &CharDev, lni: u32) -> Result<(), CommandError> {
    execute(device, &LniFreeCmd::of(lni))
}

/// The VNI that the driver reports for a service.
///
/// # Errors
///
/// The driver's error.
pub fn vni_of(device: &CharDev, svc_id: u32) -> Result<u16, CommandError> {
    Ok(execute(device, &SvcGetCmd::of(svc_id))?.vnis[0])
}

/// Returns the number of services.
///
/// # Errors
///
/// The driver's error.
pub fn count(device: &CharDev) -> Result<u32, CommandError> {
    Ok(execute(device, &SvcListGetCmd::new())?.count)
}

/// Opens the device a number of times, and keeps the files open until the end of the process.
///
/// # Errors
///
/// The error of `open(2)`.
pub fn open_often(path: &Path, times: usize) -> Result<(), Problem> {
    let files: Result<Vec<_>, _> = (0..times).map(|_| open(path)).collect();
    std::mem::forget(files?);
    Ok(())
}

/// Allocates, uses and destroys a service once, through the real transport.
///
/// # Errors
///
/// The unexpected result.
pub fn cycle(path: &Path) -> Result<(), Problem> {
    let device = open(path)?;
    let before = run("count", count(&device))?;
    let svc_id = run("allocate", allocate(&device, 77, None))?;
    expect("services", run("count", count(&device))?, before + 1)?;
    expect("VNI", run("get", vni_of(&device, svc_id))?, 77)?;
    let lni = run("LNI", open_lni(&device, svc_id))?;
    refused("destroy in use", &destroy(&device, svc_id), Errno::EBUSY)?;
    run("free the LNI", close_lni(&device, lni))?;
    run("destroy", destroy(&device, svc_id))?;
    refused("destroy twice", &destroy(&device, svc_id), Errno::EINVAL)?;
    refused("VNI 0", &allocate(&device, 0, None), Errno::EINVAL)?;
    expect("services", run("count", count(&device))?, before)
}

/// Sends commands from several threads, half of them on one shared file, and checks that every
/// response belongs to its command. Processes with different numbers use different VNIs.
///
/// # Errors
///
/// The unexpected result.
pub fn storm(path: &Path, process: u16, threads: u16, commands: u32) -> Result<(), Problem> {
    let shared = Arc::new(open(path)?);
    let running: Vec<_> = (0..threads)
        .map(|thread| {
            let (shared, path) = (Arc::clone(&shared), path.to_owned());
            std::thread::spawn(move || {
                let vni = 100 + process * threads + thread;
                if thread % 2 == 0 {
                    return rounds(&shared, vni, commands);
                }
                rounds(&open(&path)?, vni, commands)
            })
        })
        .collect();
    for thread in running {
        thread.join().map_err(|_| "a thread panicked".to_owned())??;
    }
    Ok(())
}

/// Commands of one round of a storm.
const ROUND: u32 = 8;

fn rounds(device: &CharDev, vni: u16, commands: u32) -> Result<(), Problem> {
    for _ in 0..commands.div_ceil(ROUND) {
        let svc_id = run("allocate", allocate(device, vni, None))?;
        expect("VNI", run("get", vni_of(device, svc_id))?, vni)?;
        let lni = run("LNI", open_lni(device, svc_id))?;
        let usage = SvcRsrcGetCmd::of(svc_id);
        let usage = run("usage", execute(device, &usage))?;
        expect("TXQs in use", usage.in_use[RSRC_TXQ], 0)?;
        let info = run("info", execute(device, &DevInfoGetCmd::new()))?;
        expect("TXQs", info.num_txqs, 1024)?;
        run("free the LNI", close_lni(device, lni))?;
        expect("VNI", run("get", vni_of(device, svc_id))?, vni)?;
        run("destroy", destroy(device, svc_id))?;
    }
    Ok(())
}

/// Allocates LNIs in file after file until the process is killed.
///
/// # Errors
///
/// The unexpected result.
pub fn churn(path: &Path, svc_id: u32) -> Result<(), Problem> {
    loop {
        let device = open(path)?;
        for _ in 0..4 {
            run("LNI", open_lni(&device, svc_id))?;
        }
        let lni = run("LNI", open_lni(&device, svc_id))?;
        run("free the LNI", close_lni(&device, lni))?;
    }
}

/// Keeps a file open while the NIC is unplugged: every command on it fails with EIO from then on.
///
/// # Errors
///
/// The unexpected result.
pub fn survive(path: &Path, unplug: &mut std::process::Command) -> Result<(), Problem> {
    let device = open(path)?;
    run("count", count(&device))?;
    let status = unplug.status().map_err(|error| error.to_string())?;
    expect("unplug", status.code(), Some(0))?;
    refused("count", &count(&device), Errno::EIO)
}

/// Expects success.
///
/// # Errors
///
/// The command was refused.
pub fn run<T>(what: &str, result: Result<T, CommandError>) -> Result<T, Problem> {
    result.map_err(|error| format!("{what}: {error}"))
}

/// Expects a refusal.
///
/// # Errors
///
/// The command succeeded, or was refused for another reason.
pub fn refused<T>(
    what: &str,
    result: &Result<T, CommandError>,
    errno: Errno,
) -> Result<(), Problem> {
    match result {
        Ok(_) => Err(format!("{what}: expected {errno}, and it worked")),
        Err(error) => expect(what, error.errno(), errno),
    }
}

/// Expects a value.
///
/// # Errors
///
/// It is another value.
pub fn expect<T: Copy + PartialEq + std::fmt::Debug>(
    what: &str,
    value: T,
    expected: T,
) -> Result<(), Problem> {
    if value == expected {
        Ok(())
    } else {
        Err(format!("{what}: {value:?}, expected {expected:?}"))
    }
}
