//! The structs of each command in a release, and the differences between the kernel's names and ours.

use cxi_ioctl::abi::portal::PtOptions;
use cxi_ioctl::layout::{FieldLayout, StructLayout};
use cxi_ioctl::{DriverRelease, Opcode, abi};

/// Keys of `limits`, in the order of the resource types.
const RESOURCES: [&str; 8] = ["ptes", "txqs", "tgqs", "eqs", "cts", "les", "tles", "acs"];

/// Names of member types, by number.
pub const MEMBER_TYPES: [&str; 4] = ["IGNORE", "UID", "GID", "NET_NS"];

/// Flag bits of a service descriptor.
const SERVICE_FLAGS: [&str; 6] = [
    "restricted_members",
    "restricted_vnis",
    "restricted_tcs",
    "resource_limits",
    "enable",
    "is_system_svc",
];

/// Position of `cntr_pool_id` in the flag byte of a service descriptor.
const CNTR_POOL_SHIFT: u32 = 6;

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
    Opcode::all().iter().find(|info| info.name == name).map(|info| info.opcode)
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

/// The type of a field.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// An integer; the flag says whether it is signed.
    Integer(bool),
    /// Some bits of an integer. A single bit is a Boolean.
    Bits {
        /// The lowest bit.
        shift: u32,
        /// Number of bits.
        width: u32,
    },
    /// One of [`MEMBER_TYPES`].
    MemberType,
    /// A struct.
    Struct(&'static StructLayout),
}

/// A field under the kernel's name, which scenarios use.
#[derive(Clone, Debug)]
pub struct Field {
    /// The name.
    pub name: String,
    /// First byte in the struct.
    pub offset: usize,
    /// Bytes of an element.
    pub size: usize,
    /// Elements, if it is an array.
    pub count: Option<usize>,
    /// The type of an element.
    pub kind: Kind,
}

/// The fields of a struct by the kernel's names. They differ from ours where the kernel has bit
/// fields, unions, and a struct where we have an array.
///
/// # Panics
///
/// A field has a type that is not of the interface.
pub fn fields(layout: &StructLayout, release: DriverRelease) -> Vec<Field> {
    let mut fields = Vec::new();
    for ours in layout.fields.iter().filter(|ours| !ours.name.starts_with('_')) {
        let (kind, size, count) = elements(ours, release)
            .unwrap_or_else(|| panic!("{}: unknown type {}", ours.name, ours.type_name));
        let field = |name: &str, kind| Field {
            name: name.to_owned(),
            offset: ours.offset,
            size,
            count: None,
            kind,
        };
        let bits = |shift, width| Kind::Bits { shift, width };
        match (layout.name, ours.name) {
            ("SvcDesc", "flags") => {
                let flags = SERVICE_FLAGS.iter().zip(0..);
                fields.extend(flags.map(|(name, bit)| field(name, bits(bit, 1))));
                fields.push(field("cntr_pool_id", bits(CNTR_POOL_SHIFT, 2)));
            }
            ("PtAllocOpts", _) => {
                let options = PtOptions::all().iter_names();
                fields.extend(options.map(|(name, flag)| {
                    field(&name.to_lowercase(), bits(flag.bits().trailing_zeros(), 1))
                }));
            }
            ("RsrcLimits", _) => {
                let resources = RESOURCES.iter().zip(0..);
                fields.extend(resources.map(|(name, index)| Field {
                    offset: ours.offset + index * size,
                    ..field(name, kind)
                }));
            }
            ("SvcMember", "kind") => fields.push(field("type", Kind::MemberType)),
            ("SvcMember", "id") => fields.extend(["uid", "gid"].map(|name| field(name, kind))),
            (_, name) => fields.push(Field { count, ..field(name, kind) }),
        }
    }
    fields
}

/// The type of one of our fields, the size of an element, and the number of elements if it is an array.
fn elements(field: &FieldLayout, release: DriverRelease) -> Option<(Kind, usize, Option<usize>)> {
    let (name, is_array) = match field.type_name.strip_prefix('[') {
        Some(array) => (array.split(';').next()?.trim(), true),
        None => (field.type_name, false),
    };
    let bits = name.strip_prefix(['u', 'i']);
    let (kind, size) = if let Some(bits) = bits.and_then(|bits| bits.parse::<usize>().ok()) {
        (Kind::Integer(name.starts_with('i')), bits / 8)
    } else {
        let layout = layout(name.rsplit("::").next()?, release)?;
        (Kind::Struct(layout), layout.size)
    };
    Some((kind, size, is_array.then(|| field.size / size)))
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
