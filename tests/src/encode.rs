//! From the fields of a scenario's `cmd` to the bytes of a request.

use cxi_ioctl::DriverRelease;
use cxi_ioctl::abi::portal::PtOptions;
use cxi_ioctl::layout::StructLayout;
use serde_json::{Map, Value};

use crate::uapi::{self, Kind};

/// Fields that the transport fills in: no scenario may set them.
const ADDRESSES: [&str; 4] = ["op", "resp", "svc_list", "rsrc_list"];

/// The bytes of a request.
///
/// # Errors
///
/// A command that the release does not have, a field it does not have, or a value that does not
/// fit; with the path.
pub fn request(
    op: &str,
    cmd: &Map<String, Value>,
    release: DriverRelease,
) -> Result<Vec<u8>, String> {
    let layout = uapi::request(op, release)
        .ok_or_else(|| format!("driver {release} has no operation {op}"))?;
    let opcode = uapi::opcode(op).ok_or_else(|| format!("unknown operation {op}"))?;
    let mut bytes = vec![0; layout.size];
    if let Some(start) = bytes.get_mut(..4) {
        start.copy_from_slice(&opcode.number().to_le_bytes());
    }
    for (name, value) in cmd {
        if name.starts_with("__") {
            continue;
        }
        if ADDRESSES.contains(&name.as_str()) {
            return Err(format!("cmd.{name} is filled in by the transport"));
        }
        field(
            layout,
            name,
            value,
            release,
            &mut bytes,
            &format!("cmd.{name}"),
        )?;
    }
    Ok(bytes)
}

fn object(
    layout: &StructLayout,
    value: &Value,
    release: DriverRelease,
    bytes: &mut [u8],
    path: &str,
) -> Result<(), String> {
    let map = value
        .as_object()
        .ok_or_else(|| format!("{path}: expected an object, got {value}"))?;
    for (name, value) in map {
        field(
            layout,
            name,
            value,
            release,
            bytes,
            &format!("{path}.{name}"),
        )?;
    }
    Ok(())
}

/// Puts one field of a struct; `bytes` is the struct.
fn field(
    layout: &StructLayout,
    name: &str,
    value: &Value,
    release: DriverRelease,
    bytes: &mut [u8],
    path: &str,
) -> Result<(), String> {
    let name = match (layout.name, name) {
        ("SvcDesc", "cntr_pool_id") => {
            return bits(value, uapi::CNTR_POOL_SHIFT, 2, bytes, path);
        }
        ("SvcDesc", flag) if uapi::SERVICE_FLAGS.contains(&flag) => {
            let bit = position(&uapi::SERVICE_FLAGS, flag);
            return bits(value, bit, 1, bytes, path);
        }
        ("PtAllocOpts", option) => {
            let flag = PtOptions::from_name(&option.to_uppercase())
                .ok_or_else(|| format!("{path}: PtlTEs have no such option"))?;
            return bits(value, flag.bits().trailing_zeros(), 1, bytes, path);
        }
        ("RsrcLimits", resource) => {
            let index = uapi::RESOURCES
                .iter()
                .position(|known| *known == resource)
                .ok_or_else(|| format!("{path}: no such resource type"))?;
            let limits = uapi::layout("Limits", release)
                .ok_or_else(|| format!("{path}: the struct of one limit is not known"))?;
            let at = index * limits.size;
            let slot = slice(bytes, at, limits.size, path)?;
            return object(limits, value, release, slot, path);
        }
        ("SvcMember", "type") => "kind",
        ("SvcMember", "uid" | "gid") => "id",
        (_, "flags") if layout.name == "SvcDesc" => "",
        (_, name) => name,
    };
    let field = layout
        .fields
        .iter()
        .find(|field| field.name == name && !name.starts_with('_'))
        .ok_or_else(|| format!("{path}: {} has no such field", layout.c_name))?;
    let (kind, size, is_array) = uapi::elements(field, release)
        .ok_or_else(|| format!("{path}: type {} is not known", field.type_name))?;
    let room = slice(bytes, field.offset, field.size, path)?;
    if !is_array {
        return element(kind, value, release, room, path);
    }
    let values = value
        .as_array()
        .ok_or_else(|| format!("{path}: expected an array, got {value}"))?;
    let count = field.size.checked_div(size).unwrap_or(0);
    if values.len() > count {
        return Err(format!(
            "{path}: at most {count} entries, got {}",
            values.len()
        ));
    }
    for (index, (value, room)) in values.iter().zip(room.chunks_mut(size)).enumerate() {
        element(kind, value, release, room, &format!("{path}[{index}]"))?;
    }
    Ok(())
}

fn element(
    kind: Kind,
    value: &Value,
    release: DriverRelease,
    bytes: &mut [u8],
    path: &str,
) -> Result<(), String> {
    match kind {
        Kind::Struct(layout) => object(layout, value, release, bytes, path),
        Kind::Integer(signed) => {
            let number =
                number(value).ok_or_else(|| format!("{path}: expected a number, got {value}"))?;
            let width = u32::try_from(bytes.len() * 8).unwrap_or(u32::MAX);
            // As in C: a negative number is welcome in an unsigned field.
            let low = -(1_i128 << (width - 1));
            let high = (1_i128 << (width - u32::from(signed))) - 1;
            if number < low || number > high {
                return Err(format!("{path}: {number} is not in {low}..={high}"));
            }
            for (byte, value) in bytes.iter_mut().zip(number.to_le_bytes()) {
                *byte = value;
            }
            Ok(())
        }
    }
}

/// ORs a bit field into the integer that `bytes` starts with.
fn bits(value: &Value, shift: u32, width: u32, bytes: &mut [u8], path: &str) -> Result<(), String> {
    let number = number(value)
        .filter(|number| (0..1 << width).contains(number))
        .ok_or_else(|| format!("{path}: a field of {width} bit, got {value}"))?;
    let field = (number << shift).to_le_bytes();
    for (byte, bits) in bytes.iter_mut().zip(field) {
        *byte |= bits;
    }
    Ok(())
}

/// A number, a truth value, or the name of a member type.
pub(crate) fn number(value: &Value) -> Option<i128> {
    match value {
        Value::Bool(flag) => Some(i128::from(*flag)),
        Value::Number(number) => number
            .as_i64()
            .map(i128::from)
            .or_else(|| number.as_u64().map(i128::from)),
        Value::String(name) => uapi::MEMBER_TYPES
            .iter()
            .position(|known| known == name)
            .and_then(|index| i128::try_from(index).ok()),
        _ => None,
    }
}

fn position(names: &[&str], name: &str) -> u32 {
    let index = names.iter().position(|known| *known == name);
    index
        .and_then(|index| u32::try_from(index).ok())
        .unwrap_or(0)
}

fn slice<'a>(
    bytes: &'a mut [u8],
    at: usize,
    size: usize,
    path: &str,
) -> Result<&'a mut [u8], String> {
    bytes
        .get_mut(at..)
        .and_then(|rest| rest.get_mut(..size))
        .ok_or_else(|| format!("{path}: outside the struct"))
}
