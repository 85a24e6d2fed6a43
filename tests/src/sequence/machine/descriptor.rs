//! Service descriptors as the kernel has them.

use cxi_ioctl::abi::service::{Limits, RSRC_COUNT, SvcDesc, SvcMember};
use zerocopy::FromZeros;

use crate::sequence::model::TOTALS;
use crate::sequence::operation::{Descriptor, Member};

pub(super) fn to_abi(from: &Descriptor) -> SvcDesc {
    let mut to = SvcDesc::new_zeroed();
    let flags = [
        from.restricted_members,
        from.restricted_vnis,
        from.restricted_tcs,
        from.resource_limits,
        from.enable,
        from.is_system_svc,
    ];
    for (bit, flag) in flags.into_iter().enumerate() {
        to.flags |= u8::from(flag) << bit;
    }
    to.flags |= from.cntr_pool_id << 6;
    to.num_vld_vnis = from.num_vld_vnis;
    to.vnis = from.vnis;
    to.tcs = from.tcs.map(u8::from);
    to.members = from.members.map(|member| SvcMember {
        id: member.id,
        kind: member.kind,
    });
    to.limits.types = from.limits.map(|(max, res)| Limits { max, res });
    to.svc_id = from.svc_id;
    to
}

pub(super) fn from_abi(from: &SvcDesc) -> Descriptor {
    const { assert!(RSRC_COUNT == TOTALS.len()) };
    let flag = |bit: u8| from.flags >> bit & 1 == 1;
    Descriptor {
        restricted_members: flag(0),
        restricted_vnis: flag(1),
        restricted_tcs: flag(2),
        resource_limits: flag(3),
        enable: flag(4),
        is_system_svc: flag(5),
        cntr_pool_id: from.flags >> 6,
        num_vld_vnis: from.num_vld_vnis,
        vnis: from.vnis,
        tcs: from.tcs.map(|class| class == 1),
        members: from.members.map(|member| Member {
            kind: member.kind,
            id: member.id,
        }),
        limits: from.limits.types.map(|limits| (limits.max, limits.res)),
        svc_id: from.svc_id,
    }
}
