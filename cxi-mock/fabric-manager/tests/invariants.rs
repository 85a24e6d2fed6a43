//! Invariants that hold after every request of any sequence.

use std::collections::BTreeMap;
use std::time::Duration;

use cxi_fabric_manager::model::{Forget, Model, NicAddress, Refusal, Settings, TreeRequest};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Act {
    Reserve(u8, i64),
    Create { job: u8, step: u8, nics: Vec<u8> },
    Delete { id: u16, of: Option<u8> },
    EndStep(u8, u8),
    Release(u8),
    Wait(u16),
    Restart(Forget),
}

fn job(number: u8) -> String {
    format!("a-{number}")
}

fn nic(number: u8) -> NicAddress {
    format!("0:00:{number:02X}").parse().unwrap()
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let (job, step) = (0..4_u8, 0..3_u8);
    let act = prop_oneof![
        4 => (job.clone(), -1..5_i64).prop_map(|(job, limit)| Act::Reserve(job, limit)),
        12 => (job.clone(), step.clone(), prop::collection::vec(0..8_u8, 0..4))
            .prop_map(|(job, step, nics)| Act::Create { job, step, nics }),
        6 => (0..9_u16, prop::option::of(job.clone())).prop_map(|(id, of)| Act::Delete { id, of }),
        2 => (job.clone(), step).prop_map(|(job, step)| Act::EndStep(job, step)),
        2 => job.prop_map(Act::Release),
        4 => (0..200_u16).prop_map(Act::Wait),
        1 => prop::sample::select(vec![Forget::Everything, Forget::Tokens, Forget::Nothing])
            .prop_map(Act::Restart),
    ];
    prop::collection::vec(act, 1..80)
}

fn settings() -> impl Strategy<Value = Settings> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let times = prop::sample::select(vec![0, 50]);
    (flags, [times.clone(), times.clone(), times]).prop_map(|(flags, times)| {
        let mut settings = Settings::default();
        settings.addresses = (1, 6);
        (
            settings.round_robin,
            settings.overcommits,
            settings.accepts_limit_0,
            settings.refuses_repeated_nics,
        ) = flags;
        [settings.rest_ms, settings.creation_ms, settings.deletion_ms] = times;
        settings
    })
}

fn perform(model: &mut Model, act: Act, now: &mut Duration) -> Result<(), Refusal> {
    let text = |step: u8| step.to_string();
    match act {
        Act::Reserve(number, limit) => model.reserve(&job(number), limit).map(|_| ()),
        Act::Create { job: number, step, nics } => {
            let request = TreeRequest {
                job: job(number),
                step: text(step),
                nics: nics.into_iter().map(nic).collect(),
                vni: 10,
                timeout: 1000,
            };
            model.create_tree(request, *now).map(|_| ())
        }
        Act::Delete { id, of } => model.delete_tree(id, of.map(job).as_deref(), *now),
        Act::EndStep(number, step) => model.end_steps(&job(number), &[text(step)], *now),
        Act::Release(number) => model.release(&job(number), *now).map(|_| ()),
        Act::Wait(ms) => {
            *now += Duration::from_millis(ms.into());
            Ok(())
        }
        Act::Restart(forget) => {
            model.restart(forget);
            Ok(())
        }
    }
}

proptest! {
    #[test]
    fn every_history_keeps_the_rules(settings in settings(), acts in acts()) {
        let mut model = Model::new(settings).unwrap();
        let mut now = Duration::ZERO;
        // When IDs were freed, to check that they are not reused too early.
        let mut freed: BTreeMap<u16, Duration> = BTreeMap::new();
        for act in acts {
            let before = model.state();
            let forgets = matches!(act, Act::Restart(Forget::Everything));
            // Only a request that is in progress changes something although it is refused.
            let refused = perform(&mut model, act.clone(), &mut now);
            prop_assert_eq!(model.check(), Ok(()), "after {:?}", act);
            let after = model.state();
            match refused {
                Ok(()) | Err(Refusal::Busy(_)) => {}
                Err(_) => prop_assert_eq!(&after, &before, "{:?} was refused and did something", act),
            }
            if forgets {
                freed.clear();
            } else {
                let gone = before.roots.keys().filter(|id| !after.roots.contains_key(id));
                freed.extend(gone.map(|id| (*id, now)));
            }
            let rest = Duration::from_millis(model.settings().rest_ms);
            for id in after.roots.keys().filter(|id| !before.roots.contains_key(id)) {
                let rested = freed.get(id).is_none_or(|at| now >= *at + rest);
                prop_assert!(rested, "id {} was used again too early", id);
            }
            for job in after.jobs.keys() {
                let token = &model.job(job).unwrap().token;
                prop_assert_eq!(model.session(token), Some(job.as_str()));
            }
        }
    }

    #[test]
    fn deleting_twice_is_deleting_once(acts in acts()) {
        let mut model = Model::new(Settings::default()).unwrap();
        let mut now = Duration::ZERO;
        for act in acts {
            let _ = perform(&mut model, act.clone(), &mut now);
            if matches!(act, Act::Delete { .. } | Act::EndStep(..) | Act::Release(_)) {
                let once = model.state();
                let _ = perform(&mut model, act.clone(), &mut now);
                prop_assert_eq!(model.state(), once);
            }
        }
    }

    #[test]
    fn a_nic_reads_as_it_was_written(number in 0..1_u32 << 20) {
        let [_, high, middle, low] = number.to_be_bytes();
        let text = format!("{high:X}:{middle:02X}:{low:02X}");
        let nic: NicAddress = text.parse().unwrap();
        prop_assert_eq!(nic.to_string(), text.clone());
        prop_assert_eq!(nic.six_octets(), format!("00:00:00:0{text}"));
    }
}
