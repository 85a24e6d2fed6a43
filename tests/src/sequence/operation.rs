//! What a sequence is made of.

use cxi_ioctl::DriverRelease;
use cxi_ioctl::abi::counter::{CtAllocCmd, CtFreeCmd, CtWbUpdateCmd};
use cxi_ioctl::abi::domain::{DomainAllocCmd, DomainFreeCmd, DomainReserveCmd};
use cxi_ioctl::abi::lni::{LniAllocCmd, LniAllocCmdV1, LniFreeCmd};
use cxi_ioctl::abi::memory::{AtuMapCmd, AtuUnmapCmd, AtuUpdateMdCmd};
use cxi_ioctl::abi::portal::{PteAllocCmd, PteFreeCmd, PteMapCmd, PteTransitionSmCmd, PteUnmapCmd};
use cxi_ioctl::abi::profile::{CpAllocCmd, CpFreeCmd, CpModifyCmd, TrigCpAllocCmd};
use cxi_ioctl::abi::queue::{
    CqAllocCmd, CqFreeCmd, EqAdjustReservedFcCmd, EqAdjustReservedFcCmdV1, EqAllocCmd, EqFreeCmd,
    EqResizeCmd, EqResizeCompleteCmd,
};
use cxi_ioctl::abi::service::{
    Limits, SvcAllocCmd, SvcDesc, SvcDestroyCmd, SvcEnableCmd, SvcMember, SvcSetExclusiveCpCmd,
    SvcSetLprCmd, SvcSetVniRangeCmd, SvcUpdateCmd,
};
use cxi_ioctl::abi::wait::{WaitAllocCmd, WaitFreeCmd};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// Who makes a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    pub uid: u32,
    pub gid: u32,
    pub admin: bool,
    pub netns: u32,
}

impl Caller {
    pub const ROOT: Self = Self {
        uid: 0,
        gid: 0,
        admin: true,
        netns: 4_026_531_840,
    };
}

/// Kind and id of a member slot, as raw numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Member {
    pub kind: u32,
    pub id: u32,
}

/// A service descriptor as a caller gives it and as SVC_GET shows it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Descriptor {
    pub restricted_members: bool,
    pub restricted_vnis: bool,
    pub restricted_tcs: bool,
    pub resource_limits: bool,
    pub enable: bool,
    pub is_system_svc: bool,
    pub cntr_pool_id: u8,
    pub num_vld_vnis: u8,
    pub vnis: [u16; 4],
    pub tcs: [bool; 5],
    pub members: [Member; 2],
    /// `(max, res)` per resource type.
    pub limits: [(u16, u16); 8],
    pub svc_id: u32,
}

impl Descriptor {
    /// As the kernel has it.
    pub(super) fn to_abi(&self) -> SvcDesc {
        let mut to = SvcDesc::new_zeroed();
        let flags = [
            self.restricted_members,
            self.restricted_vnis,
            self.restricted_tcs,
            self.resource_limits,
            self.enable,
            self.is_system_svc,
        ];
        for (bit, flag) in flags.into_iter().enumerate() {
            to.flags |= u8::from(flag) << bit;
        }
        to.flags |= self.cntr_pool_id << 6;
        to.num_vld_vnis = self.num_vld_vnis;
        to.vnis = self.vnis;
        to.tcs = self.tcs.map(u8::from);
        to.members = self.members.map(|member| SvcMember {
            id: member.id,
            kind: member.kind,
        });
        to.limits.types = self.limits.map(|(max, res)| Limits { max, res });
        to.svc_id = self.svc_id;
        to
    }

    /// As the kernel gives it.
    pub(super) fn from_abi(from: &SvcDesc) -> Self {
        let flag = |bit: u8| from.flags >> bit & 1 == 1;
        Self {
            restricted_members: flag(0),
            restricted_vnis: flag(1),
            restricted_tcs: flag(2),
            resource_limits: flag(3),
            enable: flag(4),
            is_system_svc: flag(5),
            cntr_pool_id: from.flags >> 6,
            num_vld_vnis: from.num_vld_vnis,
            vnis: from.vnis,
            tcs: from.tcs.map(|class| class == 1),
            members: from.members.map(|member| Member {
                kind: member.kind,
                id: member.id,
            }),
            limits: from.limits.types.map(|limits| (limits.max, limits.res)),
            svc_id: from.svc_id,
        }
    }
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
    /// The cleanup that the driver runs every second.
    Tick,
    /// The hardware has commands of a queue in flight, or none.
    InFlight {
        queue: u32,
        commands: u32,
    },
    /// The hardware counts TLEs in use in a pool.
    TlesInUse {
        pool: u32,
        tles: u16,
    },
    /// A processing element counts LEs in use in a pool.
    LesInUse {
        element: u32,
        pool: u32,
        les: u16,
    },
}

