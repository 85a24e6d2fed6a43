//! Values that this library does not know, in every field of every answer.

use cxi::lni::PtlteState;
use cxi::{ErrorKind, Member, Platform, Resource};
use cxi_ioctl::{DriverRelease, Exchange, Opcode, layout};

use crate::calls::{self, Call};
use crate::problems::Problems;
use crate::stage::{DEVICE, Plan, Run, Stage, Value, full, nic, run, shown};
use crate::twist::Twist;

fn answered(log: &[Exchange]) -> Vec<(Opcode, usize)> {
    let mut answered: Vec<_> = log
        .iter()
        .filter(|sent| sent.result().is_ok() && !sent.response().is_empty())
        .filter_map(|sent| Some((sent.opcode()?, sent.response().len())))
        .collect();
    answered.sort_unstable();
    answered.dedup_by_key(|(opcode, _)| *opcode);
    answered
}

#[test]
fn no_byte_of_an_answer_makes_a_call_panic_or_lose_the_file() {
    let mut problems = Problems::default();
    let values: &[u8] = if full() { &[0x00, 0x01, 0x7F, 0x80, 0xFF] } else { &[0xFF] };
    let nic = nic(DriverRelease::Main2026_11);
    for call in calls::all() {
        let fine = run(&nic, call, Plan::Fine).unwrap();
        for (opcode, len) in answered(&fine.log) {
            let single = (0..len).map(|at| at..at + 1);
            for bytes in single.chain(std::iter::once(0..len)) {
                for value in values.iter().copied() {
                    let case = format!("{}: {opcode}: {bytes:?} are {value}", call.name);
                    let twist = Twist::Bytes(bytes.clone(), value);
                    // It checks that the NIC is as before.
                    let run = run(&nic, call, Plan::Twist(opcode, twist)).unwrap();
                    if let Err(error) = run.result {
                        let named = error.device() == Some(DEVICE) && error.command().is_some();
                        problems.ensure(named, &case, error);
                    }
                }
            }
        }
    }
    problems.report();
}

/// The result of a call when a field of an answer has these bytes.
fn patched(name: &str, opcode: Opcode, place: (&str, &str), bytes: &[u8]) -> Run {
    let call = calls::all().find(|call| call.name == name).unwrap();
    let twist = Twist::Patch(offset(place.0, place.1), bytes.to_vec());
    run(&nic(DriverRelease::Main2026_07), call, Plan::Twist(opcode, twist)).unwrap()
}

/// As [`patched`], of another call.
fn call_with(
    act: fn(&Stage) -> cxi::Result<Value>,
    opcode: Opcode,
    place: (&str, &str),
    bytes: &[u8],
) -> cxi::Result<Value> {
    let call = Call::new("a call", act);
    let twist = Twist::Patch(offset(place.0, place.1), bytes.to_vec());
    let run = run(&nic(DriverRelease::Main2026_07), &call, Plan::Twist(opcode, twist)).unwrap();
    run.result
}

fn offset(structure: &str, field: &str) -> usize {
    let layouts: Vec<&layout::StructLayout> = cxi_ioctl::abi::layouts().collect();
    let layout = layouts.iter().find(|layout| layout.name == structure);
    let fields = layout.unwrap().fields.iter();
    fields.clone().find(|known| known.name == field).unwrap().offset
}

