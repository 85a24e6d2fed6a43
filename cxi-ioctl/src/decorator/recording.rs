//! A recording, as plain data and as text.

use std::fmt;
use std::str::FromStr;

use crate::{Errno, Opcode};

/// A request to a transport and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exchange {
    /// A command.
    Command {
        /// Its bytes, with zeros where addresses go.
        command: Vec<u8>,
        /// The answer.
        result: Result<(), Errno>,
        /// The response buffer up to the last byte that the driver changed.
        response: Vec<u8>,
        /// The list buffer up to the last byte that the driver changed.
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

    /// What the driver wrote to the response of a command; empty for a mapping.
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
            Self::Command {
                command,
                response,
                list,
                ..
            } => {
                let opcode = self.opcode().unwrap_or(Opcode::from_number(0));
                write!(f, "{opcode} {} bytes", command.len())?;
                [("response", response.len()), ("list", list.len())]
            }
            Self::Map { offset, len, .. } => {
                write!(f, "mapping of {len} bytes at offset {offset:#x}")?;
                [("", 0); 2]
            }
        };
        write!(f, ": {}", Outcome(self.result()))?;
        let mut changed = changed.into_iter().filter(|(_, len)| *len > 0);
        changed.try_for_each(|(what, len)| write!(f, ", {what} of {len} bytes"))
    }
}

/// Everything that went through a [`Record`](crate::Record), in order.
///
/// As text ([`Display`](fmt::Display), [`FromStr`]) it is one line for each exchange, with the
/// bytes in hexadecimal as they are in memory, and `-` for none. Text after `#` is a comment, which
/// is where the names of the commands are.
///
/// ```
/// use cxi_ioctl::Recording;
///
/// let text = "\
/// cxi-recording 1
/// command 1d00000007000000 EBUSY response - list -  # SVC_DESTROY
/// map 4096 8192 ok
/// ";
/// let recording: Recording = text.parse()?;
/// assert_eq!(recording.exchanges.len(), 2);
/// assert_eq!(recording.to_string(), text);
/// # Ok::<(), cxi_ioctl::ParseRecordingError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

const HEADER: &str = "cxi-recording 1";

impl fmt::Display for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}")?;
        for exchange in &self.exchanges {
            match exchange {
                Exchange::Command {
                    command,
                    result,
                    response,
                    list,
                } => {
                    let (command, response, list) = (Hex(command), Hex(response), Hex(list));
                    let outcome = Outcome(*result);
                    write!(
                        f,
                        "command {command} {outcome} response {response} list {list}"
                    )?;
                    if let Some(opcode) = exchange.opcode() {
                        write!(f, "  # {opcode}")?;
                    }
                    writeln!(f)?;
                }
                Exchange::Map {
                    offset,
                    len,
                    result,
                } => writeln!(f, "map {offset} {len} {}", Outcome(*result))?,
            }
        }
        Ok(())
    }
}

/// A text that is not a recording.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the recording: expected {expected}, found '{found}'")]
#[non_exhaustive]
pub struct ParseRecordingError {
    /// Line, from 1.
    pub line: usize,
    /// What was expected.
    pub expected: &'static str,
    /// What was found.
    pub found: String,
}

impl FromStr for Recording {
    type Err = ParseRecordingError;

    fn from_str(text: &str) -> Result<Self, ParseRecordingError> {
        let mut lines = text.lines().enumerate().map(|(index, line)| {
            let content = line.split('#').next().unwrap_or_default().trim();
            (index + 1, content)
        });
        let first = lines.next().unwrap_or((1, ""));
        if first.1 != HEADER {
            return Err(ParseRecordingError {
                line: first.0,
                expected: "'cxi-recording 1'",
                found: first.1.to_owned(),
            });
        }
        let exchanges = lines
            .filter(|(_, content)| !content.is_empty())
            .map(|(line, content)| {
                exchange(content).map_err(|(expected, found)| ParseRecordingError {
                    line,
                    expected,
                    found: found.to_owned(),
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { exchanges })
    }
}

type Wrong<'a> = (&'static str, &'a str);

fn exchange(line: &str) -> Result<Exchange, Wrong<'_>> {
    let mut words = line.split_whitespace();
    let mut word = || words.next().unwrap_or_default();
    let exchange = match word() {
        "command" => Exchange::Command {
            command: hex(word())?,
            result: answer(word())?,
            response: keyword("response", word()).and_then(|()| hex(word()))?,
            list: keyword("list", word()).and_then(|()| hex(word()))?,
        },
        "map" => Exchange::Map {
            offset: number(word())?,
            len: number(word())?,
            result: answer(word())?,
        },
        other => return Err(("'command' or 'map'", other)),
    };
    match words.next() {
        None => Ok(exchange),
        Some(rest) => Err(("the end of the line", rest)),
    }
}

fn keyword<'a>(expected: &'static str, found: &'a str) -> Result<(), Wrong<'a>> {
    if found == expected {
        Ok(())
    } else {
        Err((expected, found))
    }
}

fn number<T: FromStr>(word: &str) -> Result<T, Wrong<'_>> {
    word.parse().map_err(|_| ("a number", word))
}

fn answer(word: &str) -> Result<Result<(), Errno>, Wrong<'_>> {
    if word == "ok" {
        return Ok(Ok(()));
    }
    let errno = match word.parse::<i32>() {
        Ok(number) => Some(Errno::from_raw(number)),
        Err(_) => word.parse().ok(),
    };
    match errno {
        Some(errno) => Ok(Err(errno)),
        None => Err(("'ok', the name of an error or its number", word)),
    }
}

fn hex(word: &str) -> Result<Vec<u8>, Wrong<'_>> {
    const EXPECTED: &str = "bytes in hexadecimal, or '-' for none";
    if word == "-" {
        return Ok(Vec::new());
    }
    let (pairs, []) = word.as_bytes().as_chunks::<2>() else {
        return Err((EXPECTED, word));
    };
    if pairs.is_empty() {
        return Err((EXPECTED, word));
    }
    pairs
        .iter()
        .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?))
        .collect::<Option<_>>()
        .ok_or((EXPECTED, word))
}

fn digit(character: u8) -> Option<u8> {
    let value = char::from(character).to_digit(16)?;
    u8::try_from(value).ok()
}

/// Bytes in the text form.
pub(crate) struct Hex<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("-");
        }
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

struct Outcome(Result<(), Errno>);

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Ok(()) => f.write_str("ok"),
            Err(errno) if errno.name().is_some() => write!(f, "{errno}"),
            Err(errno) => write!(f, "{}", errno.raw()),
        }
    }
}
