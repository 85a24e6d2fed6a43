//! Loading the driver: parameters, totals, the default service.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use cxi_ioctl::abi::service::{
    Limits, RSRC_AC, RSRC_COUNT, RSRC_CT, RSRC_EQ, RSRC_LE, RSRC_PTE, RSRC_TGQ, RSRC_TLE, RSRC_TXQ,
    RsrcLimits, SVC_MAX_VNIS, SvcAllocCmd, SvcDesc, SvcFailInfo, SvcFlags,
};
use zerocopy::FromZeros;

use super::device::Device;
use super::parts::accounting::MIN_POOL_TLES;
use super::parts::cps::Cps;
use super::parts::domains::Domains;
use super::parts::files::Files;
use super::parts::ids::Ids;
use super::parts::lnis::Lnis;
use super::parts::objects::Objects;
use super::parts::pid::TABLE_PIDS;
use super::parts::portals::Portals;
use super::parts::queues::{Cqs, Eqs};
use super::parts::registers::Registers;
use super::parts::rgid::Rgids;
use super::parts::services::Services;
use super::parts::vnis::Vnis;
use crate::data_path::DataPath;
use crate::rules::Rules;
use crate::{LoadError, NicConfig, Totals};

/// Numbers of virtual functions that a NIC can have.
pub(super) const VIRTUAL_FUNCTIONS: RangeInclusive<u32> = 0..=64;
/// The QoS profiles that are modeled.
const QOS_PROFILES: RangeInclusive<u32> = 1..=2;

impl Device {
    /// A device as it is after loading the driver.
    pub(super) fn load(config: &NicConfig) -> Result<Self, LoadError> {
        let mut device = Self::empty(config)?;
        device.make_default_service(config)?;
        Ok(device)
    }

    /// A device without any service.
    pub(super) fn empty(config: &NicConfig) -> Result<Self, LoadError> {
        check(config)?;
        let rules = Rules::of(config.release);
        Ok(Self {
            services: Services::new(totals(config)),
            vnis: Vnis::new(&rules),
            registers: Registers::new(config),
            files: Files::new(),
            lnis: Lnis::new(),
            rgids: Rgids::new(rules.rgids_count_up),
            cps: Cps::new(),
            domains: Domains::new(config.params.pid_bits),
            cqs: Cqs::new(&config.totals),
            eqs: Eqs::new(config.totals.eqs, config.retry_handler),
            cts: Objects::new(1, u32::from(config.totals.cts) + 1),
            portals: Portals::new(config.totals.ptes),
            mds: Objects::new(1, u32::MAX),
            acs: Ids::new(1, u32::from(config.totals.acs) + 1),
            parents: BTreeMap::new(),
            hazards: Vec::new(),
            keeper: None,
            data_path: DataPath::new(config),
            params: config.params.clone(),
            rules,
        })
    }

    fn make_default_service(&mut self, config: &NicConfig) -> Result<(), LoadError> {
        let desc = self.default_desc(config)?;
        let mut info = SvcFailInfo::new_zeroed();
        let id = self.svc_alloc(&desc, &mut info).map_err(LoadError::DefaultService)?;
        let params = &config.params;
        let stays_off = params.disable_default_svc
            || (params.default_svc_test_mode && self.rules.range_to_come);
        if stays_off {
            self.svc_switch_off(id);
        }
        Ok(())
    }

    fn default_desc(&self, config: &NicConfig) -> Result<SvcDesc, LoadError> {
        let params = &config.params;
        let mut desc = SvcAllocCmd::new().svc_desc;
        let vnis: Vec<u16> = params
            .default_vnis
            .iter()
            .map_while(|vni| u16::try_from(*vni).ok().filter(|vni| *vni != 0))
            .collect();
        if vnis.is_empty() {
            return Err(LoadError::NoDefaultVni { first: params.default_vnis[0] });
        }
        let mut flags = SvcFlags::RESOURCE_LIMITS;
        if !params.default_svc_test_mode {
            flags |= SvcFlags::RESTRICTED_VNIS;
            self.check_twice(&vnis, config)?;
            desc.num_vld_vnis = u8::try_from(vnis.len()).unwrap_or(0);
            desc.vnis[..vnis.len().min(SVC_MAX_VNIS)].copy_from_slice(&vnis);
        }
        desc.flags = flags.bits();
        if self.rules.default_tcs_shown {
            desc.tcs = [1, 1, 1, 1, 0];
        }
        desc.limits = self.services.totals();
        let tles = params.default_svc_num_tles.max(MIN_POOL_TLES.into());
        let total = desc.limits.types[RSRC_TLE].max;
        let tles = u16::try_from(tles).ok().filter(|tles| *tles <= total);
        let asked = params.default_svc_num_tles;
        let res = tles.ok_or(LoadError::TooManyTles { asked, total })?;
        desc.limits.types[RSRC_TLE] = Limits { max: res, res };
        Ok(desc)
    }

    fn check_twice(&self, vnis: &[u16], config: &NicConfig) -> Result<(), LoadError> {
        let exclusive = self.rules.has_profiles && self.rules.exact_vnis_exclusive;
        for (index, vni) in vnis.iter().enumerate() {
            if exclusive && vnis[..index].contains(vni) {
                return Err(LoadError::DuplicateDefaultVni {
                    vni: (*vni).into(),
                    release: config.release,
                });
            }
        }
        Ok(())
    }
}

/// Name, resource, total, and the totals that a NIC can have.
type TotalBounds = (&'static str, usize, u16, RangeInclusive<u32>);

fn of_each(totals: &Totals) -> [TotalBounds; 7] {
    [
        ("totals.ptes", RSRC_PTE, totals.ptes, 1..=2048),
        ("totals.txqs", RSRC_TXQ, totals.txqs, 1..=1024),
        ("totals.tgqs", RSRC_TGQ, totals.tgqs, 1..=512),
        ("totals.eqs", RSRC_EQ, totals.eqs, 1..=2047),
        ("totals.cts", RSRC_CT, totals.cts, 1..=2047),
        ("totals.tles", RSRC_TLE, totals.tles, 8..=2048),
        ("totals.acs", RSRC_AC, totals.acs, 1..=1022),
    ]
}

/// The device totals, as limits.
fn totals(config: &NicConfig) -> RsrcLimits {
    let mut types = [Limits { max: 0, res: 0 }; RSRC_COUNT];
    for (_, resource, max, ..) in of_each(&config.totals) {
        types[resource].max = max;
    }
    types[RSRC_LE].max = config.params.list_entries();
    RsrcLimits { types }
}

fn check(config: &NicConfig) -> Result<(), LoadError> {
    let totals = of_each(&config.totals).into_iter();
    let totals = totals.map(|(what, _, value, expected)| (what, u32::from(value), expected));
    let (functions, params) = (config.virtual_functions, &config.params);
    let others = [
        ("virtual_functions", functions, VIRTUAL_FUNCTIONS),
        ("pid_bits", params.pid_bits, 1..=TABLE_PIDS.ilog2()),
        ("active_qos_profile", params.active_qos_profile, QOS_PROFILES),
    ];
    for (what, value, expected) in totals.chain(others) {
        if !expected.contains(&value) {
            return Err(LoadError::OutOfRange { what, value, expected });
        }
    }
    Ok(())
}
