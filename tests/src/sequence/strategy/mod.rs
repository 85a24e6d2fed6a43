//! The sequences that are generated.

mod defined;
mod object;
mod queue;
mod service;
mod start;

use cxi_ioctl::DriverRelease;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;
use proptest_state_machine::ReferenceStateMachine;

use crate::device::Report;
use crate::sequence::model::{FILES, Model};
use crate::sequence::operation::{Caller, Command, Operation};

const CALLERS: [Caller; 4] = [
    Caller::ROOT,
    Caller { admin: false, ..Caller::ROOT },
    Caller { uid: 1000, gid: 100, admin: false, ..Caller::ROOT },
    Caller { uid: 1001, gid: 100, admin: true, netns: Caller::ROOT.netns + 1 },
];

impl ReferenceStateMachine for Model {
    type State = Self;
    type Transition = Operation;

    fn init_state() -> BoxedStrategy<Self> {
        let releases = select(vec![
            DriverRelease::Main2026_07,
            DriverRelease::Main2026_07,
            DriverRelease::Shs14_0_1,
        ]);
        (releases, select(start::all()))
            .prop_map(|(release, steps)| Self::started(release, steps))
            .boxed()
    }

    fn transitions(state: &Self) -> BoxedStrategy<Operation> {
        let slots = |open: bool| -> Vec<usize> {
            (0..FILES).filter(|file| state.open[*file].is_some() == open).collect()
        };
        let (open, closed) = (slots(true), slots(false));
        let mut choices = Vec::new();
        if !closed.is_empty() {
            let weight = if open.is_empty() { 300 } else { 8 };
            let opened = select(closed).prop_map(|file| Operation::Open { file });
            choices.push((weight, opened.boxed()));
        }
        for file in open {
            choices.push((2, Just(Operation::Close { file }).boxed()));
            choices.push((160, by_anybody(file, commands(state, file))));
            if let Some(filling) = object::filling(state, file) {
                choices.push((1, filled(file, filling)));
            }
        }
        let pending = state.lnis.values().any(|lni| lni.file.is_none());
        choices.push((if pending { 30 } else { 2 }, Just(Operation::Tick).boxed()));
        choices.push((3, hardware_counts()));
        if let Some(in_flight) = object::in_flight(state) {
            choices.push((if state.in_flight.is_empty() { 8 } else { 30 }, in_flight));
        }
        Union::new_weighted(choices).boxed()
    }

    fn preconditions(state: &Self, operation: &Operation) -> bool {
        match operation {
            Operation::Open { file } => state.open[*file].is_none(),
            Operation::Close { file } => state.open[*file].is_some(),
            Operation::Command { file, caller, command } => {
                state.open[*file].is_some() && defined::command(state, *file, *caller, command)
            }
            Operation::Fill { file, command, .. } => {
                state.open[*file].is_some() && defined::filling(state, command)
            }
            Operation::Tick | Operation::Report(_) => true,
        }
    }

    fn apply(mut state: Self, operation: &Operation) -> Self {
        Self::apply(&mut state, operation);
        state
    }
}

/// Mostly services at first, then more and more objects that use them.
fn commands(state: &Model, file: usize) -> BoxedStrategy<Command> {
    let services = if state.services.len() < 4 { 14 } else { 7 };
    let mut choices =
        vec![(services, service::command(state)), (5, object::lni_command(state, file))];
    if let Some(objects) = object::command(state, file) {
        choices.push((50, objects));
    }
    Union::new_weighted(choices).boxed()
}

fn by_anybody(file: usize, command: BoxedStrategy<Command>) -> BoxedStrategy<Operation> {
    let caller = prop_oneof![9 => Just(Caller::ROOT), 4 => select(CALLERS.to_vec())];
    (caller, command)
        .prop_map(move |(caller, command)| Operation::Command { file, caller, command })
        .boxed()
}

fn filled(file: usize, command: BoxedStrategy<Command>) -> BoxedStrategy<Operation> {
    command.prop_map(move |command| Operation::Fill { file, caller: Caller::ROOT, command }).boxed()
}

fn hardware_counts() -> BoxedStrategy<Operation> {
    let tles = (0_u32..4, 0_u16..600).prop_map(|(pool, value)| Report::TlesInUse { pool, value });
    let les = (0_u32..4, 0_u32..16, 0_u16..600);
    let les = les.prop_map(|(element, pool, value)| Report::LesAllocated { element, pool, value });
    prop_oneof![tles, les].prop_map(Operation::Report).boxed()
}

/// Usually one that exists, rarely one that does not.
fn pick(there: Vec<u32>, strange: &[u32]) -> BoxedStrategy<u32> {
    let strange = select(strange.to_vec());
    if there.is_empty() {
        return strange.boxed();
    }
    prop_oneof![20 => select(there), 1 => strange].boxed()
}
