//! What a sequence is made of.

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
    /// The same command again and again, until it is refused.
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

/// One command.
#[derive(Clone, Debug)]
pub enum Command {
    SvcAlloc(Box<Descriptor>),
    SvcUpdate(Box<Descriptor>),
    SvcDestroy {
        svc_id: u32,
    },
    SvcEnable {
        svc_id: u32,
        enable: bool,
    },
    SvcSetLpr {
        svc_id: u32,
        lnis_per_rgid: u32,
    },
    SvcSetVniRange {
        svc_id: u32,
        min: u32,
        max: u32,
    },
    SvcSetExclusiveCp {
        svc_id: u32,
        exclusive: bool,
    },
    LniAlloc {
        svc_id: u32,
    },
    LniFree {
        lni: u32,
    },
    /// CP_ALLOC, or TRIG_CP_ALLOC if a kind is asked for.
    CpAlloc {
        lni: u32,
        vni: u32,
        tc: u32,
        tc_type: u32,
        kind: Option<u32>,
    },
    CpFree {
        cp: u32,
    },
    CpModify {
        cp: u32,
        vni: u32,
    },
    DomainReserve {
        lni: u32,
        vni: u32,
        pid: u32,
        count: u32,
    },
    DomainAlloc {
        lni: u32,
        vni: u32,
        pid: u32,
    },
    DomainFree {
        domain: u32,
    },
    CqAlloc(QueueRequest),
    CqFree {
        cq: u32,
    },
    EqAlloc(EventQueueRequest),
    EqFree {
        eq: u32,
    },
    EqResize {
        eq: u32,
        md: u32,
        queue: u64,
        len: u64,
    },
    EqResizeComplete {
        eq: u32,
    },
    EqAdjust {
        eq: u32,
        change: i32,
    },
    PteAlloc {
        lni: u32,
        eq: u32,
        options: u64,
    },
    PteFree {
        pte: u32,
    },
    PteMap {
        pte: u32,
        domain: u32,
        offset: u32,
        multicast: bool,
    },
    PteUnmap {
        index: u32,
    },
    PteTransition {
        pte: u32,
        drop_count: u32,
    },
    CtAlloc {
        lni: u32,
        writeback: u64,
    },
    CtFree {
        ct: u32,
    },
    CtUpdate {
        ct: u32,
        writeback: u64,
    },
    AtuMap {
        lni: u32,
        va: u64,
        len: u64,
        flags: u32,
    },
    AtuUnmap {
        md: u32,
    },
    AtuUpdate {
        md: u32,
        va: u64,
        len: u64,
        flags: u32,
    },
    WaitAlloc {
        lni: u32,
    },
    WaitFree {
        wait: u32,
    },
}

/// What a command queue is asked for with.
#[derive(Clone, Copy, Debug)]
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
            Self::SvcAlloc(_)
                | Self::SvcUpdate(_)
                | Self::SvcDestroy { .. }
                | Self::SvcEnable { .. }
                | Self::SvcSetLpr { .. }
                | Self::SvcSetVniRange { .. }
                | Self::SvcSetExclusiveCp { .. }
        )
    }
}
