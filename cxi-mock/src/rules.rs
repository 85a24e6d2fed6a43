//! Everything that differs between driver releases, as named rules.
//!
//! This is the home of all differences between releases.

use cxi_ioctl::DriverRelease;

/// How access entries are made from members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberCheck {
    /// There are no access entries: the descriptor is checked at each call.
    None,
    /// An id of all ones is EBADR; the same member twice is one entry.
    Id,
    /// An id of all ones is EBADR, the same member twice EEXIST.
    IdAndTwice,
}

/// What usage figures report about TLEs of a service without a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TleUsageWithoutPool {
    /// 0.
    Zero,
    /// What is in use of the default pool.
    DefaultPool,
    /// 0xFFFF.
    NotApplicable,
}

/// The rules of one release.
#[derive(Clone, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "rules are independent yes-or-no facts"
)]
pub(crate) struct Rules {
    pub(crate) release: DriverRelease,
    /// The longest command; longer ones are EINVAL before anything is read.
    pub(crate) longest_command: Option<usize>,
    /// Whether LNI_ALLOC has the service after the response pointer (24 bytes), not before it (16).
    pub(crate) lni_alloc_long: bool,
    /// Whether EQ_ADJUST_RESERVED_FC has its arguments after the response pointer.
    pub(crate) eq_adjust_behind: bool,
    /// Whether GET_DEV_PROPERTIES reports that the fabric address has been set (84 bytes, otherwise
    /// 80).
    pub(crate) properties_nid_configured: bool,
    /// Virtual functions relay commands to the physical one.
    pub(crate) vf_relay: bool,
    /// Whether the right to use a VNI comes from profiles, whatever service created them; otherwise
    /// from the stored descriptor of the LNI's service.
    pub(crate) has_profiles: bool,
    /// Whether exact VNIs conflict with equal ones; ranges conflict with whatever they overlap.
    pub(crate) exact_vnis_exclusive: bool,
    /// Whether a service without `restricted_vnis` is disabled until a range is set and it is
    /// enabled; otherwise it is enabled at once, with profiles (where there are any) for the VNIs
    /// in its list, unchecked.
    pub(crate) range_to_come: bool,
    /// Whether a restricted service may list no VNI.
    pub(crate) empty_vni_list: bool,
    /// Whether disabling a service disables its profiles.
    pub(crate) disabled_profiles_off: bool,
    /// Whether an IGNORE slot opens a service with restricted members to everyone.
    pub(crate) ignore_slot_admits: bool,
    pub(crate) member_check: MemberCheck,
    /// Whether members are checked before VNIs are claimed.
    pub(crate) members_before_vnis: bool,
    /// Whether GID members match supplementary groups too.
    pub(crate) supplementary_groups: bool,
    /// Whether members may be network namespaces.
    pub(crate) netns_members: bool,
    /// Whether a VNI whose profiles do not admit the caller is EPERM; otherwise it counts as
    /// unknown.
    pub(crate) not_admitted_is_eperm: bool,
    /// Whether everyone gets a private receive profile for a VNI that no profile offers; otherwise
    /// only uid 0.
    pub(crate) private_rx_for_all: bool,
    /// Whether a CP call reuses LCID 0 for the kinds that it fits, and the LNI's own LCIDs for the
    /// others; otherwise whatever the RGID has for that VNI, class and type.
    pub(crate) cp_reuse_by_kind: bool,
    /// Whether a failing DOMAIN_RESERVE sets bits outside the table, and keeps its reference to the
    /// profile.
    pub(crate) failed_reserve_corrupts: bool,
    /// Whether PID 510 is never assigned to a request for any PID.
    pub(crate) last_pid_not_any: bool,
    /// Whether a service takes an LE pool if it may have LEs; otherwise if it reserves any.
    pub(crate) le_pool_for_max: bool,
    /// Whether a refusal says which pools were exhausted.
    pub(crate) pool_flags: bool,
    /// Whether a service refused for TLEs keeps the LE pools it took without a reservation.
    pub(crate) refusal_leaks_le_pools: bool,
    /// Whether usage figures report the hardware's count of LEs in the service's own pool, and
    /// 0xFFFF without one; otherwise they report 0.
    pub(crate) le_usage_shown: bool,
    pub(crate) tle_usage_without_pool: TleUsageWithoutPool,
    /// The value for no pool.
    pub(crate) no_pool: i32,
    /// Whether lists are ordered by id; otherwise the oldest service comes first.
    pub(crate) lists_by_id: bool,
    /// Whether a new RGID is the highest in use plus one, and an LNI that joins a shared one gets
    /// the number of the previous one plus one, which is wrong after a gap; otherwise it is the
    /// lowest free one.
    pub(crate) rgids_count_up: bool,
    /// Whether the parameters `enable_rgid_sharing` and `default_lnis_per_rgid` exist.
    pub(crate) rgid_parameters: bool,
    /// Whether the default service shows classes 0 to 3.
    pub(crate) default_tcs_shown: bool,
    /// Whether resource groups have names.
    pub(crate) group_names: bool,
    /// References to a resource group other than those of LNIs.
    pub(crate) group_references: u32,
    /// Whether a range of ATU_MAP that wraps around is EOVERFLOW; otherwise it is EFAULT.
    pub(crate) wrap_is_overflow: bool,
    /// Whether a bad table mode of ATU_MAP is found before anything else that is wrong with it.
    pub(crate) table_mode_first: bool,
    /// Whether missing ATS is detected only after a mapping is charged.
    pub(crate) ats_after_charge: bool,
    /// Whether the hint of a huge page size applies to everyone and to any memory, unless it comes
    /// with a page size.
    pub(crate) huge_shift_for_all: bool,
    /// Whether an ATU_MAP whose answer cannot be delivered unmaps and succeeds.
    pub(crate) undelivered_md_is_success: bool,
}

