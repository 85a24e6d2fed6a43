//! The transports around other transports, over a driver of a few lines.

#![allow(missing_docs, reason = "a test has no users")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use cxi_ioctl::abi::service::{SvcAllocCmd, SvcDestroyCmd, SvcGetLprCmd, SvcListGetCmd};
use cxi_ioctl::{
    CharDev, CommandError, Errno, Exchange, Fault, Faulty, Mapping, Opcode, Record, Recording,
    Replay, Request, Trace, Transport, execute, fetch_list, svc_get_lpr,
};
use zerocopy::IntoBytes;

/// Counts commands; SVC_ALLOC has no room, SVC_GET_LPR answers 3, the list has services 1 and 4.
#[derive(Debug, Default)]
struct Driver {
    commands: AtomicU32,
}

impl Transport for Driver {
    fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
        self.commands.fetch_add(1, Ordering::Relaxed);
        match request.opcode() {
            Opcode::SVC_ALLOC => {
                request.response()[..24].fill(0);
                request.response()[4] = 5;
                Err(Errno::ENOSPC)
            }
            Opcode::SVC_GET_LPR => {
                request.response()[..4].copy_from_slice(&3_u32.to_ne_bytes());
                Ok(())
            }
            Opcode::SVC_LIST_GET => {
                for (id, entry) in [1_u32, 4].iter().zip(request.list().chunks_exact_mut(68)) {
                    entry[64..].copy_from_slice(&id.to_ne_bytes());
                }
                request.response()[..4].copy_from_slice(&2_u32.to_ne_bytes());
                Ok(())
            }
            Opcode::SVC_DESTROY => Ok(()),
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        if offset == 0 { Mapping::anonymous(len) } else { Err(Errno::ENXIO) }
    }
}

fn ids(transport: &dyn Transport) -> Result<Vec<u32>, CommandError> {
    let services = fetch_list::<SvcListGetCmd>(transport, 0)?;
    Ok(services.iter().map(|service| service.svc_id).collect())
}

#[test]
fn a_trace_has_commands_answers_and_what_was_written() {
    let device = Record::new(Driver::default());
    execute(&device, &SvcAllocCmd::new()).unwrap_err();
    assert_eq!(ids(&device), Ok(vec![1, 4]));
    execute(&device, &SvcDestroyCmd::of(4)).unwrap();
    let recording = device.take();
    assert!(recording.opcodes().eq([Opcode::SVC_ALLOC, Opcode::SVC_LIST_GET, Opcode::SVC_DESTROY]));
    let [alloc, list, freed] = &recording.exchanges[..] else { panic!("three commands were sent") };
    assert_eq!(alloc.result(), Err(Errno::ENOSPC));
    assert_eq!((alloc.response().len(), alloc.response()[4]), (24, 5));
    assert_eq!(list.response(), 2_u32.to_ne_bytes());
    assert_eq!((freed.result(), freed.response().len()), (Ok(()), 0));
    for (exchange, sent) in
        [(alloc, SvcAllocCmd::new().as_bytes()), (freed, SvcDestroyCmd::of(4).as_bytes())]
    {
        assert!(matches!(exchange, Exchange::Command { command, .. } if command == sent));
    }
    assert_eq!(device.take(), Recording::default());
    assert_eq!(device.inner().commands.load(Ordering::Relaxed), 3);
}

#[test]
fn a_trace_can_call_a_function() {
    static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let device = Trace::new(Driver::default(), |exchange| {
        LINES.lock().unwrap().push(exchange.to_string());
    });
    ids(&device).unwrap();
    execute(&device, &SvcAllocCmd::new()).unwrap_err();
    execute(&device, &SvcDestroyCmd::of(4)).unwrap();
    device.map(4096, 1).unwrap_err();
    assert_eq!(
        *LINES.lock().unwrap(),
        [
            "SVC_LIST_GET 32 bytes: ok, response of 4 bytes, list of 136 bytes",
            "SVC_ALLOC 88 bytes: ENOSPC, response of 24 bytes",
            "SVC_DESTROY 8 bytes: ok",
            "mapping of 1 bytes at offset 0x1000: ENXIO",
        ]
    );
}

#[test]
fn the_kth_command_fails() {
    let device = Faulty::new(Driver::default());
    device.inject(Fault::errno(Errno::EIO).after(1).once());
    assert_eq!(svc_get_lpr(&device, 1), Ok(3));
    assert_eq!(svc_get_lpr(&device, 1).unwrap_err().errno(), Errno::EIO);
    assert_eq!(svc_get_lpr(&device, 1), Ok(3));
    assert_eq!(device.inner().commands.load(Ordering::Relaxed), 2);
    assert_eq!(device.injected(), 1);
}

