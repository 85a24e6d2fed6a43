//! Generated services.

use proptest::prelude::*;
use proptest::sample::select;
use zerocopy::FromZeros;

use crate::sequence::model::{AC, LE, Model, Service, TLE, TOTALS};
use crate::sequence::operation::{
    Command, Limits, RsrcLimits, SvcDesc, SvcFlags, SvcMember, command,
};

use super::pick;

/// A command on services.
pub(super) fn command(state: &Model) -> BoxedStrategy<Command> {
    let service = pick(state.services.keys().copied().collect(), &[0, 99]);
    let unrestricted = state.services.values();
    let unrestricted = unrestricted.filter(|service| !service.restricts_vnis());
    let (ranged, rangeless): (Vec<_>, Vec<_>) =
        unrestricted.partition(|service| service.has_range());
    let ids = |services: Vec<&Service>| -> Vec<u32> {
        let ids = services.iter().map(|service| service.descriptor.svc_id);
        ids.collect()
    };
    let disabled = ranged.iter().filter(|service| !service.enabled);
    let disabled = pick(ids(disabled.copied().collect()), &[1, 2, 99]);
    let exclusive = prop_oneof![2 => disabled.clone(), 1 => pick(ids(ranged), &[1, 2, 99])];
    let rangeless = pick(ids(rangeless), &[1, 2, 99]);
    let idle = state.services.keys().copied();
    let idle = idle.filter(|id| state.lnis.values().all(|lni| lni.svc_id != *id));
    let idle = pick(idle.collect(), &[1, 99]);
    let shared = prop_oneof![1 => idle, 1 => service.clone()];
    let switched = prop_oneof![2 => disabled, 2 => service.clone()];
    let counts = state.clone();
    prop_oneof![
        6 => descriptor().prop_map(alloc),
        8 => usable().prop_map(alloc),
        2 => unrestricted_service().prop_map(alloc),
        8 => pool_taker().prop_map(alloc),
        2 => (service.clone(), descriptor()).prop_map(move |(svc_id, new)| {
            let svc_desc = keep_vnis(&counts, svc_id, new);
            command!(SvcUpdate(SvcUpdateCmd { svc_desc }))
        }),
        3 => service.clone().prop_map(|svc_id| command!(SvcDestroy(SvcDestroyCmd { svc_id }))),
        4 => (switched, prop::bool::weighted(0.7)).prop_map(|(svc_id, enable)| {
            let enable = u8::from(enable);
            command!(SvcEnable(SvcEnableCmd { svc_id, enable }))
        }),
        4 => (shared, prop_oneof![4 => 2_u32..6, 1 => 0_u32..10])
            .prop_map(|(svc_id, lnis_per_rgid)| {
                command!(SvcSetLpr(SvcSetLprCmd { svc_id, lnis_per_rgid }))
            }),
        3 => (rangeless, range()).prop_map(|(svc_id, (vni_min, vni_max))| {
            command!(SvcSetVniRange(SvcSetVniRangeCmd { svc_id, vni_min, vni_max }))
        }),
        3 => (exclusive, prop::bool::weighted(0.8)).prop_map(|(svc_id, exclusive)| {
            let exclusive_cp = u8::from(exclusive);
            command!(SvcSetExclusiveCp(SvcSetExclusiveCpCmd { svc_id, exclusive_cp }))
        }),
    ]
    .boxed()
}

/// A service for all users on one of a few VNIs, with a little of each resource.
fn usable() -> impl Strategy<Value = SvcDesc> {
    let limits: [BoxedStrategy<(u16, u16)>; 8] = std::array::from_fn(|kind| match kind {
        LE | TLE => Just((0, 0)).boxed(),
        AC => (3_u16..30, 0_u16..3).boxed(),
        _ => prop_oneof![6 => (2_u16..7, 0_u16..3), 1 => Just((0, 0))].boxed(),
    });
    (1_u16..20, limits).prop_map(|(vni, limits)| SvcDesc {
        num_vld_vnis: 2,
        vnis: [vni, vni + 20, 0, 0],
        ..limited(limits)
    })
}

/// A service that waits for a range of VNIs.
fn unrestricted_service() -> impl Strategy<Value = SvcDesc> {
    usable().prop_map(|new| SvcDesc { flags: new.flags & !RESTRICTED_VNIS, num_vld_vnis: 0, ..new })
}

/// A descriptor for an update that leaves the VNIs unchanged.
fn keep_vnis(state: &Model, svc_id: u32, mut new: SvcDesc) -> SvcDesc {
    new.svc_id = svc_id;
    if let Some(service) = state.services.get(&svc_id) {
        let stored = &service.descriptor;
        new.flags = new.flags & !RESTRICTED_VNIS | stored.flags & RESTRICTED_VNIS;
        new.num_vld_vnis = stored.num_vld_vnis;
        new.vnis = stored.vnis;
    }
    new
}

