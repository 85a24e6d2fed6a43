//! Converts the fields of a scenario's `cmd` to the bytes of a request.

use cxi_ioctl::DriverRelease;
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
    bytes[..4].copy_from_slice(&opcode.number().to_le_bytes());
    if let Some(name) = ADDRESSES.iter().find(|name| cmd.contains_key(**name)) {
        return Err(format!("cmd.{name} is filled in by the transport"));
    }
    let fields = cmd.iter().filter(|(name, _)| !name.starts_with("__"));
    object(layout, fields, release, &mut bytes, "cmd")?;
    Ok(bytes)
}

/// Puts the fields of a struct; `bytes` is the struct.
fn object<'a>(
    layout: &StructLayout,
    values: impl Iterator<Item = (&'a String, &'a Value)>,
    release: DriverRelease,
    bytes: &mut [u8],
    path: &str,
) -> Result<(), String> {
    let fields = uapi::fields(layout, release);
    for (name, value) in values {
        let path = format!("{path}.{name}");
        let field = fields
            .iter()
            .find(|field| field.name == *name)
            .ok_or_else(|| format!("{path}: {} has no such field", layout.c_name))?;
        let room = &mut bytes[field.offset..];
        let Some(count) = field.count else {
            element(field.kind, value, release, &mut room[..field.size], &path)?;
            continue;
        };
        let values =
            value.as_array().ok_or_else(|| format!("{path}: expected an array, got {value}"))?;
        if values.len() > count {
            let got = values.len();
            return Err(format!("{path}: at most {count} entries, got {got}"));
        }
        for (index, (value, room)) in values.iter().zip(room.chunks_mut(field.size)).enumerate() {
            element(field.kind, value, release, room, &format!("{path}[{index}]"))?;
        }
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
    let number = || number(value).ok_or_else(|| format!("{path}: expected a number, got {value}"));
    let signed = match kind {
        Kind::Struct(layout) => {
            let values = value
                .as_object()
                .ok_or_else(|| format!("{path}: expected an object, got {value}"))?;
            return object(layout, values.iter(), release, bytes, path);
        }
        Kind::Bits { shift, width } => {
            let number = number()?;
            if !(0..1 << width).contains(&number) {
                return Err(format!("{path}: a field of {width} bit, got {value}"));
            }
            // Other fields share the integer.
            for (byte, bits) in bytes.iter_mut().zip((number << shift).to_le_bytes()) {
                *byte |= bits;
            }
            return Ok(());
        }
        Kind::Integer(signed) => signed,
        Kind::MemberType => false,
    };
    let number = number()?;
    let width = bytes.len() * 8;
    // As in C: a negative number is welcome in an unsigned field.
    let low = -(1_i128 << (width - 1));
    let high = (1_i128 << (width - usize::from(signed))) - 1;
    if number < low || number > high {
        return Err(format!("{path}: {number} is not in {low}..={high}"));
    }
    bytes.copy_from_slice(&number.to_le_bytes()[..bytes.len()]);
    Ok(())
}

/// A number, a truth value, or the name of a member type.
pub(crate) fn number(value: &Value) -> Option<i128> {
    match value {
        Value::Bool(flag) => Some(i128::from(*flag)),
        Value::Number(number) => number.as_i128(),
        Value::String(name) => {
            let index = uapi::MEMBER_TYPES.iter().position(|known| known == name);
            index.and_then(|index| i128::try_from(index).ok())
        }
        _ => None,
    }
}
