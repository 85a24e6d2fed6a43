//! From the bytes that the device wrote to JSON with the kernel's names.

use cxi_ioctl::DriverRelease;
use cxi_ioctl::abi::portal::PtOptions;
use cxi_ioctl::layout::StructLayout;
use serde_json::{Map, Value};

use crate::uapi::{self, Kind};

/// The response of a command, with the entries of its list.
///
/// # Errors
///
/// The device wrote another number of bytes than the release writes.
pub fn response(
    op: &str,
    bytes: &[u8],
    list: &[u8],
    release: DriverRelease,
) -> Result<Value, String> {
    let Some((wrapper, layout)) = uapi::response(op, release) else {
        return Err(format!(
            "{op} has no response, {} bytes written",
            bytes.len()
        ));
    };
    if bytes.len() != layout.size {
        return Err(format!(
            "a response of {} bytes written, {op} has {}",
            bytes.len(),
            layout.size
        ));
    }
    let mut response = object(layout, bytes, release);
    if let Some(wrapper) = wrapper {
        let mut outer = Map::new();
        outer.insert(wrapper.to_owned(), response);
        response = Value::Object(outer);
    }
    if let (Some((field, entry)), Value::Object(map)) = (uapi::list(op, release), &mut response) {
        if !list.len().is_multiple_of(entry.size) {
            return Err(format!(
                "a list of {} bytes written, an entry has {}",
                list.len(),
                entry.size
            ));
        }
        let entries = list
            .chunks(entry.size)
            .map(|bytes| object(entry, bytes, release));
        map.insert(field.to_owned(), entries.collect());
    } else if !list.is_empty() {
        return Err(format!("{op} has no list, {} bytes written", list.len()));
    }
    Ok(response)
}

fn object(layout: &StructLayout, bytes: &[u8], release: DriverRelease) -> Value {
    let mut map = Map::new();
    for field in layout
        .fields
        .iter()
        .filter(|field| !field.name.starts_with('_'))
    {
        let room = bytes
            .get(field.offset..field.offset + field.size)
            .unwrap_or_default();
        match (layout.name, field.name) {
            ("SvcDesc", "flags") => flags(integer(room, false), &mut map),
            ("PtAllocOpts", _) => {
                let word = u64::try_from(integer(room, false)).unwrap_or(0);
                for (name, flag) in PtOptions::all().iter_names() {
                    let set = word & flag.bits() != 0;
                    map.insert(name.to_lowercase(), set.into());
                }
            }
            ("RsrcLimits", _) => {
                let size = field.size / uapi::RESOURCES.len();
                if let Some(limits) = uapi::layout("Limits", release) {
                    for (name, bytes) in uapi::RESOURCES.iter().zip(room.chunks(size)) {
                        map.insert((*name).to_owned(), object(limits, bytes, release));
                    }
                }
            }
            ("SvcMember", "kind") => {
                map.insert("type".to_owned(), member_type(integer(room, true)));
            }
            ("SvcMember", "id") => {
                let id = value(Kind::Integer(false), room, release);
                map.insert("uid".to_owned(), id.clone());
                map.insert("gid".to_owned(), id);
            }
            _ => {
                map.insert(field.name.to_owned(), any(field, room, release));
            }
        }
    }
    Value::Object(map)
}

fn any(field: &cxi_ioctl::layout::FieldLayout, bytes: &[u8], release: DriverRelease) -> Value {
    match uapi::elements(field, release) {
        Some((kind, _, false)) => value(kind, bytes, release),
        Some((kind, size, true)) => bytes
            .chunks(size.max(1))
            .map(|bytes| value(kind, bytes, release))
            .collect(),
        None => Value::Null,
    }
}

fn value(kind: Kind, bytes: &[u8], release: DriverRelease) -> Value {
    match kind {
        Kind::Struct(layout) => object(layout, bytes, release),
        Kind::Integer(signed) => {
            let number = integer(bytes, signed);
            i64::try_from(number).map_or_else(
                |_| u64::try_from(number).map_or(Value::Null, Value::from),
                Value::from,
            )
        }
    }
}

fn integer(bytes: &[u8], signed: bool) -> i128 {
    let negative = signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut word = [if negative { 0xFF } else { 0 }; 16];
    for (to, from) in word.iter_mut().zip(bytes) {
        *to = *from;
    }
    i128::from_le_bytes(word)
}

fn flags(byte: i128, map: &mut Map<String, Value>) {
    for (bit, name) in uapi::SERVICE_FLAGS.iter().enumerate() {
        map.insert((*name).to_owned(), (byte >> bit & 1 == 1).into());
    }
    let pool = u64::try_from(byte >> uapi::CNTR_POOL_SHIFT & 3).unwrap_or(0);
    map.insert("cntr_pool_id".to_owned(), pool.into());
}

/// An enumeration, which C prints as a signed number.
fn member_type(number: i128) -> Value {
    let index = usize::try_from(number).ok();
    match index.and_then(|index| uapi::MEMBER_TYPES.get(index)) {
        Some(name) => Value::from(*name),
        None => i64::try_from(number).map_or(Value::Null, Value::from),
    }
}
