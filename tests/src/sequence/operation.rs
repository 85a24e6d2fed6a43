//! The operations of a sequence.

use cxi_ioctl::DriverRelease;
pub use cxi_ioctl::abi::counter::{CtAllocCmd, CtFreeCmd, CtWbUpdateCmd};
pub use cxi_ioctl::abi::domain::{DomainAllocCmd, DomainFreeCmd, DomainReserveCmd};
pub use cxi_ioctl::abi::lni::{LniAllocCmd, LniAllocCmdV1, LniFreeCmd};
pub use cxi_ioctl::abi::memory::{AtuMapCmd, AtuUnmapCmd, AtuUpdateMdCmd};
pub use cxi_ioctl::abi::portal::{
    PtAllocOpts, PteAllocCmd, PteFreeCmd, PteMapCmd, PteTransitionSmCmd, PteUnmapCmd,
};
pub use cxi_ioctl::abi::profile::{CpAllocCmd, CpFreeCmd, CpModifyCmd, TrigCpAllocCmd};
pub use cxi_ioctl::abi::queue::{
    CqAllocCmd, CqAllocOpts, CqFreeCmd, EqAdjustReservedFcCmd, EqAdjustReservedFcCmdV1, EqAllocCmd,
    EqAttr, EqFreeCmd, EqResizeCmd, EqResizeCompleteCmd,
};
pub use cxi_ioctl::abi::service::{
    Limits, RsrcLimits, SvcAllocCmd, SvcDesc, SvcDestroyCmd, SvcEnableCmd, SvcFlags, SvcMember,
    SvcSetExclusiveCpCmd, SvcSetLprCmd, SvcSetVniRangeCmd, SvcUpdateCmd,
};
pub use cxi_ioctl::abi::wait::{WaitAllocCmd, WaitFreeCmd};
use zerocopy::{FromBytes, IntoBytes};

use crate::device::Report;

/// The caller of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    pub uid: u32,
    pub gid: u32,
    pub admin: bool,
    pub netns: u32,
}

impl Caller {
    pub const ROOT: Self = Self { uid: 0, gid: 0, admin: true, netns: 4_026_531_840 };
}

/// One step; `file` is the slot of an open file.
#[derive(Clone, Debug)]
pub enum Operation {
    Open {
        file: usize,
    },
    /// The process closes its file, or dies.
    Close {
        file: usize,
    },
    Command {
        file: usize,
        caller: Caller,
        command: Command,
    },
    /// The same command, repeated until it is refused.
    Fill {
        file: usize,
        caller: Caller,
        command: Command,
    },
    /// The driver's cleanup, which runs every second.
    Tick,
    /// The hardware counts something.
    Report(Report),
}

/// Defines the commands. A row has the request, the numbers of the response that the model knows, and
/// the request of releases before `main`, with the fields that it shares, if that is another one.
macro_rules! commands {
    ($(
        $name:ident($request:ident) -> [$($($number:ident).+),*]
            $(, older $older:ident { $($field:ident),* })?;
    )*) => {
        /// One command.
        #[derive(Clone, Copy, Debug)]
        pub enum Command {
            $($name($request),)*
        }

        impl Command {
            /// The bytes of the request, for a release.
            pub fn request(&self, release: DriverRelease) -> Vec<u8> {
                match self {
                    $(Self::$name(command) => {
                        $(if release < DriverRelease::Main2026_07 {
                            let mut older = $older::new();
                            $(older.$field = command.$field;)*
                            return older.as_bytes().to_vec();
                        })?
                        command.as_bytes().to_vec()
                    })*
                }
            }

            /// The numbers of a response that the model predicts.
            pub(super) fn numbers(&self, response: &[u8]) -> Vec<u32> {
                match self {
                    $(Self::$name(_) => {
                        type Response = <$request as cxi_ioctl::Command>::Response;
                        let _response = Response::read_from_bytes(response).unwrap();
                        vec![$(u32::try_from(_response.$($number).+).unwrap()),*]
                    })*
                }
            }
        }
    };
}

