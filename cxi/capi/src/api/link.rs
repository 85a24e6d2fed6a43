//! SBUS and SerDes of the link.

use std::ffi::c_int;

use cxi_ioctl::abi::link::{SbusOpCmd, SbusOpParams, SbusOpResetCmd, SerdesOpCmd};
use zerocopy::FromZeros;

use crate::device::Dev;
use crate::failure::{Failure, Result};
use crate::ffi::{In, Out, status};
use crate::handle::Handle;
use crate::send::send;

/// Microseconds before the first poll, for each bit of the flags from the lowest on.
const DELAYS: [u32; 7] = [3, 4, 5, 10, 20, 50, 100];
/// Milliseconds between polls, for each of the bits above those.
const INTERVALS: [u32; 4] = [1, 10, 100, 1000];

#[unsafe(no_mangle)]
extern "C" fn cxil_sbus_op(
    dev: Handle<Dev>,
    params: In<SbusOpParams>,
    data: Out<u32>,
    result_code: Out<u8>,
    overrun: Out<u8>,
) -> c_int {
    status(|| sbus_op(&dev, params.get()?, data, result_code, overrun))
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "libcxi has as many")]
extern "C" fn cxil_sbus_op_compat(
    dev: Handle<Dev>,
    _ring: c_int,
    req_data: u32,
    data_addr: u8,
    rx_addr: u8,
    command: u8,
    data: Out<u32>,
    result_code: Out<u8>,
    overrun: Out<u8>,
    timeout: c_int,
    flags: u32,
) -> c_int {
    status(|| {
        let params = SbusOpParams {
            req_data,
            data_addr,
            rx_addr,
            command,
            delay: lowest(&DELAYS, flags)?,
            timeout: timeout.cast_unsigned(),
            poll_interval: lowest(&INTERVALS, flags >> DELAYS.len())?,
            ..SbusOpParams::new_zeroed()
        };
        sbus_op(&dev, params, data, result_code, overrun)
    })
}

/// The meaning of the lowest bit that is set.
fn lowest(values: &[u32], flags: u32) -> Result<u32> {
    let bit = flags.trailing_zeros() as usize;
    values.get(bit).copied().ok_or_else(Failure::argument)
}

/// A caller may pass NULL for the parts of the response that it does not need, as with C libcxi when
/// the operation is refused.
fn sbus_op(
    dev: &Handle<Dev>,
    params: SbusOpParams,
    data: Out<u32>,
    result_code: Out<u8>,
    overrun: Out<u8>,
) -> Result<()> {
    let response = send(dev.get()?, &SbusOpCmd::of(params))?;
    data.set(response.rsp_data);
    result_code.set(response.result_code);
    overrun.set(response.overrun);
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn cxil_sbus_op_reset(dev: Handle<Dev>) -> c_int {
    status(|| send(dev.get()?, &SbusOpResetCmd::new()))
}

#[unsafe(no_mangle)]
extern "C" fn cxil_sbus_op_reset_compat(dev: Handle<Dev>, _ring: c_int) -> c_int {
    cxil_sbus_op_reset(dev)
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "libcxi has as many")]
extern "C" fn cxil_serdes_op(
    dev: Handle<Dev>,
    _port_num: c_int,
    serdes_sel: u64,
    op: u64,
    data: u64,
    result: Out<u16>,
    timeout: c_int,
    flags: u32,
) -> c_int {
    status(|| {
        let dev = dev.get()?;
        let result = result.required()?;
        let command =
            SerdesOpCmd { serdes_sel, serdes_op: op, data, timeout, flags, ..SerdesOpCmd::new() };
        result.set(send(dev, &command)?.result);
        Ok(())
    })
}
