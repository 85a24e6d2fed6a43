//! The sequences are worth running: they get every kind of answer.

use std::collections::BTreeMap;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use proptest_state_machine::ReferenceStateMachine;

use crate::LENGTH;
use cxi_ioctl::Errno;
use cxi_tests::sequence::model::{Answer, Model};
use cxi_tests::sequence::operation::{Command, Operation};

/// Commands, and the answers that each must get.
const WANTED: &[(&str, &str)] = &[
    ("SvcAlloc", "ok EINVAL EEXIST EPERM ENOSPC+short ENOSPC+le-pools ENOSPC+tle-pools"),
    ("SvcUpdate", "ok EINVAL EBUSY EPERM"),
    ("SvcDestroy", "ok EINVAL EBUSY EPERM"),
    ("SvcEnable", "ok EINVAL EBUSY EPERM"),
    ("SvcSetLpr", "ok EINVAL EBUSY EPERM"),
    ("SvcSetVniRange", "ok EINVAL EEXIST EPERM"),
    ("SvcSetExclusiveCp", "ok EINVAL EBUSY EPERM"),
    ("LniAlloc", "ok EINVAL EKEYREVOKED EPERM"),
    ("LniFree", "ok EINVAL EBUSY"),
    ("CpAlloc", "ok EINVAL ENOENT EPERM ENOSPC"),
    ("CpFree", "ok EINVAL"),
    ("CpModify", "ok EINVAL"),
    ("DomainReserve", "ok EINVAL EEXIST ENOSPC"),
    ("DomainAlloc", "ok EINVAL ENOENT EPERM EEXIST"),
    ("DomainFree", "ok EINVAL EBUSY"),
    ("CqAlloc", "ok EINVAL E2BIG EPERM EBADR ENOSPC"),
    ("CqFree", "ok EINVAL"),
    ("EqAlloc", "ok EINVAL EPERM EBADR ENOSPC EEXIST"),
    ("EqFree", "ok EINVAL EBUSY"),
    ("EqResize", "ok EINVAL"),
    ("EqResizeComplete", "ok EINVAL"),
    ("EqAdjust", "ok EINVAL ENOSPC"),
    ("PteAlloc", "ok EINVAL EPERM EBADR ENOSPC"),
    ("PteFree", "ok EINVAL EBUSY"),
    ("PteMap", "ok EINVAL"),
    ("PteTransition", "ok EINVAL EAGAIN"),
    ("PteUnmap", "ok EINVAL"),
    ("CtAlloc", "ok EINVAL EBADR ENOSPC"),
    ("CtFree", "ok EINVAL"),
    ("CtUpdate", "ok EINVAL"),
    ("AtuMap", "ok EINVAL EOVERFLOW EFAULT EOPNOTSUPP EBADR ENOSPC"),
    ("AtuUnmap", "ok EINVAL EBUSY"),
    ("AtuUpdate", "ok EINVAL"),
    ("WaitAlloc", "ok EINVAL"),
    ("WaitFree", "ok EINVAL EBUSY"),
    // What has no answer of its own.
    ("cleanup", "nothing pending"),
    ("LNI", "pending finished shares-RGID"),
    ("unit", "reused-EQ reused-PTE late-queue shared beyond-shared"),
    ("numbers", "TGQ"),
    ("RGID", "full"),
    ("profile", "private orphan"),
    ("LCID", "shared exclusive"),
];

#[test]
fn every_kind_of_answer_is_met() {
    let mut met: BTreeMap<String, u32> = BTreeMap::new();
    let mut runner = TestRunner::deterministic();
    let sequences = <Model as ReferenceStateMachine>::sequential_strategy(LENGTH);
    for _ in 0..240 {
        let (mut model, operations, _) = sequences.new_tree(&mut runner).unwrap().current();
        for operation in &operations {
            let before = model.clone();
            model.apply(operation);
            for kind in kinds(&before, operation, &model) {
                *met.entry(kind).or_default() += 1;
            }
        }
    }
    let wanted = WANTED.iter().flat_map(|(what, answers)| {
        answers.split(' ').map(move |answer| format!("{what} {answer}"))
    });
    let missed: Vec<_> = wanted.filter(|kind| !met.contains_key(kind)).collect();
    assert!(missed.is_empty(), "never met: {missed:?}; met: {met:#?}");
}

