//! The reference: everything on the device as plain maps and counters, written from the driver's
//! described behavior alone.

mod accounting;
mod communication;
mod counter;
mod domain;
mod event_queue;
mod file;
mod lni;
mod memory;
mod numbers;
mod portal;
mod profile;
mod queue;
mod service;
mod wait;

use std::collections::{BTreeMap, BTreeSet};

use cxi_ioctl::abi::service::SvcAllocResp;
use cxi_ioctl::{DriverRelease, Errno};

use crate::device::Report;
use crate::sequence::operation::{Caller, Command, Operation};

pub use accounting::{AC, LE, Reservations, TLE, TOTALS};
pub use communication::{Cp, Lcid};
pub use counter::Counter;
pub use domain::{Domain, PID_ANY};
pub use event_queue::{EventQueue, PASSTHROUGH, PCT};
pub use file::{handles, of_file};
pub use lni::Lni;
pub use memory::{Md, kind};
pub use numbers::Numbers;
pub use portal::{ETHERNET_PTE, MATCHING, Mapped, Pte, SPACE_CHECK};
pub use profile::{Access, Profile, Profiles, access, has, vni as valid_vni};
pub use queue::Queue;
pub use service::{DEFAULT_SERVICE, Service, classes};

/// Number of slots for open files.
pub const FILES: usize = 3;

/// A command is repeated this often at most.
pub const FILL_LIMIT: u32 = 2100;

/// The answer that a step must get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Ok,
    Failed(Errno),
    /// With the response, which says what is short.
    Allocated(Result<(), Errno>, SvcAllocResp),
    Updated(Result<(), Errno>),
    /// The numbers of a response that are fixed.
    Values(Vec<u32>),
    /// It succeeds this many times, then it is refused.
    Filled(u32, Option<Errno>),
    /// There was something to clean up.
    Ran(bool),
}

#[derive(Clone, Debug)]
pub struct Model {
    pub release: DriverRelease,
    pub services: BTreeMap<u32, Service>,
    /// Services in the order of their allocation.
    pub order: Vec<u32>,
    pub tx: Profiles,
    pub rx: Profiles,
    pub lnis: BTreeMap<u32, Lni>,
    /// By file and handle.
    pub cps: BTreeMap<(usize, u32), Cp>,
    /// By RGID and number.
    pub lcids: BTreeMap<(u32, u32), Lcid>,
    pub domains: BTreeMap<u32, Domain>,
    pub queues: BTreeMap<u32, Queue>,
    pub eqs: BTreeMap<u32, EventQueue>,
    /// Memory that resizes named without need, by event queue.
    pub held_mds: Vec<(u32, u32)>,
    pub ptes: BTreeMap<u32, Pte>,
    pub mappings: BTreeMap<u32, Mapped>,
    pub cts: BTreeMap<u32, Counter>,
    pub mds: BTreeMap<u32, Md>,
    /// By file and handle, the LNI.
    pub waits: BTreeMap<(usize, u32), u32>,
    /// The client number of each open file.
    pub open: [Option<u32>; FILES],
    pub device: Reservations,
    pub numbers: Numbers,
    /// Queues with commands in flight, whoever has them.
    pub in_flight: BTreeSet<u32>,
    pub tles_in_use: [u16; 4],
    pub les_in_use: [[u16; 16]; 4],
    /// Reservations of PIDs made so far.
    pub reservations: u32,
    /// The state before the first step.
    pub start: Vec<Operation>,
    /// The answer that the last step must get.
    pub answer: Answer,
    /// The last step failed, but the driver leaves a trace all the same.
    pub leaves_trace: bool,
}

impl Model {
    /// The device as loaded, with no file open.
    fn loaded(release: DriverRelease) -> Self {
        let (device, held) = Reservations::loaded();
        let mut model = Self {
            release,
            services: BTreeMap::new(),
            order: vec![DEFAULT_SERVICE],
            tx: Profiles::default(),
            rx: Profiles::default(),
            lnis: BTreeMap::new(),
            cps: BTreeMap::new(),
            lcids: BTreeMap::new(),
            domains: BTreeMap::new(),
            queues: BTreeMap::new(),
            eqs: BTreeMap::new(),
            held_mds: vec![],
            ptes: BTreeMap::new(),
            mappings: BTreeMap::new(),
            cts: BTreeMap::new(),
            mds: BTreeMap::new(),
            waits: BTreeMap::new(),
            open: [None; FILES],
            device,
            numbers: Numbers::default(),
            in_flight: BTreeSet::new(),
            tles_in_use: [0; 4],
            les_in_use: [[0; 16]; 4],
            reservations: 0,
            start: Vec::new(),
            answer: Answer::Ok,
            leaves_trace: false,
        };
        model.add_default_service(held);
        model
    }

    /// The device after some first steps.
    pub fn started(release: DriverRelease, start: Vec<Operation>) -> Self {
        let mut model = Self::loaded(release);
        for step in &start {
            model.apply(step);
            let refused = matches!(model.answer, Answer::Failed(_));
            assert!(!refused, "{step:?}: {:?}", model.answer);
        }
        model.start = start;
        model
    }

