//! Registers.

use std::ffi::c_int;

use cxi_ioctl::abi::device::MapCsrsCmd;

use crate::device::Dev;
use crate::failure::{Failure, Result};
use crate::ffi::{Memory, status};
use crate::handle::Handle;
use crate::send::send;
use crate::window::{REGISTER, Window};

#[unsafe(no_mangle)]
extern "C" fn cxil_map_csr(dev: Handle<Dev>) -> c_int {
    status(|| {
        let dev = dev.get()?;
        if !dev.registers.address().is_null() {
            return Err(Failure::argument());
        }
        let place = send(dev, &MapCsrsCmd::new())?;
        dev.registers.map(dev, place)
    })
}

/// The window, and the offset of registers that are entirely inside it.
fn registers(dev: &Handle<Dev>, csr: u32, len: usize) -> Result<(&Window, usize)> {
    let window = &dev.get()?.registers;
    let offset = csr as usize;
    window.place(offset, len)?;
    if !len.is_multiple_of(REGISTER) {
        return Err(Failure::argument());
    }
    Ok((window, offset))
}

#[unsafe(no_mangle)]
extern "C" fn cxil_read_csr(dev: Handle<Dev>, csr: u32, value: Memory, csr_len: usize) -> c_int {
    status(|| {
        let (window, offset) = registers(&dev, csr, csr_len)?;
        let value = value.required()?;
        for index in 0..csr_len / REGISTER {
            value.set_word(index, window.register(offset + index * REGISTER)?);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_write_csr(dev: Handle<Dev>, csr: u32, value: Memory, csr_len: usize) -> c_int {
    status(|| {
        let (window, offset) = registers(&dev, csr, csr_len)?;
        let value = value.required()?;
        for index in 0..csr_len / REGISTER {
            window.set_register(offset + index * REGISTER, value.word(index))?;
        }
        Ok(())
    })
}

/// `value` is the value of the whole register; only its byte at `offset` is written.
#[unsafe(no_mangle)]
extern "C" fn cxil_write8_csr(
    dev: Handle<Dev>,
    csr: u32,
    offset: u32,
    value: Memory,
    csr_len: usize,
) -> c_int {
    status(|| {
        let (window, start) = registers(&dev, csr, csr_len)?;
        let value = value.required()?;
        let index = offset as usize;
        if index >= csr_len {
            return Err(Failure::argument());
        }
        window.set_byte(start + index, value.byte(index))
    })
}
