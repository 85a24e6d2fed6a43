//! Every typed command of the kernel interface, for checks that apply to each of them.

use cxi_ioctl::Command;
use cxi_ioctl::abi::{
    counter, device, domain, link, lni, memory, portal, profile, queue, service, wait,
};

/// An operation on a command of each type.
pub trait Visitor {
    /// Visits a command with only its opcode filled in.
    fn visit<C: Command>(&mut self, name: &'static str, command: &C);
}

macro_rules! every {
    ($( $module:ident::{ $( $name:ident ),* $(,)? } )*) => {
        /// Visits every command with its own layout.
        pub fn visit_all(visitor: &mut impl Visitor) {
            $( $( visitor.visit(stringify!($name), &$module::$name::new()); )* )*
        }
    };
}

every! {
    counter::{CtAllocCmd, CtFreeCmd, CtWbUpdateCmd}
    device::{DevInfoGetCmd, GetDevPropertiesCmd, InboundWaitCmd, MapCsrsCmd}
    domain::{DomainReserveCmd, DomainAllocCmd, DomainFreeCmd}
    link::{SbusOpCmd, SbusOpResetCmd, SerdesOpCmd}
    lni::{LniAllocCmd, LniAllocCmdV1, LniFreeCmd}
    memory::{AtuMapCmd, AtuUnmapCmd, AtuUpdateMdCmd}
    portal::{
        PteAllocCmd, PteFreeCmd, PteLeInvalidateCmd, PteMapCmd, PteStatusCmd, PteTransitionSmCmd,
        PteUnmapCmd,
    }
    profile::{CpAllocCmd, CpFreeCmd, CpModifyCmd, TrigCpAllocCmd}
    queue::{
        CqAckCounterCmd, CqAllocBufCmd, CqAllocCmd, CqFreeCmd, EqAdjustReservedFcCmd,
        EqAdjustReservedFcCmdV1, EqAllocCmd, EqFreeCmd, EqResizeCmd, EqResizeCompleteCmd,
    }
    service::{
        SvcAllocCmd, SvcAllocParentCmd, SvcIsParentGetCmd, SvcDestroyCmd, SvcEnableCmd, SvcGetCmd, SvcListGetCmd, SvcRsrcGetCmd,
        SvcRsrcListGetCmd, SvcUpdateCmd, SvcGetExclusiveCpCmd, SvcGetLprCmd, SvcGetNetnsCmd,
        SvcGetVniRangeCmd, SvcSetExclusiveCpCmd, SvcSetLprCmd, SvcSetNetnsCmd, SvcSetVniRangeCmd,
    }
    wait::{WaitAllocCmd, WaitFreeCmd}
}
