//! Every command the driver knows: number, lengths, privilege.

use std::fmt;

use crate::DriverRelease;

/// The number that a command starts with. Unknown numbers are valid values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Opcode(u32);

/// Who may send a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Privilege {
    /// Everyone who can open the device.
    Any,
    /// Only with `CAP_SYS_ADMIN` in the initial user namespace; from the development branch on
    /// also only on a physical function.
    Admin,
}

/// How the driver checks the length of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RequestLen {
    /// Any other length is EINVAL.
    Exact(usize),
    /// The command ends in an array.
    AtLeast(usize),
}

/// A command for which a driver has a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Handler {
    /// Who may send it.
    pub privilege: Privilege,
    /// Length of the request, as of [`DriverRelease::Main`]; see [`Opcode::request_len`].
    pub request_len: RequestLen,
    /// Length of the fixed response in bytes, as of [`DriverRelease::Main`]; see
    /// [`Opcode::response_len`].
    pub response_len: usize,
}

/// What is known about an opcode.
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

    /// What is known about it; `None` for a number that no release knows.
    #[must_use]
    pub fn info(self) -> Option<&'static OpcodeInfo> {
        let index = usize::try_from(self.0).ok()?.checked_sub(1)?;
        TABLE.get(index)
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
            Self::LNI_ALLOC if release < DriverRelease::Main => Some(RequestLen::Exact(16)),
            _ => info.handler.map(|handler| handler.request_len),
        }
    }

    /// The length of a release's fixed response; `None` if it has no such command.
    #[must_use]
    pub fn response_len(self, release: DriverRelease) -> Option<usize> {
        let info = self.info().filter(|info| info.since <= release)?;
        match self {
            Self::GET_DEV_PROPERTIES if release < DriverRelease::Shs13_1 => Some(80),
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
    ($( $name:ident = $number:literal, $since:ident, $who:ident($($lengths:tt)*); )*) => {
        #[allow(missing_docs, reason = "the names are the kernel header's")]
        impl Opcode {
            $( pub const $name: Self = Self($number); )*
        }

        const TABLE: &[OpcodeInfo] = &[ $(
            OpcodeInfo {
                opcode: Opcode::$name,
                name: stringify!($name),
                since: DriverRelease::$since,
                handler: handler!($who $($lengths)*),
            },
        )* ];
    };
}

macro_rules! handler {
    (no_handler) => { None };
    (any $($lengths:tt)*) => { handler!(Privilege::Any; $($lengths)*) };
    (admin $($lengths:tt)*) => { handler!(Privilege::Admin; $($lengths)*) };
    ($privilege:expr; at_least $request:literal -> $response:literal) => {
        Some(Handler {
            privilege: $privilege,
            request_len: RequestLen::AtLeast($request),
            response_len: $response,
        })
    };
    ($privilege:expr; $request:literal -> $response:literal) => {
        Some(Handler {
            privilege: $privilege,
            request_len: RequestLen::Exact($request),
            response_len: $response,
        })
    };
}

opcodes! {
    LNI_ALLOC = 1, Shs12_0, any(24 -> 4);
    LNI_FREE = 2, Shs12_0, any(8 -> 0);
    DOMAIN_RESERVE = 3, Shs12_0, any(32 -> 4);
    DOMAIN_ALLOC = 4, Shs12_0, any(32 -> 12);
    DOMAIN_FREE = 5, Shs12_0, any(8 -> 0);
    CP_ALLOC = 6, Shs12_0, any(32 -> 8);
    CP_FREE = 7, Shs12_0, any(8 -> 0);
    CQ_ALLOC = 8, Shs12_0, any(48 -> 40);
    CQ_FREE = 9, Shs12_0, any(8 -> 0);
    CQ_ACK_COUNTER = 10, Shs12_0, any(24 -> 4);
    ATU_MAP = 11, Shs12_0, any(88 -> 48);
    ATU_UNMAP = 12, Shs12_0, any(8 -> 0);
    EQ_ALLOC = 13, Shs12_0, any(80 -> 24);
    EQ_FREE = 14, Shs12_0, any(8 -> 0);
    EQ_RESIZE = 15, Shs12_0, any(32 -> 0);
    EQ_RESIZE_COMPLETE = 16, Shs12_0, any(8 -> 0);
    PTE_ALLOC = 17, Shs12_0, any(32 -> 4);
    PTE_FREE = 18, Shs12_0, any(24 -> 0);
    PTE_MAP = 19, Shs12_0, any(32 -> 4);
    PTE_UNMAP = 20, Shs12_0, any(24 -> 0);
    PTE_LE_INVALIDATE = 21, Shs12_0, any(16 -> 0);
    PTE_STATUS = 22, Shs12_0, any(24 -> 32);
    WAIT_ALLOC = 23, Shs12_0, any(24 -> 8);
    WAIT_FREE = 24, Shs12_0, any(24 -> 0);
    CT_ALLOC = 25, Shs12_0, any(32 -> 24);
    CT_FREE = 26, Shs12_0, any(8 -> 0);
    SVC_LIST_GET = 27, Shs12_0, any(32 -> 4);
    SVC_ALLOC = 28, Shs12_0, admin(88 -> 24);
    SVC_DESTROY = 29, Shs12_0, admin(8 -> 0);
    MAP_CSRS = 30, Shs12_0, admin(16 -> 16);
    SBUS_OP_RESET = 31, Shs12_0, admin(16 -> 0);
    SBUS_OP = 32, Shs12_0, admin(40 -> 8);
    SERDES_OP = 33, Shs12_0, admin(48 -> 2);
    GET_DEV_PROPERTIES = 34, Shs12_0, any(16 -> 84);
    MAP_TELEMETRY = 35, Shs12_0, no_handler();
    UNMAP_TELEMETRY = 36, Shs12_0, no_handler();
    EQ_ADJUST_RESERVED_FC = 37, Shs12_0, any(24 -> 4);
    CT_WB_UPDATE = 38, Shs12_0, any(16 -> 0);
    RESERVE_CNTR_POOL_ID = 39, Shs12_0, no_handler();
    RELEASE_CNTR_POOL_ID = 40, Shs12_0, no_handler();
    GET_TELEMETRY_REFRESH_INTERVAL = 41, Shs12_0, no_handler();
    SET_TELEMETRY_REFRESH_INTERVAL = 42, Shs12_0, no_handler();
    INBOUND_WAIT = 43, Shs12_0, any(4 -> 0);
    SVC_UPDATE = 44, Shs12_0, admin(88 -> 20);
    SVC_GET = 45, Shs12_0, any(24 -> 68);
    START_TELEMETRY = 46, Shs12_0, no_handler();
    STOP_TELEMETRY = 47, Shs12_0, no_handler();
    PTE_TRANSITION_SM = 48, Shs12_0, any(24 -> 0);
    SVC_RSRC_LIST_GET = 49, Shs12_0, any(32 -> 4);
    SVC_RSRC_GET = 50, Shs12_0, any(24 -> 24);
    ATU_UPDATE_MD = 51, Shs12_0, any(32 -> 0);
    DEV_INFO_GET = 52, Shs12_0, any(16 -> 120);
    SVC_SET_LPR = 53, Shs12_0, admin(24 -> 0);
    SVC_GET_LPR = 54, Shs12_0, any(24 -> 4);
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
    CP_MODIFY = 77, Shs13_1, any(12 -> 0);
    SVC_SET_EXCLUSIVE_CP = 78, Shs13_1, admin(12 -> 0);
    SVC_GET_EXCLUSIVE_CP = 79, Shs13_1, any(24 -> 1);
    SVC_ENABLE = 80, Shs13_1, admin(24 -> 0);
    SVC_SET_VNI_RANGE = 81, Shs13_1, admin(32 -> 0);
    SVC_GET_VNI_RANGE = 82, Shs13_1, any(32 -> 8);
    TRIG_CP_ALLOC = 83, Shs13_1, any(40 -> 8);
    SVC_SET_NETNS = 84, Shs14_0_0, admin(12 -> 0);
    SVC_GET_NETNS = 85, Shs14_0_0, any(24 -> 4);
    CQ_ALLOC_BUF = 86, Main, any(72 -> 40);
    VF_GET_TOKEN = 87, Main, any(16 -> 4);
    PHYS_LAC_ALLOC = 88, Main, any(24 -> 4);
    PHYS_LAC_FREE = 89, Main, any(12 -> 0);
    ATU_MAP_SGT = 90, Main, any(at_least 32 -> 48);
    ATU_UPDATE_SGT = 91, Main, any(at_least 16 -> 0);
    ATU_CLEAR_MD = 92, Main, any(8 -> 0);
    RETRY_HANDLER_RUNNING = 93, Main, any(16 -> 1);
    ETH_DEV_INFO_GET = 94, Main, any(24 -> 0);
    ETH_TC_REQ_PCP_GET = 95, Main, any(24 -> 4);
    ETH_PAUSE_GET = 96, Main, any(16 -> 8);
    ETH_MAX_RXSIZE_GET = 97, Main, any(16 -> 4);
    ETH_LINK_STATE_GET = 98, Main, any(16 -> 1);
    RMU_ETH_ALLOC = 99, Main, any(16 -> 12);
    RMU_ETH_FREE = 100, Main, any(24 -> 0);
    RMU_ETH_HASH_KEY_GET = 101, Main, any(16 -> 44);
    RMU_ETH_ADD_MAC_FILTER = 102, Main, any(48 -> 0);
    RMU_ETH_REMOVE_FILTER = 103, Main, any(24 -> 0);
    RMU_ETH_ADD_PROMISC_FILTER = 104, Main, any(32 -> 0);
    RMU_ETH_SET_RSS_QUEUES = 105, Main, any(288 -> 0);
    RMU_ETH_SET_INDIR_TABLE = 106, Main, any(88 -> 0);
    RMU_ETH_ADD_ALL_MCAST_FILTER = 107, Main, any(32 -> 0);
    ETH_VF_MAC_GET = 108, Main, any(16 -> 8);
    ETH_VF_MAC_VALIDATE = 109, Main, any(24 -> 0);
}

const _: () = {
    let mut index = 0;
    while index < TABLE.len() {
        assert!(TABLE[index].opcode.0 as usize == index + 1);
        index += 1;
    }
};
