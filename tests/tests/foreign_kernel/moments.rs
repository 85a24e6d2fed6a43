//! Something goes wrong at each moment of each call: the NIC goes away, a signal comes, memory is
//! short.

use cxi::lni::{EventQueueOptions, TxqOptions};
use cxi::{ErrorKind, TrafficClass};
use cxi_ioctl::{DriverRelease, Errno, Exchange, Fault};

use crate::calls::{self, Call};
use crate::problems::Problems;
use crate::stage::{Plan, each_call, nic, releases, run, shown, vni};

/// Errors that say nothing about the command. The library reports them, and does not retry.
const PASSING: [Errno; 3] = [Errno::EINTR, Errno::EAGAIN, Errno::ENOMEM];

#[test]
fn a_nic_that_goes_away_at_each_command_is_reported_and_nothing_is_lost() {
    let mut problems = Problems::default();
    for release in releases() {
        let nic = nic(*release);
        for call in calls::all() {
            for k in 0.. {
                let case = format!("{release}: {}: gone at command {k}", call.name);
                let injection = Fault::errno(Errno::EIO).after(k);
                let Some(run) = run(&nic, call, Plan::Fail(injection)) else { break };
                problems.check_made(&run, &case);
                if let Err(error) = &run.result {
                    problems.check_error(error, &case);
                    let removed = matches!(error.kind(), ErrorKind::Removed);
                    problems.ensure(removed && error.errno() == Errno::EIO, &case, error);
                }
                let first = run.log.iter().position(|sent| sent.result() == Err(Errno::EIO));
                if first != usize::try_from(k).ok() {
                    let fine = run.result.is_ok() && run.clean && first.is_none();
                    problems.ensure(fine, &case, format!("{:?}", run.result));
                    break;
                }
            }
        }
    }
    problems.report();
}

#[test]
fn what_passes_is_reported_and_everything_else_is_given_back() {
    let mut problems = Problems::default();
    each_call(|release, nic, call, fine| {
        let expected = fine.result.unwrap().text;
        for errno in PASSING {
            for k in 0..u64::try_from(fine.log.len()).unwrap() {
                let case = format!("{release}: {}: {errno} at command {k}", call.name);
                let injection = Fault::errno(errno).after(k).once();
                let run = run(nic, call, Plan::Fail(injection)).unwrap();
                problems.check_made(&run, &case);
                match &run.result {
                    // When a handle is closed, or where the result of the command is not needed.
                    Ok(value) => {
                        let same = value.text == expected;
                        problems.ensure(same, &case, &value.text);
                    }
                    Err(error) => {
                        problems.check_error(error, &case);
                        let hit = run.log.iter().find(|sent| sent.result() == Err(errno));
                        let hit = hit.and_then(Exchange::opcode);
                        let told = error.errno() == errno && error.command() == hit;
                        problems.ensure(told, &case, error);
                        problems.ensure(error.leftover().is_none(), &case, error);
                        problems.ensure(run.clean, &case, "something is left");
                    }
                }
            }
        }
    });
    problems.report();
}

#[test]
fn a_window_that_cannot_be_mapped_is_reported() {
    let call = Call::new("windows", |stage| {
        let lni = stage.lni();
        let profile = lni.alloc_cp(vni(1024), TrafficClass::BestEffort)?;
        let txq = lni.alloc_txq(&profile, &TxqOptions::new(64))?;
        let events = lni.alloc_eq(&EventQueueOptions::new(4096))?;
        let counter = lni.alloc_ct()?;
        stage.arm();
        let errors = [
            txq.commands().unwrap_err(),
            txq.write_pointer().unwrap_err(),
            events.registers().unwrap_err(),
            counter.doorbell().unwrap_err(),
        ];
        Ok(shown(errors.map(|error| error.to_string())))
    });
    let nic = nic(DriverRelease::Main2026_07);
    let text = |errno| {
        let run = run(&nic, &call, Plan::Windows(errno)).unwrap();
        assert!(run.clean);
        run.result.unwrap().text
    };
    assert_eq!(
        text(Errno::ENOMEM),
        format!(
            "{:?}",
            ["command slots", "write pointer", "event queue registers", "counter doorbell"]
                .map(|what| format!("cxi0: cannot map the {what} of the device: ENOMEM"))
        )
    );
    assert_eq!(text(Errno::EIO), format!("{:?}", ["cxi0: the device has been removed"; 4]));
}
