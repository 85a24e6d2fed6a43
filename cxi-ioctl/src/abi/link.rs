//! SBUS and SERDES access: link debugging, raw only.

use crate::layout::{abi, commands, constants};

constants! {}

abi! {
    /// Parameters of an SBUS operation.
    struct SbusOpParams = "cxi_sbus_op_params", 20 {
        /// Data to write.
        req_data: u32 = 0,
        /// Register.
        data_addr: u8 = 4,
        /// Receiver.
        rx_addr: u8 = 5,
        /// SBUS command.
        command: u8 = 6 + 1,
        /// Delay before the first poll, in microseconds.
        delay: u32 = 8,
        /// Timeout.
        timeout: u32 = 12,
        /// Polling interval.
        poll_interval: u32 = 16,
    }

    /// Does an operation on the SBUS of the link.
    ///
    /// Request of SBUS_OP; privilege: CAP_SYS_ADMIN on a physical function. libcxi:
    /// `cxil_sbus_op`.
    @answered struct SbusOpCmd = "cxi_sbus_op_cmd", 40 {
        /// Parameters.
        params: SbusOpParams = 16 + 4,
    }

    /// Response of SBUS_OP.
    struct SbusOpResp = "cxi_sbus_op_resp", 8 {
        /// Data read.
        rsp_data: u32 = 0,
        /// SBUS result code.
        result_code: u8 = 4,
        /// SBUS overrun flag.
        overrun: u8 = 5 + 2,
    }

    /// Resets the SBUS of the link.
    ///
    /// Request of SBUS_OP_RESET; privilege: CAP_SYS_ADMIN on a physical function. libcxi:
    /// `cxil_sbus_op_reset`.
    @answered struct SbusOpResetCmd = "cxi_sbus_op_reset_cmd", 16 {
    }

    /// Does an operation on the SERDES of the link.
    ///
    /// Request of SERDES_OP; privilege: CAP_SYS_ADMIN on a physical function. libcxi:
    /// `cxil_serdes_op`.
    @answered struct SerdesOpCmd = "cxi_serdes_op_cmd", 48 {
        /// SERDES selection.
        serdes_sel: u64 = 16,
        /// SERDES operation.
        serdes_op: u64 = 24,
        /// Operand.
        data: u64 = 32,
        /// Timeout.
        timeout: i32 = 40,
        /// Flags.
        flags: u32 = 44,
    }

    /// Response of SERDES_OP.
    struct SerdesOpResp = "cxi_serdes_op_resp", 2 {
        /// Result.
        result: u16 = 0,
    }
}

commands! {
    SbusOpCmd: SBUS_OP -> SbusOpResp, of (params: SbusOpParams), response at 8;
    SbusOpResetCmd: SBUS_OP_RESET -> ();
    SerdesOpCmd: SERDES_OP -> SerdesOpResp, response at 8;
}
