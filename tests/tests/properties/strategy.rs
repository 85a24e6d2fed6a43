//! Which sequences are tried.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;
use proptest_state_machine::ReferenceStateMachine;

use crate::model::{FILES, Model, Vnis, access};
use crate::operation::{Caller, Command, Descriptor, Member, Operation};
use crate::reservation::{LE, TLE, TOTALS};

const HOME: u32 = 4_026_531_840;

const CALLERS: [Caller; 4] = [
    Caller {
        uid: 0,
        gid: 0,
        admin: true,
        netns: HOME,
    },
    Caller {
        uid: 0,
        gid: 0,
        admin: false,
        netns: HOME,
    },
    Caller {
        uid: 1000,
        gid: 100,
        admin: false,
        netns: HOME,
    },
    Caller {
        uid: 1001,
        gid: 100,
        admin: true,
        netns: HOME + 1,
    },
];

impl ReferenceStateMachine for Model {
    type State = Self;
    type Transition = Operation;

    fn init_state() -> BoxedStrategy<Self> {
        Just(Self::loaded()).boxed()
    }

    fn transitions(state: &Self) -> BoxedStrategy<Operation> {
        let services: Vec<u32> = state.services.keys().copied().chain([0, 99]).collect();
        let lnis: Vec<u32> = state.lnis.keys().copied().chain([0, 300]).collect();
        let counts = state.clone();
        let service = select(services);
        let command = prop_oneof![
            12 => descriptor().prop_map(|new| Command::SvcAlloc(Box::new(new))),
            10 => pool_taker().prop_map(|new| Command::SvcAlloc(Box::new(new))),
            2 => (service.clone(), descriptor()).prop_map(move |(svc_id, new)| {
                Command::SvcUpdate(Box::new(keep_vnis(&counts, svc_id, new)))
            }),
            3 => service.clone().prop_map(|svc_id| Command::SvcDestroy { svc_id }),
            4 => (service.clone(), any::<bool>())
                .prop_map(|(svc_id, enable)| Command::SvcEnable { svc_id, enable }),
            2 => (service.clone(), 0_u32..10).prop_map(|(svc_id, lnis_per_rgid)| {
                Command::SvcSetLpr { svc_id, lnis_per_rgid }
            }),
            3 => (service.clone(), range()).prop_map(|(svc_id, (min, max))| {
                Command::SvcSetVniRange { svc_id, min, max }
            }),
            8 => service.prop_map(|svc_id| Command::LniAlloc { svc_id }),
            4 => select(lnis).prop_map(|lni| Command::LniFree { lni }),
        ];
        let caller = prop_oneof![9 => Just(CALLERS[0]), 4 => select(CALLERS.to_vec())];
        let slots = |open: bool| -> Vec<usize> {
            (0..FILES)
                .filter(|file| state.open[*file] == open)
                .collect()
        };
        let (open, closed) = (slots(true), slots(false));
        let mut choices = Vec::new();
        if !closed.is_empty() {
            let weight = if open.is_empty() { 100 } else { 2 };
            let opened = select(closed).prop_map(|file| Operation::Open { file });
            choices.push((weight, opened.boxed()));
        }
        if !open.is_empty() {
            let closed = select(open.clone()).prop_map(|file| Operation::Close { file });
            choices.push((1, closed.boxed()));
            let command = (select(open), caller, command).prop_map(|(file, caller, command)| {
                Operation::Command {
                    file,
                    caller,
                    command,
                }
            });
            choices.push((30, command.boxed()));
        }
        Union::new_weighted(choices).boxed()
    }

    fn preconditions(state: &Self, operation: &Operation) -> bool {
        match operation {
            Operation::Open { file } => !state.open[*file],
            Operation::Close { file } => state.open[*file],
            Operation::Command { file, command, .. } => {
                state.open[*file] && defined(state, command)
            }
        }
    }

    fn apply(mut state: Self, operation: &Operation) -> Self {
        Self::apply(&mut state, operation);
        state
    }
}