    /// Does a step.
    pub fn apply(&mut self, operation: &Operation) {
        self.leaves_trace = false;
        self.answer = match operation {
            Operation::Open { file } => {
                self.open_file(*file);
                Answer::Ok
            }
            Operation::Close { file } => {
                self.close_file(*file);
                Answer::Ok
            }
            Operation::Command { file, caller, command } => self.write(*file, *caller, command),
            Operation::Fill { file, caller, command } => self.fill(*file, *caller, command),
            Operation::Tick => {
                let pending = self.lnis.values().any(|lni| lni.file.is_none());
                self.clean_up();
                Answer::Ran(pending)
            }
            Operation::Report(report) => {
                self.count(*report);
                Answer::Ok
            }
        };
    }

    /// The hardware counts something.
    fn count(&mut self, report: Report) {
        match report {
            Report::TxqInFlight { index, value } | Report::TgqInFlight { index, value } => {
                self.in_flight.remove(&index);
                self.in_flight.extend((value > 0).then_some(index));
            }
            Report::TlesInUse { pool, value } => self.tles_in_use[pool as usize] = value,
            Report::LesAllocated { element, pool, value } => {
                self.les_in_use[element as usize][pool as usize] = value;
            }
        }
    }

    fn fill(&mut self, file: usize, caller: Caller, command: &Command) -> Answer {
        for done in 0..FILL_LIMIT {
            if let Answer::Failed(errno) = self.write(file, caller, command) {
                return Answer::Filled(done, Some(errno));
            }
        }
        Answer::Filled(FILL_LIMIT, None)
    }

    fn write(&mut self, file: usize, caller: Caller, command: &Command) -> Answer {
        if command.needs_admin() && !caller.admin {
            return Answer::Failed(Errno::EPERM);
        }
        let values = match command {
            Command::SvcAlloc(it) => return self.svc_alloc(&it.svc_desc),
            Command::SvcUpdate(it) => return Answer::Updated(self.update(&it.svc_desc)),
            Command::SvcDestroy(it) => self.destroy(it.svc_id),
            Command::SvcEnable(it) => self.enable(it.svc_id, it.enable != 0),
            Command::SvcSetLpr(it) => self.set_lpr(it.svc_id, it.lnis_per_rgid),
            Command::SvcSetVniRange(it) => self.set_range(it),
            Command::SvcSetExclusiveCp(it) => {
                self.set_exclusive_cp(it.svc_id, it.exclusive_cp != 0)
            }
            Command::LniAlloc(it) => self.lni_alloc(file, caller, it.svc_id),
            Command::LniFree(it) => self.lni_free(file, it.lni),
            Command::CpAlloc(_) | Command::TrigCpAlloc(_) => {
                self.cp_alloc(file, caller, &command.profile().unwrap())
            }
            Command::CpFree(it) => self.cp_free(file, it.cp_hndl),
            Command::CpModify(it) => self.cp_modify(file, caller, it),
            Command::DomainReserve(it) => self.domain_reserve(file, caller, it),
            Command::DomainAlloc(it) => self.domain_alloc(file, caller, it),
            Command::DomainFree(it) => self.domain_free(file, it.domain),
            Command::CqAlloc(it) => self.cq_alloc(file, caller, it),
            Command::CqFree(it) => self.cq_free(file, it.cq),
            Command::EqAlloc(it) => self.eq_alloc(file, caller, it),
            Command::EqFree(it) => self.eq_free(file, it.eq),
            Command::EqResize(it) => self.eq_resize(file, it),
            Command::EqResizeComplete(it) => self.eq_resize_complete(file, it.eq_hndl),
            Command::EqAdjust(it) => self.eq_adjust(file, it.eq_hndl, it.value),
            Command::PteAlloc(it) => self.pte_alloc(file, caller, it),
            Command::PteFree(it) => self.pte_free(file, it.pte_number),
            Command::PteMap(it) => self.pte_map(file, it),
            Command::PteUnmap(it) => self.pte_unmap(file, it.pte_index),
            Command::PteTransition(it) => self.pte_transition(file, it.pte_index, it.drop_count),
            Command::CtAlloc(it) => self.ct_alloc(file, it.lni, it.wb),
            Command::CtFree(it) => self.ct_free(file, it.ctn),
            Command::CtUpdate(it) => self.ct_update(file, it.ctn, it.wb),
            Command::AtuMap(it) => self.atu_map(file, it),
            Command::AtuUnmap(it) => self.atu_unmap(file, it.id),
            Command::AtuUpdate(it) => self.atu_update(file, it),
            Command::WaitAlloc(it) => self.wait_alloc(file, it.lni),
            Command::WaitFree(it) => self.wait_free(file, it.wait),
        };
        match values {
            Ok(values) if values.is_empty() => Answer::Ok,
            Ok(values) => Answer::Values(values),
            Err(errno) => Answer::Failed(errno),
        }
    }
}

/// The numbers that a command answers with; none if it has no response.
pub type Values = Result<Vec<u32>, Errno>;

/// The lowest number from `first` that is not taken.
pub fn lowest_free(first: u32, taken: impl IntoIterator<Item = u32>) -> u32 {
    let taken: BTreeSet<u32> = taken.into_iter().collect();
    let mut number = first;
    while taken.contains(&number) {
        number += 1;
    }
    number
}
