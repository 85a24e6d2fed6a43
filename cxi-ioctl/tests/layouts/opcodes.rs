use std::collections::{BTreeMap, BTreeSet};

use cxi_ioctl::abi::device::PropertiesInfoV1;
use cxi_ioctl::abi::service::{SvcListGetCmd, SvcRsrcListGetCmd};
use cxi_ioctl::abi::{commands, layouts, pointers};
use cxi_ioctl::layout::{CommandLayout, StructLayout};
use cxi_ioctl::{DriverRelease, ListCommand, Opcode, OpcodeInfo, Privilege, RequestLen};
use serde_json::{Map, Value};

use crate::recorded::{self, Recorded, objects, size};
use crate::{LeftOut, Reasons, report};

/// Opcodes with a handler that have no typed command.
const UNTYPED: &Reasons = &[
    ("always refused to user processes", &["ATU_MAP_SGT", "ATU_UPDATE_SGT", "ATU_CLEAR_MD"]),
    ("always refused to user processes; unreleased", &["RETRY_HANDLER_RUNNING"]),
    ("for the kernel's virtual function driver; unreleased", &["VF_GET_TOKEN", "PHYS_LAC_"]),
    ("for the kernel's virtual function driver; unreleased", &["QUERY_VERSION", "TELEM_GET"]),
    ("Ethernet of virtual functions, kernel to kernel; unreleased", &["ETH_", "RMU_ETH_"]),
];

/// Opcodes of which a release of the kernel has more than the table says, with the reason.
const UNKNOWN_RESPONSE: &[(&str, &str)] =
    &[("ETH_DEV_INFO_GET", "the response is not in the kernel's public header")];

fn short(name: &str) -> &str {
    let name = name.strip_prefix("_OBSOLETED_").unwrap_or(name);
    name.strip_prefix("CXI_OP_").unwrap_or(name)
}

fn by_name() -> BTreeMap<&'static str, &'static OpcodeInfo> {
    Opcode::all().iter().map(|info| (info.name, info)).collect()
}

fn optional(object: &Map<String, Value>, key: &str) -> Option<usize> {
    object.get(key)?.as_u64()?.try_into().ok()
}

fn flag(object: &Map<String, Value>, key: &str) -> bool {
    object.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn layout_of(command: &CommandLayout) -> &'static StructLayout {
    layouts()
        .find(|layout| layout.name == command.request)
        .unwrap_or_else(|| panic!("{} has no layout", command.request))
}

/// The recorded opcodes but the first, which is not a command.
fn of_release(recorded: &Recorded) -> impl Iterator<Item = (&str, &Map<String, Value>)> {
    recorded
        .section("opcodes")
        .iter()
        .map(|(name, opcode)| (short(name), opcode.as_object().expect("an object")))
        .filter(|(name, _)| *name != "INVALID")
}

#[test]
fn the_table_is_as_in_each_release() {
    let table = by_name();
    let mut problems = Vec::new();
    let mut first = BTreeMap::new();
    for recorded in recorded::all() {
        let release = recorded.release;
        let mut seen = BTreeSet::new();
        for (name, opcode) in of_release(&recorded) {
            let mut problem = |what: String| problems.push(format!("{release}: {name}: {what}"));
            seen.insert(name);
            first.entry(name.to_owned()).or_insert(release);
            let Some(info) = table.get(name) else {
                problem("missing".to_owned());
                continue;
            };
            if info.opcode.number() as usize != size(opcode, "number") {
                problem(format!("number {}", info.opcode.number()));
            }
            // An opcode without a handler has its own errno instead of lengths.
            let answers = !opcode.contains_key("errno_when_sent");
            let Some(handler) = info.handler else {
                assert!(!answers, "{release}: {name} has a handler");
                assert_eq!(opcode["errno_when_sent"], "EOPNOTSUPP", "{name}");
                continue;
            };
            if !answers {
                problem("has no handler".to_owned());
                continue;
            }
            if flag(opcode, "admin_only") != (handler.privilege == Privilege::Admin) {
                problem(format!("privilege {:?}", handler.privilege));
            }
            let request = match opcode["request_len_rule"].as_str() {
                Some("exact") => RequestLen::Exact(size(opcode, "request_len")),
                Some("variable") => RequestLen::AtLeast(size(
                    recorded.section("structs")[opcode["request"].as_str().expect("a struct")]
                        .as_object()
                        .expect("an object"),
                    "size",
                )),
                other => panic!("{release}: {name}: rule {other:?}"),
            };
            if info.opcode.request_len(release) != Some(request) {
                problem(format!(
                    "request {:?}, the kernel has {request:?}",
                    info.opcode.request_len(release)
                ));
            }
            let response = optional(opcode, "response_len").unwrap_or(0);
            let unknown = UNKNOWN_RESPONSE.iter().any(|(unknown, _)| *unknown == name);
            if info.opcode.response_len(release) != Some(response) && !unknown {
                problem(format!(
                    "response {:?}, the kernel has {response}",
                    info.opcode.response_len(release)
                ));
            }
        }
        for info in Opcode::all() {
            if (info.since <= release) != seen.contains(info.name) {
                problems.push(format!("{release}: {} since {}", info.name, info.since));
            }
        }
        // `opcode_max` is the first number that the release does not know; 0 is no command.
        assert_eq!(seen.len() as u64 + 1, recorded.number("opcode_max"));
    }
    assert_eq!(first.len(), Opcode::all().len());
    report(&problems);
}

