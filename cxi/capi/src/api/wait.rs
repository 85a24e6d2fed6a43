//! Wait objects.

use std::ffi::c_int;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use cxi_ioctl::abi::wait::{WaitAllocCmd, WaitFreeCmd};
use cxi_ioctl::socket::rearm;

use crate::child::{Lni, Wait};
use crate::device::{Counted, Dev};
use crate::failure::Result;
use crate::ffi::{Out, guarded, status};
use crate::handle::{Handle, Room, Shared, Tag};
use crate::info::CLASS;
use crate::send::send;
use crate::sysfs;

#[unsafe(no_mangle)]
extern "C" fn cxil_alloc_wait_obj(lni: Handle<Lni>, wait: Out<*mut ()>) -> c_int {
    status(|| {
        let lni = lni.get()?;
        let wait = Room::new(wait)?;
        let response = send(&lni.dev, &WaitAllocCmd::of(lni.id.get()))?;
        let interrupt = open(&lni.dev, response.client_id, response.wait).inspect_err(|_| {
            let _ = send(&lni.dev, &WaitFreeCmd::of(response.wait));
        })?;
        // Allocating the object raises the interrupt once.
        clear(&lni.dev, &interrupt);
        wait.fill(Wait {
            nothing: Shared::new(()),
            dev: Counted::new(&lni.dev),
            interrupt,
            number: response.wait,
            tag: Tag::of::<Wait>(),
        });
        Ok(())
    })
}

fn open(dev: &Dev, client: u32, wait: u32) -> Result<File> {
    let nic = Path::new(CLASS).join(dev.info.get().name());
    let file = nic.join(format!("clients/{client}/wait/{wait}/intr"));
    match sysfs::node() {
        None => Ok(File::open(file)?),
        Some(node) => Ok(node.watch(&file)?.into()),
    }
}

/// Reads the file, so that the next interrupt wakes pollers. Its content does not matter.
fn clear(dev: &Dev, interrupt: &File) {
    if dev.socket().is_some() {
        return rearm(interrupt);
    }
    let _ = interrupt.read_at(&mut [0], 0);
}

/// The handle is freed whatever the driver responds, because callers rely on that.
#[unsafe(no_mangle)]
extern "C" fn cxil_destroy_wait_obj(wait: Handle<Wait>) -> c_int {
    status(|| {
        let block = wait.get()?;
        let (dev, number) = (Counted::new(&block.dev), block.number);
        // This closes the file, which C libcxi also does first.
        wait.end(|_| Ok(()))?;
        let _ = send(&dev, &WaitFreeCmd::of(number));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_get_wait_obj_fd(wait: Handle<Wait>) -> c_int {
    status(|| Ok(wait.get()?.interrupt.as_raw_fd()))
}

#[unsafe(no_mangle)]
extern "C" fn cxil_clear_wait_obj(wait: Handle<Wait>) {
    guarded((), || {
        if let Ok(wait) = wait.get() {
            clear(&wait.dev, &wait.interrupt);
        }
    });
}
