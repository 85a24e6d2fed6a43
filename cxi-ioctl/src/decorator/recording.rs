//! A recording, as plain data.

use std::fmt;

use crate::{Errno, Opcode};

/// A request to a transport and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
#[non_exhaustive]
pub enum Exchange {
    /// A command.
    Command {
        /// Its bytes, with zeros where addresses go.
        #[cfg_attr(feature = "serde", serde(with = "hex"))]
        command: Vec<u8>,
        /// The answer.
        result: Result<(), Errno>,
        /// The response buffer up to the last byte that the driver changed.
        #[cfg_attr(feature = "serde", serde(with = "hex"))]
        response: Vec<u8>,
        /// The list buffer up to the last byte that the driver changed.
        #[cfg_attr(feature = "serde", serde(with = "hex"))]
        list: Vec<u8>,
    },
    /// A window was mapped; its contents are not recorded.
    Map {
        /// File offset of the window.
        offset: u64,
        /// Length in bytes.
        len: usize,
        /// The answer.
        result: Result<(), Errno>,
    },
}

impl Exchange {
    /// The opcode of a command; `None` for a mapping or less than four bytes.
    #[must_use]
    pub fn opcode(&self) -> Option<Opcode> {
        let number = self.command().first_chunk()?;
        Some(Opcode::from_number(u32::from_ne_bytes(*number)))
    }

    /// The answer.
    ///
    /// # Errors
    ///
    /// The driver's errno.
    pub fn result(&self) -> Result<(), Errno> {
        match self {
            Self::Command { result, .. } | Self::Map { result, .. } => *result,
        }
    }

    /// The bytes of a command; empty for a mapping.
    #[must_use]
    pub fn command(&self) -> &[u8] {
        match self {
            Self::Command { command, .. } => command,
            Self::Map { .. } => &[],
        }
    }

    /// Returns the bytes that the driver wrote to the response of a command; empty for a mapping.
    #[must_use]
    pub fn response(&self) -> &[u8] {
        match self {
            Self::Command { response, .. } => response,
            Self::Map { .. } => &[],
        }
    }
}

impl fmt::Display for Exchange {
    /// One line without the bytes: `SVC_DESTROY 8 bytes: EBUSY`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changed = match self {
            Self::Command { command, response, list, .. } => {
                let opcode = self.opcode().unwrap_or(Opcode::from_number(0));
                write!(f, "{opcode} {} bytes", command.len())?;
                [("response", response.len()), ("list", list.len())]
            }
            Self::Map { offset, len, .. } => {
                write!(f, "mapping of {len} bytes at offset {offset:#x}")?;
                [("", 0); 2]
            }
        };
        match self.result() {
            Ok(()) => f.write_str(": ok")?,
            Err(errno) => write!(f, ": {errno}")?,
        }
        let mut changed = changed.into_iter().filter(|(_, len)| *len > 0);
        changed.try_for_each(|(what, len)| write!(f, ", {what} of {len} bytes"))
    }
}

/// Everything that went through a [`Record`](crate::Record), in order.
///
/// With the feature `serde`, it is kept as a list of exchanges, with the bytes in hexadecimal as
/// they are in memory, and an errno as its number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
#[non_exhaustive]
pub struct Recording {
    /// The exchanges, oldest first.
    pub exchanges: Vec<Exchange>,
}

impl Recording {
    /// The commands, oldest first.
    pub fn opcodes(&self) -> impl Iterator<Item = Opcode> {
        self.exchanges.iter().filter_map(Exchange::opcode)
    }
}

/// Bytes in hexadecimal.
pub(crate) struct Hex<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(feature = "serde")]
mod hex {
    use serde::de::{Deserialize, Deserializer, Error, Unexpected};
    use serde::ser::Serializer;

    use super::Hex;

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&Hex(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        let digit = |digit| u8::try_from(char::from(digit).to_digit(16)?).ok();
        let (pairs, rest) = text.as_bytes().as_chunks();
        pairs
            .iter()
            .map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?))
            .collect::<Option<_>>()
            .filter(|_| rest.is_empty())
            .ok_or_else(|| Error::invalid_value(Unexpected::Str(&text), &"bytes in hexadecimal"))
    }
}
