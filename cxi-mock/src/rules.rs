//! Everything that differs between driver releases, as named rules.
//!
//! This is the home of all differences between releases.

use cxi_ioctl::DriverRelease::{self, Main, Shs12_0, Shs13_0, Shs13_1, Shs14_0_0, Shs14_0_1};

/// Way in which access entries are made from members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberCheck {
    /// There are no access entries: the descriptor is checked at each call.
    None,
    /// An id of all ones is EBADR; the same member twice is one entry.
    Id,
    /// An id of all ones is EBADR, the same member twice EEXIST.
    IdAndTwice,
}

/// Usage of TLEs that is reported for a service without a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TleUsageWithoutPool {
    /// 0.
    Zero,
    /// Usage of the default pool.
    DefaultPool,
    /// 0xFFFF.
    NotApplicable,
}

/// Makes the structure of the rules, and their values at a release.
macro_rules! rules {
    ($release:ident => $($(#[$doc:meta])* $name:ident: $type:ty = $value:expr,)*) => {
        /// The rules of one release.
        #[derive(Clone, Debug)]
        #[allow(
            clippy::struct_excessive_bools,
            reason = "rules are independent yes-or-no facts"
        )]
        pub(crate) struct Rules {
            pub(crate) release: DriverRelease,
            $($(#[$doc])* pub(crate) $name: $type,)*
        }

        impl Rules {
            pub(crate) fn of($release: DriverRelease) -> Self {
                Self {
                    release: $release,
                    $($name: $value,)*
                }
            }
        }
    };
}

rules! { release =>
    /// The longest command; longer ones are EINVAL before anything is read.
    longest_command: Option<usize> = (release <= Shs14_0_1).then_some(112),
    /// `true` if LNI_ALLOC has the service after the response pointer (24 bytes), not before it
    /// (16).
    lni_alloc_long: bool = release >= Main,
    /// `true` if EQ_ADJUST_RESERVED_FC has its arguments after the response pointer.
    eq_adjust_behind: bool = release >= Main,
    /// `true` if GET_DEV_PROPERTIES reports that the fabric address has been set (84 bytes,
    /// otherwise 80).
    properties_nid_configured: bool = release >= Shs13_1,
    /// Virtual functions relay commands to the physical one.
    vf_relay: bool = release >= Main,
    /// `true` if the right to use a VNI comes from profiles, whatever service created them;
    /// otherwise from the stored descriptor of the LNI's service.
    has_profiles: bool = release >= Shs13_0,
    /// `true` if exact VNIs conflict with equal ones; ranges conflict with whatever they overlap.
    exact_vnis_exclusive: bool = release <= Shs14_0_0,
    /// `true` if a service without `restricted_vnis` is disabled until a range is set and it is
    /// enabled; otherwise it is enabled at once, with profiles (where there are any) for the VNIs
    /// in its list, unchecked.
    range_to_come: bool = release >= Shs13_1,
    /// `true` if a restricted service may list no VNI.
    empty_vni_list: bool = release >= Shs13_1,
    /// `true` if disabling a service disables its profiles.
    disabled_profiles_off: bool = release >= Shs13_1,
    /// `true` if an IGNORE slot opens a service with restricted members to everyone.
    ignore_slot_admits: bool = release <= Shs13_0,
    member_check: MemberCheck = match release {
        Shs12_0 => MemberCheck::None,
        Shs13_0 => MemberCheck::Id,
        _ => MemberCheck::IdAndTwice,
    },
    /// `true` if members are checked before VNIs are claimed.
    members_before_vnis: bool = release >= Shs13_1,
    /// `true` if GID members match supplementary groups too.
    supplementary_groups: bool = release <= Shs12_0,
    /// `true` if members may be network namespaces.
    netns_members: bool = release >= Shs14_0_0,
    /// `true` if a VNI whose profiles do not admit the caller is EPERM; otherwise it counts as
    /// unknown.
    not_admitted_is_eperm: bool = release >= Shs13_1,
    /// `true` if everyone gets a private receive profile for a VNI that no profile offers;
    /// otherwise only uid 0.
    private_rx_for_all: bool = release <= Shs13_0,
    /// `true` if a CP call reuses LCID 0 for the kinds that it fits, and the LNI's own LCIDs for
    /// the others; otherwise whatever the RGID has for that VNI, class and type.
    cp_reuse_by_kind: bool = release >= Shs13_1,
    /// `true` if a failing DOMAIN_RESERVE sets bits outside the table, and keeps its reference to
    /// the profile.
    failed_reserve_corrupts: bool = release == Shs13_0,
    /// `true` if PID 510 is never assigned to a request for any PID.
    last_pid_not_any: bool = release >= Shs13_0,
    /// `true` if a service takes an LE pool if it may have LEs; otherwise if it reserves any.
    le_pool_for_max: bool = release <= Shs14_0_0,
    /// `true` if a refusal says which pools were exhausted.
    pool_flags: bool = release >= Shs13_1,
    /// `true` if a service refused for TLEs keeps the LE pools it took without a reservation.
    refusal_leaks_le_pools: bool = release <= Shs12_0,
    /// `true` if usage figures report the hardware's count of LEs in the service's own pool, and
    /// 0xFFFF without one; otherwise they report 0.
    le_usage_shown: bool = release >= Main,
    tle_usage_without_pool: TleUsageWithoutPool = match release {
        Main => TleUsageWithoutPool::NotApplicable,
        Shs14_0_1 => TleUsageWithoutPool::DefaultPool,
        _ => TleUsageWithoutPool::Zero,
    },
    /// The value for no pool.
    no_pool: i32 = if release <= Shs14_0_0 { -1 } else { 0 },
    /// `true` if lists are ordered by id; otherwise the oldest service comes first.
    lists_by_id: bool = release >= Main,
    /// `true` if a new RGID is the highest in use plus one, and an LNI that joins a shared one gets
    /// the number of the previous one plus one, which is wrong after a gap; otherwise it is the
    /// lowest free one.
    rgids_count_up: bool = release <= Shs13_0,
    /// `true` if the parameters `enable_rgid_sharing` and `default_lnis_per_rgid` exist.
    rgid_parameters: bool = release >= Shs13_1,
    /// `true` if the default service shows classes 0 to 3.
    default_tcs_shown: bool = release >= Shs13_0,
    /// `true` if resource groups have names.
    group_names: bool = release >= Shs13_1,
    /// References to a resource group other than those of LNIs.
    group_references: u32 = if release <= Shs12_0 { 2 } else { 1 },
    /// `true` if a range of ATU_MAP that wraps around is EOVERFLOW; otherwise it is EFAULT.
    wrap_is_overflow: bool = release >= Main,
    /// `true` if a bad table mode of ATU_MAP is found before anything else that is wrong with it.
    table_mode_first: bool = release >= Main,
    /// `true` if missing ATS is detected only after a mapping is charged.
    ats_after_charge: bool = release <= Shs14_0_1,
    /// `true` if the hint of a huge page size applies to everyone and to any memory, unless it
    /// comes with a page size.
    huge_shift_for_all: bool = release <= Shs14_0_1,
    /// `true` if an ATU_MAP whose answer cannot be delivered unmaps and succeeds.
    undelivered_md_is_success: bool = release <= Shs14_0_1,
}
