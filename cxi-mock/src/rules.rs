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
        use DriverRelease::{Main, Shs12_0, Shs13_0, Shs13_1, Shs14_0_0, Shs14_0_1};
        let since = |first| release >= first;
        let until = |last| release <= last;
        Self {
            release,
            longest_command: until(Shs14_0_1).then_some(112),
            lni_alloc_long: since(Main),
            eq_adjust_behind: since(Main),
            properties_nid_configured: since(Shs13_1),
            vf_relay: since(Main),
            has_profiles: since(Shs13_0),
            exact_vnis_exclusive: until(Shs14_0_0),
            range_to_come: since(Shs13_1),
            empty_vni_list: since(Shs13_1),
            disabled_profiles_off: since(Shs13_1),
            ignore_slot_admits: until(Shs13_0),
            member_check: match release {
                Shs12_0 => MemberCheck::None,
                Shs13_0 => MemberCheck::Id,
                _ => MemberCheck::IdAndTwice,
            },
            members_before_vnis: since(Shs13_1),
            supplementary_groups: until(Shs12_0),
            netns_members: since(Shs14_0_0),
            not_admitted_is_eperm: since(Shs13_1),
            private_rx_for_all: until(Shs13_0),
            cp_reuse_by_kind: since(Shs13_1),
            failed_reserve_corrupts: release == Shs13_0,
            last_pid_not_any: since(Shs13_0),
            le_pool_for_max: until(Shs14_0_0),
            pool_flags: since(Shs13_1),
            refusal_leaks_le_pools: until(Shs12_0),
            le_usage_shown: since(Main),
            tle_usage_without_pool: match release {
                Main => TleUsageWithoutPool::NotApplicable,
                Shs14_0_1 => TleUsageWithoutPool::DefaultPool,
                _ => TleUsageWithoutPool::Zero,
            },
            no_pool: if until(Shs14_0_0) { -1 } else { 0 },
            lists_by_id: since(Main),
            rgids_count_up: until(Shs13_0),
            rgid_parameters: since(Shs13_1),
            default_tcs_shown: since(Shs13_0),
            group_names: since(Shs13_1),
            group_references: if until(Shs12_0) { 2 } else { 1 },
            wrap_is_overflow: since(Main),
            table_mode_first: since(Main),
            ats_after_charge: until(Shs14_0_1),
            huge_shift_for_all: until(Shs14_0_1),
            undelivered_md_is_success: until(Shs14_0_1),
        }
    }
}
