//! Parsing an id set.

use std::fmt;
use std::str::FromStr;

use super::IdSet;

/// Why a text is not an id set, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {position}: {kind}")]
pub struct ParseIdSetError {
    position: usize,
    kind: ParseIdSetErrorKind,
}

impl ParseIdSetError {
    /// Byte offset, from 0, of what is wrong; the length of the text if something is missing at its
    /// end.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.position
    }

    /// What is wrong.
    #[must_use]
    pub const fn kind(&self) -> &ParseIdSetErrorKind {
        &self.kind
    }
}

/// What is wrong at the position of a [`ParseIdSetError`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseIdSetErrorKind {
    /// Something else was expected here.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// What was expected.
        expected: Expected,
        /// What was found.
        found: Found,
    },
    /// An id is above 65535.
    #[error("id is too large: the largest is 65535")]
    TooLarge,
    /// An id has leading zeros.
    #[error("id starts with 0: write it without leading zeros")]
    LeadingZero,
    /// A range runs downwards.
    #[error("range runs from {first} down to {last}: the smaller id comes first")]
    Descending {
        /// The id before the hyphen.
        first: u16,
        /// The id after the hyphen.
        last: u16,
    },
    /// An id occurs twice.
    #[error("id {id} is in the set twice")]
    Repeated {
        /// The smallest id that is repeated.
        id: u16,
    },
}

/// What was expected where a text is not an id set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expected {
    /// A decimal number.
    Id,
    /// The number after the hyphen.
    RangeEnd {
        /// The number before the hyphen.
        first: u16,
    },
    /// A comma or hyphen, or the end.
    Separator,
    /// A comma, or the end.
    Comma,
    /// Nothing: the set was complete.
    End,
    /// `]`, because the set began with `[`.
    ClosingBracket,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id => f.write_str("an id (a decimal number up to 65535)"),
            Self::RangeEnd { first } => {
                write!(f, "the last id of the range that starts with {first}")
            }
            Self::Separator => f.write_str("',', '-' or the end"),
            Self::Comma => f.write_str("',' or the end"),
            Self::End => f.write_str("the end"),
            Self::ClosingBracket => f.write_str("']' because the set starts with '['"),
        }
    }
}

/// What was found where a text is not an id set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// A character.
    Char(char),
    /// The end of the text.
    End,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Char(' ' | '\t') => f.write_str("a blank"),
            Self::Char(c) => write!(f, "{c:?}"),
            Self::End => f.write_str("the end"),
        }
    }
}

struct Cursor<'a> {
    text: &'a str,
    position: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<char> {
        self.text.get(self.position..)?.chars().next()
    }

    fn eat(&mut self, wanted: char) -> bool {
        let there = self.peek() == Some(wanted);
        if there {
            self.position += wanted.len_utf8();
        }
        there
    }

    fn unexpected(&self, expected: Expected) -> ParseIdSetError {
        let found = self.peek().map_or(Found::End, Found::Char);
        error(
            self.position,
            ParseIdSetErrorKind::Unexpected { expected, found },
        )
    }

    fn number(&mut self, expected: Expected) -> Result<u16, ParseIdSetError> {
        let start = self.position;
        let rest = self.text.get(start..).unwrap_or_default();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Err(self.unexpected(expected));
        }
        self.position += digits;
        let digits = rest.get(..digits).unwrap_or_default();
        if digits.len() > 1 && digits.starts_with('0') {
            return Err(error(start, ParseIdSetErrorKind::LeadingZero));
        }
        digits
            .parse()
            .map_err(|_| error(start, ParseIdSetErrorKind::TooLarge))
    }
}

const fn error(position: usize, kind: ParseIdSetErrorKind) -> ParseIdSetError {
    ParseIdSetError { position, kind }
}

impl FromStr for IdSet {
    type Err = ParseIdSetError;

    /// Parses an id set; its parts may be in any order, but no id may occur twice.
    fn from_str(text: &str) -> Result<Self, ParseIdSetError> {
        let mut set = Self::new();
        let mut cursor = Cursor { text, position: 0 };
        let bracket = cursor.eat('[');
        let at_end = |cursor: &Cursor<'_>| match cursor.peek() {
            None => true,
            Some(c) => bracket && c == ']',
        };
        if !at_end(&cursor) {
            loop {
                member(&mut cursor, &mut set, bracket)?;
                if !cursor.eat(',') {
                    break;
                }
            }
        }
        if bracket && !cursor.eat(']') {
            return Err(cursor.unexpected(Expected::ClosingBracket));
        }
        if cursor.peek().is_some() {
            return Err(cursor.unexpected(Expected::End));
        }
        Ok(set)
    }
}

fn member(cursor: &mut Cursor<'_>, set: &mut IdSet, bracket: bool) -> Result<(), ParseIdSetError> {
    let start = cursor.position;
    let first = cursor.number(Expected::Id)?;
    let ranged = cursor.eat('-');
    let last = if ranged {
        cursor.number(Expected::RangeEnd { first })?
    } else {
        first
    };
    if last < first {
        return Err(error(
            start,
            ParseIdSetErrorKind::Descending { first, last },
        ));
    }
    match cursor.peek() {
        None | Some(',') => {}
        Some(']') if bracket => {}
        Some(_) if ranged => return Err(cursor.unexpected(Expected::Comma)),
        Some(_) => return Err(cursor.unexpected(Expected::Separator)),
    }
    if let Some(id) = set.next_from(first).filter(|id| *id <= last) {
        return Err(error(start, ParseIdSetErrorKind::Repeated { id }));
    }
    set.insert_range(first..=last);
    Ok(())
}