/// The driver's behaviour is defined. A second range for a service leaks the first, or leaves a
/// dangling pointer; an update of the VNIs makes the driver believe in profiles that are not there.
/// Whether a range that is set after an update of the members has the old members or the new ones
/// is not known.
fn defined(state: &Model, command: &Command) -> bool {
    match command {
        Command::SvcSetVniRange { svc_id, .. } => {
            state.services.get(svc_id).is_none_or(|service| {
                !matches!(service.vnis, Vnis::Range(..))
                    && access(&service.descriptor) == Ok(service.access.clone())
            })
        }
        Command::SvcUpdate(new) => state.services.get(&new.svc_id).is_none_or(|service| {
            let stored = &service.descriptor;
            stored.restricted_vnis == new.restricted_vnis && stored.num_vld_vnis == new.num_vld_vnis
        }),
        _ => true,
    }
}

/// A descriptor for an update: VNIs as they are.
fn keep_vnis(state: &Model, svc_id: u32, mut new: Descriptor) -> Descriptor {
    new.svc_id = svc_id;
    if let Some(service) = state.services.get(&svc_id) {
        let stored = &service.descriptor;
        new.restricted_vnis = stored.restricted_vnis;
        new.num_vld_vnis = stored.num_vld_vnis;
        new.vnis = stored.vnis;
    }
    new
}

fn descriptor() -> impl Strategy<Value = Descriptor> {
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
    let lists = (
        count,
        prop::array::uniform4(vni),
        any::<[bool; 5]>(),
        [member(), member()],
    );
    (flags, 0_u8..4, lists, limits, 0_u32..4).prop_map(|(flags, pool, lists, limits, svc_id)| {
        let (count, vnis, tcs, members) = lists;
        Descriptor {
            restricted_members: flags.0,
            restricted_vnis: flags.1,
            restricted_tcs: flags.2,
            resource_limits: flags.3,
            enable: flags.4,
            is_system_svc: flags.5,
            cntr_pool_id: pool,
            num_vld_vnis: count,
            vnis,
            tcs,
            members,
            limits,
            svc_id,
        }
    })
}

/// A service that wants little but an LE pool: enough of them use the pools up.
fn pool_taker() -> impl Strategy<Value = Descriptor> {
    (1_u16..4).prop_map(|res| {
        let mut new = Descriptor {
            restricted_vnis: true,
            resource_limits: true,
            ..Descriptor::default()
        };
        new.limits[LE] = (res, res);
        new
    })
}

/// Limits of one type: mostly nothing or little, sometimes so much that others get none. A
/// limit of TLEs takes a pool: they are asked for seldom, or few services would fit.
fn limit(kind: usize) -> impl Strategy<Value = (u16, u16)> {
    let total = TOTALS[kind];
    let (nothing, little) = match kind {
        LE => (20, 120),
        TLE => (600, 20),
        _ => (60, 60),
    };
    prop_oneof![
        nothing => Just((0, 0)),
        40 => (1..=total).prop_map(|max| (max, 0)),
        little => (1_u16..=20).prop_map(move |res| (res * 2, res)),
        10 => (1..=total / 3).prop_map(move |res| (total, res)),
        2 => Just((total, total)),
        1 => Just((5, 6)),
        1 => Just((total.saturating_add(1), 0)),
    ]
}

/// NET_NS is left out: the driver takes its id from the slot before.
fn member() -> BoxedStrategy<Member> {
    let known = [(0, 0), (1, 0), (1, 1000), (1, 1001), (2, 100), (2, 7)];
    let known = select(known.to_vec());
    prop_oneof![30 => known, 1 => (4_u32..9, Just(3))]
        .prop_map(|(kind, id)| Member { kind, id })
        .boxed()
}

/// VNI ranges: mostly aligned blocks of a power of two.
fn range() -> impl Strategy<Value = (u32, u32)> {
    let block = (0_u32..6, 0_u32..12).prop_map(|(shift, index)| {
        let min = index << shift;
        (min, min + (1 << shift) - 1)
    });
    prop_oneof![20 => block, 3 => (0_u32..90, 0_u32..90), 1 => Just((65_536, 65_567))]
}