#[test]
fn every_typed_command_is_as_in_each_release() {
    let mut problems = Vec::new();
    let mut untyped = LeftOut::new(UNTYPED);
    for recorded in recorded::all() {
        let release = recorded.release;
        for (name, opcode) in of_release(&recorded) {
            if opcode.contains_key("errno_when_sent") {
                continue;
            }
            let typed: Vec<_> = commands()
                .filter(|command| command.opcode.name() == Some(name))
                .filter(|command| layout_of(command).applies_to(release))
                .collect();
            match (typed.as_slice(), untyped.has(name)) {
                ([command], false) => check(command, &recorded, name, opcode, &mut problems),
                ([], true) => {}
                (_, left_out) => problems.push(format!(
                    "{release}: {name}: {} typed commands, left out: {left_out}",
                    typed.len()
                )),
            }
        }
    }
    untyped.report(problems);
}

fn check(
    command: &CommandLayout,
    recorded: &Recorded,
    name: &str,
    opcode: &Map<String, Value>,
    problems: &mut Vec<String>,
) {
    let release = recorded.release;
    let mut same = |what: &str, here: String, kernel: String| {
        if here != kernel {
            problems.push(format!("{release}: {name}: {what} {here}, the kernel has {kernel}"));
        }
    };
    let layout = layout_of(command);
    let request = opcode["request"].as_str().unwrap_or_default();
    same("request", layout.c_name.to_owned(), request.to_owned());
    same("request length", layout.size.to_string(), size(opcode, "request_len").to_string());

    // A pointer that the driver never follows stays zero.
    let pointer = optional(opcode, "response_pointer_offset")
        .filter(|_| !flag(opcode, "response_pointer_ignored"));
    let here = command.pointers.response;
    same("response pointer", format!("{here:?}"), format!("{pointer:?}"));

    same(
        "pointers of the release",
        format!("{:?}", pointers(command.opcode, release)),
        format!("{:?}", Some(command.pointers)),
    );

    let response = optional(opcode, "response_len").unwrap_or(0);
    let here = if command.opcode == Opcode::GET_DEV_PROPERTIES && release < DriverRelease::Shs13_1 {
        size_of::<PropertiesInfoV1>()
    } else {
        command.response_len
    };
    same("response length", here.to_string(), response.to_string());

    let list = opcode.get("extra_output_array").and_then(Value::as_object);
    let pointer = list.map(|list| field_offset(recorded, request, &list["pointer_field"]));
    let here = command.pointers.list;
    same("list pointer", format!("{here:?}"), format!("{pointer:?}"));
    let item = list.map(|list| size(list, "element_size"));
    let here = match command.opcode {
        Opcode::SVC_LIST_GET => Some(size_of::<<SvcListGetCmd as ListCommand>::Item>()),
        Opcode::SVC_RSRC_LIST_GET => Some(size_of::<<SvcRsrcListGetCmd as ListCommand>::Item>()),
        _ => None,
    };
    same("list entry length", format!("{here:?}"), format!("{item:?}"));

    let in_response = (command.opcode == Opcode::PTE_STATUS)
        .then(|| field_offset(recorded, "cxi_pte_status", &Value::from("ule_offsets")));
    let here = command.pointers.list_in_response;
    same("list pointer in the response", format!("{here:?}"), format!("{in_response:?}"));
}

fn field_offset(recorded: &Recorded, structure: &str, field: &Value) -> usize {
    let fields = &recorded.section("structs")[structure]["fields"];
    objects(fields)
        .find(|candidate| candidate["name"] == *field)
        .map_or_else(|| panic!("{structure} has no {field}"), |field| size(field, "offset"))
}
