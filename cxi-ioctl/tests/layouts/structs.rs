use std::collections::{BTreeMap, BTreeSet};

use cxi_ioctl::abi::portal::PtOptions;
use cxi_ioctl::abi::service::{
    RSRC_AC, RSRC_CT, RSRC_EQ, RSRC_LE, RSRC_PTE, RSRC_TGQ, RSRC_TLE, RSRC_TXQ, SvcFlags,
};
use cxi_ioctl::abi::{self, layouts};
use cxi_ioctl::layout::StructLayout;
use serde_json::{Map, Value};

use crate::recorded::{self, Recorded, objects, size};
use crate::{LeftOut, Reasons, report};

/// Fields whose name here is not the kernel's: struct here, field here, field there.
const RENAMED: &[(&str, &str, &str)] = &[
    ("SvcMember", "id", "svc_member"),
    ("SvcMember", "kind", "type"),
    ("RsrcLimits", "types", "type"),
];

/// Fields here that hold bitfields of the kernel.
const BITFIELDS: &[(&str, &str)] = &[("PtAllocOpts", "bits"), ("SvcDesc", "flags")];

/// Structs that are nothing but their only member, which is the response type here.
const WRAPPERS: &[(&str, &str)] = &[
    ("cxi_dev_info_get_resp", "cxi_dev_info_use"),
    ("cxi_map_csrs_resp", "cxi_mminfo"),
    ("cxi_pte_status_resp", "cxi_pte_status"),
    ("cxi_svc_get_resp", "cxi_svc_desc"),
    ("cxi_svc_rsrc_get_resp", "cxi_rsrc_use"),
];

/// Structs that are not defined here.
const LEFT_OUT: &Reasons = &[
    ("the head of all commands; each has it as its first fields", &["cxi_common_cmd"]),
    ("C library only: no command carries it", &["cxi_cp"]),
    ("what the NIC writes: in `cxi-hw`", &["c_ct_writeback"]),
    ("a way to compute pid_offset of PTE_MAP for multicast", &["cxi_pte_map_offset"]),
    ("a union of two u32: the field id of SvcMember", &["cxi_svc_member"]),
    ("no opcode", &["cxi_tc_cfg_cmd", "cxi_tc_cfg_resp", "cxi_tc_clear_cmd"]),
    ("entry of ATU_MAP_SGT, which is always refused to user processes", &["cxi_sgt_entry"]),
    ("commands that are always refused to user processes (*_SGT, CLEAR_MD)", &["cxi_atu_"]),
    (
        "for the kernel's virtual function driver; unreleased",
        &["cxi_query_version_", "cxi_telem_get_"],
    ),
    (
        "Ethernet of virtual functions, kernel to kernel; unreleased",
        &["cxi_eth_", "cxi_get_tc_req_pcp_resp", "cxi_rmu_eth_"],
    ),
    (
        "for the kernel's virtual function driver; unreleased",
        &["cxi_phys_lac_", "cxi_vf_get_token_"],
    ),
    ("always refused to user processes; unreleased", &["cxi_retry_handler_running_"]),
];

/// Content of a struct in the kernel's header.
#[derive(Default)]
struct Found<'a> {
    /// Name, offset and size of members, those of anonymous members included.
    fields: Vec<(&'a str, usize, usize)>,
    /// Groups of names of which one suffices: the alternatives of a union.
    wanted: Vec<Vec<&'a str>>,
    /// Name, first bit and width.
    bits: Vec<(&'a str, u32, u32)>,
}

impl<'a> Found<'a> {
    fn collect(members: &'a Value) -> Self {
        let mut found = Self::default();
        for field in objects(members) {
            let name = field["name"].as_str().unwrap_or_default();
            if let Some(bitfield) = field.get("bitfield").and_then(Value::as_object) {
                let bit = |key| u32::try_from(size(bitfield, key)).expect("a bit");
                found.bits.push((name, bit("bit_in_struct"), bit("width")));
            } else if name.is_empty() {
                let inner = Self::collect(&field["fields"]);
                found.wanted.push(inner.fields.iter().map(|field| field.0).collect());
                found.fields.extend(inner.fields);
                found.bits.extend(inner.bits);
            } else {
                found.fields.push((name, size(field, "offset"), size(field, "size")));
                found.wanted.push(vec![name]);
            }
        }
        found
    }
}

fn kernel_name<'a>(layout: &StructLayout, field: &'a str) -> &'a str {
    RENAMED
        .iter()
        .find(|(structure, here, _)| *structure == layout.name && *here == field)
        .map_or(field, |(_, _, there)| there)
}