fn strange(result: cxi::Result<Value>, expected: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.errno(), cxi::Errno::EPROTO);
    assert!(matches!(error.kind(), ErrorKind::Nonsense(_)), "{error}");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn unknown_kinds_survive_as_numbers() {
    let info = |act, field, bytes: [u8; 4]| {
        call_with(act, Opcode::DEV_INFO_GET, ("DevInfoUse", field), &bytes).unwrap()
    };
    let platform = info(
        |stage| {
            let platform = stage.armed().info()?.platform;
            assert_eq!(platform, Platform::Other(77));
            Ok(shown(platform.to_string()))
        },
        "device_platform",
        77_u32.to_ne_bytes(),
    );
    assert_eq!(platform.text, "\"platform 77\"");
    let version = info(
        |stage| {
            let version = stage.armed().info()?.cassini_version;
            assert_eq!((version.0, version.generation()), (0x43, None));
            Ok(shown(version.to_string()))
        },
        "cassini_version",
        0x43_u32.to_ne_bytes(),
    );
    assert_eq!(version.text, "\"Cassini version 0x43\"");

    let state = call_with(
        |stage| {
            let lni = stage.lni();
            let pte = lni.alloc_pte(cxi::lni::PtOptions::IS_MATCHING, None)?;
            stage.arm();
            pte.status(0).map(|status| shown(status.state))
        },
        Opcode::PTE_STATUS,
        ("PteStatus", "state"),
        &[200],
    );
    assert_eq!(state.unwrap(), shown(PtlteState(200)));
}

#[test]
fn services_with_unknown_members_flags_and_limits_are_shown_as_they_are() {
    let read: fn(&Stage) -> cxi::Result<Value> = |stage| {
        let id = stage.listed();
        let service = stage.armed().services().get(id)?;
        let members: Vec<Member> = service.members().into_iter().flat_map(Vec::from).collect();
        let limit = service.limits()[Resource::Ptes];
        let flags = service.descriptor().flags;
        Ok(shown((members, limit, flags, service.vnis(), service.traffic_classes())))
    };
    let get = |field, bytes: &[u8]| {
        let place = ("SvcDesc", field);
        call_with(read, Opcode::SVC_GET, place, bytes).unwrap().text
    };
    let member = [9_u32.to_ne_bytes(), 77_u32.to_ne_bytes()].concat();
    assert!(get("members", &member).contains("Other { kind: 77, id: 9 }"));
    // More is reserved than allowed; unknown flags; too many VNIs.
    assert!(get("limits", &[1, 0, 9, 0]).contains("Limit { reserved: 9, max: 1 }"));
    assert!(get("flags", &[0xFF]).contains("255"));
    assert!(get("num_vld_vnis", &[255]).contains("List([1024])"));
}

#[test]
fn impossible_answers_are_errors() {
    let get = "Services::get";
    let zero = patched(get, Opcode::SVC_GET, ("SvcDesc", "svc_id"), &[0; 4]);
    strange(zero.result, "cxi0: SVC_GET: the driver's answer contains a service with ID 0");
    let other = patched(get, Opcode::SVC_GET, ("SvcDesc", "svc_id"), &9_u32.to_ne_bytes());
    strange(other.result, "cxi0: SVC_GET: asked for service 2, the driver answered about 9");
    let create = "Services::create, VNI list";
    let place = ("SvcAllocResp", "svc_id");
    let made = patched(create, Opcode::SVC_ALLOC, place, &[0; 4]);
    assert_eq!(made.made.len(), 1, "the driver made it all the same");
    strange(made.result, "cxi0: SVC_ALLOC: the driver's answer contains a service with ID 0");
    for (name, first, last, why) in [
        ("Services::get, VNI range", 9_u16, 8_u16, "9-8"),
        ("Services::list, VNI range", 5, 7, "5-7"),
        ("Services::vni_range", 0, 0, "0-0"),
    ] {
        let bounds = [first.to_ne_bytes(), last.to_ne_bytes()].concat();
        let place = ("SvcGetVniRangeResp", "vni_min");
        let run = patched(name, Opcode::SVC_GET_VNI_RANGE, place, &bounds);
        let error = run.result.unwrap_err();
        assert_eq!(error.errno(), cxi::Errno::EPROTO, "{why}");
        let text = error.to_string();
        assert!(text.contains("an invalid range"), "{text}");
    }
    let pids = patched(
        "Lni::reserve_pids",
        Opcode::DOMAIN_RESERVE,
        ("DomainReserveResp", "pid"),
        &504_u32.to_ne_bytes(),
    );
    strange(
        pids.result,
        "cxi0: DOMAIN_RESERVE: invalid answer of the driver: 8 PIDs from 504 on, where 510 \
         is the last",
    );
    for (field, number, answer) in
        [("vni", 7_u32, "VNI 7 and PID 0"), ("pid", 511, "VNI 1024 and PID 511")]
    {
        let place = ("DomainAllocResp", field);
        let run = patched("Lni::alloc_domain", Opcode::DOMAIN_ALLOC, place, &number.to_ne_bytes());
        let expected =
            format!("cxi0: DOMAIN_ALLOC: invalid answer of the driver: {answer} for VNI 1024");
        strange(run.result, &expected);
    }
}

