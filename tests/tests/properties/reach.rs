//! The sequences are worth running: they meet every kind of answer.

use std::collections::BTreeMap;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use proptest_state_machine::ReferenceStateMachine;

use crate::model::{Answer, Model};
use crate::operation::{Command, Operation};

#[test]
fn every_kind_of_answer_is_met() {
    let mut met: BTreeMap<String, u32> = BTreeMap::new();
    let mut runner = TestRunner::deterministic();
    let sequences = <Model as ReferenceStateMachine>::sequential_strategy(1..120);
    for _ in 0..150 {
        let (mut model, operations, _) = sequences.new_tree(&mut runner).unwrap().current();
        for operation in &operations {
            model.apply(operation);
            if let Operation::Command { command, .. } = operation {
                *met.entry(describe(command, &model.answer)).or_default() += 1;
            }
        }
    }
    let wanted = [
        "alloc ok",
        "alloc EINVAL",
        "alloc EEXIST",
        "alloc ENOSPC short",
        "alloc ENOSPC le pools",
        "alloc ENOSPC tle pools",
        "update ok",
        "update EINVAL",
        "update EBUSY",
        "destroy ok",
        "destroy EINVAL",
        "destroy EBUSY",
        "enable ok",
        "enable EINVAL",
        "enable EBUSY",
        "lpr ok",
        "lpr EINVAL",
        "lpr EBUSY",
        "range ok",
        "range EINVAL",
        "range EEXIST",
        "lni ok",
        "lni EINVAL",
        "lni EKEYREVOKED",
        "lni EPERM",
        "free ok",
        "free EINVAL",
        "destroy EPERM",
    ];
    let missed: Vec<_> = wanted
        .iter()
        .filter(|kind| !met.contains_key(**kind))
        .collect();
    assert!(missed.is_empty(), "never met: {missed:?}; met: {met:?}");
}

fn describe(command: &Command, answer: &Answer) -> String {
    let name = match command {
        Command::SvcAlloc(_) => "alloc",
        Command::SvcUpdate(_) => "update",
        Command::SvcDestroy { .. } => "destroy",
        Command::SvcEnable { .. } => "enable",
        Command::SvcSetLpr { .. } => "lpr",
        Command::SvcSetVniRange { .. } => "range",
        Command::LniAlloc { .. } => "lni",
        Command::LniFree { .. } => "free",
    };
    let result = match answer {
        Answer::Failed(errno) | Answer::Updated(Err(errno)) => errno.to_string(),
        Answer::Allocated {
            result: Err(errno),
            info,
            ..
        } => {
            let why = match (
                errno.to_string().as_str(),
                info.no_le_pools,
                info.no_tle_pools,
            ) {
                ("ENOSPC", true, _) => " le pools",
                ("ENOSPC", _, true) => " tle pools",
                ("ENOSPC", ..) => " short",
                _ => "",
            };
            format!("{errno}{why}")
        }
        _ => "ok".to_owned(),
    };
    format!("{name} {result}")
}
