//! Sequences of commands on the mock and on a reference model, side by side.
//!
//! The model, what is tried and what must hold are those of the tests `properties`; here the bytes
//! make the choices that are random there.

use cxi_tests::sequence::machine::Machine;
use cxi_tests::sequence::model::Model;
use cxi_tests::sequence::operation::Operation;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};

use crate::input::Input;
use crate::mutate::Changes;

/// Bytes that choose the start, or a step.
const CHOICE: usize = 4;

fn draw<T>(strategy: &impl Strategy<Value = T>, choice: u32) -> T {
    // A generator rather than the bytes themselves: drawing a number may take any number of tries,
    // and the bytes of an input are soon used up.
    let mut seed = [0x5E; 16];
    seed[..CHOICE].copy_from_slice(&choice.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::XorShift, &seed);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let tree = strategy.new_tree(&mut runner);
    tree.unwrap_or_else(|reason| panic!("a strategy without filters gives a value: {reason}"))
        .current()
}

/// A start, then steps, of four bytes each.
///
/// # Panics
///
/// When mock and model differ.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let mut model = draw(&Model::init_state(), input.u32());
    let mut machine = Machine::init_test(&model);
    while let Some(step) = next(&mut input, &model) {
        model = <Model as ReferenceStateMachine>::apply(model, &step);
        machine = <Machine as StateMachineTest>::apply(machine, &model, step);
        Machine::check_invariants(&machine, &model);
    }
    Machine::teardown(machine, model);
}

/// The next step that the model allows.
fn next(input: &mut Input<'_>, model: &Model) -> Option<Operation> {
    while !input.is_empty() {
        let step = draw(&Model::transitions(model), input.u32());
        if Model::preconditions(model, &step) {
            return Some(step);
        }
    }
    None
}

/// The steps of a sequence, with those that it starts from.
pub(crate) fn steps(choices: &[u8]) -> Vec<Operation> {
    let mut input = Input(choices);
    let mut model = draw(&Model::init_state(), input.u32());
    let mut steps = model.start.clone();
    while let Some(step) = next(&mut input, &model) {
        model.apply(&step);
        steps.push(step);
    }
    steps
}

/// Random choices, as those that the tests start from.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let seed = |number: u64| {
        let mut changes = Changes::new(number << 32 | 0x5EED);
        let steps = 1 + changes.below(150);
        (0..(1 + steps) * CHOICE).map(|_| u8::try_from(changes.below(256)).unwrap_or(0)).collect()
    };
    (1..=24).map(seed).collect()
}