/// The bytes of a request with these values in it.
macro_rules! bytes {
    ($request:ident { $($($place:ident).+ = $value:expr),* $(,)? }) => {{
        let mut request = $request::new();
        $(request.$($place).+ = $value;)*
        request.as_bytes().to_vec()
    }};
}

/// Defines the commands. A row has the fields that a sequence chooses, the request that takes them,
/// the numbers of the response that the model knows, and the request of releases before `main` if
/// that is another one.
macro_rules! commands {
    ($(
        $name:ident { $($field:ident: $type:ty),* }
            => $request:ident $places:tt -> [$($($number:ident).+),*] $(, older $older:ident)?;
    )*) => {
        /// One command.
        #[derive(Clone, Debug)]
        pub enum Command {
            $($name { $($field: $type),* },)*
        }

        impl Command {
            /// The bytes that a release takes for it.
            pub(super) fn request(&self, release: DriverRelease) -> Vec<u8> {
                match self.clone() {
                    $(Self::$name { $($field),* } => {
                        $(if release < DriverRelease::Main {
                            return bytes!($older $places);
                        })?
                        bytes!($request $places)
                    })*
                }
            }

            /// The numbers of a response that the model knows.
            pub(super) fn numbers(&self, response: &[u8]) -> Vec<u32> {
                match self {
                    $(Self::$name { .. } => {
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
    SvcAlloc { new: Box<Descriptor> } => SvcAllocCmd { svc_desc = new.to_abi() } -> [svc_id];
    SvcUpdate { new: Box<Descriptor> } => SvcUpdateCmd { svc_desc = new.to_abi() } -> [];
    SvcDestroy { svc_id: u32 } => SvcDestroyCmd { svc_id = svc_id } -> [];
    SvcEnable { svc_id: u32, enable: bool }
        => SvcEnableCmd { svc_id = svc_id, enable = enable.into() } -> [];
    SvcSetLpr { svc_id: u32, lnis_per_rgid: u32 }
        => SvcSetLprCmd { svc_id = svc_id, lnis_per_rgid = lnis_per_rgid } -> [];
    SvcSetVniRange { svc_id: u32, min: u32, max: u32 }
        => SvcSetVniRangeCmd { svc_id = svc_id, vni_min = min, vni_max = max } -> [];
    SvcSetExclusiveCp { svc_id: u32, exclusive: bool }
        => SvcSetExclusiveCpCmd { svc_id = svc_id, exclusive_cp = exclusive.into() } -> [];
    LniAlloc { svc_id: u32 } => LniAllocCmd { svc_id = svc_id } -> [lni], older LniAllocCmdV1;
    LniFree { lni: u32 } => LniFreeCmd { lni = lni } -> [];
    CpAlloc { asked: CpRequest } => CpAllocCmd {
        lni = asked.lni,
        vni = asked.vni,
        tc = asked.class.0,
        tc_type = asked.class.1,
    } -> [cp_hndl, lcid];
    TrigCpAlloc { asked: CpRequest } => TrigCpAllocCmd {
        lni = asked.lni,
        vni = asked.vni,
        tc = asked.class.0,
        tc_type = asked.class.1,
        cp_type = asked.kind.unwrap_or_default(),
    } -> [cp_hndl, lcid];
    CpFree { cp: u32 } => CpFreeCmd { cp_hndl = cp } -> [];
    CpModify { cp: u32, vni: u32 } => CpModifyCmd { cp_hndl = cp, vni = vni } -> [];
    DomainReserve { lni: u32, vni: u32, pid: u32, count: u32 }
        => DomainReserveCmd { lni = lni, vni = vni, pid = pid, count = count } -> [pid];
    DomainAlloc { lni: u32, vni: u32, pid: u32 }
        => DomainAllocCmd { lni = lni, vni = vni, pid = pid } -> [domain, vni, pid];
    DomainFree { domain: u32 } => DomainFreeCmd { domain = domain } -> [];
    CqAlloc { asked: QueueRequest } => CqAllocCmd {
        lni = asked.lni,
        eq = asked.eq,
        opts.count = asked.count,
        opts.policy = asked.policy,
        opts.flags = asked.flags,
        opts.lcid = asked.lcid,
        opts.lpe_cdt_thresh_id = asked.threshold,
    } -> [cq, count];
    CqFree { cq: u32 } => CqFreeCmd { cq = cq } -> [];
    EqAlloc { asked: EventQueueRequest } => EqAllocCmd {
        lni = asked.lni,
        queue_md = asked.md,
        event_wait = asked.event_wait,
        status_wait = asked.status_wait,
        attr.queue = asked.queue,
        attr.queue_len = asked.len,
        attr.flags = asked.flags,
        attr.reserved_slots = asked.reserved_slots,
        attr.status_thresh_base = asked.thresholds.0,
        attr.status_thresh_delta = asked.thresholds.1,
        attr.status_thresh_count = asked.thresholds.2,
    } -> [eq];
    EqFree { eq: u32 } => EqFreeCmd { eq = eq } -> [];
    EqResize { eq: u32, md: u32, queue: u64, len: u64 }
        => EqResizeCmd { eq_hndl = eq, queue_md = md, queue = queue, queue_len = len } -> [];
    EqResizeComplete { eq: u32 } => EqResizeCompleteCmd { eq_hndl = eq } -> [];
    EqAdjust { eq: u32, change: i32 }
        => EqAdjustReservedFcCmd { eq_hndl = eq, value = change } -> [reserved_fc],
        older EqAdjustReservedFcCmdV1;
    PteAlloc { lni: u32, eq: u32, options: u64 }
        => PteAllocCmd { lni_hndl = lni, evtq_hndl = eq, opts.bits = options } -> [pte_number];
    PteFree { pte: u32 } => PteFreeCmd { pte_number = pte } -> [];
    PteMap { pte: u32, domain: u32, offset: u32, multicast: bool } => PteMapCmd {
        pte_number = pte,
        domain_hndl = domain,
        pid_offset = offset,
        is_multicast = multicast.into(),
    } -> [pte_index];
    PteUnmap { index: u32 } => PteUnmapCmd { pte_index = index } -> [];
    PteTransition { pte: u32, drop_count: u32 }
        => PteTransitionSmCmd { pte_index = pte, drop_count = drop_count } -> [];
    CtAlloc { lni: u32, writeback: u64 } => CtAllocCmd { lni = lni, wb = writeback } -> [ctn];
    CtFree { ct: u32 } => CtFreeCmd { ctn = ct } -> [];
    CtUpdate { ct: u32, writeback: u64 } => CtWbUpdateCmd { ctn = ct, wb = writeback } -> [];
    AtuMap { lni: u32, va: u64, len: u64, flags: u32 }
        => AtuMapCmd { lni = lni, va = va, len = len, flags = flags } -> [id, md.lac];
    AtuUnmap { md: u32 } => AtuUnmapCmd { id = md } -> [];
    AtuUpdate { md: u32, va: u64, len: u64, flags: u32 }
        => AtuUpdateMdCmd { id = md, va = va, len = len, flags = flags } -> [];
    WaitAlloc { lni: u32 } => WaitAllocCmd { lni = lni } -> [client_id, wait];
    WaitFree { wait: u32 } => WaitFreeCmd { wait = wait } -> [];
}

/// What a communication profile is asked for with.
#[derive(Clone, Copy, Debug)]
pub struct CpRequest {
    pub lni: u32,
    pub vni: u32,
    /// Traffic class and its type.
    pub class: (u32, u32),
    /// In TRIG_CP_ALLOC: for triggered operations or for others.
    pub kind: Option<u32>,
}

/// What a command queue is asked for with.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueRequest {
    pub lni: u32,
    pub eq: u32,
    pub count: u32,
    pub policy: u32,
    pub flags: u32,
    pub lcid: u32,
    pub threshold: u32,
}

/// What an event queue is asked for with.
#[derive(Clone, Copy, Debug)]
pub struct EventQueueRequest {
    pub lni: u32,
    pub md: u32,
    pub event_wait: u32,
    pub status_wait: u32,
    pub queue: u64,
    pub len: u64,
    pub flags: u64,
    pub reserved_slots: u32,
    /// Highest fill level that is reported, from one down to the next, and how many.
    pub thresholds: (u32, u32, u32),
}

impl Command {
    pub fn needs_admin(&self) -> bool {
        matches!(
            self,
            Self::SvcAlloc { .. }
                | Self::SvcUpdate { .. }
                | Self::SvcDestroy { .. }
                | Self::SvcEnable { .. }
                | Self::SvcSetLpr { .. }
                | Self::SvcSetVniRange { .. }
                | Self::SvcSetExclusiveCp { .. }
        )
    }
}