fn descriptor() -> impl Strategy<Value = SvcDesc> {
    let flags = (
        prop::bool::weighted(0.5),
        prop::bool::weighted(0.7),
        any::<bool>(),
        prop::bool::weighted(0.8),
        any::<bool>(),
        prop::bool::weighted(0.1),
    );
    let count = prop_oneof![20 => 0_u8..=4, 1 => 5_u8..=255];
    let vni = prop_oneof![30 => 1_u16..80, 3 => Just(u16::MAX), 1 => Just(0)];
    let limits: [BoxedStrategy<(u16, u16)>; 8] = std::array::from_fn(|kind| limit(kind).boxed());
    let lists = (count, prop::array::uniform4(vni), any::<[bool; 5]>(), [member(), member()]);
    (flags, 0_u8..4, lists, limits, 0_u32..4).prop_map(|(flags, pool, lists, limits, svc_id)| {
        let (num_vld_vnis, vnis, tcs, members) = lists;
        let flags: [bool; 6] = flags.into();
        let flags = flags.iter().rev().fold(pool, |bits, flag| bits << 1 | u8::from(*flag));
        SvcDesc {
            flags,
            num_vld_vnis,
            vnis,
            tcs: tcs.map(u8::from),
            members,
            limits: of_types(limits),
            svc_id,
            ..SvcDesc::new_zeroed()
        }
    })
}

/// A service that needs an LE pool and little else; enough of these exhaust the pools.
fn pool_taker() -> impl Strategy<Value = SvcDesc> {
    (1_u16..4).prop_map(|res| {
        let mut limits = [(0, 0); 8];
        limits[LE] = (res, res);
        limited(limits)
    })
}

fn alloc(svc_desc: SvcDesc) -> Command {
    command!(SvcAlloc(SvcAllocCmd { svc_desc }))
}

const RESTRICTED_VNIS: u8 = SvcFlags::RESTRICTED_VNIS.bits();

/// A service for listed VNIs, with `max` and `res` of each type.
pub(super) fn limited(limits: [(u16, u16); 8]) -> SvcDesc {
    SvcDesc {
        flags: RESTRICTED_VNIS | SvcFlags::RESOURCE_LIMITS.bits(),
        limits: of_types(limits),
        ..SvcDesc::new_zeroed()
    }
}

fn of_types(limits: [(u16, u16); 8]) -> RsrcLimits {
    let types = limits.map(|(max, res)| Limits { max, res });
    RsrcLimits { types }
}

/// Limits of one type: mostly nothing or little, sometimes so much that others get none. A
/// limit of TLEs takes a pool: they are asked for seldom, or few services would fit.
fn limit(kind: usize) -> impl Strategy<Value = (u16, u16)> {
    let total = TOTALS[kind];
    let (nothing, few, little) = match kind {
        LE => (20, 1, 120),
        TLE => (600, 1, 20),
        _ => (40, 60, 40),
    };
    prop_oneof![
        nothing => Just((0, 0)),
        20 => (1..=total).prop_map(|max| (max, 0)),
        few => (1_u16..=4, 0_u16..=4).prop_map(|(max, res)| (max, res.min(max))),
        little => (1_u16..=20).prop_map(move |res| (res * 2, res)),
        10 => (1..=total / 3).prop_map(move |res| (total, res)),
        2 => Just((total, total)),
        1 => Just((5, 6)),
        1 => Just((total.saturating_add(1), 0)),
    ]
}

/// NET_NS is left out, because the driver takes its ID from the previous slot.
fn member() -> BoxedStrategy<SvcMember> {
    let known = [(0, 0), (1, 0), (1, 1000), (1, 1001), (2, 100), (2, 7)];
    let known = select(known.to_vec());
    prop_oneof![30 => known, 1 => (4_u32..9, Just(3))]
        .prop_map(|(kind, id)| SvcMember { kind, id })
        .boxed()
}

/// VNI ranges: mostly aligned blocks of a power of two.
fn range() -> impl Strategy<Value = (u32, u32)> {
    let block = (0_u32..6, 0_u32..12).prop_map(|(shift, index)| {
        let min = index << shift;
        (min, min + (1 << shift) - 1)
    });
    let far = (2_u32..5, 64_u32..72).prop_map(|(shift, index)| {
        let min = index << shift;
        (min, min + (1 << shift) - 1)
    });
    prop_oneof![10 => block, 10 => far, 3 => (0_u32..90, 0_u32..90), 1 => Just((65_536, 65_567))]
}