#[test]
fn one_opcode_fails_and_others_are_not_counted() {
    let device = Faulty::new(Driver::default());
    let busy = Fault::errno(Errno::EBUSY).on(Opcode::SVC_DESTROY);
    device.inject(busy.clone().after(1).times(2));
    let mut answers = Vec::new();
    for _ in 0..5 {
        svc_get_lpr(&device, 1).unwrap();
        answers.push(execute(&device, &SvcDestroyCmd::of(4)).is_ok());
    }
    assert_eq!(answers, [true, false, false, true, true]);

    device.inject(busy);
    for _ in 0..5 {
        let error = execute(&device, &SvcDestroyCmd::of(4)).unwrap_err();
        assert_eq!(error.errno(), Errno::EBUSY);
    }
    device.clear();
    assert_eq!(execute(&device, &SvcDestroyCmd::of(4)), Ok(()));
    assert_eq!(device.injected(), 7);
}

#[test]
fn a_failure_can_come_after_the_command() {
    let device = Faulty::new(Driver::default());
    let lost = Fault::errno(Errno::EFAULT).carried_out();
    device.inject(lost.clone().on(Opcode::SVC_GET_LPR));
    let error = execute(&device, &SvcGetLprCmd::new()).unwrap_err();
    assert_eq!(error.errno(), Errno::EFAULT);
    assert_eq!(device.inner().commands.load(Ordering::Relaxed), 1);

    // The driver's own refusal wins over a lost answer.
    device.inject(lost.on(Opcode::SVC_ALLOC));
    let error = execute(&device, &SvcAllocCmd::new()).unwrap_err();
    assert_eq!(error.errno(), Errno::ENOSPC);
}

#[test]
fn the_first_of_two_injections_decides_and_the_other_does_not_count() {
    let device = Faulty::new(Driver::default());
    device.inject(Fault::errno(Errno::EIO).once());
    device.inject(Fault::errno(Errno::EBUSY).once());
    let errno = || svc_get_lpr(&device, 1).map_err(CommandError::errno);
    assert_eq!(errno(), Err(Errno::EIO));
    assert_eq!(errno(), Err(Errno::EBUSY));
    assert_eq!(errno(), Ok(3));
}

fn recorded() -> Recording {
    let device = Record::new(Driver::default());
    execute(&device, &SvcAllocCmd::new()).unwrap_err();
    ids(&device).unwrap();
    svc_get_lpr(&device, 4).unwrap();
    device.map(0, 4096).unwrap();
    device.map(4096, 4096).unwrap_err();
    execute(&device, &SvcDestroyCmd::of(4)).unwrap();
    device.recording()
}

#[cfg(feature = "serde")]
#[test]
fn a_recording_is_kept_as_json() {
    let recording = recorded();
    let json = serde_json::to_value(&recording).unwrap();
    let none = "";
    assert_eq!(
        json.as_array().unwrap()[4..],
        [
            serde_json::json!({"map": {"offset": 4096, "len": 4096, "result": {"Err": 6}}}),
            serde_json::json!({"command": {
                "command": "1d00000004000000", "result": {"Ok": null},
                "response": none, "list": none,
            }}),
        ]
    );
    let again: Recording = serde_json::from_value(json).unwrap();
    assert_eq!(again, recording);
    for wrong in ["1d0", "0x1d", "é0", "-"] {
        let exchange = serde_json::json!({"command": {
            "command": wrong, "result": {"Ok": null}, "response": none, "list": none,
        }});
        let error = serde_json::from_value::<Exchange>(exchange).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("invalid value: string {wrong:?}, expected bytes in hexadecimal")
        );
    }
}