/// The recorded struct of a layout, with the offset its fields are relative to.
fn recorded_struct<'a>(
    recorded: &'a Recorded,
    layout: &StructLayout,
) -> Option<(&'a Map<String, Value>, usize, usize)> {
    let structs = recorded.section("structs");
    let Some((outer, member)) = layout.c_name.split_once('.') else {
        let found = structs.get(layout.c_name)?.as_object()?;
        return Some((found, 0, size(found, "size")));
    };
    let field = objects(&structs.get(outer)?["fields"]).find(|field| field["name"] == member)?;
    Some((field, size(field, "offset"), size(field, "elem_size")))
}

fn bytes(offset: usize, size: usize) -> impl Iterator<Item = usize> {
    offset..offset + size
}

fn check(layout: &StructLayout, recorded: &Recorded, problems: &mut Vec<String>) {
    let mut problem = |what: String| {
        let (name, release) = (layout.c_name, recorded.release);
        problems.push(format!("{release}: {} ({name}): {what}", layout.name));
    };
    let Some((found, base, length)) = recorded_struct(recorded, layout) else {
        return problem("not in the kernel's header".to_owned());
    };
    if length != layout.size {
        problem(format!("{} bytes, the kernel has {length}", layout.size));
    }
    let kernel = Found::collect(&found["fields"]);
    let bit_holder =
        BITFIELDS.iter().find(|(name, _)| *name == layout.name).map(|(_, field)| *field);

    let mut end = 0;
    let mut padding = BTreeSet::new();
    for field in layout.fields {
        if field.offset != end {
            problem(format!("a gap or overlap before {}", field.name));
        }
        end = field.offset + field.size;
        if field.name.starts_with("_pad") {
            padding.extend(bytes(field.offset, field.size));
        } else if bit_holder == Some(field.name) {
            let bits = field.offset * 8..(field.offset + field.size) * 8;
            for (name, first, width) in &kernel.bits {
                if !bits.contains(&(*first as usize))
                    || !bits.contains(&((first + width - 1) as usize))
                {
                    problem(format!("bitfield {name} is outside {}", field.name));
                }
            }
        } else {
            let there = kernel_name(layout, field.name);
            let same = kernel
                .fields
                .iter()
                .find(|(name, ..)| *name == there)
                .map(|(_, offset, size)| (offset - base, *size));
            if same != Some((field.offset, field.size)) {
                problem(format!(
                    "{} is at {} with {} bytes, the kernel has {same:?}",
                    field.name, field.offset, field.size
                ));
            }
        }
    }
    if end != layout.size {
        problem(format!("fields end at {end} of {}", layout.size));
    }

    let mut gaps: BTreeSet<usize> = objects(found.get("padding").unwrap_or(&Value::Null))
        .flat_map(|gap| bytes(size(gap, "offset"), size(gap, "size")))
        .collect();
    if let Some(holder) = layout.fields.iter().find(|field| bit_holder == Some(field.name)) {
        for byte in bytes(holder.offset, holder.size) {
            gaps.remove(&byte);
        }
    } else if !kernel.bits.is_empty() {
        problem("has bitfields in the kernel".to_owned());
    }
    if padding != gaps {
        problem(format!("padding bytes {padding:?}, the kernel has {gaps:?}"));
    }

    for names in &kernel.wanted {
        let have = |name: &&str| {
            layout.fields.iter().any(|field| kernel_name(layout, field.name) == *name)
        };
        if !names.iter().any(have) {
            problem(format!("lacks {}", names.join(" or ")));
        }
    }
}

