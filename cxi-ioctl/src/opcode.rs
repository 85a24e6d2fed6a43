//! Every command the driver knows: what it is about, what it does, who may send it, its lengths.

use std::fmt;

use crate::{ByRelease, DriverRelease, LniForm};

/// The number that a command starts with. Unknown numbers are valid values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Opcode(u32);

/// Right that a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Privilege {
    /// Everyone who can open the device.
    Any,
    /// Only with `CAP_SYS_ADMIN` in the initial user namespace; from the development branch on
    /// also only on a physical function.
    Admin,
}

/// `true` if ATU_MAP_SGT has hints.
const MAP_HAS_HINTS: ByRelease<bool> = ByRelease([false, false, false, false, false, false, true]);

/// `true` if the response of GET_DEV_PROPERTIES says whether the NIC address was set.
const SAYS_NID_CONFIGURED: ByRelease<bool> =
    ByRelease([false, false, true, true, true, true, true]);

/// Rule by which the driver checks the length of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RequestLen {
    /// Any other length is EINVAL.
    Exact(usize),
    /// The command ends in an array.
    AtLeast(usize),
}

/// Subject of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// The device as a whole. A virtual function answers these commands itself.
    Device,
    /// LNIs.
    Lni,
    /// Communication profiles.
    Profile,
    /// Domains and reservations of PIDs.
    Domain,
    /// Transmit and target queues.
    CommandQueue,
    /// Event queues.
    EventQueue,
    /// Portal table entries and their mappings.
    Portal,
    /// Counting events.
    Counter,
    /// Wait objects.
    Wait,
    /// Memory descriptors.
    Memory,
    /// Services.
    Service,
    /// Registers of the NIC, and the link through SBUS and SERDES.
    Registers,
    /// Requests of the kernel's driver of a virtual function to the one of the physical function.
    VirtualFunction,
}

/// A kind of object that a command makes or frees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Object {
    /// An LNI.
    Lni,
    /// A communication profile.
    Profile,
    /// A domain.
    Domain,
    /// A transmit or target queue.
    CommandQueue,
    /// An event queue.
    EventQueue,
    /// A portal table entry.
    Portal,
    /// A mapping of a portal table entry.
    PortalMapping,
    /// A counting event.
    Counter,
    /// A wait object.
    Wait,
    /// A memory descriptor.
    Memory,
    /// The window of registers.
    Registers,
    /// A service.
    Service,
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Lni => "LNI",
            Self::Profile => "communication profile",
            Self::Domain => "domain",
            Self::CommandQueue => "command queue",
            Self::EventQueue => "event queue",
            Self::Portal => "PtlTE",
            Self::PortalMapping => "PtlTE mapping",
            Self::Counter => "counter",
            Self::Wait => "wait object",
            Self::Memory => "memory",
            Self::Registers => "register window",
            Self::Service => "service",
        })
    }
}

/// Effect of a command that succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Effect {
    /// Nothing changes.
    Reads,
    /// It makes an object.
    Makes(Object),
    /// It frees an object.
    Frees(Object),
    /// Something else changes.
    Changes,
}

/// A command for which a driver has a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Handler {
    /// Subject of the command.
    pub family: Family,
    /// Effect of the command.
    pub effect: Effect,
    /// Right that it needs.
    pub privilege: Privilege,
    /// Some of its arguments take a capability, although anyone may send it.
    pub capability: bool,
    /// The driver looks for the caller among the members of a service or profile: user, groups and
    /// network namespace count.
    pub membership: bool,
    /// It gives addresses of the caller's memory to the driver, in addition to those of the buffers
    /// for the answer.
    pub memory: bool,
    /// Length of the request, as of [`DriverRelease::NEWEST`]; see [`Opcode::request_len`].
    pub request_len: RequestLen,
    /// Length of the fixed response in bytes, as of [`DriverRelease::NEWEST`]; see
    /// [`Opcode::response_len`].
    pub response_len: usize,
}

/// Facts about an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpcodeInfo {
    /// The opcode.
    pub opcode: Opcode,
    /// Its name in the kernel's header, without the prefix `CXI_OP_`.
    pub name: &'static str,
    /// First release that knows the number.
    pub since: DriverRelease,
    /// `None`: the number is reserved and answers EOPNOTSUPP.
    pub handler: Option<Handler>,
}