#[test]
fn counts_are_not_believed() {
    let count = |name: &str, opcode, structure| {
        let count = u32::MAX.to_ne_bytes();
        patched(name, opcode, (structure, "count"), &count).result
    };
    for (name, opcode, structure) in [
        ("Services::list", Opcode::SVC_LIST_GET, "SvcListGetResp"),
        ("Services::usage_all", Opcode::SVC_RSRC_LIST_GET, "SvcRsrcListGetResp"),
    ] {
        let error = count(name, opcode, structure).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Protocol(_)), "{error}");
        assert_eq!(error.errno(), cxi::Errno::EOVERFLOW);
        assert_eq!(error.command(), Some(opcode));
        // Fewer than were written, and more.
        for wrong in [0_u32, 1, 3, 31] {
            let bytes = wrong.to_ne_bytes();
            let run = patched(name, opcode, (structure, "count"), &bytes);
            let error = run.result.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Protocol(_)), "{error}");
        }
    }
    let many = call_with(
        |stage| {
            let pte = stage.lni().alloc_pte(cxi::lni::PtOptions::IS_MATCHING, None)?;
            stage.arm();
            let status = pte.status(2)?;
            assert_eq!(status.unexpected_offsets.len(), 2);
            Ok(shown(status.unexpected))
        },
        Opcode::PTE_STATUS,
        ("PteStatus", "ule_count"),
        &[0xFF, 0xFF],
    );
    assert_eq!(many.unwrap(), shown(u16::MAX));
}

#[test]
fn a_list_of_services_without_an_id_is_refused() {
    let place = |item: usize, field| item + offset(field, "svc_id");
    let list = Twist::List(place(68, "SvcDesc"), vec![0; 4]);
    let usage = Twist::List(place(24, "RsrcUse"), vec![0; 4]);
    for (name, opcode, twist) in [
        ("Services::list", Opcode::SVC_LIST_GET, list),
        ("Services::usage_all", Opcode::SVC_RSRC_LIST_GET, usage),
    ] {
        let call = calls::all().find(|call| call.name == name).unwrap();
        let run = run(&nic(DriverRelease::Main2026_07), call, Plan::Twist(opcode, twist)).unwrap();
        strange(
            run.result,
            &format!("cxi0: {opcode}: the driver's answer contains a service with ID 0"),
        );
    }
}

#[test]
fn windows_of_any_size_are_mapped_or_refused() {
    let queue: fn(&Stage) -> cxi::Result<Value> = |stage| {
        let lni = stage.lni();
        stage.arm();
        let queue = lni.alloc_tgq(&cxi::lni::TgqOptions::new(64))?;
        let commands = queue.commands()?;
        let all = commands.write_u64(commands.len(), 0);
        Ok(shown((commands.len(), all)))
    };
    for size in [0_u64, 1, 4097, 1 << 40, u64::MAX / 2, u64::MAX - 4095, u64::MAX] {
        for offset_of in [0_u64, 4096, 12_345, u64::MAX - 4095, u64::MAX] {
            let place = [offset_of.to_ne_bytes(), size.to_ne_bytes()].concat();
            let result = call_with(queue, Opcode::CQ_ALLOC, ("CqAllocResp", "cmds"), &place);
            match result {
                Ok(value) => assert!(
                    value.text.contains("ERANGE") || value.text.contains("EINVAL"),
                    "{value:?}"
                ),
                Err(error) => assert_eq!(error.device(), Some(DEVICE)),
            }
        }
    }
}