/// Returns the kinds of behavior that a step shows.
fn kinds(before: &Model, operation: &Operation, after: &Model) -> Vec<String> {
    let mut kinds = effects(before, after);
    match operation {
        Operation::Command { command, .. } => {
            kinds.push(describe(command, &after.answer));
            if let Command::AtuMap(_) = command
                && matches!(after.answer, Answer::Failed(Errno::ENOSPC))
                && after.lnis.values().any(|lni| after.lacs(lni.rgid).len() == 8)
            {
                kinds.push("RGID full".to_owned());
            }
        }
        Operation::Tick => kinds.push(
            match after.answer {
                Answer::Ran(true) => "cleanup pending",
                _ => "cleanup nothing",
            }
            .to_owned(),
        ),
        _ => {}
    }
    kinds
}

fn effects(before: &Model, after: &Model) -> Vec<String> {
    let pending = |model: &Model| {
        let lnis = model.lnis.values();
        lnis.filter(|lni| lni.file.is_none()).count()
    };
    let spare = |model: &Model| {
        let lnis = model.lnis.values();
        lnis.fold((0, 0, 0), |(eqs, ptes, queues), lni| {
            (
                eqs + lni.spare_eqs.len(),
                ptes + lni.spare_ptes.len(),
                queues + lni.freed_queues.len(),
            )
        })
    };
    let (old, new) = (spare(before), spare(after));
    let same_lnis = before.lnis.len() == after.lnis.len();
    let tgqs = after.numbers.held(2);
    let overused = (0..8).any(|kind| {
        u32::from(after.device.shared_use[kind]) + u32::from(after.device.reserved[kind])
            > u32::from(cxi_tests::sequence::model::TOTALS[kind])
    });
    let users =
        |profile: &cxi_tests::sequence::model::Profile| !profile.has_creator && profile.users > 0;
    let shared_lcid = |lcid: &cxi_tests::sequence::model::Lcid| lcid.users > 1;
    let exclusive = |lcid: &cxi_tests::sequence::model::Lcid| after.tx.get(lcid.profile).exclusive;
    let facts = [
        ("LNI pending", pending(after) > pending(before)),
        ("LNI finished", pending(after) < pending(before)),
        ("LNI shares-RGID", after.rgids().len() < after.lnis.len()),
        ("unit reused-EQ", same_lnis && new.0 < old.0),
        ("unit reused-PTE", same_lnis && new.1 < old.1),
        ("unit late-queue", same_lnis && new.2 < old.2),
        ("unit shared", after.device.shared_use.iter().any(|units| *units > 0)),
        ("unit beyond-shared", overused),
        ("numbers TGQ", tgqs == 512),
        (
            "profile private",
            after.rx.0.len() != before.rx.0.len() && after.rx.0.values().any(users),
        ),
        ("profile orphan", after.tx.0.values().any(users)),
        ("LCID shared", after.lcids.values().any(shared_lcid)),
        ("LCID exclusive", after.lcids.values().any(exclusive)),
    ];
    let shown = facts.iter().filter(|(_, is_so)| *is_so);
    shown.map(|(fact, _)| (*fact).to_owned()).collect()
}

fn describe(command: &Command, answer: &Answer) -> String {
    let text = format!("{command:?}");
    let name = text.split(|c: char| !c.is_alphanumeric()).next();
    // CP_ALLOC and TRIG_CP_ALLOC follow the same rules.
    let name = name.map(|name| name.trim_start_matches("Trig"));
    let result = match answer {
        Answer::Allocated(Err(Errno::ENOSPC), response) => {
            let info = response.fail_info;
            match (info.no_le_pools, info.no_tle_pools) {
                (1, _) => "ENOSPC+le-pools".to_owned(),
                (_, 1) => "ENOSPC+tle-pools".to_owned(),
                _ => "ENOSPC+short".to_owned(),
            }
        }
        Answer::Failed(errno) | Answer::Updated(Err(errno)) | Answer::Allocated(Err(errno), _) => {
            errno.to_string()
        }
        _ => "ok".to_owned(),
    };
    format!("{} {result}", name.unwrap_or_default())
}
