//! A device with its driver: what it is made of.

use std::sync::Arc;

use super::parts::cps::Cps;
use super::parts::domains::Domains;
use super::parts::files::Files;
use super::parts::group::Group;
use super::parts::ids::Ids;
use super::parts::kinds::{Ct, Descriptor};
use super::parts::lnis::Lnis;
use super::parts::objects::Objects;
use super::parts::pid::PidTable;
use super::parts::portals::Portals;
use super::parts::queues::{Cqs, Eqs};
use super::parts::registers::Registers;
use super::parts::rgid::Rgids;
use super::parts::services::Services;
use super::parts::vnis::Vnis;
use crate::data_path::DataPath;
use crate::rules::{ListOrder, Rules};
use crate::{Hazard, HazardKind, ModuleParameters, NicConfig, NicSnapshot};

/// The complete state of a NIC's driver. The commands (in `command`, by family) work on it; each
/// part keeps its own fields consistent.
#[derive(Debug)]
pub(crate) struct Device {
    pub(super) rules: Rules,
    pub(super) params: ModuleParameters,
    pub(super) services: Services,
    pub(super) vnis: Vnis,
    pub(super) registers: Registers,
    pub(super) files: Files,
    pub(super) lnis: Lnis,
    pub(super) rgids: Rgids,
    pub(super) cps: Cps,
    pub(super) domains: Domains,
    pub(super) cqs: Cqs,
    pub(super) eqs: Eqs,
    pub(super) cts: Objects<Ct>,
    pub(super) portals: Portals,
    pub(super) mds: Objects<Descriptor>,
    /// Numbers of address contexts.
    pub(super) acs: Ids,
    pub(super) hazards: Vec<Hazard>,
    pub(super) data_path: Arc<DataPath>,
}

impl Device {
    /// Notes what a real kernel may not survive.
    pub(super) fn hazard(&mut self, kind: HazardKind) {
        self.hazards.push(Hazard {
            release: self.rules.release,
            kind,
        });
    }

    pub(super) fn note(&mut self, kind: Option<HazardKind>) {
        if let Some(kind) = kind {
            self.hazard(kind);
        }
    }

    pub(super) fn snapshot(&self, config: &NicConfig) -> NicSnapshot {
        let services = (0..).zip(self.services.listed(ListOrder::Allocation));
        let idle = services.map(|(seq, (id, group))| {
            let group = group.without_users();
            (id, Group { seq, ..group })
        });
        NicSnapshot {
            config: config.clone(),
            services: idle.collect(),
            tx_profiles: self.vnis.tx().without_users(|tx| tx.cps.clear()),
            rx_profiles: self
                .vnis
                .rx()
                .without_users(|rx| rx.pids = PidTable::default()),
            pools: self.services.pools().clone(),
        }
    }
}