commands! {
    SvcAlloc(SvcAllocCmd) -> [svc_id];
    SvcUpdate(SvcUpdateCmd) -> [];
    SvcDestroy(SvcDestroyCmd) -> [];
    SvcEnable(SvcEnableCmd) -> [];
    SvcSetLpr(SvcSetLprCmd) -> [];
    SvcSetVniRange(SvcSetVniRangeCmd) -> [];
    SvcSetExclusiveCp(SvcSetExclusiveCpCmd) -> [];
    LniAlloc(LniAllocCmd) -> [lni], older LniAllocCmdV1 { svc_id };
    LniFree(LniFreeCmd) -> [];
    CpAlloc(CpAllocCmd) -> [cp_hndl, lcid];
    TrigCpAlloc(TrigCpAllocCmd) -> [cp_hndl, lcid];
    CpFree(CpFreeCmd) -> [];
    CpModify(CpModifyCmd) -> [];
    DomainReserve(DomainReserveCmd) -> [pid];
    DomainAlloc(DomainAllocCmd) -> [domain, vni, pid];
    DomainFree(DomainFreeCmd) -> [];
    CqAlloc(CqAllocCmd) -> [cq, count];
    CqFree(CqFreeCmd) -> [];
    EqAlloc(EqAllocCmd) -> [eq];
    EqFree(EqFreeCmd) -> [];
    EqResize(EqResizeCmd) -> [];
    EqResizeComplete(EqResizeCompleteCmd) -> [];
    EqAdjust(EqAdjustReservedFcCmd) -> [reserved_fc],
        older EqAdjustReservedFcCmdV1 { eq_hndl, value };
    PteAlloc(PteAllocCmd) -> [pte_number];
    PteFree(PteFreeCmd) -> [];
    PteMap(PteMapCmd) -> [pte_index];
    PteUnmap(PteUnmapCmd) -> [];
    PteTransition(PteTransitionSmCmd) -> [];
    CtAlloc(CtAllocCmd) -> [ctn];
    CtFree(CtFreeCmd) -> [];
    CtUpdate(CtWbUpdateCmd) -> [];
    AtuMap(AtuMapCmd) -> [id, md.lac];
    AtuUnmap(AtuUnmapCmd) -> [];
    AtuUpdate(AtuUpdateMdCmd) -> [];
    WaitAlloc(WaitAllocCmd) -> [client_id, wait];
    WaitFree(WaitFreeCmd) -> [];
}

/// A command whose request has these fields.
macro_rules! command {
    ($name:ident($request:ident { $($fields:tt)* })) => {
        $crate::sequence::operation::Command::$name($crate::sequence::operation::$request {
            $($fields)*,
            ..$crate::sequence::operation::$request::new()
        })
    };
}
pub(super) use command;

impl Command {
    pub fn needs_admin(&self) -> bool {
        matches!(
            self,
            Self::SvcAlloc(_)
                | Self::SvcUpdate(_)
                | Self::SvcDestroy(_)
                | Self::SvcEnable(_)
                | Self::SvcSetLpr(_)
                | Self::SvcSetVniRange(_)
                | Self::SvcSetExclusiveCp(_)
        )
    }

    /// The request for a communication profile, which is part of both commands.
    pub fn profile(&self) -> Option<CpRequest> {
        let (lni, vni, class, kind) = match self {
            Self::CpAlloc(it) => (it.lni, it.vni, (it.tc, it.tc_type), None),
            Self::TrigCpAlloc(it) => (it.lni, it.vni, (it.tc, it.tc_type), Some(it.cp_type)),
            _ => return None,
        };
        Some(CpRequest { lni, vni, class, kind })
    }
}

/// The request for a communication profile.
#[derive(Clone, Copy, Debug)]
pub struct CpRequest {
    pub lni: u32,
    pub vni: u32,
    /// Traffic class and its type.
    pub class: (u32, u32),
    /// In TRIG_CP_ALLOC: for triggered operations or for others.
    pub kind: Option<u32>,
}