impl Opcode {
    /// The opcode with this number, known or not.
    #[must_use]
    pub const fn from_number(number: u32) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Returns the facts about it; `None` for a number that no release knows.
    #[must_use]
    #[inline]
    pub fn info(self) -> Option<&'static OpcodeInfo> {
        let index = usize::try_from(self.0).ok()?.checked_sub(1)?;
        TABLE.get(index)
    }

    /// The command, if a driver has a handler for it.
    #[must_use]
    #[inline]
    pub fn handler(self) -> Option<&'static Handler> {
        self.info()?.handler.as_ref()
    }

    /// Returns its effect when it succeeds; `None` if no driver has a handler for it.
    #[must_use]
    #[inline]
    pub fn effect(self) -> Option<Effect> {
        self.handler().map(|handler| handler.effect)
    }

    /// Returns whether only an administrator may send it; see [`Privilege::Admin`].
    #[must_use]
    pub fn needs_admin(self) -> bool {
        self.handler().is_some_and(|handler| handler.privilege == Privilege::Admin)
    }

    /// The name in the kernel's header without its prefix; `None` for an unknown number.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        self.info().map(|info| info.name)
    }

    /// The length that a release expects; `None` if it has no such command.
    #[must_use]
    pub fn request_len(self, release: DriverRelease) -> Option<RequestLen> {
        let info = self.info().filter(|info| info.since <= release)?;
        match self {
            Self::LNI_ALLOC if LniForm::for_release(release) == LniForm::Short => {
                Some(RequestLen::Exact(16))
            }
            Self::ATU_MAP_SGT if !MAP_HAS_HINTS.at(release) => Some(RequestLen::AtLeast(32)),
            _ => info.handler.map(|handler| handler.request_len),
        }
    }

    /// The length of a release's fixed response; `None` if it has no such command.
    #[must_use]
    pub fn response_len(self, release: DriverRelease) -> Option<usize> {
        let info = self.info().filter(|info| info.since <= release)?;
        match self {
            Self::GET_DEV_PROPERTIES if !SAYS_NID_CONFIGURED.at(release) => Some(80),
            _ => info.handler.map(|handler| handler.response_len),
        }
    }

    /// Every opcode of the newest release, by number.
    #[must_use]
    pub fn all() -> &'static [OpcodeInfo] {
        TABLE
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "opcode {}", self.0),
        }
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opcode({self})")
    }
}

macro_rules! opcodes {
    ($(
        $name:ident = $number:literal, $since:ident, $who:ident($($lengths:tt)*)
            $(, $family:ident $effect:ident $(($object:ident))? $([$($fact:ident)+])?)?;
    )*) => {
        #[allow(missing_docs, reason = "the names are the kernel header's")]
        impl Opcode {
            $( pub const $name: Self = Self($number); )*
        }

        const TABLE: &[OpcodeInfo] = &[ $(
            OpcodeInfo {
                opcode: Opcode::$name,
                name: stringify!($name),
                since: DriverRelease::$since,
                handler: handler!($who $($lengths)* $(; {
                    family: Family::$family,
                    effect: Effect::$effect $((Object::$object))?,
                    $($( $fact: true, )+)?
                })?),
            },
        )* ];
    };
}

macro_rules! handler {
    (no_handler) => { None };
    (any $($rest:tt)*) => { handler!(Privilege::Any, $($rest)*) };
    (admin $($rest:tt)*) => { handler!(Privilege::Admin, $($rest)*) };
    ($privilege:expr, at_least $request:literal -> $($rest:tt)*) => {
        handler!(@ $privilege, RequestLen::AtLeast($request), $($rest)*)
    };
    ($privilege:expr, $request:literal -> $($rest:tt)*) => {
        handler!(@ $privilege, RequestLen::Exact($request), $($rest)*)
    };
    (@ $privilege:expr, $request:expr, $response:literal; { $($fact:ident: $value:expr,)* }) => {
        Some(Handler {
            privilege: $privilege,
            request_len: $request,
            response_len: $response,
            $($fact: $value,)*
            ..NO_FACTS
        })
    };
}

const NO_FACTS: Handler = Handler {
    family: Family::Device,
    effect: Effect::Reads,
    privilege: Privilege::Any,
    capability: false,
    membership: false,
    memory: false,
    request_len: RequestLen::Exact(0),
    response_len: 0,
};

