//! Service descriptors: which are refused, and what the driver makes of the others.

use cxi_ioctl::Errno;
use cxi_ioctl::abi::service::{
    Limits, MEMBER_GID, MEMBER_IGNORE, MEMBER_NET_NS, MEMBER_UID, RSRC_TLE, RsrcLimits, SvcDesc,
    SvcFlags,
};

use super::access::{Access, AccessList, is_member};
use super::accounting::MIN_POOL_TLES;
use super::group::flags;
use crate::Credentials;
use crate::rules::{MemberCheck, Rules};

/// EINVAL for a descriptor that SVC_ALLOC and SVC_UPDATE do not accept.
pub(crate) fn check(desc: &SvcDesc, totals: &RsrcLimits, rules: &Rules) -> Result<(), Errno> {
    let flags = flags(desc);
    if flags.contains(SvcFlags::RESTRICTED_VNIS) {
        let listed = desc.vnis.get(..desc.num_vld_vnis.into()).ok_or(Errno::EINVAL)?;
        if listed.contains(&0) || (listed.is_empty() && !rules.empty_vni_list) {
            return Err(Errno::EINVAL);
        }
    }
    if flags.contains(SvcFlags::RESTRICTED_MEMBERS) {
        let known = |kind| match kind {
            MEMBER_IGNORE | MEMBER_UID | MEMBER_GID => true,
            MEMBER_NET_NS => rules.netns_members,
            _ => false,
        };
        if !desc.members.iter().all(|member| known(member.kind)) {
            return Err(Errno::EINVAL);
        }
    }
    if flags.contains(SvcFlags::RESOURCE_LIMITS) {
        for (limit, total) in desc.limits.types.iter().zip(&totals.types) {
            if limit.max < limit.res || limit.max > total.max {
                return Err(Errno::EINVAL);
            }
        }
    }
    Ok(())
}

/// The limits that a service gets: its own, or the device totals without a reservation. A TLE pool
/// has at least eight TLEs, all of them reserved. Even a service without limits gets one of the
/// four pools, the first of which is the default service's, so only three such services fit.
pub(crate) fn effective_limits(desc: &SvcDesc, totals: &RsrcLimits) -> RsrcLimits {
    let limited = flags(desc).contains(SvcFlags::RESOURCE_LIMITS);
    let mut limits = if limited { desc.limits } else { *totals };
    let tles = &mut limits.types[RSRC_TLE];
    if !limited {
        tles.max = 0;
        tles.res = MIN_POOL_TLES;
    }
    if tles.max > 0 || tles.res > 0 {
        let all = tles.res.max(MIN_POOL_TLES);
        *tles = Limits { max: all, res: all };
    }
    limits
}

/// The access entries that a service's members make for its group. A namespace has no ID of its own
/// in a descriptor: the driver takes the id that it read last, or 0.
pub(crate) fn access(desc: &SvcDesc, rules: &Rules) -> Result<AccessList, Errno> {
    entries(desc, rules, |last_id| last_id)
}

/// The access entries that the members make for the service's profiles, where a namespace is always
/// 0.
pub(crate) fn profile_access(desc: &SvcDesc, rules: &Rules) -> Result<AccessList, Errno> {
    entries(desc, rules, |_| 0)
}

fn entries(desc: &SvcDesc, rules: &Rules, netns: impl Fn(u32) -> u32) -> Result<AccessList, Errno> {
    if rules.member_check == MemberCheck::None {
        return Ok(AccessList::default());
    }
    if !flags(desc).contains(SvcFlags::RESTRICTED_MEMBERS) {
        return Ok(AccessList::of(Access::Open));
    }
    let mut list = AccessList::default();
    let mut last_id = 0;
    for member in &desc.members {
        let access = match member.kind {
            MEMBER_UID => Access::Uid(member.id),
            MEMBER_GID => Access::Gid(member.id),
            MEMBER_NET_NS => Access::Netns(netns(last_id)),
            _ if rules.ignore_slot_admits => Access::Open,
            _ => continue,
        };
        if let Access::Uid(id) | Access::Gid(id) = access {
            last_id = id;
        }
        match list.add(access) {
            Err(Errno::EEXIST) if rules.member_check == MemberCheck::Id => {}
            result => result?,
        }
    }
    Ok(list)
}

