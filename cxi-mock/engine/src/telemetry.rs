//! Counts for telemetry.

use std::ops::Index;

use cxi_hw::{Class, CommandByte, DmaFlags, DmaOp, List, ReturnCode};

use crate::EntryPool;
use crate::command_queue::FIRST_TARGET;
use crate::entry::Entry;
use crate::packet::Request;

/// Numbers that the type of an event can have.
pub(crate) const EVENT_TYPES: usize = 32;
/// Numbers that the operation of a command can have.
const OPERATIONS: usize = 16;
/// Numbers that a return code can have.
const CODES: usize = 64;
/// Reasons why the NIC changes a state.
const REASONS: usize = 8;
/// Processing elements.
const ELEMENTS: usize = 4;
/// Pools of entries for triggered commands.
const TRIGGERED_POOLS: usize = 4;

/// Counts since the engine was made, except for those of what is there "now". Each names the NIC's
/// counter that it corresponds to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Telemetry {
    /// Immediate and DMA commands by number of their [`DmaOp`], those that failed included:
    /// `CQ_DMA_CMD_COUNTS`.
    pub dma_commands: Counts<OPERATIONS>,
    /// Counter commands by number of their [`CtOp`](cxi_hw::CtOp): `TOU_CT_CMD_COUNTS`.
    pub counter_commands: Counts<OPERATIONS>,
    /// Commands of queues by number of their [`CqOp`](cxi_hw::CqOp) or
    /// [`TargetOp`](cxi_hw::TargetOp): `CQ_CQ_CMD_COUNTS`.
    pub queue_commands: Counts<OPERATIONS>,
    /// Commands of transmit queues, by number of the return code: `CQ_SUCCESS_TX_CNTR` and errors.
    pub transmit: Counts<CODES>,
    /// Commands of target queues: `CQ_SUCCESS_TGT_CNTR` and errors.
    pub target: Counts<CODES>,
    /// Stores to doorbells of counters: `TOU_NUM_DOORBELL_WRITES`.
    pub doorbells: u64,
    /// Commands with a communication profile of the high rate put type: `OXE_NUM_HRP_CMDS`.
    pub high_rate_commands: u64,
    /// Answers to them: `HNI_HRP_ACK`.
    pub high_rate_acks: u64,
    /// Commands that failed because memory at the initiator was refused, by code:
    /// `OXE_ERR_NO_TRANSLATION`.
    pub sources_refused: Counts<CODES>,
    /// Requests that got no answer in time: `PCT_SPT_TIMEOUTS`.
    pub timeouts: u64,
    /// Requests that were sent again: `PCT_RETRY_SRB_REQUESTS`.
    pub retries: u64,
    /// Repeated requests, which got their first answer again: `PCT_TRS_HIT_ON_REQ`.
    pub repetitions: u64,

    /// Requests received.
    pub requests: u64,
    /// Restricted ones: `IXE_RX_PTL_RESTRICTED_PKT`.
    pub restricted_packets: u64,
    /// Those of them that were small messages: `IXE_RX_PTL_SMALLMSG_PKT`.
    pub small_messages: u64,
    /// Requests that asked to make earlier writes visible: `IXE_DMAWR_FLUSH_REQS`.
    pub flush_requests: u64,
    /// Requests that found a PtlTE, by number of their [`DmaOp`]: `LPE_PUT_CMDS`.
    pub commands: Counts<OPERATIONS>,
    /// Those of them that found a list entry: `IXE_DISP_LPE_PUTS_OK`.
    pub accepted: Counts<OPERATIONS>,
    /// Requests that were refused, by code: `LPE_ERR_OP_VIOLATION`, `RMU_PTL_INVLD_VNI_CNTR`.
    pub refusals: Counts<CODES>,
    /// Requests to PtlTEs that do not match: `LPE_PLEC_HITS`.
    pub fast_path_hits: u64,
    /// Changes of states by the NIC, by number of the [`StateReason`](cxi_hw::StateReason):
    /// `LPE_ERR_PT_DISABLED_EQ_FULL`.
    pub state_changes: Counts<REASONS>,
    /// Requests refused with ENTRY_NOT_FOUND because the event queue was full:
    /// `LPE_ERR_ENTRY_NOT_FOUND_EQ_FULL`.
    pub queue_full: u64,
    /// The same because nothing matched: `LPE_ERR_ENTRY_NOT_FOUND_NO_MATCH_IN_OVERFLOW`.
    pub no_match: u64,
    /// APPEND commands, by code: `LPE_ERR_NO_SPACE_APPEND`.
    pub appends: Counts<CODES>,
    /// UNLINK commands: `LPE_UNLINK_CMDS`.
    pub unlinks: Outcomes,
    /// SEARCH commands, by whether they found something: `LPE_SEARCH_CMDS`.
    pub searches: Outcomes,
    /// SEARCH_AND_DELETE commands: `LPE_SEARCH_DELETE_CMDS`.
    pub deletions: Outcomes,
    /// By processing element.
    pub elements: [ElementTelemetry; ELEMENTS],
    /// Events written, by number of their [`EventType`](cxi_hw::EventType), without those that fill
    /// blocks: `EE_EVENT_PUT_CNTR`, `LPE_EVENT_LINK`.
    pub events: Counts<EVENT_TYPES>,
    /// Entries for triggered commands in use now, by pool: `CQ_STS_TLE_IN_USE`.
    pub triggered_in_use: [u16; TRIGGERED_POOLS],
}

