//! Everything that differs between driver releases, as named rules.
//!
//! This is the home of all differences between releases.

use cxi_ioctl::{ByRelease, DriverRelease};

const YES: bool = true;
const NO: bool = false;

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
    ($($(#[$doc:meta])* $name:ident: $type:ty = $values:expr,)*) => {
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
            pub(crate) fn of(release: DriverRelease) -> Self {
                $(let $name: ByRelease<$type> = ByRelease($values);)*
                Self { release, $($name: $name.at(release),)* }
            }
        }
    };
}

// One column for each of `DriverRelease::ALL`: a new release does not compile until each rule says what
// holds for it.
rules! {
    /// The longest command; longer ones are EINVAL before anything is read.
    longest_command: Option<usize> = [Some(112), Some(112), Some(112), Some(112), Some(112), None, None],
    /// `true` if LNI_ALLOC has the service after the response pointer (24 bytes), not before it
    /// (16).
    lni_alloc_long: bool = [NO, NO, NO, NO, NO, YES, YES],
    /// `true` if EQ_ADJUST_RESERVED_FC has its arguments after the response pointer.
    eq_adjust_behind: bool = [NO, NO, NO, NO, NO, YES, YES],
    /// `true` if GET_DEV_PROPERTIES reports that the fabric address has been set (84 bytes,
    /// otherwise 80).
    properties_nid_configured: bool = [NO, NO, YES, YES, YES, YES, YES],
    /// Virtual functions relay commands to the physical one.
    vf_relay: bool = [NO, NO, NO, NO, NO, YES, YES],
    /// `true` if the right to use a VNI comes from profiles, whatever service created them;
    /// otherwise from the stored descriptor of the LNI's service.
    has_profiles: bool = [NO, YES, YES, YES, YES, YES, YES],
    /// `true` if exact VNIs conflict with equal ones; ranges conflict with whatever they overlap.
    exact_vnis_exclusive: bool = [YES, YES, YES, YES, NO, NO, NO],
    /// `true` if a service without `restricted_vnis` is disabled until a range is set and it is
    /// enabled; otherwise it is enabled at once, with profiles (where there are any) for the VNIs
    /// in its list, unchecked.
    range_to_come: bool = [NO, NO, YES, YES, YES, YES, YES],
    /// `true` if a restricted service may list no VNI.
    empty_vni_list: bool = [NO, NO, YES, YES, YES, YES, YES],
    /// `true` if disabling a service disables its profiles.
    disabled_profiles_off: bool = [NO, NO, YES, YES, YES, YES, YES],
    /// `true` if an IGNORE slot opens a service with restricted members to everyone.
    ignore_slot_admits: bool = [YES, YES, NO, NO, NO, NO, NO],
    /// Check of members when access entries are made.
    member_check: MemberCheck = [
        MemberCheck::None,
        MemberCheck::Id,
        MemberCheck::IdAndTwice,
        MemberCheck::IdAndTwice,
        MemberCheck::IdAndTwice,
        MemberCheck::IdAndTwice,
        MemberCheck::IdAndTwice,
    ],
    /// `true` if members are checked before VNIs are claimed.
    members_before_vnis: bool = [NO, NO, YES, YES, YES, YES, YES],
    /// `true` if GID members match supplementary groups too.
    supplementary_groups: bool = [YES, NO, NO, NO, NO, NO, NO],
    /// `true` if members may be network namespaces.
    netns_members: bool = [NO, NO, NO, YES, YES, YES, YES],
    /// `true` if a VNI whose profiles do not admit the caller is EPERM; otherwise it counts as
    /// unknown.
    not_admitted_is_eperm: bool = [NO, NO, YES, YES, YES, YES, YES],
    /// `true` if everyone gets a private receive profile for a VNI that no profile offers;
    /// otherwise only uid 0.
    private_rx_for_all: bool = [YES, YES, NO, NO, NO, NO, NO],
    /// `true` if a CP call reuses LCID 0 for the kinds that it fits, and the LNI's own LCIDs for
    /// the others; otherwise whatever the RGID has for that VNI, class and type.
    cp_reuse_by_kind: bool = [NO, NO, YES, YES, YES, YES, YES],
    /// `true` if a failing DOMAIN_RESERVE sets bits outside the table, and keeps its reference to
    /// the profile.
    failed_reserve_corrupts: bool = [NO, YES, NO, NO, NO, NO, NO],
    /// `true` if PID 510 is never assigned to a request for any PID.
    last_pid_not_any: bool = [NO, YES, YES, YES, YES, YES, YES],
    /// `true` if a service takes an LE pool if it may have LEs; otherwise if it reserves any.
    le_pool_for_max: bool = [YES, YES, YES, YES, NO, NO, NO],
    /// `true` if a refusal says which pools were exhausted.
    pool_flags: bool = [NO, NO, YES, YES, YES, YES, YES],
    /// `true` if a service refused for TLEs keeps the LE pools it took without a reservation.
    refusal_leaks_le_pools: bool = [YES, NO, NO, NO, NO, NO, NO],
    /// `true` if usage figures report the hardware's count of LEs in the service's own pool, and
    /// 0xFFFF without one; otherwise they report 0.
    le_usage_shown: bool = [NO, NO, NO, NO, NO, YES, YES],
    /// Usage of TLEs that is shown for a service without a pool.
    tle_usage_without_pool: TleUsageWithoutPool = [
        TleUsageWithoutPool::Zero,
        TleUsageWithoutPool::Zero,
        TleUsageWithoutPool::Zero,
        TleUsageWithoutPool::Zero,
        TleUsageWithoutPool::DefaultPool,
        TleUsageWithoutPool::NotApplicable,
        TleUsageWithoutPool::NotApplicable,
    ],
    /// The value for no pool.
    no_pool: i32 = [-1, -1, -1, -1, 0, 0, 0],
    /// `true` if lists are ordered by id; otherwise the oldest service comes first.
    lists_by_id: bool = [NO, NO, NO, NO, NO, YES, YES],
    /// `true` if a new RGID is the highest in use plus one, and an LNI that joins a shared one gets
    /// the number of the previous one plus one, which is wrong after a gap; otherwise it is the
    /// lowest free one.
    rgids_count_up: bool = [YES, YES, NO, NO, NO, NO, NO],
    /// `true` if the parameters `enable_rgid_sharing` and `default_lnis_per_rgid` exist.
    rgid_parameters: bool = [NO, NO, YES, YES, YES, YES, YES],
    /// `true` if the default service shows classes 0 to 3.
    default_tcs_shown: bool = [NO, YES, YES, YES, YES, YES, YES],
    /// `true` if resource groups have names.
    group_names: bool = [NO, NO, YES, YES, YES, YES, YES],
    /// References to a resource group other than those of LNIs.
    group_references: u32 = [2, 1, 1, 1, 1, 1, 1],
    /// `true` if a range of ATU_MAP that wraps around is EOVERFLOW; otherwise it is EFAULT.
    wrap_is_overflow: bool = [NO, NO, NO, NO, NO, YES, YES],
    /// `true` if a bad table mode of ATU_MAP is found before anything else that is wrong with it.
    table_mode_first: bool = [NO, NO, NO, NO, NO, YES, YES],
    /// `true` if missing ATS is detected only after a mapping is charged.
    ats_after_charge: bool = [YES, YES, YES, YES, YES, NO, NO],
    /// `true` if the hint of a huge page size applies to everyone and to any memory, unless it
    /// comes with a page size.
    huge_shift_for_all: bool = [YES, YES, YES, YES, YES, NO, NO],
    /// `true` if services, profiles and numbers are kept as SHS 14.0.1 keeps them, so that a driver can
    /// be replaced by another such one while no LNI is open.
    records_of_14_0_1: bool = [NO, NO, NO, NO, YES, YES, YES],
    /// `true` if a virtual function without a parent service cannot be enabled.
    functions_need_parents: bool = [NO, NO, NO, NO, NO, NO, YES],
    /// `true` if an ATU_MAP whose answer cannot be delivered unmaps and succeeds.
    undelivered_md_is_success: bool = [YES, YES, YES, YES, YES, NO, NO],
}
