//! A program on a node that maps windows: each open file has its own, and a window keeps its file open.

use std::path::Path;

use cxi_hw::{command_ring, launch_page};
use cxi_ioctl::abi::memory::Mminfo;
use cxi_ioctl::abi::queue::{CqAllocCmd, CqAllocResp};
use cxi_ioctl::{CharDev, Errno, Mapping, Transport, execute};

use crate::client::{self, Problem, expect, refused, run};

/// The value that a program writes into a window, and that no other program may read.
const SECRET: u64 = 0x0102_0304;

/// Maps the commands of a queue twice and looks through one at what was written through the
/// other, and through another file at the same place. Returns the errno of `mmap(2)` where windows
/// cannot be mapped.
///
/// # Errors
///
/// The unexpected result.
pub fn are_private(path: &Path) -> Result<Option<Errno>, Problem> {
    let (mine, foreign) = (client::open(path)?, client::open(path)?);
    let svc_id = run("allocate", client::allocate(&mine, 78, None))?;
    let window = commands(&mine, svc_id)?;
    let one = match map(&mine, window) {
        Err(errno) => return Ok(Some(errno)),
        Ok(one) => one,
    };
    expect("write", one.write_u64(8, SECRET), Ok(()))?;
    let two = mapped(&mine, window)?;
    expect("read", two.read_u64(8), Ok(SECRET))?;

    let theirs = commands(&foreign, svc_id)?;
    expect("places", theirs.offset, window.offset)?;
    let seen = mapped(&foreign, window)?;
    expect("what another file reads", seen.read_u64(8), Ok(0))?;
    expect("write", seen.write_u64(8, !SECRET), Ok(()))?;
    expect("what another file changes", one.read_u64(8), Ok(SECRET))?;
    drop((mine, foreign, one, two, seen));
    run("destroy", client::destroy(&client::open(path)?, svc_id))?;
    Ok(None)
}

/// A file whose descriptor is closed while one of its windows is mapped keeps its LNI.
///
/// # Errors
///
/// The unexpected result.
pub fn keep_the_file_open(path: &Path) -> Result<(), Problem> {
    let other = client::open(path)?;
    for _ in 0..100 {
        let svc_id = run("allocate", client::allocate(&other, 79, None))?;
        let destroy = || client::destroy(&other, svc_id);
        let device = client::open(path)?;
        let window = mapped(&device, commands(&device, svc_id)?)?;
        drop(device);
        refused("destroy while mapped", &destroy(), Errno::EBUSY)?;
        expect("write", window.write_u64(0, 1), Ok(()))?;
        drop(window);
        run("destroy when unmapped", destroy())?;
    }
    Ok(())
}

/// Rings a doorbell with an exchange, which reads that it has not been rung. If stores are
/// trapped, that is so each time; if the NIC polls, at least the first time.
///
/// # Errors
///
/// The unexpected result.
pub fn exchange_doorbells(path: &Path, times: u32) -> Result<(), Problem> {
    let device = client::open(path)?;
    let svc_id = run("allocate", client::allocate(&device, 78, None))?;
    let doorbell = mapped(&device, queue(&device, svc_id)?.wp_addr)?;
    for _ in 0..times {
        let held = doorbell.swap_u64(launch_page::WRITE_POINTER, command_ring::FIRST_UNIT.into());
        expect("what the doorbell held", held, Ok(u64::MAX))?;
    }
    drop((device, doorbell));
    run("destroy", client::destroy(&client::open(path)?, svc_id))
}

/// Rings the doorbell of one open file through another one, at the same place. The kernel ends this
/// process, because the doorbell does not belong to the mapped file.
///
/// # Errors
///
/// The process was not killed.
pub fn ring_of_another_file(path: &Path) -> Result<(), Problem> {
    let (mine, other) = (client::open(path)?, client::open(path)?);
    let svc_id = run("allocate", client::allocate(&mine, 80, None))?;
    let rung = command_ring::FIRST_UNIT.into();
    let window = queue(&mine, svc_id)?.wp_addr;
    let own = mapped(&other, queue(&other, svc_id)?.wp_addr)?;
    expect("ring", own.write_u64(launch_page::WRITE_POINTER, rung), Ok(()))?;
    let borrowed = mapped(&other, window)?;
    expect("borrow", borrowed.write_u64(launch_page::WRITE_POINTER, rung), Ok(()))?;
    Err("the doorbell of another file was rung".to_owned())
}

/// The window with the commands of a new target queue of a new LNI.
fn commands(device: &CharDev, svc_id: u32) -> Result<Mminfo, Problem> {
    Ok(queue(device, svc_id)?.cmds)
}

fn queue(device: &CharDev, svc_id: u32) -> Result<CqAllocResp, Problem> {
    let mut command = CqAllocCmd::new();
    command.lni = run("LNI", client::open_lni(device, svc_id))?;
    command.opts.count = 64;
    run("queue", execute(device, &command))
}

fn map(device: &CharDev, window: Mminfo) -> Result<Mapping, Errno> {
    device.map(window.offset, usize::try_from(window.size).unwrap_or(0))
}

fn mapped(device: &CharDev, window: Mminfo) -> Result<Mapping, Problem> {
    map(device, window).map_err(|errno| format!("map: {errno}"))
}