/// Returns whether the members of a descriptor admit a caller, where there are no access entries.
pub(crate) fn admits(desc: &SvcDesc, caller: &Credentials, rules: &Rules) -> bool {
    !flags(desc).contains(SvcFlags::RESTRICTED_MEMBERS)
        || desc.members.iter().any(|member| match member.kind {
            MEMBER_UID => caller.uid == member.id,
            MEMBER_GID => is_member(caller, member.id, rules),
            _ => false,
        })
}

/// Returns whether a descriptor lists a VNI, or does not restrict VNIs.
pub(crate) fn has_vni(desc: &SvcDesc, vni: u16) -> bool {
    !flags(desc).contains(SvcFlags::RESTRICTED_VNIS)
        || desc.vnis.iter().take(desc.num_vld_vnis.into()).any(|listed| *listed == vni)
}

/// Traffic classes that a service may use.
pub(crate) fn traffic_classes(desc: &SvcDesc) -> [bool; 5] {
    if flags(desc).contains(SvcFlags::RESTRICTED_TCS) {
        desc.tcs.map(|allowed| allowed != 0)
    } else {
        [true; 5]
    }
}

#[cfg(test)]
mod tests {
    use cxi_ioctl::DriverRelease;
    use cxi_ioctl::abi::service::{SvcAllocCmd, SvcMember};

    use super::*;

    fn desc(flags: SvcFlags) -> SvcDesc {
        let mut desc = SvcAllocCmd::new().svc_desc;
        desc.flags = flags.bits();
        desc
    }

    fn totals() -> RsrcLimits {
        RsrcLimits { types: [Limits { max: 100, res: 0 }; 8] }
    }

    fn check_on(desc: &SvcDesc, release: DriverRelease) -> Result<(), Errno> {
        check(desc, &totals(), &Rules::of(release))
    }

    #[test]
    fn only_restricted_lists_are_looked_at() {
        let mut bad = desc(SvcFlags::empty());
        bad.num_vld_vnis = 9;
        bad.members[0].kind = 77;
        bad.limits.types[0].res = 5;
        assert_eq!(check_on(&bad, DriverRelease::Main2026_07), Ok(()));
        for flag in
            [SvcFlags::RESTRICTED_VNIS, SvcFlags::RESTRICTED_MEMBERS, SvcFlags::RESOURCE_LIMITS]
        {
            bad.flags = flag.bits();
            assert_eq!(check_on(&bad, DriverRelease::Main2026_07), Err(Errno::EINVAL), "{flag:?}");
        }
    }

    #[test]
    fn releases_differ_in_empty_lists_and_namespaces() {
        let empty = desc(SvcFlags::RESTRICTED_VNIS);
        assert_eq!(check_on(&empty, DriverRelease::Shs13_0), Err(Errno::EINVAL));
        assert_eq!(check_on(&empty, DriverRelease::Shs13_1), Ok(()));
        let mut netns = desc(SvcFlags::RESTRICTED_MEMBERS);
        netns.members[1].kind = MEMBER_NET_NS;
        assert_eq!(check_on(&netns, DriverRelease::Shs13_1), Err(Errno::EINVAL));
        assert_eq!(check_on(&netns, DriverRelease::Shs14_0_0), Ok(()));
    }

    #[test]
    fn tle_pools_are_all_reserved_and_at_least_eight() {
        let tles = |max, res| {
            let mut desc = desc(SvcFlags::RESOURCE_LIMITS);
            desc.limits.types[RSRC_TLE] = Limits { max, res };
            let tles = effective_limits(&desc, &totals()).types[RSRC_TLE];
            (tles.max, tles.res)
        };
        assert_eq!(tles(0, 0), (0, 0));
        assert_eq!(tles(100, 0), (8, 8));
        assert_eq!(tles(100, 9), (9, 9));
        let open = effective_limits(&desc(SvcFlags::empty()), &totals());
        assert_eq!(open.types[RSRC_TLE], Limits { max: 8, res: 8 });
        assert_eq!(open.types[0], Limits { max: 100, res: 0 });
    }

    #[test]
    fn an_ignore_slot_opens_a_service_on_13_0_only() {
        let mut desc = desc(SvcFlags::RESTRICTED_MEMBERS);
        desc.members[1] = SvcMember { id: 5, kind: MEMBER_UID };
        let other = Credentials::user(6, 6);
        for release in DriverRelease::ALL {
            let rules = Rules::of(release);
            let admitted = match rules.member_check {
                MemberCheck::None => admits(&desc, &other, &rules),
                _ => access(&desc, &rules).unwrap().admits(&other, &rules),
            };
            assert_eq!(admitted, release == DriverRelease::Shs13_0, "{release}");
        }
    }
}