#[test]
fn every_struct_is_as_in_each_release_that_has_it() {
    let mut problems = Vec::new();
    let mut checked = BTreeMap::new();
    for recorded in recorded::all() {
        for layout in layouts().filter(|layout| layout.applies_to(recorded.release)) {
            let outer = layout.c_name.split('.').next().unwrap_or_default();
            // A struct that came with a later release needs no mark: it must only not go again.
            let later = !recorded.section("structs").contains_key(outer)
                && !checked.contains_key(layout.name);
            if !later {
                check(layout, &recorded, &mut problems);
                *checked.entry(layout.name).or_insert(0) += 1;
            }
        }
    }
    for layout in layouts() {
        if !checked.contains_key(layout.name) {
            problems.push(format!("{}: in no release", layout.name));
        }
    }
    report(&problems);
}

#[test]
fn every_struct_of_the_kernel_is_here_or_has_a_reason() {
    let mut problems = Vec::new();
    let mut left_out = LeftOut::new(LEFT_OUT);
    for recorded in recorded::all() {
        let structs = recorded.section("structs");
        for name in structs.keys() {
            let here = layouts()
                .any(|layout| layout.c_name == name && layout.applies_to(recorded.release));
            let wrapper = WRAPPERS.iter().any(|(wrapper, _)| wrapper == name);
            if !(here || wrapper || left_out.has(name)) {
                problems.push(format!("{}: {name} is missing", recorded.release));
            }
        }
        for (wrapper, inner) in WRAPPERS {
            let fields: Vec<_> = objects(&structs[*wrapper]["fields"]).collect();
            assert_eq!(fields.len(), 1, "{wrapper}");
            assert_eq!(size(fields[0], "offset"), 0, "{wrapper}");
            assert_eq!(structs[*wrapper]["size"], structs[*inner]["size"], "{wrapper}");
        }
    }
    left_out.report(problems);
}

/// The bitfields of a struct against named flags: lower-case name, mask.
fn check_bits(c_name: &str, flags: &[(String, u64)], unnamed: &[(&str, u32, u32)]) {
    for recorded in recorded::all() {
        let found = Found::collect(&recorded.section("structs")[c_name]["fields"]);
        let mut left: BTreeMap<&str, u64> = found
            .bits
            .iter()
            .filter(|bits| !unnamed.contains(bits))
            .map(|(name, first, width)| (*name, ((1 << width) - 1) << first))
            .collect();
        assert_eq!(found.bits.len(), left.len() + unnamed.len(), "{c_name}");
        for (name, mask) in flags {
            let kernel = left.remove(name.as_str());
            assert_eq!(kernel, Some(*mask), "{}: {c_name}.{name}", recorded.release);
        }
        assert!(left.is_empty(), "{}: {c_name}: {left:?}", recorded.release);
    }
}

fn named<F: bitflags::Flags<Bits: Into<u64> + Copy>>() -> Vec<(String, u64)> {
    F::FLAGS.iter().map(|flag| (flag.name().to_lowercase(), flag.value().bits().into())).collect()
}

#[test]
fn every_bitfield_is_where_the_kernel_has_it() {
    check_bits("cxi_svc_desc", &named::<SvcFlags>(), &[("cntr_pool_id", 6, 2)]);
    check_bits("cxi_pt_alloc_opts", &named::<PtOptions>(), &[]);
}

#[test]
fn resource_types_index_the_limits() {
    let order = [
        ("ptes", RSRC_PTE),
        ("txqs", RSRC_TXQ),
        ("tgqs", RSRC_TGQ),
        ("eqs", RSRC_EQ),
        ("cts", RSRC_CT),
        ("les", RSRC_LE),
        ("tles", RSRC_TLE),
        ("acs", RSRC_AC),
    ];
    for recorded in recorded::all() {
        let limits = &recorded.section("structs")["cxi_rsrc_limits"]["fields"];
        let union = objects(limits).next().expect("the union");
        let names = objects(&union["fields"]).next().expect("the struct of names");
        let found = Found::collect(&names["fields"]);
        let expected: Vec<_> = order
            .iter()
            .map(|(name, index)| (*name, index * size_of::<abi::service::Limits>(), 4))
            .collect();
        assert_eq!(found.fields, expected);
    }
}
