//! Converts the bytes that a device wrote to JSON with the kernel's names.

use cxi_ioctl::DriverRelease;
use cxi_ioctl::layout::StructLayout;
use serde_json::{Map, Number, Value};

use crate::uapi::{self, Kind};

/// The response of a command, with the entries of its list.
///
/// # Errors
///
/// The device did not write the number of bytes that the release writes.
pub fn response(
    op: &str,
    bytes: &[u8],
    list: &[u8],
    release: DriverRelease,
) -> Result<Value, String> {
    let (written, in_list) = (bytes.len(), list.len());
    let Some((wrapper, layout)) = uapi::response(op, release) else {
        return Err(format!("{op} has no response, {written} bytes written"));
    };
    let size = layout.size;
    if written != size {
        return Err(format!("a response of {written} bytes written, {op} has {size}"));
    }
    let mut response = object(layout, bytes, release);
    if let Some(wrapper) = wrapper {
        response = Map::from_iter([(wrapper.to_owned(), response.into())]);
    }
    if let Some((field, entry)) = uapi::list(op, release) {
        let size = entry.size;
        if !in_list.is_multiple_of(size) {
            return Err(format!("a list of {in_list} bytes written, an entry has {size}"));
        }
        let entries = list.chunks(size).map(|bytes| object(entry, bytes, release));
        response.insert(field.to_owned(), entries.collect());
    } else if in_list > 0 {
        return Err(format!("{op} has no list, {in_list} bytes written"));
    }
    Ok(response.into())
}

fn object(layout: &StructLayout, bytes: &[u8], release: DriverRelease) -> Map<String, Value> {
    let fields = uapi::fields(layout, release).into_iter().map(|field| {
        let mut elements =
            bytes[field.offset..].chunks(field.size).map(|bytes| value(field.kind, bytes, release));
        let value = match field.count {
            None => elements.next().unwrap_or_default(),
            Some(count) => elements.take(count).collect(),
        };
        (field.name, value)
    });
    fields.collect()
}

fn value(kind: Kind, bytes: &[u8], release: DriverRelease) -> Value {
    match kind {
        Kind::Struct(layout) => object(layout, bytes, release).into(),
        Kind::Integer(signed) => number(integer(bytes, signed)),
        Kind::Bits { shift, width: 1 } => (integer(bytes, false) >> shift & 1 == 1).into(),
        Kind::Bits { shift, width } => number(integer(bytes, false) >> shift & !(-1 << width)),
        // This is an enumeration, which C prints as a signed number.
        Kind::MemberType => {
            let kind = integer(bytes, true);
            let index = usize::try_from(kind).ok();
            let name = index.and_then(|index| uapi::MEMBER_TYPES.get(index));
            name.map_or_else(|| number(kind), |name| (*name).into())
        }
    }
}

fn number(number: i128) -> Value {
    Number::from_i128(number).map_or(Value::Null, Value::Number)
}

fn integer(bytes: &[u8], signed: bool) -> i128 {
    let negative = signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut word = [if negative { 0xFF } else { 0 }; 16];
    word[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(word)
}
