//! Commands and answers that have two forms, and drivers that know a third one.

use cxi::{ErrorKind, Refusal};
use cxi_ioctl::{DriverRelease, Errno, Fault, LniForm, Opcode};

use crate::calls;
use crate::stage::{Plan, Run, nic, run};

fn run_named(release: DriverRelease, name: &str, plan: Plan) -> Run {
    let call = calls::all().find(|call| call.name == name).unwrap();
    run(&nic(release), call, plan).unwrap()
}

/// Lengths and answers of a command, oldest first.
fn sent(run: &Run, opcode: Opcode) -> Vec<(usize, Result<(), Errno>)> {
    let log = run.log.iter().filter(|sent| sent.opcode() == Some(opcode));
    log.map(|sent| (sent.command().len(), sent.result())).collect()
}

#[test]
fn each_release_gets_the_forms_that_it_knows() {
    for release in DriverRelease::ALL {
        let run = run_named(release, "Device::alloc_lni", Plan::Fine);
        let expected = match LniForm::for_release(release) {
            LniForm::Long => vec![(16, Err(Errno::EINVAL)), (24, Ok(()))],
            _ => vec![(16, Ok(()))],
        };
        assert_eq!(sent(&run, Opcode::LNI_ALLOC), expected, "{release}");

        let run = run_named(release, "EventQueue::adjust_reserved_slots", Plan::Fine);
        assert_eq!(sent(&run, Opcode::EQ_ADJUST_RESERVED_FC), [(24, Ok(()))]);
        let command = run.log[0].command();
        let (number, value) = match LniForm::for_release(release) {
            LniForm::Long => (16, 20),
            _ => (4, 8),
        };
        assert_ne!(command[number..number + 4], [0; 4], "{release}");
        assert_eq!(command[value..value + 4], 3_i32.to_ne_bytes(), "{release}");
        assert_eq!(run.result.unwrap().text, "3");

        let run = run_named(release, "Device::totals", Plan::Fine);
        let len = if release < DriverRelease::Shs13_1 { 80 } else { 84 };
        assert_eq!(run.log[0].response().len(), len, "{release}");
    }
}

#[test]
fn a_driver_with_a_third_form_of_lni_alloc_is_not_taken_for_one_without_the_service() {
    for release in DriverRelease::ALL {
        let refuse = Fault::errno(Errno::EINVAL).on(Opcode::LNI_ALLOC);
        let run = run_named(release, "Device::alloc_lni", Plan::Fail(refuse));
        let lengths: Vec<usize> =
            sent(&run, Opcode::LNI_ALLOC).iter().map(|(len, _)| *len).collect();
        assert_eq!(lengths, [16, 24]);
        let error = run.result.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Refused(Refusal::Nevertheless(_))), "{error}");
        assert_eq!(
            error.to_string(),
            "cxi0: LNI_ALLOC: service 2 exists, and the driver refuses the command nevertheless \
             (EINVAL): it does not know the command, or not in this form, or the service was \
             created just now under the ID of one that is gone"
        );
    }
}
