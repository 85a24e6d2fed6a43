//! NICs.

use std::ffi::c_int;
use std::os::unix::ffi::OsStringExt;

use cxi_ioctl::CharDev;
use cxi_ioctl::abi::device::InboundWaitCmd;

use crate::device::{Dev, OpenFile, close};
use crate::failure::{Failure, Result};
use crate::ffi::{Fresh, Out, Owned, guarded, status};
use crate::handle::{Handle, Room};
use crate::info::{CLASS, DevInfo, PROPERTIES};
use crate::send::send;
use crate::sysfs::Attribute;
use crate::{fork, scan, sysfs};

/// The head of `struct cxil_device_list`, before the NICs.
const LIST_HEADER: usize = 8;

#[unsafe(no_mangle)]
extern "C" fn cxil_get_device_list(dev_list: Out<*mut DevInfo>) -> c_int {
    status(|| {
        let dev_list = dev_list.required()?;
        let infos: Vec<DevInfo> = numbers().into_iter().filter_map(look_at).collect();
        let mut block = Fresh::zeroed(LIST_HEADER + size_of_val(infos.as_slice()))?;
        block.put(0, infos.len() as u32);
        for (index, info) in infos.into_iter().enumerate() {
            block.put(LIST_HEADER + index * size_of::<DevInfo>(), info);
        }
        dev_list.set(block.into_raw());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_free_device_list(dev_list: Owned) {
    drop(dev_list);
}

#[unsafe(no_mangle)]
extern "C" fn cxil_open_device(dev_id: u32, dev: Out<*mut DevInfo>) -> c_int {
    status(|| {
        let dev = Room::new(dev)?;
        let file = open(dev_id)?;
        let info = DevInfo::query(dev_id, file.transport())?;
        if let Err(failure) = fork::init() {
            fork::complain(failure.errno);
        }
        dev.fill(Dev::new(dev_id, file, info)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_close_device(dev: Handle<Dev>) {
    guarded((), || close(&dev));
}

#[unsafe(no_mangle)]
extern "C" fn cxil_inbound_wait(dev: Handle<Dev>) -> c_int {
    status(|| send(dev.get()?, &InboundWaitCmd::new()))
}

#[unsafe(no_mangle)]
extern "C" fn cxil_get_amo_remap_to_pcie_fadd(dev: Handle<Dev>, value: Out<c_int>) -> c_int {
    status(|| {
        let dev = dev.get()?;
        let value = value.required()?;
        let number = dev.info.get().dev_id;
        let file = Attribute::user(number, PROPERTIES, "amo_remap_to_pcie_fadd");
        value.set(file.number(10)? as c_int);
        Ok(())
    })
}

fn open(number: u32) -> Result<OpenFile> {
    let opened = match sysfs::node() {
        None => CharDev::open(format!("/dev/cxi{number}")).map(OpenFile::Device),
        Some(node) => node.open(number).map(|file| OpenFile::Socket(Box::new(file))),
    };
    opened.map_err(|error| Failure::open(number, &error))
}

/// Numbers of the NICs in sysfs, in the textual order of their names.
fn numbers() -> Vec<u32> {
    let names = sysfs::names(CLASS).unwrap_or_default();
    let mut names: Vec<Vec<u8>> = names.into_iter().map(OsStringExt::into_vec).collect();
    names.sort_unstable();
    names
        .iter()
        .filter_map(|name| name.strip_prefix(b"cxi"))
        .filter(|rest| !rest.is_empty())
        .map(|rest| scan::number(rest, 10).map_or(0, |(number, _)| number as u32))
        .collect()
}

/// The description of a NIC; `None` if it cannot be queried.
fn look_at(number: u32) -> Option<DevInfo> {
    DevInfo::query(number, open(number).ok()?.transport()).ok()
}