/// Commands that did what they were for, and commands that did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// Those that did.
    pub succeeded: u64,
    /// Those that did not.
    pub failed: u64,
}

/// Counts of a processing element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ElementTelemetry {
    /// APPEND commands: `LPE_APPEND_CMDS`.
    pub appends: Outcomes,
    /// SETSTATE commands: `LPE_SETSTATE_CMDS`.
    pub states: Outcomes,
    /// Requests to PtlTEs that match and are enabled: `LPE_NET_MATCH_REQUESTS`.
    pub requests: u64,
    /// Those that matched, by list: `LPE_NET_MATCH_PRIORITY` and its like.
    pub matched: Counts<3>,
    /// Those that matched an entry that is managed locally: `LPE_NET_MATCH_LOCAL`.
    pub managed: u64,
    /// Those that matched an entry to be used once: `LPE_NET_MATCH_USEONCE`.
    pub used_once: u64,
    /// Requests that were cut to the room in the entry: `LPE_NUM_TRUNCATED`.
    pub truncated: u64,
    /// Rendezvous puts: `LPE_RNDZV_PUTS`.
    pub rendezvous: u64,
    /// Those of them whose rest the NIC fetches by itself: `LPE_RNDZV_PUTS_OFFLOADED`.
    pub offloaded: u64,
    /// Gets and atomics on an overflow list: `LPE_UNEXPECTED_GET_AMO`.
    pub unexpected_others: u64,
    /// List entries that are there now: `LPE_CFG_PE_LE_SHARED_NUM_TOTAL` and its like.
    pub entries: EntryCounts,
}

/// List entries of a processing element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryCounts {
    /// All.
    pub total: u16,
    /// Those in use.
    pub allocated: u16,
    /// Those that are reserved for no pool.
    pub shared: u16,
    /// Those of them in use.
    pub shared_allocated: u16,
}

/// Counts by number, such as that of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts<const N: usize>([u64; N]);

impl<const N: usize> Default for Counts<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Index<u8> for Counts<N> {
    type Output = u64;

    fn index(&self, number: u8) -> &u64 {
        &self.0[usize::from(number) % N]
    }
}

impl<const N: usize> Counts<N> {
    pub(crate) fn add(&mut self, number: u8) {
        self.0[usize::from(number) % N] += 1;
    }

    /// The sum of all counts.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl Outcomes {
    pub(crate) fn add(&mut self, success: bool) {
        self.succeeded += u64::from(success);
        self.failed += u64::from(!success);
    }

    /// All commands.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.succeeded + self.failed
    }
}

impl ElementTelemetry {
    /// Counts a request that has matched an entry.
    pub(crate) fn match_entry(&mut self, request: &Request, list: List, entry: &Entry) {
        self.matched.add(list.0);
        self.managed += u64::from(entry.managed());
        self.used_once += u64::from(entry.used_once());
        self.rendezvous += u64::from(request.op == DmaOp::RENDEZVOUS_PUT);
        let put = matches!(request.op, DmaOp::PUT | DmaOp::RENDEZVOUS_PUT);
        self.unexpected_others += u64::from(list == List::OVERFLOW && !put);
    }
}

impl Telemetry {
    pub(crate) fn element(&mut self, pool: EntryPool) -> &mut ElementTelemetry {
        &mut self.elements[usize::from(pool.element) % ELEMENTS]
    }

    /// Counts a request that has arrived, and was refused or not.
    pub(crate) fn arrived(&mut self, request: &Request, refused: Option<ReturnCode>) {
        let op = request.op.0;
        self.requests += 1;
        self.restricted_packets += u64::from(request.is_restricted());
        self.small_messages += u64::from(request.small);
        // Rule 8.11: Earlier writes are visible already when a flush arrives, so it is only
        // counted.
        self.flush_requests += u64::from(request.flags.contains(DmaFlags::FLUSH));
        match refused {
            None => {
                self.commands.add(op);
                self.accepted.add(op);
            }
            Some(code) => {
                self.refusals.add(code.0);
                // Requests with one of these errors found no PtlTE.
                let unknown = [ReturnCode::VNI_NOT_FOUND, ReturnCode::PTLTE_NOT_FOUND];
                if !unknown.contains(&code) {
                    self.commands.add(op);
                }
            }
        }
    }

    /// Counts a command that was taken from a queue.
    pub(crate) fn command(&mut self, byte: CommandByte) {
        let counts = match byte.class() {
            Class::CT => &mut self.counter_commands,
            Class::CQ => &mut self.queue_commands,
            _ => &mut self.dma_commands,
        };
        counts.add(byte.opcode());
    }

    pub(crate) fn command_ended(&mut self, queue: u16, code: ReturnCode) {
        let counts = if queue < FIRST_TARGET { &mut self.transmit } else { &mut self.target };
        counts.add(code.0);
    }

    pub(crate) fn append(&mut self, pool: EntryPool, code: ReturnCode) {
        self.appends.add(code.0);
        self.element(pool).appends.add(code == ReturnCode::OK);
    }
}
