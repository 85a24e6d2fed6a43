//! What a sequence is made of.

/// Who makes a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub uid: u32,
    pub gid: u32,
    pub admin: bool,
    pub netns: u32,
}

/// Kind and id of a member slot, as raw numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Member {
    pub kind: u32,
    pub id: u32,
}

/// A service descriptor as a caller gives it and as SVC_GET shows it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Descriptor {
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
pub(crate) enum Operation {
    Open {
        file: usize,
    },
    Close {
        file: usize,
    },
    Command {
        file: usize,
        caller: Caller,
        command: Command,
    },
}

/// One command.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    SvcAlloc(Box<Descriptor>),
    SvcUpdate(Box<Descriptor>),
    SvcDestroy { svc_id: u32 },
    SvcEnable { svc_id: u32, enable: bool },
    SvcSetLpr { svc_id: u32, lnis_per_rgid: u32 },
    SvcSetVniRange { svc_id: u32, min: u32, max: u32 },
    LniAlloc { svc_id: u32 },
    LniFree { lni: u32 },
}

impl Command {
    pub(crate) fn needs_admin(&self) -> bool {
        !matches!(self, Self::LniAlloc { .. } | Self::LniFree { .. })
    }
}
