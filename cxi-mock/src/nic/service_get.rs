//! Services: what they are and what they use.

use cxi_ioctl::Errno;
use cxi_ioctl::abi::service::{
    RSRC_AC, RSRC_COUNT, RSRC_CT, RSRC_EQ, RSRC_LE, RSRC_PTE, RSRC_TGQ, RSRC_TLE, RSRC_TXQ,
    RsrcUse, SvcDesc,
};

use super::Device;
use super::accounting::Slot;
use super::group::Group;
use crate::rules::{LeUsage, TleUsageWithoutPool};

/// Stands for a number that makes no sense.
const NOT_APPLICABLE: u16 = u16::MAX;

impl Device {
    /// SVC_GET.
    pub(super) fn svc_desc(&self, id: u32) -> Result<SvcDesc, Errno> {
        Ok(self.groups.get(id).ok_or(Errno::EINVAL)?.desc)
    }

    /// SVC_LIST_GET: all descriptors.
    pub(super) fn svc_list(&self) -> Vec<SvcDesc> {
        let groups = self.groups.listed(self.rules.list_order);
        groups.into_iter().map(|(_, group)| group.desc).collect()
    }

    /// SVC_RSRC_GET.
    pub(super) fn svc_usage(&self, id: u32) -> Result<RsrcUse, Errno> {
        Ok(self.usage(0, self.groups.get(id).ok_or(Errno::EINVAL)?))
    }

    /// SVC_RSRC_LIST_GET: the usage of all, with their ids, unlike that of one.
    pub(super) fn svc_usage_list(&self) -> Vec<RsrcUse> {
        let groups = self.groups.listed(self.rules.list_order);
        groups
            .into_iter()
            .map(|(id, group)| self.usage(id, group))
            .collect()
    }

    fn usage(&self, svc_id: u32, group: &Group) -> RsrcUse {
        let mut in_use = [0; RSRC_COUNT];
        for (resource, slot) in [
            (RSRC_PTE, Slot::Pte),
            (RSRC_TXQ, Slot::Txq),
            (RSRC_TGQ, Slot::Tgq),
            (RSRC_EQ, Slot::Eq),
            (RSRC_CT, Slot::Ct),
            (RSRC_AC, Slot::Ac),
        ] {
            in_use[resource] = u16::try_from(group.entries.in_use(slot)).unwrap_or(u16::MAX);
        }
        in_use[RSRC_LE] = self.les_in_use(group);
        in_use[RSRC_TLE] = self.tles_in_use(group);
        RsrcUse {
            svc_id,
            tle_pool_id: group.tle_pool.map_or(0, u32::from),
            in_use,
        }
    }

    /// The largest count of the processing elements.
    fn les_in_use(&self, group: &Group) -> u16 {
        match (self.rules.le_usage, group.le_pools) {
            (LeUsage::Zero, _) => 0,
            (LeUsage::Hardware, None) => NOT_APPLICABLE,
            (LeUsage::Hardware, Some(pools)) => (0..)
                .zip(pools)
                .zip(&self.registers.les_allocated)
                .filter_map(|((element, pool), set)| {
                    let set = *set.get(usize::from(pool))?;
                    Some(set.max(self.data_path.entries_in_use(element, pool)))
                })
                .max()
                .unwrap_or(0),
        }
    }

    fn tles_in_use(&self, group: &Group) -> u16 {
        let pool = |pool: u8| {
            let tles = self.registers.tles_in_use.get(usize::from(pool));
            let set = tles.copied().unwrap_or(0);
            set.max(self.data_path.triggered_in_use(pool))
        };
        match (group.tle_pool, self.rules.tle_usage_without_pool) {
            (Some(own), _) => pool(own),
            (None, TleUsageWithoutPool::Zero) => 0,
            (None, TleUsageWithoutPool::DefaultPool) => pool(0),
            (None, TleUsageWithoutPool::NotApplicable) => NOT_APPLICABLE,
        }
    }
}
