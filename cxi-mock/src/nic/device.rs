//! A device with its driver: what it is made of.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use cxi_ioctl::Errno;
use cxi_ioctl::abi::memory::Mminfo;

use super::parts::cps::Cps;
use super::parts::domains::Domains;
use super::parts::files::Files;
use super::parts::group::Group;
use super::parts::ids::Ids;
use super::parts::lnis::Lnis;
use super::parts::mapping::Descriptor;
use super::parts::objects::Objects;
use super::parts::pid::PidTable;
use super::parts::portals::Portals;
use super::parts::queues::{Cqs, Eqs};
use super::parts::registers::Registers;
use super::parts::rgid::Rgids;
use super::parts::services::Services;
use super::parts::vnis::Vnis;
use super::snapshot::NicSnapshot;
use crate::data_path::DataPath;
use crate::rules::Rules;
use crate::{Hazard, HazardKind, ModuleParameters, NicConfig};

/// The complete state of a NIC's driver. The commands (in `command`, by family) work on it; each
/// part keeps its own fields consistent.
#[derive(Debug)]
pub(crate) struct Device {
    pub(super) rules: Rules,
    pub(super) params: ModuleParameters,
    pub(super) services: Services,
    pub(super) vnis: Vnis,
    pub(crate) registers: Registers,
    pub(crate) files: Files,
    pub(super) lnis: Lnis,
    pub(super) rgids: Rgids,
    pub(super) cps: Cps,
    pub(super) domains: Domains,
    pub(super) cqs: Cqs,
    pub(super) eqs: Eqs,
    /// Counters, each with the window of its doorbell.
    pub(super) cts: Objects<Mminfo>,
    pub(super) portals: Portals,
    pub(super) mds: Objects<Descriptor>,
    /// Numbers of address contexts.
    pub(super) acs: Ids,
    /// The parent service of each virtual function that has one.
    pub(super) parents: BTreeMap<u32, u32>,
    pub(super) hazards: Vec<Hazard>,
    pub(super) data_path: Arc<DataPath>,
    pub(super) keeper: Option<Keeper>,
}

/// The function that keeps snapshots.
#[allow(clippy::type_complexity, reason = "it is spelled out in `Nic::keep` only")]
pub(super) struct Keeper(pub(super) Box<dyn Fn(NicSnapshot) -> Result<(), Errno> + Send + Sync>);

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}

/// The parts that a command for services can change.
#[derive(Debug)]
pub(super) struct Checkpoint {
    services: Services,
    vnis: Vnis,
    hazards: usize,
}

impl Device {
    /// Records an event that a real kernel may not survive.
    pub(super) fn hazard(&mut self, kind: HazardKind) {
        self.hazards.push(Hazard { release: self.rules.release, kind });
    }

    /// The state to return to if the next command cannot be kept.
    pub(super) fn checkpoint(&self) -> Option<Checkpoint> {
        self.keeper.as_ref().map(|_| Checkpoint {
            services: self.services.clone(),
            vnis: self.vnis.clone(),
            hazards: self.hazards.len(),
        })
    }

    pub(super) fn roll_back(&mut self, to: Checkpoint) {
        let from = std::mem::replace(&mut self.services, to.services);
        self.vnis = to.vnis;
        self.hazards.truncate(to.hazards);
        // The pools of other services stay as they are: they may be in use.
        for (_, made) in from.iter().filter(|(id, _)| self.services.get(*id).is_err()) {
            self.unwire_pools(made);
        }
        let services = self.services.iter();
        for (_, removed) in services.filter(|(id, _)| from.get(*id).is_err()) {
            self.wire_pools(removed);
        }
    }

    pub(super) fn keep(&self, config: &NicConfig) -> Result<(), Errno> {
        let keeper = self.keeper.as_ref();
        keeper.map_or(Ok(()), |keeper| keeper.0(self.snapshot(config)))
    }

    pub(super) fn snapshot(&self, config: &NicConfig) -> NicSnapshot {
        let services = (0..).zip(self.services.listed(false));
        let idle = services.map(|(seq, (id, group))| {
            let group = group.without_users();
            (id, Group { seq, ..group })
        });
        NicSnapshot {
            config: config.clone(),
            services: idle.collect(),
            tx_profiles: self.vnis.tx().without_users(|tx| tx.cps.clear()),
            rx_profiles: self.vnis.rx().without_users(|rx| rx.pids = PidTable::default()),
            pools: self.services.pools().clone(),
        }
    }
}
