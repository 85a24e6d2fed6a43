//! Which structs a command has in a release, and where the kernel's names differ from ours.

use cxi_ioctl::layout::{FieldLayout, StructLayout};
use cxi_ioctl::{DriverRelease, Opcode, abi};

/// Keys of `limits`, in the order of the resource types.
pub const RESOURCES: [&str; 8] = ["ptes", "txqs", "tgqs", "eqs", "cts", "les", "tles", "acs"];

/// Names of member types, by number.
pub const MEMBER_TYPES: [&str; 4] = ["IGNORE", "UID", "GID", "NET_NS"];

/// Flag bits of a service descriptor.
pub const SERVICE_FLAGS: [&str; 6] = [
    "restricted_members",
    "restricted_vnis",
    "restricted_tcs",
    "resource_limits",
    "enable",
    "is_system_svc",
];

/// Where `cntr_pool_id` starts in the flag byte of a service descriptor.
pub const CNTR_POOL_SHIFT: u32 = 6;

/// The struct of that name (ours) in a release.
pub fn layout(name: &str, release: DriverRelease) -> Option<&'static StructLayout> {
    abi::layouts().find(|layout| {
        let stem = layout.name.strip_suffix("V1").unwrap_or(layout.name);
        stem == name
            && layout.since.is_none_or(|since| since <= release)
            && layout.until.is_none_or(|until| release <= until)
    })
}

/// The opcode of a name such as `SVC_ALLOC`.
pub fn opcode(name: &str) -> Option<Opcode> {
    Opcode::all()
        .iter()
        .find(|info| info.name == name)
        .map(|info| info.opcode)
}

/// The request struct of a command.
pub fn request(op: &str, release: DriverRelease) -> Option<&'static StructLayout> {
    layout(&format!("{}Cmd", camel(op)), release)
}

/// The response struct of a command, and the field that wraps it in the kernel's header.
pub fn response(
    op: &str,
    release: DriverRelease,
) -> Option<(Option<&'static str>, &'static StructLayout)> {
    let (wrapper, name) = match op {
        "SVC_GET" => (Some("svc_desc"), "SvcDesc".to_owned()),
        "SVC_RSRC_GET" => (Some("rsrcs"), "RsrcUse".to_owned()),
        "DEV_INFO_GET" => (Some("devinfo"), "DevInfoUse".to_owned()),
        "MAP_CSRS" => (Some("csr"), "Mminfo".to_owned()),
        "GET_DEV_PROPERTIES" => (None, "PropertiesInfo".to_owned()),
        "SVC_GET_LPR" | "SVC_GET_NETNS" => (None, "SvcGetValueResp".to_owned()),
        "TRIG_CP_ALLOC" => (None, "CpAllocResp".to_owned()),
        "CQ_ALLOC_BUF" => (None, "CqAllocResp".to_owned()),
        "PTE_STATUS" => (None, "PteStatus".to_owned()),
        _ => (None, format!("{}Resp", camel(op))),
    };
    layout(&name, release).map(|layout| (wrapper, layout))
}

/// The array that a list command fills: its name and the struct of its entries.
pub fn list(op: &str, release: DriverRelease) -> Option<(&'static str, &'static StructLayout)> {
    let (field, name) = match op {
        "SVC_LIST_GET" => ("svc_list", "SvcDesc"),
        "SVC_RSRC_LIST_GET" => ("rsrc_list", "RsrcUse"),
        _ => return None,
    };
    layout(name, release).map(|layout| (field, layout))
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// An integer; the flag says whether it is signed.
    Integer(bool),
    /// A struct.
    Struct(&'static StructLayout),
}

/// The type of a field's elements, the size of one, and whether it is an array.
pub fn elements(field: &FieldLayout, release: DriverRelease) -> Option<(Kind, usize, bool)> {
    let (name, is_array) = match field.type_name.strip_prefix('[') {
        Some(array) => (array.split(';').next()?.trim(), true),
        None => (field.type_name, false),
    };
    let bits = name
        .strip_prefix(['u', 'i'])
        .and_then(|bits| bits.parse::<usize>().ok());
    if let Some(bits) = bits {
        return Some((Kind::Integer(name.starts_with('i')), bits / 8, is_array));
    }
    let name = name.rsplit("::").next()?;
    let layout = layout(name, release)?;
    Some((Kind::Struct(layout), layout.size, is_array))
}

fn camel(op: &str) -> String {
    let mut name = String::new();
    for word in op.split('_') {
        let (head, tail) = word.split_at(word.len().min(1));
        name.push_str(head);
        name.push_str(&tail.to_lowercase());
    }
    name
}
