//! Numbers with names: enumerations that hardware may extend.

use std::fmt;

use crate::value::newtypes;

/// Newtypes of a byte; numbers without a name are values too.
macro_rules! codes {
    ($(
        $(#[$doc:meta])*
        $name:ident = $prefix:literal { $($code:ident = $number:literal,)* }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u8);

        impl $name {
            $(#[doc = concat!("`", $prefix, stringify!($code), "`.")] pub const $code: Self = Self($number);)*

            /// Names in the header of the hardware and numbers.
            pub const NAMES: &[(&str, u8)] = &[$((concat!($prefix, stringify!($code)), $number)),*];

            /// The name without its prefix; `None` for an unknown number.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$code => Some(stringify!($code)),)*
                    _ => None,
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, concat!(stringify!($name), "({})"), self.0),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self, f)
            }
        }

        newtypes!($name);
    )*};
}

codes! {
    /// Result of an operation.
    ReturnCode = "C_RC_" {
        NO_EVENT = 0,
        OK = 1,
        UNDELIVERABLE = 2,
        PT_DISABLED = 3,
        DROPPED = 4,
        PERM_VIOLATION = 5,
        OP_VIOLATION = 6,
        NO_MATCH = 8,
        UNCOR = 9,
        UNCOR_TRNSNT = 10,
        NO_SPACE = 16,
        ENTRY_NOT_FOUND = 18,
        NO_TARGET_CONN = 19,
        NO_TARGET_MST = 20,
        NO_TARGET_TRS = 21,
        SEQUENCE_ERROR = 22,
        NO_MATCHING_CONN = 23,
        INVALID_DFA_FORMAT = 24,
        VNI_NOT_FOUND = 25,
        PTLTE_NOT_FOUND = 26,
        PTLTE_SW_MANAGED = 27,
        SRC_ERROR = 28,
        MST_CANCELLED = 29,
        HRP_CONFIG_ERROR = 30,
        HRP_RSP_ERROR = 31,
        HRP_RSP_DISCARD = 32,
        INVALID_AC = 33,
        PAGE_PERM_ERROR = 34,
        ATS_ERROR = 35,
        NO_TRANSLATION = 36,
        PAGE_REQ_ERROR = 37,
        PCIE_ERROR_POISONED = 38,
        PCIE_UNSUCCESS_CMPL = 39,
        AMO_INVAL_OP_ERROR = 40,
        AMO_ALIGN_ERROR = 41,
        AMO_FP_INVALID = 42,
        AMO_FP_UNDERFLOW = 43,
        AMO_FP_OVERFLOW = 44,
        AMO_FP_INEXACT = 45,
        ILLEGAL_OP = 46,
        INVALID_ENDPOINT = 47,
        RESTRICTED_UNICAST = 48,
        CMD_ALIGN_ERROR = 49,
        CMD_INVALID_ARG = 50,
        INVALID_EVENT = 51,
        ADDR_OUT_OF_RANGE = 52,
        CONN_CLOSED = 53,
        CANCELED = 54,
        NO_MATCHING_TRS = 55,
        NO_MATCHING_MST = 56,
        DELAYED = 57,
        AMO_LENGTH_ERROR = 58,
        PKTBUF_ERROR = 59,
        RESOURCE_BUSY = 60,
        FLUSH_TRANSLATION = 61,
        TRS_PEND_RSP = 62,
    }

    /// Kind of an event.
    EventType = "C_EVENT_" {
        PUT = 0,
        GET = 1,
        ATOMIC = 2,
        FETCH_ATOMIC = 3,
        PUT_OVERFLOW = 4,
        GET_OVERFLOW = 5,
        ATOMIC_OVERFLOW = 6,
        FETCH_ATOMIC_OVERFLOW = 7,
        SEND = 8,
        ACK = 9,
        REPLY = 10,
        LINK = 11,
        SEARCH = 12,
        STATE_CHANGE = 13,
        UNLINK = 14,
        RENDEZVOUS = 15,
        ETHERNET = 16,
        COMMAND_FAILURE = 17,
        TRIGGERED_OP = 18,
        ETHERNET_FGFC = 19,
        PCT = 20,
        MATCH = 21,
        ERROR = 28,
        TIMESTAMP = 29,
        EQ_SWITCH = 30,
        NULL_EVENT = 31,
    }

    /// Length of an event.
    EventSize = "C_EVENT_SIZE_" {
        NO_EVENT = 0,
        BYTES_16 = 1,
        BYTES_32 = 2,
        BYTES_64 = 3,
    }

    /// Reason for which the NIC changed the state of a PtlTE.
    StateReason = "C_SC_" {
        FC_EQ_FULL = 0,
        FC_NO_MATCH = 1,
        FC_UNEXPECTED_FAIL = 2,
        FC_REQUEST_FULL = 3,
        SM_UNEXPECTED_FAIL = 4,
        SM_APPEND_FAIL = 5,
        DIS_UNCOR = 6,
    }

    /// Operation of an atomic.
    AtomicOp = "C_AMO_OP_" {
        MIN = 0,
        MAX = 1,
        SUM = 2,
        LOR = 4,
        LAND = 5,
        BOR = 6,
        BAND = 7,
        LXOR = 8,
        BXOR = 9,
        SWAP = 10,
        CSWAP = 11,
        AXOR = 12,
    }

    /// Comparison of a compare-and-swap: the compare value is on the left.
    CompareOp = "C_AMO_OP_CSWAP_" {
        EQ = 0,
        NE = 1,
        LE = 2,
        LT = 3,
        GE = 4,
        GT = 5,
    }

    /// Type of the operands of an atomic.
    AtomicType = "C_AMO_TYPE_" {
        INT8_T = 0,
        UINT8_T = 1,
        INT16_T = 2,
        UINT16_T = 3,
        INT32_T = 4,
        UINT32_T = 5,
        INT64_T = 6,
        UINT64_T = 7,
        FLOAT_T = 8,
        FLOAT_COMPLEX_T = 9,
        DOUBLE_T = 10,
        DOUBLE_COMPLEX_T = 11,
        UINT128_T = 12,
    }

    /// A list of a PtlTE.
    List = "C_PTL_LIST_" {
        PRIORITY = 0,
        OVERFLOW = 1,
        REQUEST = 2,
        UNEXPECTED = 3,
    }

    /// State of a PtlTE.
    PtlteState = "C_PTLTE_" {
        RESET = 0,
        DISABLED = 1,
        ENABLED = 2,
        SOFTWARE_MANAGED = 3,
        ETHERNET = 4,
    }

    /// Operation of an immediate or DMA command.
    DmaOp = "C_CMD_" {
        NOOP = 0,
        PUT = 1,
        GET = 2,
        RENDEZVOUS_PUT = 3,
        ATOMIC = 4,
        FETCHING_ATOMIC = 5,
        ETHERNET_TX = 6,
        SMALL_MESSAGE = 7,
        NOMATCH_PUT = 8,
        NOMATCH_GET = 9,
        CSTATE = 10,
        CLOSE = 11,
        CLEAR = 12,
        REDUCTION = 13,
    }

    /// Operation of a counter command.
    CtOp = "C_CMD_CT_" {
        NOOP = 0,
        SET = 1,
        GET = 2,
        INC = 3,
        CANCEL = 4,
        TRIG_DMA = 5,
        TRIG_SET = 6,
        TRIG_INC = 7,
        TRIG_EVENT = 8,
    }

    /// Operation of a queue command.
    CqOp = "C_CMD_CQ_" {
        NOOP = 0,
        FENCE = 1,
        LCID = 2,
    }

    /// Operation of a target command.
    TargetOp = "C_CMD_TGT_" {
        APPEND = 8,
        SEARCH = 9,
        SEARCH_AND_DELETE = 10,
        UNLINK = 11,
        SETSTATE = 12,
    }

    /// Class of a command.
    Class = "C_CMD_TYPE_" {
        IDC = 0,
        DMA = 1,
        CT = 2,
        CQ = 3,
    }
}

impl EventSize {
    /// Bytes of the event; 0 for none.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::BYTES_16 => 16,
            Self::BYTES_32 => 32,
            Self::BYTES_64 => 64,
            _ => 0,
        }
    }
}