// Number, first release, who may send it, lengths of request and response, family, effect, and
// what else the driver looks at: all that is known of an opcode is here and nowhere else.
opcodes! {
    LNI_ALLOC = 1, Shs12_0, any(24 -> 4), Lni Makes(Lni) [membership];
    LNI_FREE = 2, Shs12_0, any(8 -> 0), Lni Frees(Lni);
    DOMAIN_RESERVE = 3, Shs12_0, any(32 -> 4), Domain Changes [membership];
    DOMAIN_ALLOC = 4, Shs12_0, any(32 -> 12), Domain Makes(Domain) [membership];
    DOMAIN_FREE = 5, Shs12_0, any(8 -> 0), Domain Frees(Domain);
    CP_ALLOC = 6, Shs12_0, any(32 -> 8), Profile Makes(Profile) [capability membership];
    CP_FREE = 7, Shs12_0, any(8 -> 0), Profile Frees(Profile);
    CQ_ALLOC = 8, Shs12_0, any(48 -> 40), CommandQueue Makes(CommandQueue) [capability];
    CQ_FREE = 9, Shs12_0, any(8 -> 0), CommandQueue Frees(CommandQueue);
    CQ_ACK_COUNTER = 10, Shs12_0, any(24 -> 4), CommandQueue Reads;
    ATU_MAP = 11, Shs12_0, any(88 -> 48), Memory Makes(Memory) [capability memory];
    ATU_UNMAP = 12, Shs12_0, any(8 -> 0), Memory Frees(Memory);
    EQ_ALLOC = 13, Shs12_0, any(80 -> 24), EventQueue Makes(EventQueue) [capability memory];
    EQ_FREE = 14, Shs12_0, any(8 -> 0), EventQueue Frees(EventQueue);
    EQ_RESIZE = 15, Shs12_0, any(32 -> 0), EventQueue Changes [memory];
    EQ_RESIZE_COMPLETE = 16, Shs12_0, any(8 -> 0), EventQueue Changes;
    PTE_ALLOC = 17, Shs12_0, any(32 -> 4), Portal Makes(Portal) [capability];
    PTE_FREE = 18, Shs12_0, any(24 -> 0), Portal Frees(Portal);
    PTE_MAP = 19, Shs12_0, any(32 -> 4), Portal Makes(PortalMapping);
    PTE_UNMAP = 20, Shs12_0, any(24 -> 0), Portal Frees(PortalMapping);
    PTE_LE_INVALIDATE = 21, Shs12_0, any(16 -> 0), Portal Changes;
    PTE_STATUS = 22, Shs12_0, any(24 -> 32), Portal Reads;
    WAIT_ALLOC = 23, Shs12_0, any(24 -> 8), Wait Makes(Wait);
    WAIT_FREE = 24, Shs12_0, any(24 -> 0), Wait Frees(Wait);
    CT_ALLOC = 25, Shs12_0, any(32 -> 24), Counter Makes(Counter) [memory];
    CT_FREE = 26, Shs12_0, any(8 -> 0), Counter Frees(Counter);
    SVC_LIST_GET = 27, Shs12_0, any(32 -> 4), Service Reads;
    SVC_ALLOC = 28, Shs12_0, admin(88 -> 24), Service Makes(Service);
    SVC_DESTROY = 29, Shs12_0, admin(8 -> 0), Service Frees(Service);
    MAP_CSRS = 30, Shs12_0, admin(16 -> 16), Registers Makes(Registers);
    SBUS_OP_RESET = 31, Shs12_0, admin(16 -> 0), Registers Changes;
    SBUS_OP = 32, Shs12_0, admin(40 -> 8), Registers Changes;
    SERDES_OP = 33, Shs12_0, admin(48 -> 2), Registers Changes;
    GET_DEV_PROPERTIES = 34, Shs12_0, any(16 -> 84), Device Reads;
    MAP_TELEMETRY = 35, Shs12_0, no_handler();
    UNMAP_TELEMETRY = 36, Shs12_0, no_handler();
    EQ_ADJUST_RESERVED_FC = 37, Shs12_0, any(24 -> 4), EventQueue Changes;
    CT_WB_UPDATE = 38, Shs12_0, any(16 -> 0), Counter Changes [memory];
    RESERVE_CNTR_POOL_ID = 39, Shs12_0, no_handler();
    RELEASE_CNTR_POOL_ID = 40, Shs12_0, no_handler();
    GET_TELEMETRY_REFRESH_INTERVAL = 41, Shs12_0, no_handler();
    SET_TELEMETRY_REFRESH_INTERVAL = 42, Shs12_0, no_handler();
    INBOUND_WAIT = 43, Shs12_0, any(4 -> 0), Memory Reads;
    SVC_UPDATE = 44, Shs12_0, admin(88 -> 20), Service Changes;
    SVC_GET = 45, Shs12_0, any(24 -> 68), Service Reads;
    START_TELEMETRY = 46, Shs12_0, no_handler();
    STOP_TELEMETRY = 47, Shs12_0, no_handler();
    PTE_TRANSITION_SM = 48, Shs12_0, any(24 -> 0), Portal Changes;
    SVC_RSRC_LIST_GET = 49, Shs12_0, any(32 -> 4), Service Reads;
    SVC_RSRC_GET = 50, Shs12_0, any(24 -> 24), Service Reads;
    ATU_UPDATE_MD = 51, Shs12_0, any(32 -> 0), Memory Changes [memory];
    DEV_INFO_GET = 52, Shs12_0, any(16 -> 120), Device Reads;
    SVC_SET_LPR = 53, Shs12_0, admin(24 -> 0), Service Changes;
    SVC_GET_LPR = 54, Shs12_0, any(24 -> 4), Service Reads;
    DEV_ALLOC_RX_PROFILE = 55, Shs12_0, no_handler();
    DEV_GET_RX_PROFILE_IDS = 56, Shs12_0, no_handler();
    RX_PROFILE_RELEASE = 57, Shs12_0, no_handler();
    RX_PROFILE_REVOKE = 58, Shs12_0, no_handler();
    RX_PROFILE_GET_INFO = 59, Shs12_0, no_handler();
    RX_PROFILE_ADD_AC_ENTRY = 60, Shs12_0, no_handler();
    RX_PROFILE_REMOVE_AC_ENTRY = 61, Shs12_0, no_handler();
    RX_PROFILE_GET_AC_ENTRY_IDS = 62, Shs12_0, no_handler();
    RX_PROFILE_GET_AC_ENTRY_DATA_BY_ID = 63, Shs12_0, no_handler();
    RX_PROFILE_GET_AC_ENTRY_ID_BY_DATA = 64, Shs12_0, no_handler();
    RX_PROFILE_GET_AC_ENTRY_ID_BY_USER = 65, Shs12_0, no_handler();
    DEV_ALLOC_TX_PROFILE = 66, Shs12_0, no_handler();
    DEV_GET_TX_PROFILE_IDS = 67, Shs12_0, no_handler();
    TX_PROFILE_RELEASE = 68, Shs12_0, no_handler();
    TX_PROFILE_REVOKE = 69, Shs12_0, no_handler();
    TX_PROFILE_GET_INFO = 70, Shs12_0, no_handler();
    TX_PROFILE_ADD_AC_ENTRY = 71, Shs12_0, no_handler();
    TX_PROFILE_REMOVE_AC_ENTRY = 72, Shs12_0, no_handler();
    TX_PROFILE_GET_AC_ENTRY_IDS = 73, Shs12_0, no_handler();
    TX_PROFILE_GET_AC_ENTRY_DATA_BY_ID = 74, Shs12_0, no_handler();
    TX_PROFILE_GET_AC_ENTRY_ID_BY_DATA = 75, Shs12_0, no_handler();
    TX_PROFILE_GET_AC_ENTRY_ID_BY_USER = 76, Shs12_0, no_handler();
    CP_MODIFY = 77, Shs13_1, any(12 -> 0), Profile Changes [membership];
    SVC_SET_EXCLUSIVE_CP = 78, Shs13_1, admin(12 -> 0), Service Changes;
    SVC_GET_EXCLUSIVE_CP = 79, Shs13_1, any(24 -> 1), Service Reads;
    SVC_ENABLE = 80, Shs13_1, admin(24 -> 0), Service Changes;
    SVC_SET_VNI_RANGE = 81, Shs13_1, admin(32 -> 0), Service Changes;
    SVC_GET_VNI_RANGE = 82, Shs13_1, any(32 -> 8), Service Reads;
    TRIG_CP_ALLOC = 83, Shs13_1, any(40 -> 8), Profile Makes(Profile) [capability membership];
    SVC_SET_NETNS = 84, Shs14_0_0, admin(12 -> 0), Service Changes;
    SVC_GET_NETNS = 85, Shs14_0_0, any(24 -> 4), Service Reads;
    CQ_ALLOC_BUF = 86, Main2026_07, any(72 -> 40), CommandQueue Makes(CommandQueue) [capability memory];
    VF_GET_TOKEN = 87, Main2026_07, any(16 -> 4), VirtualFunction Reads;
    PHYS_LAC_ALLOC = 88, Main2026_07, any(24 -> 4), VirtualFunction Changes;
    PHYS_LAC_FREE = 89, Main2026_07, any(12 -> 0), VirtualFunction Changes;
    ATU_MAP_SGT = 90, Main2026_07, any(at_least 72 -> 48), Memory Makes(Memory);
    ATU_UPDATE_SGT = 91, Main2026_07, any(at_least 16 -> 0), Memory Changes;
    ATU_CLEAR_MD = 92, Main2026_07, any(8 -> 0), Memory Changes;
    RETRY_HANDLER_RUNNING = 93, Main2026_07, any(16 -> 1), VirtualFunction Reads;
    ETH_DEV_INFO_GET = 94, Main2026_07, any(24 -> 0), VirtualFunction Reads;
    ETH_TC_REQ_PCP_GET = 95, Main2026_07, any(24 -> 4), VirtualFunction Reads;
    ETH_PAUSE_GET = 96, Main2026_07, any(16 -> 8), VirtualFunction Reads;
    ETH_MAX_RXSIZE_GET = 97, Main2026_07, any(16 -> 4), VirtualFunction Reads;
    ETH_LINK_STATE_GET = 98, Main2026_07, any(16 -> 1), VirtualFunction Reads;
    RMU_ETH_ALLOC = 99, Main2026_07, any(16 -> 12), VirtualFunction Changes;
    RMU_ETH_FREE = 100, Main2026_07, any(24 -> 0), VirtualFunction Changes;
    RMU_ETH_HASH_KEY_GET = 101, Main2026_07, any(16 -> 44), VirtualFunction Reads;
    RMU_ETH_ADD_MAC_FILTER = 102, Main2026_07, any(48 -> 0), VirtualFunction Changes;
    RMU_ETH_REMOVE_FILTER = 103, Main2026_07, any(24 -> 0), VirtualFunction Changes;
    RMU_ETH_ADD_PROMISC_FILTER = 104, Main2026_07, any(32 -> 0), VirtualFunction Changes;
    RMU_ETH_SET_RSS_QUEUES = 105, Main2026_07, any(288 -> 0), VirtualFunction Changes;
    RMU_ETH_SET_INDIR_TABLE = 106, Main2026_07, any(88 -> 0), VirtualFunction Changes;
    RMU_ETH_ADD_ALL_MCAST_FILTER = 107, Main2026_07, any(32 -> 0), VirtualFunction Changes;
    ETH_VF_MAC_GET = 108, Main2026_07, any(16 -> 8), VirtualFunction Reads;
    ETH_VF_MAC_VALIDATE = 109, Main2026_07, any(24 -> 0), VirtualFunction Reads;
    QUERY_VERSION = 110, Main2026_11, any(24 -> 4), VirtualFunction Reads;
    ETH_SYNC_RX_MODE_CMD = 111, Main2026_11, any(at_least 16 -> 0), VirtualFunction Changes;
    ETH_MC_SW_TX_FWD_PKT = 112, Main2026_11, any(at_least 24 -> 0), VirtualFunction Changes;
    TELEM_GET = 113, Main2026_11, any(at_least 24 -> 24), VirtualFunction Reads;
    SVC_ALLOC_PARENT = 114, Main2026_11, admin(88 -> 24), Service Makes(Service);
    SVC_IS_PARENT_GET = 115, Main2026_11, any(24 -> 1), Service Reads;
}

const _: () = {
    let mut index = 0;
    while index < TABLE.len() {
        assert!(TABLE[index].opcode.0 as usize == index + 1);
        index += 1;
    }
};