impl Rules {
    pub(crate) fn of(release: DriverRelease) -> Self {
        match release {
            DriverRelease::Shs12_0 => Self::shs_12_0(),
            DriverRelease::Shs13_0 => Self::shs_13_0(),
            DriverRelease::Shs13_1 => Self::shs_13_1(),
            DriverRelease::Shs14_0_0 => Self::shs_14_0_0(),
            DriverRelease::Shs14_0_1 => Self::shs_14_0_1(),
            DriverRelease::Main => Self::main(),
        }
    }

    fn main() -> Self {
        Self {
            release: DriverRelease::Main,
            longest_command: None,
            lni_alloc_long: true,
            eq_adjust_behind: true,
            properties_nid_configured: true,
            vf_relay: true,
            has_profiles: true,
            exact_vnis_exclusive: false,
            range_to_come: true,
            empty_vni_list: true,
            disabled_profiles_off: true,
            ignore_slot_admits: false,
            member_check: MemberCheck::IdAndTwice,
            members_before_vnis: true,
            supplementary_groups: false,
            netns_members: true,
            not_admitted_is_eperm: true,
            private_rx_for_all: false,
            cp_reuse_by_kind: true,
            failed_reserve_corrupts: false,
            last_pid_not_any: true,
            le_pool_for_max: false,
            pool_flags: true,
            refusal_leaks_le_pools: false,
            le_usage_shown: true,
            tle_usage_without_pool: TleUsageWithoutPool::NotApplicable,
            no_pool: 0,
            lists_by_id: true,
            rgids_count_up: false,
            rgid_parameters: true,
            default_tcs_shown: true,
            group_names: true,
            group_references: 1,
            wrap_is_overflow: true,
            table_mode_first: true,
            ats_after_charge: false,
            huge_shift_for_all: false,
            undelivered_md_is_success: false,
        }
    }

    fn shs_14_0_1() -> Self {
        Self {
            release: DriverRelease::Shs14_0_1,
            longest_command: Some(112),
            lni_alloc_long: false,
            eq_adjust_behind: false,
            vf_relay: false,
            le_usage_shown: false,
            tle_usage_without_pool: TleUsageWithoutPool::DefaultPool,
            lists_by_id: false,
            wrap_is_overflow: false,
            table_mode_first: false,
            ats_after_charge: true,
            huge_shift_for_all: true,
            undelivered_md_is_success: true,
            ..Self::main()
        }
    }

    fn shs_14_0_0() -> Self {
        Self {
            release: DriverRelease::Shs14_0_0,
            exact_vnis_exclusive: true,
            le_pool_for_max: true,
            tle_usage_without_pool: TleUsageWithoutPool::Zero,
            no_pool: -1,
            ..Self::shs_14_0_1()
        }
    }

    fn shs_13_1() -> Self {
        Self {
            release: DriverRelease::Shs13_1,
            netns_members: false,
            ..Self::shs_14_0_0()
        }
    }

    fn shs_13_0() -> Self {
        Self {
            release: DriverRelease::Shs13_0,
            properties_nid_configured: false,
            range_to_come: false,
            empty_vni_list: false,
            disabled_profiles_off: false,
            ignore_slot_admits: true,
            member_check: MemberCheck::Id,
            members_before_vnis: false,
            not_admitted_is_eperm: false,
            private_rx_for_all: true,
            cp_reuse_by_kind: false,
            failed_reserve_corrupts: true,
            pool_flags: false,
            rgids_count_up: true,
            rgid_parameters: false,
            group_names: false,
            ..Self::shs_13_1()
        }
    }

    fn shs_12_0() -> Self {
        Self {
            release: DriverRelease::Shs12_0,
            // Without profiles and access entries their rules do not matter.
            has_profiles: false,
            member_check: MemberCheck::None,
            supplementary_groups: true,
            failed_reserve_corrupts: false,
            last_pid_not_any: false,
            refusal_leaks_le_pools: true,
            default_tcs_shown: false,
            group_references: 2,
            ..Self::shs_13_0()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_those_of_the_release() {
        for release in DriverRelease::ALL {
            assert_eq!(Rules::of(release).release, release);
        }
    }
}