#[test]
fn a_recording_answers_the_same() {
    let device = Replay::new(recorded());
    let error = execute(&device, &SvcAllocCmd::new()).unwrap_err();
    let CommandError::Refused { errno: Errno::ENOSPC, fail_info: Some(info), .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!(info.rsrc_avail[0], 5);
    assert_eq!(ids(&device), Ok(vec![1, 4]));
    assert_eq!(svc_get_lpr(&device, 4), Ok(3));
    assert_eq!(device.map(0, 4096).unwrap().read_u64(0), Ok(0));
    assert_eq!(device.map(4096, 4096).unwrap_err(), Errno::ENXIO);
    let unfinished = device.finish().unwrap_err();
    assert_eq!(
        unfinished.to_string(),
        "step 6 of the recording: expected SVC_DESTROY (8 bytes: 1d00000004000000; response 0, \
         list 0 bytes), got nothing more"
    );
    assert_eq!(execute(&device, &SvcDestroyCmd::of(4)), Ok(()));
    assert_eq!(device.finish(), Ok(()));
}

#[test]
fn a_divergence_says_what_was_expected_and_what_came() {
    let mut recording = Recording::default();
    recording.exchanges = recorded().exchanges.split_off(5);
    let device = Replay::new(recording.clone());
    let error = execute(&device, &SvcDestroyCmd::of(5)).unwrap_err();
    assert_eq!(error.errno(), Errno::EPROTO);
    let divergence = device.divergence().unwrap();
    assert_eq!(
        divergence.to_string(),
        "step 1 of the recording: expected SVC_DESTROY (8 bytes: 1d00000004000000; response 0, \
         list 0 bytes), got SVC_DESTROY (8 bytes: 1d00000005000000; response 0, list 0 bytes)"
    );
    // What comes later is not answered, and does not hide the first divergence.
    let error = execute(&device, &SvcDestroyCmd::of(4)).unwrap_err();
    assert_eq!(error.errno(), Errno::EPROTO);
    assert_eq!(device.finish(), Err(divergence));

    let device = Replay::new(recording.clone());
    assert_eq!(device.map(8192, 1).unwrap_err(), Errno::EPROTO);
    let message = device.divergence().unwrap().to_string();
    assert!(message.ends_with("got the mapping of 1 bytes at offset 0x2000"), "{message}");

    // Bytes of another command, or others of this one, are compared all the same.
    for device in [
        Replay::new(recording.clone()).ignoring(Opcode::SVC_GET, 4..8),
        Replay::new(recording.clone()).ignoring(Opcode::SVC_DESTROY, 5..8),
    ] {
        execute(&device, &SvcDestroyCmd::of(5)).unwrap_err();
    }

    let device = Replay::new(recording).ignoring(Opcode::SVC_DESTROY, 4..8);
    assert_eq!(execute(&device, &SvcDestroyCmd::of(5)), Ok(()));
    execute(&device, &SvcDestroyCmd::of(5)).unwrap_err();
    let message = device.divergence().unwrap().to_string();
    assert!(message.contains("step 2 of the recording: expected nothing more"), "{message}");
}

#[test]
fn a_recorded_answer_that_does_not_fit_is_a_divergence() {
    let mut recording = recorded();
    recording.exchanges.drain(..1);
    let device = Replay::new(recording);
    let command = SvcListGetCmd { count: 4, ..SvcListGetCmd::new() };
    let error = execute(&device, &command).unwrap_err();
    assert_eq!(error.errno(), Errno::EPROTO);
    let message = device.divergence().unwrap().to_string();
    assert!(message.contains("list 0 bytes"), "{message}");

    let mut longer = Recording::default();
    longer.exchanges = recorded().exchanges.split_off(5);
    if let Exchange::Command { response, .. } = &mut longer.exchanges[0] {
        response.resize(4, 0);
    }
    let device = Replay::new(longer);
    let error = execute(&device, &SvcDestroyCmd::of(4)).unwrap_err();
    assert_eq!(error.errno(), Errno::EPROTO);
    assert_eq!(
        device.divergence().unwrap().to_string(),
        "step 1 of the recording: expected SVC_DESTROY (8 bytes: 1d00000004000000; response 4, \
         list 0 bytes), got SVC_DESTROY (8 bytes: 1d00000004000000; response 0, list 0 bytes)"
    );
}

#[test]
fn decorators_stack_and_are_shared() {
    let device = std::sync::Arc::new(Record::new(Faulty::new(Driver::default())));
    device.inner().inject(Fault::errno(Errno::EBUSY).once());
    let outer = Record::new(std::sync::Arc::clone(&device));
    execute(&outer, &SvcDestroyCmd::of(4)).unwrap_err();
    execute(&outer, &SvcDestroyCmd::of(4)).unwrap();
    assert_eq!(outer.take().exchanges.len(), 2);
    assert_eq!(device.recording().opcodes().count(), 2);
}

#[test]
fn everything_can_be_used_from_any_thread() {
    fn check<T: Send + Sync>() {}
    check::<(Faulty<CharDev>, Record<CharDev>, Trace<CharDev>)>();
    check::<Replay>();
    check::<(cxi_ioctl::DeviceMemory, Mapping)>();
}
